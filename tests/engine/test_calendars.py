"""A calendar that changes under a clock that runs, and what the watch says of one that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import pytest

from oncue.definition import Calendar
from oncue.engine.clock import Clock
from oncue.engine.watch import Watch, examine
from oncue.observe.metrics import Metrics
from oncue.rules.health import Problem
from oncue.store import calendars, watch
from oncue.store.watch import Figures
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio

WEEK = Calendar("week", weekdays=("mon", "tue", "wed", "thu", "fri"))  # the stage begins on a Saturday, at noon
HOURLY = {"cron": "0 * * * *", "only_on": "week"}
MONDAY = NOON + timedelta(days=1, hours=12)


async def _store(stage: Stage, calendar: Calendar) -> calendars.Stored:
    return await stage.store.write(calendars.put, calendar, actor="test", now=stage.now)


async def test_a_schedule_fires_on_the_days_of_its_calendar(stage: Stage) -> None:
    await _store(stage, WEEK)
    await stage.apply(stage.definition(schedule=HOURLY))

    for _ in range(40):
        stage.advance(hours=1)
        await stage.tick()

    assert [run.due_at for run in await stage.runs()] == [MONDAY + timedelta(hours=hour) for hour in range(5)]


async def test_a_clock_that_holds_a_timer_follows_a_change_of_the_calendar_both_ways(stage: Stage) -> None:
    await _store(stage, replace(WEEK, weekdays=("sat", "mon")))
    await stage.apply(stage.definition(schedule=HOURLY))
    stage.advance(minutes=59, seconds=58)
    await stage.clock.step(stage.now)  # it has the timer for 13:00

    await _store(stage, replace(WEEK, weekdays=("mon",)))
    stage.advance(seconds=2)
    await stage.tick()
    before = await stage.runs()
    stage.advance(minutes=30)
    await _store(stage, replace(WEEK, weekdays=("sat", "mon")))
    stage.advance(minutes=30)
    await stage.tick()

    assert before == []
    assert [run.due_at for run in await stage.runs()] == [NOON + timedelta(hours=2)]


async def test_what_is_due_at_the_change_is_fired_though_the_new_calendar_leaves_its_day_out(stage: Stage) -> None:
    await _store(stage, replace(WEEK, weekdays=("sat", "mon")))
    await stage.apply(stage.definition(schedule=HOURLY))

    stage.advance(hours=1, seconds=1)
    await _store(stage, replace(WEEK, weekdays=("mon",)))
    stage.advance(hours=3)
    await stage.tick()

    assert [run.due_at for run in await stage.runs()] == [NOON + timedelta(hours=1)]


async def test_clocks_and_imports_at_once_make_each_run_once(stage: Stage) -> None:
    await _store(stage, replace(WEEK, weekdays=("sat",)))
    await stage.apply(*(stage.definition(name, schedule=HOURLY) for name in "abc"))
    clocks = [Clock(stage.store), Clock(stage.store)]

    for number in range(6):
        stage.advance(hours=1)
        changed = replace(WEEK, weekdays=("sat",), source=str(number))
        await asyncio.gather(_store(stage, changed), *(clock.step(stage.now) for clock in clocks))
        await stage.tick()

    made = sorted((run.task_name, run.due_at) for run in await stage.runs())
    assert made == [(name, NOON + timedelta(hours=hour)) for name in "abc" for hour in range(1, 7)]


async def test_the_watch_tells_of_a_calendar_in_use_sixty_days_before_its_end_and_when_it_is_extended(
    stage: Stage, told: Callable[[], list[Problem]], watching: Watch
) -> None:
    ends = replace(WEEK, known_until=NOON.date() + timedelta(days=61), source="holidays 0.109 --country GR")
    await _store(stage, ends)
    await _store(stage, replace(ends, name="unused"))
    await stage.apply(stage.definition(schedule=HOURLY))
    seen = []

    for days in (0, 1, 61):
        stage.advance(days=days)
        await watching.step(stage.now)
        seen.append([(one.subject, one.urgent) for one in told() if one.code == "calendar_ends"])
    await _store(stage, replace(ends, known_until=date(2031, 12, 31)))
    await watching.step(stage.advance(minutes=1))

    assert seen == [[], [("week", False)], [("week", True)]]
    assert [one.code for one in told() if one.code == "calendar_ends"] == []


async def test_a_calendar_that_ends_is_counted_as_a_problem_by_its_code_alone(stage: Stage) -> None:
    await _store(stage, replace(WEEK, known_until=NOON.date()))
    await stage.apply(stage.definition(schedule=HOURLY))
    metrics = Metrics(now=lambda: stage.now)

    figures = await stage.store.read(watch.figures, now=stage.now)
    metrics.see(figures, await examine(stage.store, figures, now=stage.now, overdue=timedelta(seconds=30)))

    text = metrics.render().decode()
    assert 'oncue_problems{code="calendar_ends"} 1.0' in text
    assert "week" not in text


async def test_a_process_with_older_zone_data_is_named_while_it_lives(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, edition in ((1, "2025a"), (2, "2025b")):
        monkeypatch.setattr("oncue.store.watch.edition", lambda edition=edition: edition)
        await stage.store.write(
            watch.beat, f"i{number}", "clock", host="h", pid=number, started_at=stage.now, now=stage.now
        )
    figures = await stage.store.read(watch.figures, now=stage.now)

    during, after = [
        await examine(stage.store, figures, now=now, overdue=timedelta(seconds=30))
        for now in (stage.now, stage.now + timedelta(minutes=5))
    ]

    (behind,) = (one for one in during if one.code == "zone_data_behind")
    assert behind.text.startswith("clock on h (pid 1) reads zone data 2025a, others 2025b: upgrade")
    assert [one for one in after if one.code == "zone_data_behind"] == []


@pytest.fixture
def looks() -> list[list[Problem]]:
    return []


@pytest.fixture
def told(looks: list[list[Problem]]) -> Callable[[], list[Problem]]:
    """Return what the watch saw at its latest look."""
    return lambda: looks[-1]


@pytest.fixture
def watching(stage: Stage, looks: list[list[Problem]]) -> Watch:
    def see(_figures: Figures, problems: list[Problem]) -> None:
        looks.append(problems)

    return Watch(stage.store, seen=see)
