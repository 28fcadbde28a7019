"""`oncue demo`, as a newcomer runs it, and its scoreboard, which must be able to say no."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from oncue.cli.demo import scoreboard, worker
from oncue.cli.demo.children import Webhook
from oncue.cli.demo.scoreboard import Evidence, Score
from oncue.model import Event, Run, RunId, TaskId
from oncue.rules.firing import LedgerEntry
from tests.processes import StartProcess

LIMIT = timedelta(seconds=90)
START = datetime(2026, 3, 1, 12, 0, 0, 400_000, tzinfo=UTC)
PERIOD = timedelta(seconds=2)
FIRST, SECOND, WELCOME = (UUID(int=number) for number in (1, 2, 3))


@pytest.mark.anyio
async def test_the_demo_shows_everything_and_says_so(start_process: StartProcess, tmp_path: Path) -> None:
    demo = start_process(sys.executable, "-m", "oncue", "demo", "--once", cwd=tmp_path)

    code = await demo.wait(within=LIMIT)

    assert code == 0, demo.output
    assert "lost: 0" in demo.output
    assert re.search(r"repeated: [1-9]", demo.output)
    assert (tmp_path / "oncue-demo" / "oncue.db").exists()


@pytest.mark.anyio
async def test_a_worker_that_loses_a_record_makes_the_demo_fail(
    start_process: StartProcess, forgetful_worker: Path, tmp_path: Path
) -> None:
    script = (
        f"from oncue.cli.demo import worker; worker.__file__ = {str(forgetful_worker)!r}; "
        "from oncue.cli import main; main()"
    )
    demo = start_process(sys.executable, "-c", script, "demo", "--once", cwd=tmp_path)

    code = await demo.wait(within=LIMIT)

    assert code == 1, demo.output
    assert "lost: 2" in demo.output
    assert "the event of c-045 was taken, and the worker's log has nothing of it" in demo.output


@pytest.fixture
def forgetful_worker(tmp_path: Path) -> Path:
    """The demo's worker, but that it does not write down one welcome."""
    text = Path(worker.__file__).read_text()
    forgetful = tmp_path / "forgetful.py"
    forgetful.write_text(text.replace("self.write(\n", '(key, path) == ("c-045", "/welcome") or self.write(\n'))
    assert forgetful.read_text() != text
    return forgetful


def test_both_sides_agree() -> None:
    score = scoreboard.count(evidence())

    assert score.wrong == []
    assert score.lost == 0
    assert (score.due_times, score.on_time, score.caught_up, score.coalesced) == (4, 1, 1, 2)
    assert (score.confirmed, score.repeated) == (5, 1)


@pytest.mark.parametrize("place", range(6))
def test_no_line_of_the_log_can_be_lost_unseen(place: int) -> None:
    whole = evidence()
    is_repeated = [line.message for line in whole.log].count(whole.log[place].message) > 1
    log = [line for number, line in enumerate(whole.log) if number != place]

    score = scoreboard.count(replace(whole, log=log))

    assert bool(score.lost) is not is_repeated


def test_a_due_time_without_a_run_is_lost() -> None:
    whole = evidence()

    score = scoreboard.count(replace(whole, ledger=[replace(whole.ledger[0], first_due_at=START + 3 * PERIOD)]))

    assert score.lost == 1
    assert said(score, "the due time 12:00:04.400000Z has 0 runs")


def test_a_due_time_that_is_answered_twice_is_wrong() -> None:
    whole = evidence()

    score = scoreboard.count(replace(whole, ledger=[*whole.ledger, whole.ledger[0]]))

    assert said(score, "has 2 runs or lines in the ledger, not one")


def test_an_entity_that_has_not_ended_is_lost() -> None:
    whole = evidence()
    runs = [replace(whole.runs[0], resolved=3), *whole.runs[1:]]

    score = scoreboard.count(replace(whole, runs=runs))

    assert score.lost == 1
    assert said(score, "1 of 3 entities have not ended")


def test_a_run_that_never_ended_is_wrong() -> None:
    whole = evidence()
    runs = [replace(whole.runs[0], state="settling"), *whole.runs[1:]]

    score = scoreboard.count(replace(whole, runs=runs))

    assert said(score, "is settling")


def evidence() -> Evidence:
    """Four due times: the first fires, two are coalesced, the fourth is caught up; and one event."""
    event = Event("started-c", "/shop", "trial.started", START, subject="c")
    return Evidence(
        log=[
            webhook(FIRST, "a"),
            webhook(FIRST, "b"),
            webhook(FIRST, "b"),
            webhook(SECOND, "a"),
            webhook(SECOND, "b"),
            webhook(WELCOME, "c"),
        ],
        runs=[
            run(FIRST, 1, START + PERIOD, confirmed=2),
            run(SECOND, 2, START + 4 * PERIOD, confirmed=2, caught_up=True),
            run(WELCOME, 3, START, confirmed=1, task=2, event=event),
        ],
        ledger=[LedgerEntry(START + 2 * PERIOD, START + 3 * PERIOD, 2, "coalesced", "a later time ran in its place")],
        scheduled_id=1,
        since=START,
        until=START + 4.5 * PERIOD,
        period=PERIOD,
        told=["c"],
    )


def run(
    uuid: UUID,
    number: int,
    due_at: datetime,
    *,
    confirmed: int,
    caught_up: bool = False,
    task: int = 1,
    event: Event | None = None,
) -> Run:
    return Run(
        id=RunId(number),
        uuid=uuid,
        task_id=TaskId(task),
        task_name="reminder",
        task_version=1,
        cause="event:/shop:started-c" if event else "schedule:then",
        due_at=due_at,
        ready_at=due_at,
        state="done",
        reason=None,
        attempts=1,
        fence=1,
        overlap="skip",
        caught_up=caught_up,
        asked_at=due_at,
        started_at=due_at,
        ended_at=due_at,
        cursor=None,
        previous_due_at=None,
        event=event,
        dead_letter_id=None,
        stop_reason=None,
        resolved=confirmed,
        confirmed=confirmed,
    )


def webhook(of_run: UUID, key: str) -> Webhook:
    return Webhook(START, "/remind", f"{of_run}-{key}", key, 1, 0, str(of_run), START, True)


def said(score: Score, words: str) -> bool:
    return any(words in sentence for sentence in score.wrong)
