"""An outage of a task that says `hold`: nothing that was missed runs before a person says so."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from oncue.definition import CatchUp, Misfire
from oncue.engine.watch import examine
from oncue.store import catch_up, tasks, watch
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


async def outage(stage: Stage, misfire: Misfire, **changes: Any) -> None:
    """Be down for ten minutes and a half, and go on."""
    await stage.apply(stage.definition(misfire=misfire, **changes))
    stage.advance(minutes=10, seconds=30)
    await stage.tick()
    await stage.dispatch()


async def release(stage: Stage) -> int:
    ids = [one.task_id for one in await stage.store.read(catch_up.every)]
    return await stage.store.write(catch_up.release, ids, actor="test", now=stage.now)


@pytest.mark.parametrize(
    ("catch_up_policy", "held", "ledger"),
    [("none", [], {"missed": 9}), ("latest", [9], {"coalesced": 8}), ("all", list(range(1, 10)), {})],
)
async def test_what_was_missed_is_held_and_what_is_on_time_runs(
    stage: Stage, catch_up_policy: CatchUp, held: list[int], ledger: dict[str, int]
) -> None:
    await outage(stage, Misfire(catch_up=catch_up_policy, hold=True))

    found = [(run.due_at, run.state) for run in await stage.runs()]
    assert found == [*((minute(number), "held") for number in held), (minute(10), "done")]
    assert await stage.ledger() == ledger


async def test_while_runs_are_held_the_schedule_goes_on_on_time(stage: Stage) -> None:
    await outage(stage, Misfire(catch_up="all", hold=True))

    for _ in range(3):
        await stage.fire_next()

    states = await stage.states()
    assert (states.count("held"), states.count("done")) == (9, 4)


async def test_released_runs_go_one_after_another_in_the_order_of_their_due_times(stage: Stage) -> None:
    await outage(stage, Misfire(catch_up="all", hold=True))
    stage.advance(hours=3)

    count = await release(stage)
    await stage.dispatch()

    caught_up = [run for run in await stage.runs() if run.caught_up]
    assert (count, {run.state for run in caught_up}) == (9, {"done"})
    messages = [message for _, message, _ in stage.worker.took]
    assert len(messages) == len(set(messages)) == 50
    order = [str(run.uuid) for run in caught_up]
    carried = list(dict.fromkeys(one["oncue-run"] for one in stage.worker.headers[5:]))
    assert carried == order


async def test_dropped_runs_end_as_cancelled_and_nothing_of_them_is_sent(stage: Stage) -> None:
    await outage(stage, Misfire(catch_up="all", hold=True))
    ids = [one.task_id for one in await stage.store.read(catch_up.every)]

    count = await stage.store.write(catch_up.drop, ids, reason="too old", actor="test", now=stage.now)
    await stage.dispatch()

    dropped = [run for run in await stage.runs() if run.state == "cancelled"]
    assert (count, len(dropped), {run.reason for run in dropped}) == (9, 9, {"too old"})
    assert len(stage.worker.took) == 5


async def test_only_the_latest_are_held_where_the_task_says_how_many(stage: Stage) -> None:
    await outage(stage, Misfire(catch_up="all", max=3, hold=True))

    held = [run.due_at for run in await stage.runs() if run.state == "held"]
    assert held == [minute(7), minute(8), minute(9)]
    assert await stage.ledger() == {"missed": 6}


async def test_a_released_run_that_is_too_late_ends_as_expired_with_its_reason(stage: Stage) -> None:
    await outage(stage, Misfire(catch_up="all", hold=True), expires=timedelta(hours=1))
    stage.now = minute(65)  # the first four are more than an hour late

    await release(stage)
    await stage.dispatch()

    found = [(run.state, run.reason) for run in await stage.runs() if run.caught_up]
    assert [state for state, _ in found] == ["expired"] * 4 + ["done"] * 5
    assert all(reason for state, reason in found if state == "expired")


async def test_a_second_outage_is_held_beside_the_first(stage: Stage) -> None:
    await outage(stage, Misfire(hold=True))
    stage.advance(minutes=10)
    await stage.tick()

    (planned,) = await stage.store.read(catch_up.plan, "greet", now=stage.now)

    assert planned.due_times == (minute(9), minute(19))
    assert [(one["first_due_at"], one["count"]) for one in planned.passed_over] == [(minute(1), 8), (minute(11), 8)]


async def test_what_waits_is_an_alert_that_says_what_to_type_and_ends_with_the_decision(stage: Stage) -> None:
    await outage(stage, Misfire(catch_up="all", hold=True))
    during = await _problems(stage)

    await release(stage)
    after = await _problems(stage)

    assert during["runs_wait_for_person"] == (
        '9 missed run(s) of task "greet" wait for a decision: see `oncue catch-up greet`.',
        False,
    )
    assert "runs_wait_for_person" not in after


async def test_a_pause_leaves_what_is_held_and_lets_it_be_released(stage: Stage) -> None:
    await outage(stage, Misfire(catch_up="all", hold=True))
    await stage.store.write(tasks.pause, "greet", reason="release", actor="test", now=stage.now)

    held = (await stage.states()).count("held")
    await release(stage)
    await stage.dispatch()

    assert (held, (await stage.states()).count("done")) == (9, 10)


async def test_runs_that_are_held_count_for_max_runs(stage: Stage) -> None:
    schedule = {"cron": "* * * * *", "max_runs": 5}
    await outage(stage, Misfire(catch_up="all", hold=True), schedule=schedule)

    await stage.fire_next()

    assert await stage.states() == ["held"] * 5


async def _problems(stage: Stage) -> dict[str, tuple[str, bool]]:
    figures = await stage.store.read(watch.figures, now=stage.now)
    found = await examine(stage.store, figures, now=stage.now, overdue=timedelta(minutes=1))
    return {one.code: (one.text, one.urgent) for one in found}
