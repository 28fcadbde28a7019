"""What a schedule says beside its times: jitter, spread, max_runs; and pauses that end by themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from oncue.definition import Calendar, Misfire
from oncue.errors import Conflict
from oncue.rules import binding
from oncue.store import calendars, changing, runs, tasks
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio

MINUTELY = {"cron": "* * * * *"}


async def test_a_jittered_run_starts_at_its_own_moment_and_is_not_late_for_it(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"jitter": "30s"}))
    stage.advance(minutes=1)
    await stage.tick()
    (due,) = await stage.runs()
    assert due.starts_at is not None
    await stage.dispatch()
    waited = await stage.states()

    stage.now = due.starts_at
    await stage.dispatch()

    (run,) = await stage.runs()
    assert (run.due_at, waited, run.state) == (NOON + timedelta(minutes=1), ["due"], "done")
    assert run.due_at < run.starts_at < run.due_at + timedelta(seconds=30)
    assert binding.lateness(run) == timedelta()


async def test_a_jitter_is_the_same_however_often_it_is_reckoned_and_another_for_the_next_time(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"jitter": "30s"}))
    stage.advance(minutes=2)
    await stage.tick()

    first, second = await stage.runs()

    assert first.starts_at is not None
    assert second.starts_at is not None
    assert first.starts_at - first.due_at != second.starts_at - second.due_at


async def test_a_spread_sends_each_entity_at_its_own_moment_before_the_next_due_time(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"spread": "10m"}))
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatch()
    (run,) = await stage.runs()
    planned = [delivery.ready_at for delivery in await stage.deliveries(run.id)]
    at_once = len(stage.worker.took)

    for moment in sorted(planned):
        stage.now = moment
        await stage.dispatch()

    (run,) = await stage.runs()
    assert sorted(stage.worker.keys) == ["1", "2", "3", "4", "5"]
    assert len(set(planned)) + at_once == 5
    assert all(NOON + timedelta(minutes=1) < moment < NOON + timedelta(minutes=2) for moment in planned)
    assert (run.state, run.resolved, run.confirmed, run.open) == ("done", 5, 5, 0)


async def test_an_entity_that_no_longer_qualifies_when_its_share_of_the_spread_comes_is_not_sent(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"spread": "50s"}))
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatch()
    before = len(stage.worker.took)
    stage.write("delete from trial")

    stage.advance(seconds=55)
    await stage.dispatch()

    (run,) = await stage.runs()
    assert len(stage.worker.took) == before < 5
    assert (run.state, run.dropped) == ("done", 5 - before)


async def test_a_spread_run_that_died_before_its_checkpoint_sends_each_entity_under_one_id(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"spread": "50s"}))
    stage.advance(minutes=1)
    await stage.tick()
    await stage.store.write(runs.claim, now=stage.now, until=stage.now + timedelta(seconds=5), limit=1)

    for _ in range(12):
        stage.advance(seconds=5)
        await stage.dispatch()

    assert {key: len(ids) for key, ids in stage.worker.ids.items()} == dict.fromkeys("12345", 1)


async def test_a_schedule_ends_after_its_last_run(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"max_runs": 3}))
    for _ in range(5):
        await stage.fire_next()

    (schedule,) = (await stage.store.read(tasks.schedules)).values()

    assert len(await stage.runs()) == 3
    assert (schedule.state, schedule.reason) == ("finished", "all runs of its max_runs were made")


async def test_max_runs_counts_runs_made_and_not_times_skipped(stage: Stage) -> None:
    """The second run is skipped, for the first still holds the slot: the schedule goes on to make its second."""
    await stage.apply(stage.definition(schedule=MINUTELY | {"max_runs": 2}))
    stage.advance(minutes=1)
    await stage.tick()
    (held,) = await stage.store.write(runs.claim, now=stage.now, until=stage.now + timedelta(hours=1), limit=1)
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatch()
    await stage.store.write(runs.give_back, held, ready_at=stage.now, counted=False, reason=None)
    await stage.dispatch()

    await stage.fire_next()
    await stage.fire_next()

    (schedule,) = (await stage.store.read(tasks.schedules)).values()
    assert await stage.states() == ["done", "skipped", "done"]
    assert (schedule.state, schedule.runs_left) == ("finished", 0)


async def test_an_outage_makes_no_more_runs_than_are_left(stage: Stage) -> None:
    misfire = Misfire(catch_up="all")
    await stage.apply(stage.definition(schedule=MINUTELY | {"max_runs": 130}, misfire=misfire))

    stage.advance(minutes=400)
    await stage.tick()

    made = await stage.runs()
    assert [run.due_at for run in made] == [NOON + timedelta(minutes=number) for number in range(1, 131)]


async def test_more_runs_may_be_allowed_later_and_those_made_still_count(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"max_runs": 1}))
    await stage.fire_next()
    await stage.fire_next()
    await stage.apply(stage.definition(schedule=MINUTELY | {"max_runs": 3}))
    for _ in range(4):
        await stage.fire_next()

    assert len(await stage.runs()) == 3


async def test_a_change_of_the_pace_alone_moves_no_due_time(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule={"every": "3d"}))
    stage.advance(days=1)
    await stage.apply(stage.definition(schedule={"every": "3d", "jitter": "5m"}))
    (schedule,) = (await stage.store.read(tasks.schedules)).values()

    assert schedule.next_at == NOON + timedelta(days=3)


async def test_a_pause_with_an_end_ends_at_its_moment_and_what_is_due_after_it_runs(stage: Stage) -> None:
    await stage.apply(stage.definition())
    until = NOON + timedelta(minutes=3, seconds=30)
    await stage.store.write(tasks.pause, "greet", reason="release", until=until, actor="test", now=stage.now)
    stage.advance(minutes=3)
    await stage.tick()
    while_paused = await stage.runs()

    stage.advance(minutes=1, seconds=10)
    await stage.tick()
    await stage.tick()

    task = await stage.store.read(tasks.read, "greet")
    assert while_paused == []
    assert [run.due_at for run in await stage.runs()] == [NOON + timedelta(minutes=4)]
    assert (task.state, task.resume_at, await stage.ledger()) == ("active", None, {"skipped": 3})


async def test_a_clock_wakes_when_a_pause_ends(stage: Stage) -> None:
    await stage.apply(stage.definition())
    until = NOON + timedelta(seconds=90)
    await stage.store.write(tasks.pause, "greet", reason="release", until=until, actor="test", now=stage.now)
    stage.advance(seconds=89.7)

    wakes = [await stage.clock.step(stage.now) for _ in range(2)]

    assert wakes[-1] == until


async def test_a_pause_that_is_asked_again_gets_the_new_end(stage: Stage) -> None:
    await stage.apply(stage.definition())
    for minutes in (2, 9):
        until = NOON + timedelta(minutes=minutes)
        await stage.store.write(tasks.pause, "greet", reason="more", until=until, actor="test", now=stage.now)

    stage.advance(minutes=5)
    await stage.tick()
    await stage.store.write(tasks.pause, "greet", reason="for good", actor="test", now=stage.now)
    stage.advance(minutes=30)
    await stage.tick()

    task = await stage.store.read(tasks.read, "greet")
    assert (task.state, task.reason, task.resume_at, await stage.runs()) == ("paused", "for good", None, [])


async def test_a_pause_cannot_end_before_it_begins(stage: Stage) -> None:
    await stage.apply(stage.definition())

    with pytest.raises(Conflict, match="until 2026-03-28 11:59:59Z: that is over"):
        await stage.store.write(
            tasks.pause, "greet", reason="r", until=NOON - timedelta(seconds=1), actor="test", now=stage.now
        )


async def test_a_pause_that_was_resumed_by_hand_is_not_ended_again(stage: Stage) -> None:
    await stage.apply(stage.definition())
    until = NOON + timedelta(minutes=2)
    await stage.store.write(tasks.pause, "greet", reason="r", until=until, actor="test", now=stage.now)
    await stage.store.write(tasks.resume, "greet", actor="test", now=stage.advance(seconds=30))
    await stage.store.write(tasks.pause, "greet", reason="again", actor="test", now=stage.advance(seconds=1))

    await stage.store.write(changing.begin, now=stage.advance(minutes=5))

    assert (await stage.store.read(tasks.read, "greet")).state == "paused"


async def test_a_pause_that_is_extended_while_somebody_is_about_to_end_it_stays(stage: Stage) -> None:
    await stage.apply(stage.definition())
    first, later = NOON + timedelta(minutes=2), NOON + timedelta(minutes=60)
    await stage.store.write(tasks.pause, "greet", reason="r", until=first, actor="test", now=stage.now)
    seen = await stage.store.read(changing.next_end, until=first)
    await stage.store.write(tasks.pause, "greet", reason="more", until=later, actor="test", now=stage.now)

    await stage.store.write(changing.begin, now=stage.advance(minutes=5))

    task = await stage.store.read(tasks.read, "greet")
    assert (seen, task.state, task.resume_at) == (first, "paused", later)


async def test_a_pause_that_is_over_and_not_ended_yet_is_none_for_whoever_changes_something(stage: Stage) -> None:
    """The times since its end are due, not skipped: each has one verdict."""
    await stage.store.write(calendars.put, Calendar("all", ("sat", "sun")), actor="test", now=stage.now)
    await stage.apply(stage.definition(schedule=MINUTELY | {"only_on": "all"}, misfire=Misfire(catch_up="all")))
    until = NOON + timedelta(minutes=3, seconds=30)
    await stage.store.write(tasks.pause, "greet", reason="r", until=until, actor="test", now=stage.now)
    stage.advance(minutes=10)

    await stage.store.write(calendars.put, Calendar("all", ("sat",)), actor="test", now=stage.now)
    await stage.tick()

    due = [run.due_at for run in await stage.runs()]
    assert due == [NOON + timedelta(minutes=number) for number in range(4, 11)]
    assert await stage.ledger() == {"skipped": 3}


async def test_each_run_that_is_skipped_gives_its_turn_back(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"max_runs": 5}))
    for _ in range(5):
        stage.advance(minutes=1)
        await stage.tick()
    await stage.dispatch()
    for _ in range(9):
        await stage.fire_next()

    states = await stage.states()
    assert (states.count("done"), states.count("skipped")) == (5, 4)


async def test_what_an_older_trigger_skipped_is_no_turn_of_the_new_one(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=MINUTELY | {"max_runs": 2}))
    for _ in range(2):
        stage.advance(minutes=1)
        await stage.tick()
    await stage.apply(stage.definition(schedule={"cron": "*/2 * * * *", "max_runs": 2}))
    await stage.dispatch()

    for _ in range(9):
        await stage.fire_next()

    made = [run for run in await stage.runs() if run.task_version == 2]
    assert len(made) == 2
