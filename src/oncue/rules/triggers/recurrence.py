"""The wall times of a calendar rule of days or longer: pure calendar, as RFC 5545 has it, no zone.

A pattern of bit sets says which days and times of the day match, `Steps` which days are in step with the start and what
a pattern does not know (places in weeks and years). BYSETPOS then picks from each period by arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

from oncue.rules.triggers.pattern import SECOND, Pattern, bits_of, month_of

DAY: Final = timedelta(days=1)
WEEK: Final = 0b1111111
EVERY_DAY: Final = (1 << 32) - 2


@dataclass(frozen=True, slots=True)
class Steps:
    """The days that are in step with the start, by period and interval, and that stand in their places.

    Weekdays count Sunday as 0, `week_start` counts Monday as 0. `places` are weekdays with their number in the month,
    or in the year with `in_year`; `weekdays` are those without. `year_days` has bit 1 for the first day of a common and
    of a leap year. `weeks` are ISO's, but for the day that they start on.
    """

    freq: str
    interval: int
    start: date
    week_start: int = 0
    weekdays: int = 0
    places: tuple[tuple[int, int], ...] = ()
    in_year: bool = False
    year_days: tuple[int, int] | None = None
    weeks: frozenset[int] = frozenset()

    def days_in(self, year: int, month: int) -> int:
        """Return the days of a month, bit 1 for its first day."""
        days = self._in_step(year, month)
        if days and self.places:
            days &= self._in_place(year, month)
        if days and self.year_days is not None:
            new_year = date(year, 1, 1).toordinal()
            is_leap = date(year, 12, 31).toordinal() - new_year == 365
            days &= self.year_days[is_leap] >> date(year, month, 1).toordinal() - new_year & EVERY_DAY
        if days and self.weeks:
            days &= self._in_weeks(date(year, month, 1).toordinal())
        return days

    def month_after(self, year: int, month: int) -> tuple[int, int]:
        """Return the next month that can be in step."""
        if self.freq == "YEARLY" and month == 12:
            return year + 1 + (self.start.year - year - 1) % self.interval, 1
        months = year * 12 + month
        if self.freq == "MONTHLY":
            months += (self.start.year * 12 + self.start.month - 1 - months) % self.interval
        return months // 12, months % 12 + 1

    def month_before(self, year: int, month: int) -> tuple[int, int]:
        """Return the last month before that can be in step."""
        if self.freq == "YEARLY" and month == 1:
            return year - 1 - (year - 1 - self.start.year) % self.interval, 12
        months = year * 12 + month - 2
        if self.freq == "MONTHLY":
            months -= (months - self.start.year * 12 - self.start.month + 1) % self.interval
        return months // 12, months % 12 + 1

    def _in_step(self, year: int, month: int) -> int:
        if self.interval == 1:
            return EVERY_DAY
        if self.freq == "YEARLY":
            return 0 if (year - self.start.year) % self.interval else EVERY_DAY
        if self.freq == "MONTHLY":
            months = (year - self.start.year) * 12 + month - self.start.month
            return 0 if months % self.interval else EVERY_DAY
        first = date(year, month, 1).toordinal()
        if self.freq == "DAILY":
            return sum(
                1 << day for day in range((self.start.toordinal() - first) % self.interval + 1, 32, self.interval)
            )
        begin = self.start.toordinal() - (self.start.weekday() - self.week_start) % 7
        week = (first - begin) // 7
        week += -week % self.interval
        days = 0
        for monday in range(begin + 7 * (week - self.interval), first + 31, 7 * self.interval):
            days |= WEEK << monday - first + 1 if monday >= first else WEEK >> first - 1 - monday
        return days & EVERY_DAY

    def _in_place(self, year: int, month: int) -> int:
        length, weekday_days = month_of(year, month)
        days, before = weekday_days[self.weekdays], 0
        low, high = 1, length
        if self.in_year:
            before = date(year, month, 1).toordinal() - date(year, 1, 1).toordinal()
            low, high = 1 - before, date(year, 12, 31).toordinal() - date(year, month, 1).toordinal() + 1
        for weekday, nth in self.places:
            on = (weekday_days[1 << weekday] & -weekday_days[1 << weekday]).bit_length() - 1
            first, last = low + (on - low) % 7, high - (high - on) % 7
            day = first + 7 * (nth - 1) if nth > 0 else last + 7 * (nth + 1)
            if max(1, first) <= day <= min(length, last):
                days |= 1 << day
        return days

    def _in_weeks(self, first: int) -> int:
        """Return the days in the numbered weeks; a week belongs to the year that most of its days are in."""
        days = 0
        begin = first - (date.fromordinal(first).weekday() - self.week_start) % 7
        for start in range(begin, first + 31, 7):
            middle = start + 3
            year = date.fromordinal(middle).year
            new_year, last = date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()
            number, last_number = (middle - new_year) // 7 + 1, (last - (last - middle) % 7 - new_year) // 7 + 1
            if number in self.weeks or number - last_number - 1 in self.weeks:
                days |= WEEK << start - first + 1 if start >= first else WEEK >> first - 1 - start
        return days


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The wall times from `start` to `last` that match, but for those that are excluded; `places` is BYSETPOS."""

    pattern: Pattern
    start: datetime
    freq: str
    week_start: int = 0
    places: tuple[int, ...] = ()
    excluded: frozenset[datetime] = frozenset()
    last: datetime | None = None

    @property
    def reach(self) -> timedelta:
        return self.pattern.reach

    def first_from(self, wall: datetime) -> datetime | None:
        """Return the first at or after a wall time, none if there is none within reach."""
        found = self._first(max(wall, self.start))
        while found in self.excluded and found is not None:
            found = self._first(found + SECOND)
        return found if found is None or self.last is None or found <= self.last else None

    def last_to(self, wall: datetime) -> datetime | None:
        """Return the last at or before a wall time, none if there is none within reach."""
        found = self._last(wall if self.last is None else min(wall, self.last))
        while found in self.excluded and found is not None:
            found = self._last(found - SECOND)
        return found if found is not None and found >= self.start else None

    def count_in(self, start: datetime, end: datetime) -> int:
        """Return how many lie in [start, end)."""
        start, end = max(start, self.start), end if self.last is None else min(end, self.last + SECOND)
        if start >= end:
            return 0
        excluded = sum(1 for wall in self.excluded if start <= wall < end and self._first(wall) == wall)
        if not self.places:
            return self.pattern.count_in(start, end) - excluded
        return self._count_picked(start, end) - excluded

    def matches_in(self, start: datetime, end: datetime) -> int:
        """Return a bit for each second of [start, end), set where there is one."""
        if self.places:
            bits = sum(1 << (wall - start) // SECOND for wall in self._picked_in(start, end))
        else:
            bits = self.pattern.matches_in(start, end)
        for wall in self.excluded:
            if start <= wall < end:
                bits &= ~(1 << (wall - start) // SECOND)
        low = max((self.start - start) // SECOND, 0)
        if self.last is not None:
            bits &= (1 << max((self.last - start) // SECOND + 1, 0)) - 1
        return bits >> low << low

    def _first(self, wall: datetime) -> datetime | None:
        if not self.places:
            return self.pattern.first_from(wall)
        begin: date | None = self._begin(wall.date()) if self._can_pick() else None
        while begin is not None and datetime.combine(begin, time()) - wall <= self.reach:
            for found in self._picked(begin):
                if found >= wall:
                    return found
            begin = self._following(begin)
        return None

    def _last(self, wall: datetime) -> datetime | None:
        if not self.places:
            return self.pattern.last_to(wall)
        if not self._can_pick():
            return None
        begin = self._begin(wall.date())
        while wall - datetime.combine(begin, time()) <= self.reach:
            for found in reversed(self._picked(begin)):
                if found <= wall:
                    return found
            near = self.pattern.last_to(datetime.combine(begin, time()) - SECOND)
            if near is None or near < self.start - timedelta(days=366):
                return None
            begin = self._begin(near.date())
        return None

    @property
    def _daily(self) -> int:
        return self.pattern.seconds.bit_count() * self.pattern.minutes.bit_count() * self.pattern.hours.bit_count()

    def _can_pick(self) -> bool:
        """Say whether a period is ever long enough for one of the places."""
        days = {"DAILY": 1, "WEEKLY": self.pattern.weekdays.bit_count(), "MONTHLY": 31}.get(self.freq, 366)
        return min(abs(place) for place in self.places) <= days * self._daily

    def _count_picked(self, start: datetime, end: datetime) -> int:
        """Return how many are picked in [start, end): by the length of each period within, else one by one."""
        if self.freq == "DAILY":
            low, high = (datetime.combine(edge + DAY, time()) for edge in (start, end - DAY))
            if low < high:
                whole = self.pattern.count_in(low, high) // self._daily * len(self._indexes(self._daily))
                return whole + self._count_picked(start, low) + self._count_picked(high, end)
        count, lengths = 0, {0: 0}
        begin: date | None = self._begin(start.date())
        while begin is not None and (first := datetime.combine(begin, time())) < end:
            following = self._following(begin)
            if start <= first and following is not None and datetime.combine(following, time()) <= end:
                many = len(self._days_of(begin)) * self._daily
                if many not in lengths:
                    lengths[many] = len(self._indexes(many))
                count += lengths[many]
            else:
                count += sum(1 for wall in self._picked(begin) if start <= wall < end)
            begin = following
        return count

    def _indexes(self, many: int) -> list[int]:
        """Return which of a period's times are picked, in order."""
        return sorted({place - 1 if place > 0 else many + place for place in self.places if abs(place) <= many})

    def _picked_in(self, start: datetime, end: datetime) -> Iterator[datetime]:
        begin: date | None = self._begin(start.date())
        while begin is not None and datetime.combine(begin, time()) < end:
            for found in self._picked(begin):
                if start <= found < end:
                    yield found
            begin = self._following(begin)

    def _picked(self, begin: date) -> list[datetime]:
        """Return what BYSETPOS picks from a period, in order."""
        hours, minutes, seconds = (
            bits_of(part) for part in (self.pattern.hours, self.pattern.minutes, self.pattern.seconds)
        )
        days, found = self._days_of(begin), []
        for place in self._indexes(len(days) * self._daily):
            day, within = divmod(place, self._daily)
            hour, rest = divmod(within, len(minutes) * len(seconds))
            minute, second = divmod(rest, len(seconds))
            found.append(datetime.combine(days[day], time(hours[hour], minutes[minute], seconds[second])))
        return found

    def _days_of(self, begin: date) -> list[date]:
        """Return the matching days of a period."""
        if self.freq == "YEARLY":
            return [
                date(begin.year, month, day)
                for month in range(1, 13)
                for day in bits_of(self.pattern.days_in(begin.year, month))
            ]
        if self.freq == "MONTHLY":
            return [begin.replace(day=day) for day in bits_of(self.pattern.days_in(begin.year, begin.month))]
        days = [begin + k * DAY for k in range(7 if self.freq == "WEEKLY" else 1)]
        return [day for day in days if self.pattern.days_in(day.year, day.month) >> day.day & 1]

    def _begin(self, day: date) -> date:
        if self.freq == "YEARLY":
            return day.replace(month=1, day=1)
        if self.freq == "MONTHLY":
            return day.replace(day=1)
        return day - (day.weekday() - self.week_start) % 7 * DAY if self.freq == "WEEKLY" else day

    def _following(self, begin: date) -> date | None:
        """Return the begin of the next period that any day matches in."""
        if self.freq in ("WEEKLY", "DAILY"):
            end = begin + (7 if self.freq == "WEEKLY" else 1) * DAY
        elif begin.year == date.max.year:
            return None
        else:
            later = begin.replace(year=begin.year + 1) if self.freq == "YEARLY" else begin + 31 * DAY
            end = later.replace(day=1)
        near = self.pattern.first_from(datetime.combine(end, time()))
        return near and self._begin(near.date())
