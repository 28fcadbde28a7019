"""Times that a calendar moves: from a run of days that are not allowed to the allowed day behind or before it.

What is moved is the wall time, and its trigger places it there by its own rules for changes of the clocks. The placed
time is not judged again: where the clock skips midnight it can show the day after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules.triggers import exclusion, kinds, zones
from oncue.rules.triggers.cron import Cron
from oncue.rules.triggers.days import day_at, first_day, first_instant, last_day, last_instant
from oncue.rules.triggers.every import Every
from oncue.rules.triggers.kinds import TICK, Kind
from oncue.rules.triggers.pattern import HORIZON, bits_of
from oncue.rules.triggers.placing import CALENDAR
from oncue.rules.triggers.search import AHEAD, Step, Way, named, times_of
from oncue.rules.triggers.timetable import Timetable

MOST_MOVED: Final = 1000
DAY: Final = timedelta(days=1)
AROUND: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Run:
    """Days in a row that are not allowed, between two that are; none where there is no such day in 13 years."""

    earlier: date | None
    later: date | None


def moved(table: Timetable, way: Way, start: datetime) -> Iterator[Step]:
    """Walk over the moments beyond `start` to which a calendar moved times."""
    for run in _runs(table, way, start):
        target = run.later if table.move == "next" else run.earlier
        if target is None:
            continue
        # What is moved to a day is not further from it than a day: till then nothing need be known of it.
        edge = way.entry(table.zone, target + (DAY if way.is_back else -DAY))
        if way.is_beyond(edge, start):
            yield edge, False
        for moment in sorted(landed(table, run), reverse=way.is_back):
            if way.is_beyond(moment, start):
                yield moment, True
                start = moment


def run_of(table: Timetable, day: date) -> Run:
    """Return the run of days around one that is not allowed."""
    return Run(last_day(table.days, day), first_day(table.days, day))


def landed(table: Timetable, run: Run) -> dict[datetime, datetime]:
    """Return the moments to which the times of a run of days are moved, each with one that was moved there."""
    found: dict[datetime, datetime] = {}
    for kind in table.parts:
        for wall, moment in _moved_walls(table, kind, run).items():
            for placed in place(kind, wall):
                if table.is_within(placed) and not exclusion.names(table.excluded, placed):
                    found.setdefault(placed, moment)
    return found


def destinations(table: Timetable, moment: datetime) -> list[datetime]:
    """Return the moments to which a time on a day that is not allowed is moved."""
    run = run_of(table, day_at(table.zone, moment))
    target = run.later if table.move == "next" else run.earlier
    if target is None:
        return []
    named = [kind for kind in table.parts if exclusion.names((kind,), moment)]
    return [placed for kind in named for wall in _carried(table, kind, moment, target) for placed in place(kind, wall)]


def place(kind: Kind, wall: datetime) -> tuple[datetime, ...]:
    """Return the instants at which a trigger is due where it names a wall time; elapsed time goes by calendar rules."""
    return zones.place_wall(wall, kind.zone, kind.placing if kinds.goes_by_clock(kind) else CALENDAR)


def _carried(table: Timetable, kind: Kind, moment: datetime, target: date) -> list[datetime]:
    """Return the wall times of one of a part's times, what the clock shows and what it skipped, on another day."""
    shown = moment.astimezone(kind.zone).replace(tzinfo=None, fold=0)
    skipped = kinds.skipped_walls(kind, moment)
    walls = [*skipped, *kinds.walls_in(kind, shown, shown + TICK)] if skipped else [shown]
    days = target - day_at(table.zone, moment)
    return [wall + days + (shown.date() - wall.date()) for wall in walls]


def _runs(table: Timetable, way: Way, start: datetime) -> Iterator[Run]:
    """Yield the runs of days with times, of which some may be moved beyond `start`."""
    search = _start_of_runs(table, way, start)
    while search is not None:
        moment = next(times_of(named(table, table.days.others, way, search)), None)
        if moment is None:
            return
        run = run_of(table, day_at(table.zone, moment))
        yield run
        following = run.earlier if way.is_back else run.later
        search = None if following is None else way.entry(table.zone, following) - way.tick


def _start_of_runs(table: Timetable, way: Way, start: datetime) -> datetime | None:
    """Return from where on runs are looked for: behind or before the first day on which a moved time can matter."""
    day = way.day(table.days, day_at(table.zone, start) + (DAY if way.is_back else -DAY))
    if day is None:
        return None
    if table.move == "next":
        if way.is_back:
            return first_instant(table.zone, day)
        before = last_day(table.days, day - DAY)
        return first_instant(table.zone, day) - HORIZON if before is None else last_instant(table.zone, before)
    if not way.is_back:
        return last_instant(table.zone, day)
    after = first_day(table.days, day + DAY)
    return last_instant(table.zone, day) + HORIZON if after is None else first_instant(table.zone, after)


def _moved_walls(table: Timetable, kind: Kind, run: Run) -> dict[datetime, datetime]:
    """Return the wall times to which a run's times of one part are moved, each with a time that was moved there."""
    target = run.later if table.move == "next" else run.earlier
    if target is None:
        return {}
    begin = last_instant(table.zone, run.earlier) if run.earlier else first_instant(table.zone, target) - HORIZON
    end = first_instant(table.zone, run.later) if run.later else last_instant(table.zone, target) + HORIZON
    inside = replace(
        table,
        starts_at=max(begin + TICK, table.starts_at or begin),
        ends_at=min(end - TICK, table.ends_at or end),
    )
    found: dict[datetime, datetime] = {}
    for part, most in _split(kind, table.zone):
        alone = replace(inside, parts=(part,))
        for walked, moment in enumerate(times_of(named(alone, table.days.others, AHEAD, begin)), 1):
            if walked > MOST_MOVED:
                raise TriggerError(_too_many(target))
            for wall in _carried(table, part, moment, target):
                found.setdefault(wall, moment)
            if walked == most:
                break
    return found


def _split(kind: Kind, zone: ZoneInfo) -> Iterator[tuple[Kind, int | None]]:
    """Yield a trigger in parts, each with how many of its times in a run tell all wall times that it has there."""
    if isinstance(kind, Cron) and kind.zone is zone:
        pattern = kind.pattern
        for hour, minute, second in product(bits_of(pattern.hours), bits_of(pattern.minutes), bits_of(pattern.seconds)):
            exact = replace(pattern, hours=1 << hour, minutes=1 << minute, seconds=1 << second)
            yield replace(kind, pattern=exact), 1
    elif isinstance(kind, Every) and kind.zone is zone and not kind.step.elapsed:
        yield kind, 1
    else:
        yield kind, None


def _too_many(day: date) -> str:
    return (
        f"move: more than {MOST_MOVED:,} times would move to {day}. "
        "Leave move out, or allow more days, or write a cron text with a few times a day."
    )
