"""Which wall times a cron text names, as bit sets, and the walk over them: pure calendar, no zone.

Every time here is a naive wall time. `cron.py` makes a pattern from text, `zones.py` turns wall times into instants.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HORIZON: Final = timedelta(days=4749)
"""How far a walk looks before it answers none: 13 years, so that 29 February is found over 2100."""

ALL_WEEKDAYS: Final = 0b1111111


class Walls(Protocol):
    """A set of wall times of whole seconds, of any kind, for `zones.py` to place."""

    @property
    def reach(self) -> timedelta: ...
    def first_from(self, wall: datetime) -> datetime | None: ...
    def last_to(self, wall: datetime) -> datetime | None: ...
    def count_in(self, start: datetime, end: datetime) -> int: ...
    def matches_in(self, start: datetime, end: datetime) -> int: ...


class Rhythm(Protocol):
    """Days that are in step with a beginning: bits of a month, as `Pattern.days_in` has them, and months to skip to."""

    def days_in(self, year: int, month: int) -> int: ...
    def month_after(self, year: int, month: int) -> tuple[int, int]: ...
    def month_before(self, year: int, month: int) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class MonthEnd:
    """Days that depend on the month's length or its first weekday: `L`, `L-3`, `LW`, `15W`, `5L` and `5#3`.

    `before_last` has bit k for the k-th day before the last; `nearest` has bit d for `dW`; `last_weekdays` and
    `nth_weekdays` count Sunday as 0, the latter with bit 7 * (n - 1) + weekday.
    """

    before_last: int = 0
    last_workday: bool = False
    nearest: int = 0
    last_weekdays: int = 0
    nth_weekdays: int = 0


@dataclass(frozen=True, slots=True)
class Pattern:
    """Bit sets of the second, minute, hour, day, month and weekday (Sunday is bit 0) that match.

    With `is_either` a day matches by its date or by its weekday, else by both. With `years` only those have matches,
    with `rhythm` only the days that it knows too. A walk ends after `reach`.
    """

    seconds: int
    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    is_either: bool = False
    special: MonthEnd | None = None
    years: frozenset[int] | None = None
    rhythm: Rhythm | None = None
    reach: timedelta = HORIZON

    def first_from(self, wall: datetime) -> datetime | None:
        """Return the first match at or after a whole second, none if that is beyond the horizon or its last year."""
        year, month, day = wall.year, wall.month, wall.day
        days = self.days_in(year, month) >> day
        if days & 1 and (found := self._first_in_day(wall)) is not None:
            return found
        days &= -2
        last_year = min(year + self.reach.days // 365 + 1, date.max.year) if self.years is None else max(self.years)
        while not days:
            day = 1
            if self.rhythm is not None:
                year, month = self.rhythm.month_after(year, month)
            else:
                year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            if year > last_year:
                return None
            days = self.days_in(year, month) >> 1
        found = wall.replace(
            year, month, day + lowest(days), lowest(self.hours), lowest(self.minutes), lowest(self.seconds)
        )
        return found if self.years is not None or found - wall <= self.reach else None

    def last_to(self, wall: datetime) -> datetime | None:
        """Return the last match at or before a whole second, none if that is beyond the horizon or its first year."""
        year, month = wall.year, wall.month
        days = self.days_in(year, month)
        if days >> wall.day & 1 and (found := self._last_in_day(wall)) is not None:
            return found
        days &= (1 << wall.day) - 1
        first_year = max(year - self.reach.days // 365 - 1, date.min.year) if self.years is None else min(self.years)
        while not days:
            if self.rhythm is not None:
                year, month = self.rhythm.month_before(year, month)
            else:
                year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            if year < first_year:
                return None
            days = self.days_in(year, month)
        found = wall.replace(
            year, month, highest(days), highest(self.hours), highest(self.minutes), highest(self.seconds)
        )
        return found if self.years is not None or wall - found <= self.reach else None

    def count_in(self, start: datetime, end: datetime) -> int:
        """Return how many matches lie in [start, end), at a cost of one step a month."""
        if start >= end:
            return 0
        daily = self.seconds.bit_count() * self.minutes.bit_count() * self.hours.bit_count()
        return daily * self._count_days(start.date(), end.date()) + self._count_in_day(end) - self._count_in_day(start)

    def matches_in(self, start: datetime, end: datetime) -> int:
        """Return a bit for each whole second of [start, end), the first one lowest: set where it matches."""
        bits, minute, place = 0, start.replace(second=0), -start.second
        while minute < end:
            if (
                self.minutes >> minute.minute & 1
                and self.hours >> minute.hour & 1
                and self.days_in(minute.year, minute.month) >> minute.day & 1
            ):
                bits |= self.seconds << place if place >= 0 else self.seconds >> -place
            minute, place = minute + MINUTE, place + 60
        return bits & (1 << (end - start) // SECOND) - 1

    def _first_in_day(self, wall: datetime) -> datetime | None:
        hour, minute = wall.hour, wall.minute
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (rest := self.seconds >> wall.second):
                return wall.replace(second=wall.second + lowest(rest))
            if rest := self.minutes >> minute + 1:
                return wall.replace(minute=minute + 1 + lowest(rest), second=lowest(self.seconds))
        if rest := self.hours >> hour + 1:
            return wall.replace(hour=hour + 1 + lowest(rest), minute=lowest(self.minutes), second=lowest(self.seconds))
        return None

    def _last_in_day(self, wall: datetime) -> datetime | None:
        hour, minute = wall.hour, wall.minute
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (rest := self.seconds & (2 << wall.second) - 1):
                return wall.replace(second=highest(rest))
            if rest := self.minutes & (1 << minute) - 1:
                return wall.replace(minute=highest(rest), second=highest(self.seconds))
        if rest := self.hours & (1 << hour) - 1:
            return wall.replace(hour=highest(rest), minute=highest(self.minutes), second=highest(self.seconds))
        return None

    def _count_in_day(self, wall: datetime) -> int:
        """Return how many matches lie in the day of `wall` before it."""
        if not self.days_in(wall.year, wall.month) >> wall.day & 1:
            return 0
        per_minute = self.seconds.bit_count()
        per_hour = self.minutes.bit_count() * per_minute
        count = (self.hours & (1 << wall.hour) - 1).bit_count() * per_hour
        if self.hours >> wall.hour & 1:
            count += (self.minutes & (1 << wall.minute) - 1).bit_count() * per_minute
            if self.minutes >> wall.minute & 1:
                count += (self.seconds & (1 << wall.second) - 1).bit_count()
        return count

    def _count_days(self, start: date, end: date) -> int:
        """Return how many matching days lie in [start, end)."""
        year, month, count = start.year, start.month, 0
        count -= (self.days_in(year, month) & (1 << start.day) - 1).bit_count()
        while (year, month) < (end.year, end.month):
            count += self.days_in(year, month).bit_count()
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        return count + (self.days_in(year, month) & (1 << end.day) - 1).bit_count()

    def days_in(self, year: int, month: int) -> int:
        """Return the matching days of a month, bit 1 for its first day."""
        if not self.months >> month & 1 or (self.years is not None and year not in self.years):
            return 0
        length, weekday_days = month_of(year, month)
        by_date, by_weekday = self.days, weekday_days[self.weekdays]
        if self.special is not None:
            by_date |= _special_dates(self.special, length, weekday_days)
            by_weekday |= _special_weekdays(self.special, length, weekday_days)
        chosen = by_date | by_weekday if self.is_either else by_date & by_weekday
        if self.rhythm is not None:
            chosen &= self.rhythm.days_in(year, month)
        return chosen & (2 << length) - 2


def _special_dates(special: MonthEnd, length: int, weekday_days: tuple[int, ...]) -> int:
    workdays = weekday_days[0b0111110] & (2 << length) - 2
    days = sum(1 << length - k for k in bits_of(special.before_last) if k < length)
    if special.last_workday:
        days |= 1 << highest(workdays)
    for day in bits_of(special.nearest):
        if day <= length:
            # Saturday goes to Friday and Sunday to Monday, but never into another month.
            near = (day, day - 1, day + 1, day + 2, day - 2)
            days |= 1 << next(d for d in near if d > 0 and workdays >> d & 1)
    return days


def _special_weekdays(special: MonthEnd, length: int, weekday_days: tuple[int, ...]) -> int:
    last_week = (2 << length) - 1 & ~((2 << length - 7) - 1)
    days = weekday_days[special.last_weekdays] & last_week
    for bit in bits_of(special.nth_weekdays):
        nth, weekday = divmod(bit, 7)
        days |= weekday_days[1 << weekday] & 0b1111111 << 7 * nth + 1
    return days


@lru_cache(maxsize=2048)
def month_of(year: int, month: int) -> tuple[int, tuple[int, ...]]:
    """Return a month's length, and for each set of weekdays the days that fall on them."""
    first = date(year, month, 1)
    after = date(year, month + 1, 1) if month < 12 else None
    return (after - first).days if after else 31, _weekday_days(first.isoweekday() % 7)


@lru_cache(maxsize=7)
def _weekday_days(first: int) -> tuple[int, ...]:
    """Return for each of the 128 sets of weekdays the days on them, in a month whose first day is `first`."""
    on = [sum(1 << day for day in range(1, 32) if (first + day - 1) % 7 == weekday) for weekday in range(7)]
    return tuple(sum(on[weekday] for weekday in bits_of(chosen)) for chosen in range(ALL_WEEKDAYS + 1))


def bits_of(mask: int) -> list[int]:
    """Return the places of the bits that are set, the lowest first."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def lowest(mask: int) -> int:
    """Return the place of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def highest(mask: int) -> int:
    """Return the place of the highest bit that is set."""
    return mask.bit_length() - 1
