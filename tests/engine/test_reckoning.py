"""Next times that were reckoned by other zone data: put right once, losing and repeating nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from oncue.engine.clock import Clock
from oncue.store import reckoning, tasks
from oncue.store.base import Steps, ask
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio


async def mislead(stage: Stage, next_at: datetime, *, edition: str = "1999a") -> None:
    """Store a next time as an older edition of the zone data would have reckoned it."""

    def change() -> Steps[None]:
        (row,) = yield ask("list_schedules")
        timing, task_id = row["timing"], row["task_id"]
        yield ask(
            "reckon_schedule",
            task_id=task_id,
            task_version=row["task_version"],
            runs_left=row["runs_left"],
            since=row["since"],
            state=row["state"],
            reason=None,
            next_at=next_at,
            timing=timing,
            zone_data=edition,
        )

    await stage.store.write(change)


async def test_a_next_time_to_come_is_put_right_by_a_clock_that_starts(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule={"cron": "0 15 * * *"}))
    await mislead(stage, NOON + timedelta(hours=5))

    await Clock(stage.store).step(stage.now)

    (schedule,) = (await stage.store.read(tasks.schedules)).values()
    assert schedule.next_at == NOON + timedelta(hours=3)


async def test_a_time_that_the_older_data_put_too_late_is_not_lost(stage: Stage) -> None:
    """By the new data it was due an hour ago: it runs now, late, instead of tomorrow."""
    await stage.apply(stage.definition(schedule={"cron": "0 15 * * *"}))
    await mislead(stage, NOON + timedelta(hours=5))
    stage.advance(hours=4)

    stage.clock = Clock(stage.store)
    await stage.tick()
    await stage.tick()

    (run,) = await stage.runs()
    assert (run.due_at, run.caught_up) == (NOON + timedelta(hours=3), True)


async def test_what_was_fired_by_the_older_data_is_not_fired_again(stage: Stage) -> None:
    """It ran at 14:00 by the older data; by the new it was due at 13:00, and is next due tomorrow."""
    await stage.apply(stage.definition(schedule={"cron": "0 13 * * *"}))
    await mislead(stage, NOON + timedelta(hours=2))
    stage.advance(hours=2)
    await stage.tick()
    await mislead(stage, NOON + timedelta(hours=26))

    stage.clock = Clock(stage.store)
    await stage.tick()

    (schedule,) = (await stage.store.read(tasks.schedules)).values()
    assert [run.due_at for run in await stage.runs()] == [NOON + timedelta(hours=2)]
    assert schedule.next_at == NOON + timedelta(hours=25)


async def test_what_is_due_already_keeps_its_promise(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule={"cron": "0 15 * * *"}))
    await mislead(stage, NOON + timedelta(minutes=1))
    stage.advance(minutes=1)

    stage.clock = Clock(stage.store)
    await stage.tick()

    assert [run.due_at for run in await stage.runs()] == [NOON + timedelta(minutes=1)]


async def test_it_is_done_once_and_a_version_that_was_overtaken_is_left_alone(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule={"cron": "0 15 * * *"}))
    await mislead(stage, NOON + timedelta(hours=5))
    old, _ = await stage.store.read(reckoning.by_older_zone_data, now=stage.now, after=0)
    await stage.store.write(tasks.pause, "greet", reason="r", actor="test", now=stage.now)
    await stage.store.write(tasks.resume, "greet", actor="test", now=stage.now)

    moved = await stage.store.write(reckoning.reckon_again, old, now=stage.now)

    assert moved == []
    assert await stage.store.read(reckoning.by_older_zone_data, now=stage.now, after=0) == ([], None)


async def test_many_schedules_are_gone_through_a_range_at_a_time(stage: Stage) -> None:
    await stage.apply(*(stage.definition(f"t{number}", schedule={"cron": "0 15 * * *"}) for number in range(30)))
    following: int | None = 0
    seen = 0

    reckoning_range, reckoning.RANGE = reckoning.RANGE, 7  # type: ignore[misc]
    try:
        while following is not None:
            _, following = await stage.store.read(reckoning.by_older_zone_data, now=stage.now, after=following)
            seen += 1
    finally:
        reckoning.RANGE = reckoning_range  # type: ignore[misc]

    assert seen == 5
