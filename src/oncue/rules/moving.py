"""Times that a calendar moves: from a run of days that are not allowed to the allowed day behind or before it.

What is moved is the wall time, and its trigger places it there by its own rules for changes of the clocks. The placed
time is not judged again: where the clock skips midnight it can show the day after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from oncue.errors import TriggerError
from oncue.rules import every as steps
from oncue.rules import exclusion, kinds, zones
from oncue.rules import rrule as rules
from oncue.rules.at import At
from oncue.rules.cron import Cron
from oncue.rules.days import day_at, first_day, first_instant, last_day, last_instant
from oncue.rules.every import Every
from oncue.rules.kinds import Kind
from oncue.rules.pattern import ALL_WEEKDAYS, HORIZON, SECOND, Pattern
from oncue.rules.rrule import Rrule
from oncue.rules.search import Way, named
from oncue.rules.timetable import Timetable

MOST_MOVED: Final = 1000
DAY: Final = timedelta(days=1)
AROUND: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Run:
    """Days in a row that are not allowed, between two that are; none where there is no such day in 13 years."""

    earlier: date | None
    later: date | None


def moved(table: Timetable, way: Way, start: datetime) -> Iterator[datetime]:
    """Yield the moments beyond `start` to which a calendar moved times, each once."""
    for run in _runs(table, way, start):
        for moment in sorted(landed(table, run), reverse=way.is_back):
            if way.is_beyond(moment, start):
                yield moment
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


def place(kind: Kind, wall: datetime) -> list[datetime]:
    """Return the instants at which a trigger is due where it names a wall time: several in a repeat, none in a gap."""
    if not isinstance(kind, Cron):
        placed = zones.place_date(wall, kind.zone)
        return [] if placed is None else [placed]
    exact = Pattern(
        seconds=1 << wall.second,
        minutes=1 << wall.minute,
        hours=1 << wall.hour,
        days=1 << wall.day,
        months=1 << wall.month,
        weekdays=ALL_WEEKDAYS,
    )
    found = []
    for moment in kinds.walk(replace(kind, pattern=exact), wall.replace(tzinfo=UTC) - AROUND):
        if moment > wall.replace(tzinfo=UTC) + AROUND:
            break
        found.append(moment)
    return found


def planned_walls(kind: Kind, moment: datetime) -> list[datetime]:
    """Return the wall times that a trigger names for one of its times: in a gap they are not what the clock shows."""
    shown = moment.astimezone(kind.zone).replace(tzinfo=None, fold=0)
    match kind:
        case Cron(_, zone, pattern, is_wildcard):
            skipped = zones.skipped_walls(zone, moment.astimezone(UTC).replace(tzinfo=None))
            if is_wildcard or skipped is None:
                return [shown]
            walls, wall = [], pattern.first_from(skipped[0])
            while wall is not None and wall <= shown:
                walls.append(wall)
                wall = pattern.first_from(wall + SECOND)
            return walls
        case Every():
            return [steps.planned_wall(kind, moment) or shown]
        case Rrule():
            return [rules.planned_wall(kind, moment) or shown]
        case At():
            return [kind.wall or shown]


def _runs(table: Timetable, way: Way, start: datetime) -> Iterator[Run]:
    """Yield the runs of days with times, of which some may be moved beyond `start`."""
    search = _start_of_runs(table, way, start)
    while search is not None:
        moment = next(named(table, table.days.others, way, search), None)
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
        return start - HORIZON if before is None else last_instant(table.zone, before)
    if not way.is_back:
        return last_instant(table.zone, day)
    after = first_day(table.days, day + DAY)
    return start + HORIZON if after is None else first_instant(table.zone, after)


def _moved_walls(table: Timetable, kind: Kind, run: Run) -> dict[datetime, datetime]:
    """Return the wall times to which a run's times of one part are moved, each with a time that was moved there."""
    target = run.later if table.move == "next" else run.earlier
    if target is None:
        return {}
    begin = last_instant(table.zone, run.earlier) if run.earlier else first_instant(table.zone, target) - HORIZON
    end = first_instant(table.zone, run.later) if run.later else last_instant(table.zone, target) + HORIZON
    all_of_a_day = _times_of_day(kind) if kind.zone is table.zone else None
    found: dict[datetime, datetime] = {}
    for walked, moment in enumerate(kinds.walk(kind, begin)):
        if moment >= end or len(found) == all_of_a_day:
            break
        if walked == MOST_MOVED:
            raise TriggerError(_too_many(target))
        day = day_at(table.zone, moment)
        if day in table.days or not table.is_within(moment) or exclusion.names(table.excluded, moment):
            continue
        shown = moment.astimezone(kind.zone).date()
        for wall in planned_walls(kind, moment):
            found.setdefault(wall + (target - day) + (shown - wall.date()), moment)
    return found


def _times_of_day(kind: Kind) -> int | None:
    """Return how many different wall times a trigger has on all days together, none if they are not known."""
    match kind:
        case Cron():
            pattern = kind.pattern
            return pattern.seconds.bit_count() * pattern.minutes.bit_count() * pattern.hours.bit_count()
        case Every():
            return None if kind.step.elapsed else 1
        case _:
            return None


def _too_many(day: date) -> str:
    return (
        f"move: more than {MOST_MOVED:,} times would move to {day}. "
        "Leave move out, or allow more days, or write a cron text with a few times a day."
    )
