"""Backfills carried out by a dispatcher: each run for its own due time, beside the schedule."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from oncue.definition import HttpTarget, SqlResolver
from oncue.model import Run
from oncue.rules import backfilling, times
from oncue.store import backfills, codec, runs, tasks
from oncue.store.backfills import Backfill, Planned
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio

OF_DAY = "select id as key, :due_date as day, :previous_due_at as previous from trial where id = 1"
NINE = {"cron": "0 9 * * *", "zone": "Europe/Athens"}


async def backfill(
    stage: Stage, first: datetime, last: datetime, *, key: str = "k", pace: timedelta | None = None
) -> Backfill:
    task, schedule = await stage.store.read(backfills.subject, "greet")
    trigger = codec.read_trigger(schedule.timing)
    moments = backfilling.due_times(trigger, first, last, name="greet")
    planned = Planned(task, schedule, moments, times.previous_before(trigger, moments[0]))
    making: dict[str, Any] = {"key": key, "pace": pace, "actor": "test", "now": stage.now}
    return (await stage.store.write(backfills.make, planned, **making))[0]


async def of_kind(stage: Stage, kind: str) -> list[Run]:
    return [run for run in await stage.runs() if run.kind == kind]


async def test_each_run_resolves_for_its_own_due_time(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=NINE, resolve=SqlResolver(OF_DAY, "app")))

    await backfill(stage, NOON - timedelta(days=3), NOON)
    await stage.dispatch()

    bodies = [body for _, _, body in stage.worker.took]
    assert sorted(str(body["day"]) for body in bodies) == ["2026-03-26", "2026-03-27", "2026-03-28"]
    previous = {str(body["day"]): str(body["previous"])[:10] for body in bodies}
    assert previous == {"2026-03-26": "2026-03-25", "2026-03-27": "2026-03-26", "2026-03-28": "2026-03-27"}
    assert await stage.states() == ["done"] * 3


async def test_the_same_entity_of_two_due_times_is_two_messages(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=NINE, resolve=SqlResolver(OF_DAY, "app")))

    await backfill(stage, NOON - timedelta(days=3), NOON)
    await backfill(stage, NOON - timedelta(days=3), NOON, key="again")
    await stage.dispatch()

    assert len(stage.worker.took) == len(stage.worker.ids["1"]) == 6


async def test_runs_start_at_the_pace_and_are_not_late(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=NINE))
    await backfill(stage, NOON - timedelta(days=3), NOON, pace=timedelta(seconds=30))

    started = []
    for _ in range(3):
        await stage.dispatch()
        started.append((await stage.states()).count("done"))
        stage.advance(seconds=30)

    found = await stage.runs()
    assert started == [1, 2, 3]
    assert [run.started_at for run in found] == [NOON, NOON + timedelta(seconds=30), NOON + timedelta(seconds=60)]
    assert [run.starts_at for run in found] == [run.started_at for run in found]


async def test_expiry_counts_from_the_asking_and_at_a_pace_from_each_turn(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=NINE, expires=timedelta(seconds=40)))

    await backfill(stage, NOON - timedelta(days=1), NOON)
    await stage.dispatch()
    await backfill(stage, NOON - timedelta(days=1), NOON, key="late")
    stage.advance(seconds=41)
    await stage.dispatch()
    await backfill(stage, NOON - timedelta(days=3), NOON, key="paced", pace=timedelta(seconds=30))
    for _ in range(3):
        await stage.dispatch()
        stage.advance(seconds=30)

    assert await stage.states() == ["done", "expired", "done", "done", "done"]


async def test_a_schedule_goes_on_as_if_there_were_no_backfill(stage: Stage) -> None:
    await stage.apply(stage.definition())
    await stage.fire_next()
    before = await stage.store.read(tasks.schedule_of, (await stage.runs())[0].task_id)

    await backfill(stage, NOON - timedelta(hours=1), NOON + timedelta(hours=1))
    after = await stage.store.read(tasks.schedule_of, (await stage.runs())[0].task_id)
    await stage.dispatch()
    await stage.fire_next()

    assert before == after
    scheduled = await of_kind(stage, "schedule")
    assert [run.due_at for run in scheduled] == [NOON + timedelta(minutes=1), NOON + timedelta(minutes=2)]
    assert [run.previous_due_at for run in scheduled] == [None, NOON + timedelta(minutes=1)]
    assert {run.state for run in await stage.runs()} == {"done"}


async def test_a_run_by_hand_does_not_move_the_schedule(stage: Stage) -> None:
    await stage.apply(stage.definition())
    task = await stage.store.read(tasks.read, "greet")
    await stage.store.write(
        runs.fire, task.id, task.uuid, task.version, key="k", due_at=NOON + timedelta(minutes=1), now=stage.now
    )

    await stage.fire_next()

    assert [(run.kind, run.state) for run in await stage.runs()] == [("manual", "done"), ("schedule", "done")]


async def test_a_paused_task_is_backfilled_and_stays_paused(stage: Stage) -> None:
    await stage.apply(stage.definition())
    await stage.store.write(tasks.pause, "greet", reason="release", actor="test", now=stage.now)

    await backfill(stage, NOON - timedelta(minutes=3), NOON - timedelta(minutes=1))
    stage.advance(minutes=5)
    await stage.tick()
    await stage.dispatch()

    assert await stage.states() == ["done"] * 3
    assert (await stage.store.read(tasks.read, "greet")).state == "paused"


async def test_max_runs_does_not_count_what_is_backfilled(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule={"cron": "* * * * *", "max_runs": 1}))

    await backfill(stage, NOON - timedelta(minutes=3), NOON)
    await stage.dispatch()
    for _ in range(3):
        await stage.fire_next()

    assert [run.kind for run in await stage.runs()] == ["backfill"] * 4 + ["schedule"]


async def test_a_backfill_that_is_cancelled_half_way_ends_what_waits(stage: Stage) -> None:
    await stage.apply(stage.definition())
    made = await backfill(stage, NOON - timedelta(minutes=9), NOON, pace=timedelta(seconds=30))
    await stage.dispatch()
    stage.advance(seconds=30)
    await stage.dispatch()

    await stage.store.write(backfills.cancel, made.uuid, reason="enough", actor="test", now=stage.now)
    stage.advance(minutes=30)
    await stage.dispatch()

    assert (await stage.store.read(backfills.read, made.uuid)).states == {"done": 2, "cancelled": 8}


async def test_runs_whose_dispatcher_died_are_taken_over(stage: Stage) -> None:
    await stage.apply(stage.definition())
    made = await backfill(stage, NOON - timedelta(minutes=2), NOON)
    await stage.store.write(runs.claim, now=stage.now, until=stage.now + timedelta(seconds=30), limit=2)

    stage.advance(seconds=31)
    await stage.dispatch()

    assert (await stage.store.read(backfills.read, made.uuid)).states == {"done": 3}


async def test_a_target_that_is_away_holds_a_backfill_up_and_loses_none_of_it(stage: Stage) -> None:
    await stage.apply(stage.definition(target=HttpTarget("http://127.0.0.1:9/hook")))
    made = await backfill(stage, NOON - timedelta(minutes=1), NOON)
    await stage.dispatch()
    waiting = (await stage.store.read(backfills.read, made.uuid)).states

    await stage.store.write(backfills.cancel, made.uuid, reason="away", actor="test", now=stage.now)

    assert waiting == {"due": 2}
    assert (await stage.store.read(backfills.read, made.uuid)).states == {"cancelled": 2}
