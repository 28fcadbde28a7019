"""The walk over the times of a timetable as they are named: parts joined, disallowed days and exclusions leapt over.

It goes either way; a `Way` holds what differs between forward and back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules.triggers import days as calendars
from oncue.rules.triggers import exclusion, kinds
from oncue.rules.triggers.days import Days, MonthSet
from oncue.rules.triggers.every import Every
from oncue.rules.triggers.kinds import TICK, Kind
from oncue.rules.triggers.pattern import HORIZON
from oncue.rules.triggers.timetable import Timetable

DAY: Final = timedelta(days=1)
MOST_MISSES: Final = 500


Step = tuple[datetime, bool]
"""Where a walk has come to, and whether that is a time; if not, it has only come past."""


@dataclass(frozen=True, slots=True)
class Way:
    """A direction in time, and the searches that go there.

    `step` and `walk` give a kind's times beyond a moment. `shown` and `day` find the first instant and the first day
    from one on that belong to a set of days. `entry` is the instant of a day that is met first.
    """

    is_back: bool
    tick: timedelta
    step: Callable[[Kind, datetime], datetime | None]
    walk: Callable[[Kind, datetime], Iterator[datetime]]
    shown: Callable[[Days, ZoneInfo, datetime], datetime | None]
    day: Callable[[MonthSet, date], date | None]
    entry: Callable[[ZoneInfo, date], datetime]

    def is_beyond(self, moment: datetime, other: datetime) -> bool:
        """Say whether a moment lies further on than another."""
        return moment < other if self.is_back else moment > other

    def nearest(self, triggers: Iterable[Kind], start: datetime) -> datetime | None:
        """Return the first time beyond `start` that any of some triggers names."""
        found = [moment for kind in triggers if (moment := self.step(kind, start)) is not None]
        return (max(found) if self.is_back else min(found)) if found else None


AHEAD: Final = Way(
    is_back=False,
    tick=TICK,
    step=kinds.next_after,
    walk=kinds.walk,
    shown=calendars.first_shown,
    day=calendars.first_day,
    entry=calendars.first_instant,
)
BACK: Final = Way(
    is_back=True,
    tick=-TICK,
    step=kinds.previous_before,
    walk=kinds.walk_back,
    shown=calendars.last_shown,
    day=calendars.last_day,
    entry=calendars.last_instant,
)


@dataclass(frozen=True, slots=True)
class _Shared:
    """The days of a set on which a trigger may have a time: its own, and those that a skipped midnight gives it."""

    days: Days
    own: MonthSet
    zone: ZoneInfo

    def days_in(self, year: int, month: int) -> int:
        named = self.own.days_in(year, month) | calendars.mornings(self.zone, year, month)
        return named & self.days.days_in(year, month)


def named(table: Timetable, days: Days, way: Way, start: datetime) -> Iterator[Step]:
    """Walk over the times beyond `start` that are named on a set of days, within the bounds, and not excluded."""
    near, far = (table.ends_at, table.starts_at) if way.is_back else (table.starts_at, table.ends_at)
    if near is not None and way.is_beyond(near, start):
        start = near - way.tick
    origin, misses = start, 0
    while True:
        leapt = None
        for moment, is_time in _joined(table, days, way, start):
            if far is not None and way.is_beyond(moment, far):
                return
            if not is_time or not exclusion.names(table.excluded, moment):
                yield moment, is_time
                origin, misses = (moment, 0) if is_time else (origin, misses)
                continue
            if abs(moment - origin) > HORIZON:
                return
            yield moment, False
            misses += 1
            if misses > MOST_MISSES:
                raise TriggerError(_too_many(origin))
            leapt = exclusion.leap(table, moment, is_back=way.is_back)
            if leapt is not None:
                start = leapt
                break
        if leapt is None:
            return


def merged(walks: Iterable[Iterator[Step]], way: Way) -> Iterator[Step]:
    """Walk several walks in order. None is led further than the one that is behind it."""
    return heapq.merge(*walks, key=itemgetter(0), reverse=way.is_back)


def times_of(walk: Iterator[Step]) -> Iterator[datetime]:
    """Yield the times of a walk, each once."""
    last = None
    for moment, is_time in walk:
        if is_time and moment != last:
            yield moment
            last = moment


def is_on(walk: Iterator[Step], moment: datetime) -> bool:
    """Say whether a walk ahead comes to a moment as one of its times."""
    for step, is_time in walk:
        if step > moment or (is_time and step == moment):
            return step == moment
    return False


def _joined(table: Timetable, days: Days, way: Way, start: datetime) -> Iterator[Step]:
    return merged([_walk_on(kind, table, days, way, start) for kind in table.parts], way)


def _walk_on(kind: Kind, table: Timetable, days: Days, way: Way, start: datetime) -> Iterator[Step]:
    """Walk over the times of one part; those on a day of the set are times. It ends where none is for 13 years."""
    if not (days.only or days.never or days.is_inverted):
        yield from ((moment, True) for moment in way.walk(kind, start))
        return
    origin = start
    while True:
        leapt = None
        for moment in way.walk(kind, start):
            if abs(moment - origin) > HORIZON:
                return
            is_time = calendars.day_at(table.zone, moment) in days
            yield moment, is_time
            if is_time:
                origin = moment
            elif not (isinstance(kind, Every) and kind.step.elapsed >= DAY):
                leapt = _leap(kind, table.zone, days, way, moment)
                break
        if leapt is None:
            return
        start = leapt - way.tick


def _leap(kind: Kind, zone: ZoneInfo, days: Days, way: Way, moment: datetime) -> datetime | None:
    """Return an instant beyond one on a day outside the set, up to which the kind has no time on a day inside."""
    shown = way.shown(days, zone, moment)
    named = kinds.days_of(kind)
    if shown is None or named is None or kind.zone is not zone:
        return shown
    here = calendars.day_at(zone, shown)
    day = way.day(_Shared(days, named, zone), here)
    if day is None:
        return None
    return shown if day == here else way.entry(zone, day)


def _too_many(moment: datetime) -> str:
    return (
        f"except: it takes away more than {MOST_MISSES:,} times in a row from {moment:%Y-%m-%d %H:%M} UTC on. "
        "Write the times that are left as a schedule of their own."
    )
