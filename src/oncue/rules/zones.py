"""Wall times and instants: the one place that knows what happens when clocks change ("Oncue time rules v1").

A zone's history is a row of stretches of one offset each, found from the zone data by probing and kept a year at a
time. Instants in here are naive UTC, for speed; no naive time leaves `rules`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from oncue.errors import TriggerError
from oncue.rules.pattern import HORIZON, SECOND, Pattern

PROBE: Final = timedelta(days=3)
"""No zone has changed its offset and back within 95 hours since 1900 (the closest: tests/rules/test_zones.py)."""

MADE_UP: Final = timedelta(hours=3)
"""Gaps of this length and more are a dropped day, or a move across the date line: nothing is made up for them."""

UTC_ZONE: Final = ZoneInfo("UTC")
OF_THE_HOST: Final = frozenset({"localtime", "posixrules", "Factory"})


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time [start, end) of one offset, and what its clock shows from `wall_start` to `wall_end`.

    `left` is what the clock showed when this stretch began: earlier than `wall_start` after a gap, later after a
    repeat. Walls from `fresh` on were not shown before.
    """

    start: datetime
    end: datetime
    offset: timedelta
    wall_start: datetime
    wall_end: datetime
    left: datetime
    fresh: datetime

    @property
    def has_gap(self) -> bool:
        """Say whether wall times were skipped at its start that are made up for."""
        return timedelta() < self.wall_start - self.left < MADE_UP


def read_zone(name: str) -> ZoneInfo:
    """Return the zone of an IANA name."""
    if name not in OF_THE_HOST and not name.startswith(("right/", "posix/")):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            pass
    near = difflib.get_close_matches(name, available_timezones() - OF_THE_HOST, n=1, cutoff=0.6)
    hint = f'Did you mean "{near[0]}"?' if near else 'Write an IANA name, such as "Europe/Athens" or "UTC".'
    raise TriggerError(f'zone: there is no time zone "{name}". {hint}')


def first_placed(pattern: Pattern, zone: ZoneInfo, after: datetime, *, is_wildcard: bool) -> datetime | None:
    """Return the first instant of a cron pattern later than `after`."""
    after = after.replace(microsecond=0)
    if is_wildcard:
        return _first_real(pattern, zone, after)
    stretch = stretch_at(zone, after)
    wall = max(after + stretch.offset + SECOND, stretch.fresh)
    while (found := pattern.first_from(wall)) is not None:
        if found >= stretch.wall_end:
            stretch = _stretch_of_wall(zone, found)
        if found >= stretch.fresh:
            return found - stretch.offset
        if stretch.has_gap:
            return stretch.start
        wall = stretch.wall_start
    return None


def last_placed(pattern: Pattern, zone: ZoneInfo, before: datetime, *, is_wildcard: bool) -> datetime | None:
    """Return the last instant of a cron pattern earlier than `before`."""
    before = before if before.microsecond == 0 else before.replace(microsecond=0) + SECOND
    if is_wildcard:
        return _last_real(pattern, zone, before)
    stretch = stretch_at(zone, before - SECOND)
    wall = max(before - SECOND + stretch.offset, stretch.fresh - SECOND)
    while (found := pattern.last_to(wall)) is not None:
        stretch = _stretch_of_wall(zone, found)
        if found >= stretch.fresh:
            return found - stretch.offset
        if stretch.has_gap:
            return stretch.start
        wall = stretch.left - SECOND
    return None


def count_placed(pattern: Pattern, zone: ZoneInfo, after: datetime, until: datetime, *, is_wildcard: bool) -> int:
    """Return how many instants of a cron pattern lie in (after, until], at a cost of one step a stretch and month."""
    start, end = after.replace(microsecond=0) + SECOND, until.replace(microsecond=0) + SECOND
    count = 0
    for stretch in _stretches_in(zone, start, end):
        first = max(start + stretch.offset, stretch.wall_start if is_wildcard else stretch.fresh)
        count += pattern.count_in(first, min(end + stretch.offset, stretch.wall_end))
        if not is_wildcard and stretch.has_gap and start <= stretch.start < end:
            made_up = pattern.count_in(stretch.left, stretch.wall_start)
            count += bool(made_up and not pattern.count_in(stretch.wall_start, stretch.wall_start + SECOND))
    return count


def place_date(wall: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the instant of a wall time of a calendar rule (RFC 5545), none in a day that was dropped.

    In a gap it is read with the offset before the change, in a repeat it is the first.
    """
    instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    shift = instant.astimezone(zone).replace(tzinfo=None, fold=0) - wall
    return None if shift >= MADE_UP else instant


def skipped_walls(zone: ZoneInfo, instant: datetime) -> tuple[datetime, datetime] | None:
    """Return the wall times [left, shown) that the change at exactly this instant skipped, if it did."""
    stretch = stretch_at(zone, instant)
    return (stretch.left, stretch.wall_start) if instant == stretch.start and stretch.has_gap else None


def stretch_at(zone: ZoneInfo, instant: datetime) -> Stretch:
    """Return the stretch that an instant lies in."""
    for stretch in _stretches(zone, instant.year):
        if instant < stretch.end:
            return stretch
    raise OverflowError


def _first_real(pattern: Pattern, zone: ZoneInfo, after: datetime) -> datetime | None:
    stretch = stretch_at(zone, after)
    wall = after + stretch.offset + SECOND
    while (found := pattern.first_from(wall)) is not None and stretch.start - after <= HORIZON:
        if found < stretch.wall_end:
            return found - stretch.offset
        stretch = stretch_at(zone, stretch.end)
        wall = stretch.wall_start
    return None


def _last_real(pattern: Pattern, zone: ZoneInfo, before: datetime) -> datetime | None:
    stretch = stretch_at(zone, before - SECOND)
    wall = before - SECOND + stretch.offset
    while (found := pattern.last_to(wall)) is not None and before - stretch.end <= HORIZON:
        if found >= stretch.wall_start:
            return found - stretch.offset
        stretch = stretch_at(zone, stretch.start - SECOND)
        wall = stretch.wall_end - SECOND
    return None


def _stretch_of_wall(zone: ZoneInfo, wall: datetime) -> Stretch:
    """Return the stretch that first showed a wall time, or that skipped it."""
    stretch = stretch_at(zone, wall - timedelta(days=2))
    while wall >= stretch.wall_end:
        stretch = stretch_at(zone, stretch.end)
    return stretch


def _stretches_in(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[Stretch]:
    stretch = stretch_at(zone, start)
    while stretch.start < end:
        yield stretch
        stretch = stretch_at(zone, stretch.end)


@lru_cache(maxsize=4096)
def _stretches(zone: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    """Return the stretches of one year of UTC, cut where it begins and ends."""
    if not date.min.year < year < date.max.year:
        raise OverflowError
    first = datetime.combine(date(year, 1, 1), time())
    last = first.replace(year=year + 1)
    # A repeat can begin before the year does: three days are enough to know what the clock has shown.
    start, offset = first - PROBE, _offset(zone, first - PROBE)
    left = fresh = start + offset
    found = []
    while start < last:
        end = _next_change(zone, start, offset, last)
        if end > first:
            start, left = max(start, first), left if start >= first else first + offset
            found.append(Stretch(start, end, offset, start + offset, end + offset, left, max(fresh, start + offset)))
        left, fresh = end + offset, max(fresh, end + offset)
        start, offset = end, _offset(zone, end)
    return tuple(found)


def _next_change(zone: ZoneInfo, start: datetime, offset: timedelta, limit: datetime) -> datetime:
    """Return when the offset next changes after `start`, or the limit."""
    same = start
    while same < limit:
        probe = min(same + PROBE, limit)
        if _offset(zone, probe) != offset:
            while probe - same > SECOND:
                middle = same + (probe - same) // 2
                middle = middle.replace(microsecond=0)
                same, probe = (middle, probe) if _offset(zone, middle) == offset else (same, middle)
            return probe
        same = probe
    return limit


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return zone.fromutc(instant.replace(tzinfo=zone)).replace(tzinfo=None) - instant
