"""Calendar rules of hours and minutes go on in elapsed time: real times of a pattern, in step with an instant.

A day is a row of 1,440 bits here: what the pattern names, and what is in step on that day, differ by one shift. So the
cost of a search or a count grows with the days, never with the times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import gcd
from typing import Final
from zoneinfo import ZoneInfo

from oncue.rules.triggers.pattern import MINUTE, SECOND, Pattern, bits_of, highest, lowest
from oncue.rules.triggers.zones import EPOCH, EPOCH_UTC, Stretch, stretch_at, stretches_in, whole_after, whole_before

DAY: Final = timedelta(days=1)
MINUTES: Final = 1440


@dataclass(frozen=True, slots=True)
class Pace:
    """The real times of a pattern in the minutes that are in step: `run` minutes in each `period` of minutes.

    The steps begin `phase` minutes after `base`, an instant.
    """

    pattern: Pattern
    base: datetime
    period: int
    run: int
    phase: int


def first_paced(pace: Pace, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Return the first instant later than `after`, none if there is none within reach of the pattern."""
    lower = whole_after(after)
    stretch = stretch_at(zone, lower)
    wall = lower + stretch.offset
    named = pace.pattern.first_from(wall)
    while stretch.start - lower <= pace.pattern.reach:
        found = _first_wall(pace, stretch, named) if named is not None else None
        if found is not None:
            return EPOCH_UTC + (found - stretch.offset - EPOCH)
        stretch = stretch_at(zone, stretch.end)
        if stretch.wall_start < wall or (named is not None and named < stretch.wall_start):
            wall = stretch.wall_start
            named = pace.pattern.first_from(wall)
        elif named is None:
            return None
    return None


def last_paced(pace: Pace, zone: ZoneInfo, before: datetime) -> datetime | None:
    """Return the last instant earlier than `before`, none if there is none within reach of the pattern."""
    upper = whole_before(before)
    stretch = stretch_at(zone, upper)
    wall = upper + stretch.offset
    named = pace.pattern.last_to(wall)
    while upper - stretch.end <= pace.pattern.reach:
        found = _last_wall(pace, stretch, named) if named is not None else None
        if found is not None:
            return EPOCH_UTC + (found - stretch.offset - EPOCH)
        stretch = stretch_at(zone, stretch.start - SECOND)
        if stretch.wall_end - SECOND > wall or (named is not None and named >= stretch.wall_end):
            wall = stretch.wall_end - SECOND
            named = pace.pattern.last_to(wall)
        elif named is None:
            return None
    return None


def count_paced(pace: Pace, zone: ZoneInfo, after: datetime, until: datetime) -> int:
    """Return how many instants lie in (after, until], at a cost of one step a month and day."""
    start, end = whole_after(after), whole_after(until)
    count = 0
    for stretch in stretches_in(zone, start, end):
        low, high = max(start + stretch.offset, stretch.wall_start), min(end + stretch.offset, stretch.wall_end)
        count += _count_before(pace, stretch, high) - _count_before(pace, stretch, low)
        bits_on = _bits_of_days(pace, stretch)
        minutes = sum(bits_on(midnight).bit_count() for midnight in _days(pace.pattern, low, high))
        count += minutes * pace.pattern.seconds.bit_count()
    return count


def _days(pattern: Pattern, low: datetime, high: datetime) -> Iterator[datetime]:
    """Yield the midnights of the days that match, from that of `low` to the last before that of `high`."""
    month, end = _midnight(low).replace(day=1), _midnight(high)
    first = low.day
    while month < end:
        for day in bits_of(pattern.days_in(month.year, month.month) >> first << first):
            if (midnight := month + (day - 1) * DAY) >= end:
                return
            yield midnight
        month, first = (month + 31 * DAY).replace(day=1), 1


def _first_wall(pace: Pace, stretch: Stretch, wall: datetime) -> datetime | None:
    """Return the first wall time that a stretch shows from `wall` on."""
    named: datetime | None = wall if _is_possible(pace, stretch) else None
    bits_on = _bits_of_days(pace, stretch)
    while named is not None and named < stretch.wall_end:
        midnight, minute = _midnight(named), named.hour * 60 + named.minute
        rest = bits_on(midnight) >> minute
        found = None
        if rest & 1 and (seconds := pace.pattern.seconds >> named.second):
            found = named + lowest(seconds) * SECOND
        elif rest := rest >> 1:
            found = midnight + (minute + 1 + lowest(rest)) * MINUTE + lowest(pace.pattern.seconds) * SECOND
        if found is not None:
            return found if found < stretch.wall_end else None
        named = pace.pattern.first_from(midnight + DAY)
    return None


def _last_wall(pace: Pace, stretch: Stretch, wall: datetime) -> datetime | None:
    """Return the last wall time that a stretch shows up to `wall`."""
    named: datetime | None = wall if _is_possible(pace, stretch) else None
    bits_on = _bits_of_days(pace, stretch)
    while named is not None and named >= stretch.wall_start:
        midnight, minute = _midnight(named), named.hour * 60 + named.minute
        bits = bits_on(midnight)
        found = None
        if bits >> minute & 1 and (seconds := pace.pattern.seconds & (2 << named.second) - 1):
            found = midnight + minute * MINUTE + highest(seconds) * SECOND
        elif rest := bits & (1 << minute) - 1:
            found = midnight + highest(rest) * MINUTE + highest(pace.pattern.seconds) * SECOND
        if found is not None:
            return found if found >= stretch.wall_start else None
        named = pace.pattern.last_to(midnight - SECOND)
    return None


def _count_before(pace: Pace, stretch: Stretch, wall: datetime) -> int:
    """Return how many times stand in the day of `wall` before it."""
    if not pace.pattern.days_in(wall.year, wall.month) >> wall.day & 1:
        return 0
    bits, minute = _bits_of_days(pace, stretch)(_midnight(wall)), wall.hour * 60 + wall.minute
    count = (bits & (1 << minute) - 1).bit_count() * pace.pattern.seconds.bit_count()
    return count + (bits >> minute & 1) * (pace.pattern.seconds & (1 << wall.second) - 1).bit_count()


def _bits_of_days(pace: Pace, stretch: Stretch) -> Callable[[datetime], int]:
    """Return what gives, for the midnight of a matching day, its minutes that match and are in step."""
    comb, minutes = _comb(pace.period, pace.run), _minutes_of(pace.pattern.hours, pace.pattern.minutes)
    origin, phase, period = pace.base + stretch.offset, pace.phase, pace.period

    def bits_on(midnight: datetime) -> int:
        place = (phase - (midnight - origin) // MINUTE) % period
        return (comb << place | comb >> period - place) & minutes

    return bits_on


def _is_possible(pace: Pace, stretch: Stretch) -> bool:
    """Say whether any minute of any day can be in step while the offset is this one."""
    cycle = gcd(pace.period, MINUTES)
    place = _place(pace, stretch, _midnight(stretch.wall_start)) % cycle
    run = (1 << min(pace.run, cycle)) - 1
    return bool((run << place | run >> cycle - place) & _folded(pace.pattern.hours, pace.pattern.minutes, cycle))


def _place(pace: Pace, stretch: Stretch, midnight: datetime) -> int:
    """Return how many minutes after a midnight a step begins."""
    return pace.phase - (midnight - stretch.offset - pace.base) // MINUTE


def _midnight(wall: datetime) -> datetime:
    return wall.replace(hour=0, minute=0, second=0)


@lru_cache(maxsize=256)
def _comb(period: int, run: int) -> int:
    """Return runs of bits, one in each period, for more than a day."""
    return sum((1 << run) - 1 << k * period for k in range(MINUTES // period + 2))


@lru_cache(maxsize=256)
def _minutes_of(hours: int, minutes: int) -> int:
    return sum(minutes << 60 * hour for hour in bits_of(hours))


@lru_cache(maxsize=256)
def _folded(hours: int, minutes: int, cycle: int) -> int:
    """Return the minutes of a day, laid upon each other in cycles."""
    return sum(1 << place for place in {minute % cycle for minute in bits_of(_minutes_of(hours, minutes))})
