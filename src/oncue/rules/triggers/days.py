"""Sets of days by bits, a month at a time, and when a zone's clock shows them.

A day is in use by what the clock shows: where a zone drops a day, or shows one twice, the instants tell.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from oncue.definition import Calendar
from oncue.errors import TriggerError
from oncue.rules.triggers import zones

YEARS: Final = 14  # a search goes on for
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEKLY: Final = sum(1 << 7 * week for week in range(6))
"""A set of weekdays times this is that set for six weeks in a row."""

DAY: Final = timedelta(days=1)
TICK: Final = timedelta(microseconds=1)
AROUND: Final = timedelta(days=2)
"""No clock shows a day earlier or later than this from the same day in UTC."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A calendar as bits: its weekdays (Monday is bit 0), and what its dates add to and take from a month."""

    calendar: Calendar
    weekdays: int
    added: Mapping[int, int]
    removed: Mapping[int, int]

    def days_in(self, year: int, month: int) -> int:
        """Return its days of a month, bit 1 for the first."""
        first = date(year, month, 1).weekday()
        week = (self.weekdays | self.weekdays << 7) >> first & 0b1111111
        key = year * 12 + month
        return (week * WEEKLY << 1 | self.added.get(key, 0)) & ~self.removed.get(key, 0)

    def __contains__(self, day: date) -> bool:
        return bool(self.days_in(day.year, day.month) >> day.day & 1)


@dataclass(frozen=True, slots=True)
class Days:
    """The days that are on all of `only` and on none of `never`; with `is_inverted` all other days."""

    only: tuple[Listed, ...] = ()
    never: tuple[Listed, ...] = ()
    is_inverted: bool = False

    @property
    def others(self) -> Days:
        """The days that are not in this set."""
        return replace(self, is_inverted=not self.is_inverted)

    def days_in(self, year: int, month: int) -> int:
        """Return the days of a month that are in the set, bit 1 for the first."""
        days = -1
        for listed in self.only:
            days &= listed.days_in(year, month)
        for listed in self.never:
            days &= ~listed.days_in(year, month)
        return (~days if self.is_inverted else days) & days_of(year, month)

    def __contains__(self, day: date) -> bool:
        return bool(self.days_in(day.year, day.month) >> day.day & 1)


EVERY_DAY: Final = Days()


class MonthSet(Protocol):
    """What names days, a month at a time."""

    def days_in(self, year: int, month: int) -> int:
        """Return its days of a month, bit 1 for the first."""
        ...


def read_listed(calendar: Calendar) -> Listed:
    """Return a calendar as bits."""
    for weekday in calendar.weekdays:
        if weekday not in WEEKDAYS:
            known = ", ".join(WEEKDAYS)
            raise TriggerError(f'calendar: {calendar.name} has the weekday "{weekday}". Write one of {known}.')
    weekdays = sum(1 << WEEKDAYS.index(weekday) for weekday in set(calendar.weekdays))
    return Listed(calendar, weekdays, _by_month(calendar.dates), _by_month(calendar.without))


def first_day(days: MonthSet, day: date) -> date | None:
    """Return the first day of a set from `day` on, none if there is none in 13 years."""
    found = days.days_in(day.year, day.month) >> day.day << day.day
    months = _months_from(day)
    while not found:
        following = next(months, None)
        if following is None:
            return None
        day = following
        found = days.days_in(day.year, day.month)
    return day.replace(day=(found & -found).bit_length() - 1)


def last_day(days: MonthSet, day: date) -> date | None:
    """Return the last day of a set up to `day`, none if there is none in 13 years."""
    found = days.days_in(day.year, day.month) & (2 << day.day) - 1
    months = _months_back(day)
    while not found:
        earlier = next(months, None)
        if earlier is None:
            return None
        day = earlier
        found = days.days_in(day.year, day.month)
    return day.replace(day=found.bit_length() - 1)


def day_at(zone: ZoneInfo, instant: datetime) -> date:
    """Return the day that the clock of a zone shows."""
    return instant.astimezone(zone).date()


def first_instant(zone: ZoneInfo, day: date) -> datetime:
    """Return the first instant whose clock shows `day`, or where a zone dropped it a later day."""
    midnight = datetime.combine(day, time())
    for stretch in _stretches_around(zone, midnight):
        wall = max(midnight, stretch.wall_start)
        if wall < stretch.wall_end:
            return (wall - stretch.offset).replace(tzinfo=UTC)
    raise OverflowError


def last_instant(zone: ZoneInfo, day: date) -> datetime:
    """Return the last instant whose clock shows `day`, or where a zone dropped it an earlier day."""
    midnight = datetime.combine(day, time()) + DAY
    ends = [
        min(midnight, stretch.wall_end) - stretch.offset
        for stretch in _stretches_around(zone, midnight)
        if stretch.wall_start < midnight
    ]
    return max(ends).replace(tzinfo=UTC) - TICK


def first_shown(days: Days, zone: ZoneInfo, instant: datetime) -> datetime | None:
    """Return the first instant from one on whose clock shows a day of the set, none if there is none in 13 years."""
    now = instant.replace(tzinfo=None)
    while True:
        stretch = zones.stretch_at(zone, now)
        wall = now + stretch.offset
        if wall.date() in days:
            return now.replace(tzinfo=UTC)
        # Where clocks go back over midnight the day before is shown again.
        following = zones.stretch_at(zone, stretch.end).wall_start
        day = first_day(days, min(wall, following).date())
        if day is None:
            return None
        midnight = datetime.combine(day, time())
        if wall < midnight < stretch.wall_end:
            return (midnight - stretch.offset).replace(tzinfo=UTC)
        now = max(stretch.end, midnight - AROUND)


def last_shown(days: Days, zone: ZoneInfo, instant: datetime) -> datetime | None:
    """Return the last instant up to one whose clock shows a day of the set, none if there is none in 13 years."""
    now = instant.replace(tzinfo=None)
    while True:
        stretch = zones.stretch_at(zone, now)
        wall = now + stretch.offset
        if wall.date() in days:
            return now.replace(tzinfo=UTC)
        earlier = zones.stretch_at(zone, stretch.start - TICK).wall_end - TICK
        day = last_day(days, max(wall, earlier).date())
        if day is None:
            return None
        end = datetime.combine(day, time()) + DAY
        if stretch.wall_start < end <= wall:
            return (end - stretch.offset).replace(tzinfo=UTC) - TICK
        now = min(stretch.start - TICK, end + AROUND)


def mornings(zone: ZoneInfo, year: int, month: int) -> int:
    """Return the days of a month before which the clock skipped midnight: times of the day before land on them."""
    return _mornings(zone, year).get(month, 0)


@lru_cache(maxsize=4096)
def _mornings(zone: ZoneInfo, year: int) -> Mapping[int, int]:
    found: dict[int, int] = {}
    stretch = zones.stretch_at(zone, datetime(year, 1, 1))  # noqa: DTZ001 naive UTC, as in zones
    while stretch.start.year == year:
        day = stretch.wall_start.date()
        if stretch.has_gap and stretch.left.date() < day:
            found[day.month] = found.get(day.month, 0) | 1 << day.day
        stretch = zones.stretch_at(zone, stretch.end)
    return found


def _stretches_around(zone: ZoneInfo, midnight: datetime) -> Iterator[zones.Stretch]:
    stretch = zones.stretch_at(zone, midnight - AROUND)
    while stretch.start < midnight + AROUND:
        yield stretch
        stretch = zones.stretch_at(zone, stretch.end)


def _months_from(day: date) -> Iterator[date]:
    """Yield the first days of the months after a day's, for 13 years and the rest of one."""
    for month in range(day.year * 12 + day.month, min(day.year + YEARS, date.max.year) * 12):
        yield date(month // 12, month % 12 + 1, 1)


def _months_back(day: date) -> Iterator[date]:
    """Yield the last days of the months before a day's, for 13 years and the rest of one."""
    for month in range(day.year * 12 + day.month - 1, max(day.year - YEARS, date.min.year) * 12, -1):
        yield date(month // 12, month % 12 + 1, 1) - DAY


def days_of(year: int, month: int) -> int:
    """Return all days of a month."""
    return (2 << monthrange(year, month)[1]) - 2


def _by_month(days: Iterable[date]) -> dict[int, int]:
    found: dict[int, int] = {}
    for day in days:
        key = day.year * 12 + day.month
        found[key] = found.get(key, 0) | 1 << day.day
    return found
