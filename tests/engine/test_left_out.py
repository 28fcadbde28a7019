"""Due times that a calendar, `except` or a person leaves out or moves: what runs, and what the ledger says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from oncue.definition import Calendar, Misfire
from oncue.errors import Conflict, TaskFileError
from oncue.model import Schedule
from oncue.store import calendars, overrides, tasks, watch
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio

DAILY = {"cron": "0 15 * * *"}  # NOON is a Saturday, 28 March 2026
WORKDAYS = Calendar("workdays", ("mon", "tue", "wed", "thu", "fri"))
FEAST = Calendar("feasts", dates={date(2026, 3, 31): "Founder's Day"})


async def put(stage: Stage, *made: Calendar) -> None:
    for calendar in made:
        await stage.store.write(calendars.put, calendar, actor="test", now=stage.now)


async def fire_until(stage: Stage, moment: datetime) -> list[datetime]:
    """Go from due time to due time, carry each run out, and return what ran."""
    while (next_at := (await schedule(stage)).next_at) is not None and next_at <= moment:
        stage.now = max(next_at, stage.now)
        await stage.tick()
        await stage.dispatch()
    stage.now = moment
    return [run.due_at for run in await stage.runs()]


async def schedule(stage: Stage) -> Schedule:
    (found,) = (await stage.store.read(tasks.schedules)).values()
    return found


async def ledger(stage: Stage) -> list[Mapping[str, Any]]:
    (task,) = await stage.store.read(tasks.every)
    rows = await stage.store.read(
        watch.ledger, task.id, first=NOON - timedelta(days=9), last=NOON + timedelta(days=99), limit=99
    )
    return rows[::-1]


def at(day: int, hour: int = 15) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=NOON.tzinfo)


async def test_days_that_a_calendar_leaves_out_do_not_run_and_the_ledger_names_them(stage: Stage) -> None:
    await put(stage, WORKDAYS, FEAST)
    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays", "except_on": "feasts"}))

    ran = await fire_until(stage, datetime(2026, 4, 1, 16, tzinfo=NOON.tzinfo))

    told = [(row["first_due_at"], row["last_due_at"], row["count"], row["verdict"]) for row in await ledger(stage)]
    assert ran == [at(30), datetime(2026, 4, 1, 15, tzinfo=NOON.tzinfo)]
    assert told == [(at(28), at(29), 2, "skipped"), (at(31), at(31), 1, "skipped")]
    assert (await ledger(stage))[1]["reason"] == "left out by its calendar: 2026-03-31 is Founder's Day in feasts"


async def test_a_time_on_a_day_off_can_move_to_the_next_workday(stage: Stage) -> None:
    await put(stage, WORKDAYS)
    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays", "move": "next"}))

    assert await fire_until(stage, at(31, 16)) == [at(30), at(31)]
    assert await ledger(stage) == []


async def test_a_calendar_that_changes_moves_the_next_time_of_those_that_use_it(stage: Stage) -> None:
    await put(stage, WORKDAYS)
    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays"}))
    before = (await schedule(stage)).next_at

    await put(stage, Calendar("workdays", ("sat", "sun")))

    assert (before, (await schedule(stage)).next_at) == (at(30), at(28))


async def test_what_is_due_already_is_decided_before_its_calendar_changes(stage: Stage) -> None:
    await put(stage, WORKDAYS)
    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays"}))
    stage.now = at(30) + timedelta(seconds=5)

    await put(stage, Calendar("workdays", ("tue",)))

    assert [run.due_at for run in await stage.runs()] == [at(30)]
    assert (await schedule(stage)).next_at == at(31)


async def test_a_calendar_that_nobody_knows_is_refused_with_those_that_are_known(stage: Stage) -> None:
    await put(stage, WORKDAYS)

    with pytest.raises(TaskFileError, match=r'\[task.greet\].*no calendar "workday"\. Known calendars: workdays\.'):
        await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workday"}))


async def test_a_calendar_in_use_cannot_be_removed(stage: Stage) -> None:
    await put(stage, WORKDAYS, FEAST)
    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays"}))

    with pytest.raises(Conflict, match='calendar "workdays" is used by greet'):
        await stage.store.write(calendars.remove, "workdays", actor="test", now=stage.now)
    await stage.store.write(calendars.remove, "feasts", actor="test", now=stage.now)

    assert list(await stage.store.read(calendars.every)) == ["workdays"]


async def skip(stage: Stage, due_at: datetime, reason: str = "audit") -> None:
    await stage.store.write(overrides.skip, "greet", due_at, reason=reason, actor="test", now=stage.now)


async def move(stage: Stage, due_at: datetime, to: datetime) -> None:
    await stage.store.write(overrides.move, "greet", due_at, to=to, reason="audit", actor="test", now=stage.now)


async def restore(stage: Stage, due_at: datetime) -> None:
    await stage.store.write(overrides.restore, "greet", due_at, actor="test", now=stage.now)


async def test_one_due_time_is_skipped_and_its_neighbours_run(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await skip(stage, at(29))

    ran = await fire_until(stage, at(30, 16))

    (row,) = await ledger(stage)
    assert ran == [at(28), at(30)]
    assert (row["first_due_at"], row["count"], row["verdict"]) == (at(29), 1, "skipped")
    assert row["reason"] == "skipped by hand: audit"


async def test_the_next_due_time_can_be_skipped(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await skip(stage, at(28))

    assert (await schedule(stage)).next_at == at(29)


async def test_a_due_time_is_moved_to_another_moment_and_back(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await move(stage, at(28), at(28, 20))
    await move(stage, at(29), at(29, 13))
    await move(stage, at(30), at(30, 20))
    await restore(stage, at(30))

    assert await fire_until(stage, at(30, 21)) == [at(28, 20), at(29, 13), at(30)]
    assert await ledger(stage) == []


async def test_a_time_moved_past_others_runs_in_its_new_order(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await move(stage, at(28), at(30, 9))

    assert await fire_until(stage, at(30, 16)) == [at(29), at(30, 9), at(30)]


async def test_what_is_over_or_no_due_time_cannot_be_skipped(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await fire_until(stage, at(28, 16))

    with pytest.raises(Conflict, match="2026-03-28 15:00:00Z is over"):
        await skip(stage, at(28))
    with pytest.raises(Conflict, match=r"2026-03-29 14:00:00Z is no due time.*after it is 2026-03-29 15:00:00Z"):
        await skip(stage, at(29, 14))
    with pytest.raises(Conflict, match="it cannot be moved to 2026-03-28 09:00:00Z: that is over"):
        await move(stage, at(29), at(28, 9))
    with pytest.raises(Conflict, match="was neither skipped nor moved"):
        await restore(stage, at(29))


async def test_a_skip_outlives_a_change_of_the_policies_and_not_one_of_the_times(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await skip(stage, at(28))
    await stage.apply(stage.definition(schedule=DAILY, misfire=Misfire(catch_up="none")))
    kept = (await schedule(stage)).next_at

    await stage.apply(stage.definition(schedule={"cron": "0 15 * * sat,sun"}))

    assert (kept, (await schedule(stage)).next_at) == (at(29), at(28))


async def test_a_paused_task_keeps_its_skips(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await stage.store.write(tasks.pause, "greet", reason="r", actor="test", now=stage.now)
    await skip(stage, at(29))
    stage.now = at(28, 16)
    await stage.store.write(tasks.resume, "greet", actor="test", now=stage.now)

    assert await fire_until(stage, at(30, 16)) == [at(30)]


async def test_a_skipped_time_does_not_count_for_max_runs(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY | {"max_runs": 2}))
    await skip(stage, at(28))

    assert await fire_until(stage, datetime(2026, 4, 9, tzinfo=NOON.tzinfo)) == [at(29), at(30)]


async def test_a_time_that_was_moved_goes_by_its_own_name(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await move(stage, at(29), at(29, 13))

    with pytest.raises(Conflict, match="13:00:00Z is where 2026-03-29 15:00:00Z was moved to"):
        await skip(stage, at(29, 13))
    with pytest.raises(Conflict, match="13:00:00Z is where 2026-03-29 15:00:00Z was moved to"):
        await restore(stage, at(29, 13))
    with pytest.raises(Conflict, match="there is nothing to move"):
        await move(stage, at(30), at(30))


async def test_a_time_that_has_run_where_it_was_moved_to_does_not_run_again(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY))
    await move(stage, at(29), at(29, 13))
    await fire_until(stage, at(29, 14))

    for change in (restore(stage, at(29)), move(stage, at(29), at(30, 9)), skip(stage, at(29))):
        with pytest.raises(Conflict, match="was moved to 2026-03-29 13:00:00Z, which is over"):
            await change

    assert await fire_until(stage, at(30, 16)) == [at(28), at(29, 13), at(30)]


async def test_changes_by_hand_stay_where_only_the_number_of_runs_or_a_calendar_changes(stage: Stage) -> None:
    await put(stage, WORKDAYS)
    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays", "max_runs": 5}))
    await skip(stage, at(30))

    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays", "max_runs": 6}))
    after_runs = (await schedule(stage)).next_at
    await put(stage, Calendar("workdays", ("mon", "wed")))

    assert after_runs == at(31)
    assert (await schedule(stage)).next_at == datetime(2026, 4, 1, 15, tzinfo=NOON.tzinfo)


async def test_days_left_out_are_told_when_the_calendar_changes_before_the_next_run(stage: Stage) -> None:
    await put(stage, WORKDAYS)
    await stage.apply(stage.definition(schedule=DAILY | {"only_on": "workdays"}))
    stage.now = at(28, 20)

    await put(stage, Calendar("workdays", ("sun", "mon")))

    (row,) = await ledger(stage)
    assert (row["first_due_at"], row["count"], row["verdict"]) == (at(28), 1, "skipped")


async def test_a_schedule_that_made_all_its_runs_has_no_next_time_whatever_is_skipped(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=DAILY | {"max_runs": 1}))
    await fire_until(stage, at(28, 16))
    await skip(stage, at(30))

    found = await schedule(stage)
    assert (found.state, found.next_at) == ("finished", None)
