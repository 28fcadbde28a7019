"""How many times of a timetable lie in a span, and what was taken out of it: without a walk, where that can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, takewhile

from oncue.rules.triggers import composed, kinds, moving, reasons
from oncue.rules.triggers.days import Days, day_at, first_shown
from oncue.rules.triggers.kinds import LAST, TICK, Kind
from oncue.rules.triggers.overlap import MOST_WALKED, Count, abreast, count_common, most_steps
from oncue.rules.triggers.search import AHEAD, BACK, Way, named, times_of
from oncue.rules.triggers.timetable import Timetable


@dataclass(frozen=True, slots=True)
class Tally:
    """How many times there are, the first and the last of them. If it is not exact there may be more."""

    count: int
    first: datetime | None
    last: datetime | None
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class Dropped:
    """Times that something took out: how many, the first and the last, and why. If not exact there may be more."""

    count: int
    first: datetime
    last: datetime
    reason: str
    is_exact: bool = True


def tally_between(table: Timetable, after: datetime, until: datetime) -> Tally:
    """Return how many times lie in (after, until], the first and the last of them."""
    after = after.astimezone(UTC)
    first = composed.next_after(table, after)
    if first is None or first > until:
        return Tally(0, None, None)
    last = composed.previous_before(table, min(until, LAST) + TICK) or first
    count = _count_named(table, first - TICK, last)
    number = count.number + _count_moved(table, first - TICK, last) + _count_by_hand(table, first - TICK, last)
    if count.is_exact:
        return Tally(number, first, last)
    return Tally(max(number, 2 if last > first else 1), first, last, is_exact=False)


def dropped_between(table: Timetable, after: datetime, until: datetime) -> list[Dropped]:
    """Return the times in (after, until] that were taken out, not moved: by calendars, by `except` and by hand."""
    after, until = after.astimezone(UTC), min(until.astimezone(UTC), LAST)
    found = [_dropped_by_days(table, after, until), _dropped_by_exclusion(table, after, until)]
    return [dropped for dropped in [*found, _dropped_by_hand(table, after, until)] if dropped is not None]


def _count_named(table: Timetable, after: datetime, until: datetime) -> Count:
    """Return how many times are named in (after, until] and not excluded. The span lies within the bounds."""
    after, until = _clipped(table, after, until)
    counts = [_count_on(kind, table, table.days, after, until) for kind in table.parts]
    joint = _count_joint(counts, table, after, until)
    if not table.excluded:
        return joint
    taken = count_common(table.parts, table.excluded, table, after, until, most=most_steps(table))
    if taken.is_exact:
        return Count(joint.number - taken.number, joint.is_exact)
    most = sum(_count_on(kind, table, table.days, after, until).number for kind in table.excluded)
    return Count(joint.number - most, is_exact=False)


def _count_joint(counts: Sequence[Count], table: Timetable, after: datetime, until: datetime) -> Count:
    """Return how many instants the parts name together: each part's, less what it shares with those before it."""
    number, is_exact = 0, all(count.is_exact for count in counts)
    if len(counts) > 1 and is_exact and sum(count.number for count in counts) <= MOST_WALKED:
        walk = times_of(named(replace(table, excluded=()), table.days, AHEAD, after))
        return Count(sum(1 for _ in takewhile(lambda moment: moment <= until, walk)))
    most = most_steps(table) // len(counts)
    for place, count in enumerate(counts):
        shared = count_common(table.parts[place : place + 1], table.parts[:place], table, after, until, most=most)
        if not shared.is_exact:
            return Count(max(count.number for count in counts), is_exact=False)
        number += count.number - shared.number
    return Count(number, is_exact)


def _count_on(kind: Kind, table: Timetable, days: Days, after: datetime, until: datetime) -> Count:
    """Return how many times one part has on a set of days in (after, until]."""
    if kinds.count_fast(kind, after, after) is None:
        walk = times_of(named(replace(table, parts=(kind,), excluded=()), days, AHEAD, after))
        number = sum(1 for _ in islice(takewhile(lambda moment: moment <= until, walk), MOST_WALKED + 1))
        return Count(min(number, MOST_WALKED), number <= MOST_WALKED)
    number = 0
    for begin, end in _spans(table, days, after, until):
        number += kinds.count_fast(kind, begin, end) or 0
    return Count(number)


def _spans(table: Timetable, days: Days, after: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the spans (begin, end] of (after, until] whose clocks show days of a set."""
    if not (days.only or days.never):
        if not days.is_inverted:
            yield after, until
        return
    others = days.others
    begin = first_shown(days, table.zone, after + TICK)
    while begin is not None and begin <= until:
        end = first_shown(others, table.zone, begin)
        if end is None or end > until:
            yield begin - TICK, until
            return
        yield begin - TICK, end - TICK
        begin = first_shown(days, table.zone, end)


def _count_moved(table: Timetable, after: datetime, until: datetime) -> int:
    """Return how many moments in (after, until] only a move has made a time."""
    if table.move is None:
        return 0
    moved = takewhile(lambda moment: moment <= until, times_of(moving.moved(table, AHEAD, after)))
    return sum(not composed.is_named(table, moment) for moment in moved)


def _count_by_hand(table: Timetable, after: datetime, until: datetime) -> int:
    """Return by how much the changes by hand raise the number of times in (after, until]."""
    gone, come = set(), set()
    for override in table.overrides:
        if composed.is_planned(table, override.due_at):
            gone.add(override.due_at.astimezone(UTC))
            if override.moved_to is not None:
                come.add(override.moved_to.astimezone(UTC))
    come = {moment for moment in come if moment in gone or not composed.is_planned(table, moment)}
    return sum(after < moment <= until for moment in come) - sum(after < moment <= until for moment in gone)


def _dropped_by_days(table: Timetable, after: datetime, until: datetime) -> Dropped | None:
    if not table.has_calendar or table.move is not None:
        return None
    after, until = _clipped(table, after, until)
    bare = replace(table, days=table.days.others, excluded=())
    first = next(times_of(named(bare, bare.days, AHEAD, after)), None)
    if first is None or first > until:
        return None
    last = next(times_of(named(bare, bare.days, BACK, until + TICK)), first)
    count = _count_named(bare, first - TICK, last)
    return Dropped(count.number, first, last, reasons.left_out(table, first, last), count.is_exact)


def _dropped_by_exclusion(table: Timetable, after: datetime, until: datetime) -> Dropped | None:
    if not table.excluded:
        return None
    after, until = _clipped(table, after, until)
    first, last = _excluded(table, AHEAD, after, until), _excluded(table, BACK, until + TICK, after)
    if first is None or last is None:
        return None
    count = count_common(table.parts, table.excluded, table, first - TICK, last, most=most_steps(table))
    return Dropped(max(count.number, 1 + (last > first)), first, last, "excluded by except", count.is_exact)


def _excluded(table: Timetable, way: Way, start: datetime, end: datetime) -> datetime | None:
    """Return the first time from `start` on to `end` that is excluded on an allowed day."""
    for moment, is_common in islice(abreast(table.parts, table.excluded, way, start), most_steps(table)):
        if way.is_beyond(moment, end):
            return None
        if is_common and day_at(table.zone, moment) in table.days:
            return moment
    return None


def _dropped_by_hand(table: Timetable, after: datetime, until: datetime) -> Dropped | None:
    skipped = [override for override in table.overrides if override.moved_to is None]
    found = [o for o in skipped if after < o.due_at <= until and composed.is_planned(table, o.due_at)]
    if not found:
        return None
    first, last = found[0].due_at.astimezone(UTC), found[-1].due_at.astimezone(UTC)
    return Dropped(
        len(found), first, last, reasons.by_hand(table.zone, found[0]) if len(found) == 1 else "skipped by hand"
    )


def _clipped(table: Timetable, after: datetime, until: datetime) -> tuple[datetime, datetime]:
    """Return the part of (after, until] that lies within the bounds."""
    after = max(after, table.starts_at - TICK) if table.starts_at else after
    return after, max(after, min(until, table.ends_at) if table.ends_at else until)
