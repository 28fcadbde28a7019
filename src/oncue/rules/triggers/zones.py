"""Wall times and instants: the one place that knows what happens when clocks change ("Oncue time rules v1").

A zone's history is a row of stretches of one offset each, found from the zone data by probing and kept a year at a
time. Instants in here are naive UTC, for speed; no naive time leaves `rules`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from oncue.errors import TriggerError
from oncue.rules.triggers.pattern import SECOND, Walls
from oncue.rules.triggers.placing import Placing

PROBE: Final = timedelta(days=3)
"""No zone has changed its offset and back within 95 hours since 1900 (the closest: tests/rules/test_zones.py)."""

MADE_UP: Final = timedelta(hours=3)
"""Gaps of this length and more are a dropped day, or a move across the date line: nothing is made up for them."""

LOOK: Final = timedelta(days=2)
"""No clock is further from UTC than this less a repeat."""

TICK: Final = timedelta(microseconds=1)
EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH: Final = EPOCH_UTC.replace(tzinfo=None)
"""Two ends of a bridge between aware and naive: a sum and a difference are much faster than `replace`."""

OF_THE_HOST: Final = frozenset({"localtime", "posixrules", "Factory"})


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time [start, end) of one offset, and what its clock shows from `wall_start` to `wall_end`.

    `left` is what the clock showed when this stretch began: earlier than `wall_start` after a gap, later after a
    repeat. Walls from `fresh` on were not shown before, walls before `lasting` are not shown again. What a gap at its
    start moves lies before `settled`, which is `start` itself if there is nothing to make up for.
    """

    start: datetime
    end: datetime
    offset: timedelta
    wall_start: datetime
    wall_end: datetime
    left: datetime
    fresh: datetime
    lasting: datetime
    settled: datetime

    @property
    def has_gap(self) -> bool:
        """Say whether wall times were skipped at its start that are made up for."""
        return self.start < self.settled


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


def first_placed(walls: Walls, zone: ZoneInfo, after: datetime, placing: Placing) -> datetime | None:
    """Return the first instant of walls later than `after`; the search ends where the walls' reach does."""
    lower = whole_after(after)
    stretch = stretch_at(zone, lower)
    wall = lower + stretch.offset
    named = walls.first_from(wall)
    found = _first_in(stretch, lower, placing, walls, named)
    base = lower if named is None else max(lower, named)
    while found is None and stretch.start - base <= walls.reach:
        stretch = stretch_at(zone, stretch.end)
        begin = min(stretch.left, stretch.wall_start)
        if begin < wall or (named is not None and named < begin):
            wall, named = begin, walls.first_from(begin)
        elif named is None:
            return None
        elif named >= stretch.wall_end:
            stretch = _stretch_of_wall(zone, named)
        found = _first_in(stretch, lower, placing, walls, named)
    return None if found is None else EPOCH_UTC + (found - EPOCH)


def last_placed(walls: Walls, zone: ZoneInfo, before: datetime, placing: Placing) -> datetime | None:
    """Return the last instant of walls earlier than `before`; the search ends where the walls' reach does."""
    upper = whole_before(before)
    stretch = stretch_at(zone, upper)
    wall = upper + stretch.offset
    named = walls.last_to(wall)
    found = _last_in(stretch, upper, placing, walls, named)
    base = upper if named is None else min(upper, named)
    while found is None and base - stretch.end <= walls.reach:
        stretch = stretch_at(zone, stretch.start - SECOND)
        begin = stretch.wall_end - SECOND
        if begin > wall or (named is not None and named > begin):
            wall, named = begin, walls.last_to(begin)
        elif named is None:
            return None
        elif named < min(stretch.left, stretch.wall_start):
            stretch = _last_stretch_of_wall(zone, named)
        found = _last_in(stretch, upper, placing, walls, named)
    return None if found is None else EPOCH_UTC + (found - EPOCH)


def count_placed(walls: Walls, zone: ZoneInfo, after: datetime, until: datetime, placing: Placing) -> int:
    """Return how many instants of walls lie in (after, until], at a cost of one step a stretch and month."""
    start, end = whole_after(after), whole_after(until)
    count = 0
    for stretch in stretches_in(zone, start, end):
        low, high = _shown(stretch, placing)
        count += walls.count_in(max(start + stretch.offset, low), min(end + stretch.offset, high))
        if stretch.has_gap and placing.gap != "skip":
            count += _count_made_up(stretch, start, end, placing, walls)
    return count


def place_wall(wall: datetime, zone: ZoneInfo, placing: Placing) -> tuple[datetime, ...]:
    """Return the instants, in UTC, of a wall time: one, none where it is skipped, or two where both copies count."""
    stretch = _stretch_of_wall(zone, wall)
    if wall < stretch.wall_start:
        if not stretch.has_gap or placing.gap == "skip":
            return ()
        moved = stretch.start if placing.gap == "after" else stretch.start + (wall - stretch.left)
        return (moved.replace(tzinfo=UTC),)
    first = (wall - stretch.offset).replace(tzinfo=UTC)
    if wall < stretch.lasting or placing.repeat == "first":
        return (first,)
    while not stretch.wall_start <= wall < stretch.wall_end or wall >= stretch.lasting:
        stretch = stretch_at(zone, stretch.end)
    last = (wall - stretch.offset).replace(tzinfo=UTC)
    return (last,) if placing.repeat == "last" else (first, last)


def first_shown(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant, in UTC, at which a clock shows a wall time, or has skipped it."""
    stretch = _stretch_of_wall(zone, wall)
    return max(wall - stretch.offset, stretch.start).replace(tzinfo=UTC)


def walls_behind(zone: ZoneInfo, moment: datetime, placing: Placing) -> tuple[datetime, datetime] | None:
    """Return the skipped wall times [low, high) that a placing puts at a moment, if a gap is made up at it."""
    instant = moment.astimezone(UTC).replace(tzinfo=None)
    stretch = stretch_at(zone, instant)
    if placing.gap == "after" and stretch.start == instant < stretch.settled:
        return stretch.left, stretch.wall_start
    if placing.gap == "shift" and instant < stretch.settled:
        wall = stretch.left + (instant - stretch.start)
        return wall, wall + TICK
    return None


def whole_after(moment: datetime) -> datetime:
    """Return the first whole second later than a moment in UTC, without its zone."""
    instant = EPOCH + (moment - EPOCH_UTC)
    return (instant.replace(microsecond=0) if instant.microsecond else instant) + SECOND


def whole_before(moment: datetime) -> datetime:
    """Return the last whole second earlier than a moment in UTC, without its zone."""
    instant = EPOCH + (moment - EPOCH_UTC)
    return instant.replace(microsecond=0) if instant.microsecond else instant - SECOND


def stretch_at(zone: ZoneInfo, instant: datetime) -> Stretch:
    """Return the stretch that an instant lies in."""
    for stretch in _stretches(zone, instant.year):
        if instant < stretch.end:
            return stretch
    raise OverflowError


def _shown(stretch: Stretch, placing: Placing) -> tuple[datetime, datetime]:
    """Return the walls [low, high) that count where a stretch really shows them."""
    low = stretch.fresh if placing.repeat == "first" else stretch.wall_start
    return low, stretch.lasting if placing.repeat == "last" else stretch.wall_end


def _first_in(
    stretch: Stretch, lower: datetime, placing: Placing, walls: Walls, named: datetime | None
) -> datetime | None:
    """Return the first instant of a stretch from `lower` on; `named` is the first named wall that can matter there."""
    low, high = _shown(stretch, placing)
    if named is not None and named < low:
        named = walls.first_from(low)
    found = named - stretch.offset if named is not None and named < high else None
    if lower >= stretch.settled or not stretch.has_gap or placing.gap == "skip":
        return found
    if placing.gap == "after":
        skipped = walls.first_from(stretch.left) if lower <= stretch.start else None
        return stretch.start if skipped is not None and skipped < stretch.wall_start else found
    skipped = walls.first_from(max(stretch.left, stretch.left + (lower - stretch.start)))
    if skipped is None or skipped >= stretch.wall_start:
        return found
    moved = stretch.start + (skipped - stretch.left)
    return moved if found is None else min(moved, found)


def _last_in(
    stretch: Stretch, upper: datetime, placing: Placing, walls: Walls, named: datetime | None
) -> datetime | None:
    """Return the last instant of a stretch up to `upper`; `named` is the last named wall that can matter there."""
    low, high = _shown(stretch, placing)
    if named is not None and named >= high:
        named = walls.last_to(high - SECOND)
    found = named - stretch.offset if named is not None and named >= low else None
    if not stretch.has_gap or placing.gap == "skip":
        return found
    if placing.gap == "after":
        skipped = walls.last_to(stretch.wall_start - SECOND) if found is None else None
        return stretch.start if skipped is not None and skipped >= stretch.left else found
    skipped = walls.last_to(min(stretch.wall_start - SECOND, stretch.left + (upper - stretch.start)))
    if skipped is None or skipped < stretch.left:
        return found
    moved = stretch.start + (skipped - stretch.left)
    return moved if found is None else max(moved, found)


def _count_made_up(stretch: Stretch, start: datetime, end: datetime, placing: Placing, walls: Walls) -> int:
    """Return how many instants in [start, end) the gap of a stretch adds to the walls that it really shows."""
    length = stretch.wall_start - stretch.left
    skipped = walls.matches_in(stretch.left, stretch.wall_start)
    if placing.gap == "after":
        skipped = 1 if skipped and start <= stretch.start < end else 0
    low, high = (min(max(edge - stretch.start, timedelta()), length) // SECOND for edge in (start, end))
    added = skipped & ~walls.matches_in(stretch.wall_start, stretch.wall_start + length)
    return (added & (1 << high) - (1 << low)).bit_count()


def _stretch_of_wall(zone: ZoneInfo, wall: datetime) -> Stretch:
    """Return the stretch that first showed a wall time, or that skipped it."""
    stretch = stretch_at(zone, wall - LOOK)
    while wall >= stretch.wall_end:
        stretch = stretch_at(zone, stretch.end)
    return stretch


def _last_stretch_of_wall(zone: ZoneInfo, wall: datetime) -> Stretch:
    """Return the stretch that last showed a wall time, or that skipped it."""
    stretch = stretch_at(zone, wall + LOOK)
    while wall < min(stretch.left, stretch.wall_start):
        stretch = stretch_at(zone, stretch.start - SECOND)
    return stretch


def stretches_in(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[Stretch]:
    """Yield the stretches of a time [start, end)."""
    stretch = stretch_at(zone, start)
    while stretch.start < end:
        yield stretch
        stretch = stretch_at(zone, stretch.end)


@lru_cache(maxsize=4096)
def _stretches(zone: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    """Return the stretches of one year of UTC, cut where it begins and ends."""
    if not date.min.year < year < date.max.year:
        raise OverflowError
    first = datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    last = first.replace(year=year + 1)
    # A repeat can reach over the turn of the year: three days on each side tell what the clock has shown, and will.
    spans = _spans(zone, first - PROBE, last + PROBE)
    found, shown, before = [], first - PROBE + spans[0][2], spans[0][2]
    for place, (begin, stop, offset) in enumerate(spans):
        start, end = max(begin, first), min(stop, last)
        if start < end:
            left = start + (before if begin == start else offset)
            gap = start + offset - left
            again = min([end + offset, *(span[0] + span[2] for span in spans[place + 1 :])])
            settled = start + gap if timedelta() < gap < MADE_UP else start
            fresh = max(start + offset, shown)
            found.append(Stretch(start, end, offset, start + offset, end + offset, left, fresh, again, settled))
        shown, before = max(shown, stop + offset), offset
    return tuple(found)


def _spans(zone: ZoneInfo, start: datetime, limit: datetime) -> list[tuple[datetime, datetime, timedelta]]:
    """Return the times of one offset from `start` to the limit, as (begin, end, offset)."""
    # Instants carry the zone as a mere label here: `fromutc` wants it, and setting it for each probe is slow.
    instant, last, found = start.replace(tzinfo=zone), limit.replace(tzinfo=zone), []
    while instant < last:
        offset = zone.fromutc(instant) - instant
        change = _next_change(zone, instant, offset, last)
        found.append((instant.replace(tzinfo=None), change.replace(tzinfo=None), offset))
        instant = change
    return found


def _next_change(zone: ZoneInfo, start: datetime, offset: timedelta, limit: datetime) -> datetime:
    """Return when the offset next changes after `start`, or the limit."""
    same, local = start, zone.fromutc
    while same < limit:
        probe = same + PROBE
        if probe > limit:
            probe = limit
        if local(probe) - probe != offset:
            low, high = 0, (probe - same) // SECOND
            while high - low > 1:
                middle = (low + high) // 2
                instant = same + timedelta(seconds=middle)
                low, high = (middle, high) if local(instant) - instant == offset else (low, middle)
            return same + timedelta(seconds=high)
        same = probe
    return limit
