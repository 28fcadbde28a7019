"""The clock, stepped by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from oncue.definition import Misfire
from oncue.engine.clock import Clock
from oncue.store import runs, tasks
from tests.engine.stage import LEASE, NOON, Stage

pytestmark = pytest.mark.anyio


async def test_a_schedule_fires_at_its_moment_and_not_before(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.advance(seconds=59.999)
    await stage.tick()
    before = await stage.runs()

    stage.advance(seconds=0.001)
    await stage.tick()

    assert before == []
    assert [run.due_at for run in await stage.runs()] == [NOON + timedelta(minutes=1)]


async def test_a_step_answers_the_next_due_moment(stage: Stage) -> None:
    await stage.apply(stage.definition())

    stage.advance(seconds=59.5)

    assert await stage.clock.step(stage.now) == NOON + timedelta(minutes=1)


async def test_two_clocks_make_one_run(stage: Stage) -> None:
    await stage.apply(stage.definition())
    other = Clock(stage.store)
    stage.advance(seconds=59)
    await stage.clock.step(stage.now)
    await other.step(stage.now)

    stage.advance(seconds=1)
    await stage.clock.step(stage.now)
    await other.step(stage.now)

    assert len(await stage.runs()) == 1


async def test_an_outage_makes_one_late_run_and_says_how_many_were_missed(stage: Stage) -> None:
    await stage.apply(stage.definition())

    stage.advance(minutes=10, seconds=30)
    await stage.tick()

    (run,) = await stage.runs()
    assert run.due_at == NOON + timedelta(minutes=10)
    assert await stage.ledger() == {"coalesced": 9}


async def test_the_run_that_stands_for_missed_times_waits_for_the_one_that_an_outage_cut_short(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.advance(minutes=1)
    await stage.tick()
    await stage.store.write(runs.claim, now=stage.now, until=stage.now + 30 * LEASE, limit=1)  # and its holder dies

    stage.advance(minutes=9, seconds=5)
    await stage.tick()
    await stage.dispatch()

    late = (await stage.runs())[-1]
    assert await stage.ledger() == {"coalesced": 8}
    assert (late.due_at, late.state) == (NOON + timedelta(minutes=10), "queued")


async def test_an_outage_is_caught_up_whole_where_the_task_says_so(stage: Stage) -> None:
    await stage.apply(stage.definition(misfire=Misfire(catch_up="all")))

    stage.advance(minutes=250, seconds=30)
    await stage.tick()

    made = [run.due_at for run in await stage.runs()]
    assert made == [NOON + timedelta(minutes=number) for number in range(1, 251)]


async def test_a_year_of_seconds_missed_is_decided_in_one_step(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule={"cron": "* * * * * *"}, misfire=Misfire(catch_up="none")))

    stage.advance(days=365)
    await stage.tick()

    assert (await stage.ledger())["missed"] == 365 * 86_400 - 61
    assert len(await stage.runs()) <= 61


async def test_what_a_pause_passes_over_is_in_the_ledger_and_does_not_run(stage: Stage) -> None:
    await stage.apply(stage.definition())
    await stage.store.write(tasks.pause, "greet", reason="release", actor="test", now=stage.now)
    stage.advance(minutes=5, seconds=30)
    await stage.tick()

    await stage.store.write(tasks.resume, "greet", actor="test", now=stage.now)
    await stage.fire_next()

    assert [run.due_at for run in await stage.runs()] == [NOON + timedelta(minutes=6)]
    assert await stage.ledger() == {"skipped": 5}


async def test_a_schedule_that_cannot_be_followed_stops_and_its_neighbours_fire(stage: Stage) -> None:
    await stage.apply(stage.definition("bad"), stage.definition("good"))
    await spoil(stage)

    await stage.fire_next()

    assert [run.task_name for run in await stage.runs()] == ["good"]
    schedules = await stage.store.read(tasks.schedules)
    bad = await stage.store.read(tasks.read, "bad")
    assert schedules[bad.id].state == "stopped"
    assert "Europe/Nowhere" in (schedules[bad.id].reason or "")


async def spoil(stage: Stage) -> None:
    """Change a stored zone behind Oncue's back, as a node with other zone data would see it."""
    from oncue.store.base import Steps, ask

    def change() -> Steps[None]:
        task = yield from tasks.read("bad")
        (row,) = yield ask("read_schedule", task_id=task.id)
        timing = row["timing"].replace('"* * * * *"', '"* * * * *","zone":"Europe/Nowhere"')
        yield ask("change_timing", task_id=task.id, task_version=task.version, timing=timing)

    await stage.store.write(change)


async def test_a_one_time_schedule_ends_after_it(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule={"at": "2026-03-28T12:00:30Z"}))

    stage.advance(seconds=30)
    await stage.tick()
    stage.advance(days=2)
    await stage.tick()

    assert len(await stage.runs()) == 1
    (schedule,) = (await stage.store.read(tasks.schedules)).values()
    assert (schedule.state, schedule.reason) == ("finished", "no further times")
