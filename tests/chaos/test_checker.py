"""The checker can fail: each promise, broken by hand in a store that kept all of them, is named."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from oncue.testing.until import until
from tests.chaos.checker import Accepted, Expected, Received, violations
from tests.chaos.facts import Facts, read_facts
from tests.chaos.team import COMPONENTS, Team, read_log
from tests.processes import processes

pytestmark = pytest.mark.anyio

Kept = tuple[Path, list[Received], Expected]
A_RUN = "(select min(id) from runs where cause like 'schedule:%' and state = 'partial')"
DONE = "(select min(id) from runs where cause like 'event:%' and state = 'done')"


@pytest.fixture(scope="module")
async def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A store over which a few seconds of schedule and events went by, with retries, a dead letter and its requeue."""
    folder = tmp_path_factory.mktemp("kept")
    store = folder / "oncue.db"
    with processes(folder) as start:
        team = await Team.open(f"sqlite:///{store}", folder, start)
        await team.apply(team.pages(query="refuse=e2:1,e5:99"), team.orders(), team.reminders())
        running = await team.start(*COMPONENTS)
        async with aiohttp.ClientSession() as session:
            for number in range(3):
                await team.post(session, f"event-{number}", key=f"o{number}")
                team.put_cue(f"c{number}", datetime.now(UTC) + timedelta(seconds=number / 2))

        async def has_dead_letters() -> bool:
            return len((await team.facts()).dead_letters) >= 2

        await until(has_dead_letters, within=timedelta(seconds=30))
        await team.followed_up()
        running.terminate()
        assert await running.wait() == 0, running.output
        ending = await team.start("dispatcher", "failures")
        await team.settled()
        await team.requeue_all()
        await team.settled()
        ending.terminate()
        await ending.wait()
        await team.check()
    return store, list(read_log(team.log)), team.expected


async def facts_after(path: Path, folder: Path, *statements: str) -> Facts:
    """Read a copy of a store in which somebody changed something behind Oncue's back."""
    copy = folder / "copy.db"
    with contextlib.closing(sqlite3.connect(path)) as original, contextlib.closing(sqlite3.connect(copy)) as target:
        original.backup(target)
        with target:
            for statement in statements:
                assert target.execute(statement).rowcount > 0, statement
    return await read_facts(f"sqlite:///{copy}")


async def test_a_store_that_kept_all_promises_passes(kept: Kept, tmp_path: Path) -> None:
    path, log, expected = kept

    assert violations(await facts_after(path, tmp_path), log, expected) == []


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (f"delete from runs where id = {A_RUN}", "is covered 0 times"),
        (
            "insert into ledger select 99, task_id, 1, due_at, due_at, 1, 'missed', 'late', due_at from runs "
            f"where id = {A_RUN}",
            "is covered 2 times",
        ),
        (
            "insert into ledger select 99, task_id, 1, datetime(due_at, '-1 hour') || '+00:00', "
            f"datetime(due_at, '-1 hour') || '+00:00', 1, 'missed', 'late', due_at from runs where id = {A_RUN}",
            "the ledger counts 1 where 0 were due",
        ),
        ("delete from runs where cause like 'event:%0'", "0 runs of orders"),
        ("delete from events where event_id = 'event-1'", "answered with success, and not stored"),
        (f"update runs set resolved = resolved + 1 where id = {A_RUN}", "I3 run"),
        (f"update runs set open = 1, confirmed = confirmed - 1 where id = {A_RUN}", "1 open, but deliveries are"),
        (f"update runs set state = 'done' where id = {A_RUN}", "done with 1 dead"),
        (f"update runs set asked_at = datetime(due_at, '-1 second') || '+00:00' where id = {A_RUN}", "I4 run"),
        (f"update runs set started_at = datetime(due_at, '-1 second') || '+00:00' where id = {A_RUN}", "started_at"),
        ("update schedules set next_at = last_due_at", "is not after last"),
        ("update schedules set next_at = null", "active without a next time"),
        ("update schedules set last_due_at = datetime(last_due_at, '-3 seconds') || '+00:00'", "I5 pages: last"),
        (f"update runs set attempts = 9 where id = {A_RUN}", "9 attempts, 3 allowed"),
        ("update deliveries set attempts = 9", "9 attempts"),
        (f"update runs set state = 'running' where id = {A_RUN}", "still running"),
        ("update deliveries set state = 'waiting' where id = 1", "still waiting"),
        (f"update tasks set slot = {A_RUN} where name = 'pages'", "its slot is held by a run that is partial"),
        ("update dead_letters set state = 'requeuing'", "requeuing, and its requeue is over"),
        ("update requeues set state = 'running'", "still running"),
        ("update requeues set recovered = recovered - 1", "back"),
        (f"update runs set state = 'failed', reason = null where id = {DONE}", "failed without a reason"),
        (f"update runs set ended_at = null where id = {DONE}", "without an end"),
        (f"update runs set state = 'failed', reason = 'x' where id = {DONE}", "failed without a dead letter"),
        ("update deliveries set reason = null where state = 'dead'", "dead without a reason"),
        ("update dead_letters set ended_reason = null", "recovered without a reason"),
        ("update schedules set state = 'stopped'", "stopped without a reason"),
        (
            "update runs set previous_due_at = datetime(previous_due_at, '-1 second') || '+00:00' where is_window",
            "a window begins at",
        ),
        (
            "insert into deliveries select 99, run_id, message_id, key_json, data, requeue, state, reason, ready_at, "
            "attempts, fence, errors, created_at, ended_at from deliveries where id = 1",
            "I2 2 deliveries",
        ),
    ],
)
async def test_a_broken_row_is_named(kept: Kept, tmp_path: Path, statement: str, sentence: str) -> None:
    path, log, expected = kept

    broken = violations(await facts_after(path, tmp_path, statement), log, expected)

    assert any(sentence in one for one in broken), broken


async def test_a_run_that_was_made_twice_is_named(kept: Kept, tmp_path: Path) -> None:
    path, log, expected = kept
    facts = await facts_after(path, tmp_path)
    facts.runs.append({**facts.runs[0], "id": 99})

    broken = violations(facts, log, expected)

    assert any("I2 2 runs" in one for one in broken), broken


def without_first(log: list[Received], **wanted: Any) -> list[Received]:
    kept = [one for one in log if any(getattr(one, name) != value for name, value in wanted.items())]
    assert len(kept) < len(log)
    return kept


async def test_a_log_that_tells_another_story_is_named(kept: Kept, tmp_path: Path) -> None:
    path, log, expected = kept
    facts = await facts_after(path, tmp_path)
    run = next(one for one in log if one.key == "e1")
    requeued = next(one for one in log if one.requeue == 1)
    foreign = replace(run, message_id=requeued.message_id)
    later = run.at + timedelta(hours=1)
    stories = {
        "e1 is lost": without_first(log, run=run.run, key="e1"),
        "confirmed,": without_first(log, run=run.run, key="e1"),
        "is not concerned": [*log, replace(run, key="e9")],
        "came as message": [*log, foreign],
        "which does not exist": [*log, replace(run, run="nobody's")],
        "early": [*log, replace(run, at=run.due - timedelta(seconds=1))],
        "never received again": without_first(log, message_id=requeued.message_id, requeue=1),
        "c1, due at": without_first(log, key="c1"),
        "c2 came as messages": [replace(one, message_id=run.message_id) if one.key == "c2" else one for one in log],
        "c0 came 0:59:59": [replace(one, at=one.at - timedelta(hours=1)) if one.key == "c0" else one for one in log],
        "c9 was handed over, and is not in the data": [
            *log,
            replace(next(one for one in log if one.key == "c0"), key="c9"),
        ],
        "handed over in 2 parts": [replace(one, at=later) if one == run else one for one in log],
    }

    for sentence, story in stories.items():
        broken = violations(facts, story, expected)
        assert any(sentence in one for one in broken), (sentence, broken)


async def test_an_event_that_nobody_stored_is_named(kept: Kept, tmp_path: Path) -> None:
    path, log, expected = kept
    more = replace(expected, accepted=[*expected.accepted, Accepted("shop", "lost", "order.paid", "o9")])

    broken = violations(await facts_after(path, tmp_path), log, more)

    assert broken == ["I1 event lost: answered with success, and not stored", "I1 event lost: 0 runs of orders"]
