"""Calendar rules of RFC 5545: `DTSTART=20260306T090000;FREQ=DAILY;COUNT=10;EXDATE=...`.

dateutil expands them in naive wall time, started close to where we look, and `zones.py` places the result. Rules of an
hour or less go on in elapsed time: they are expanded within one stretch of the zone after the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from dateutil import rrule as dateutil_rrule

from oncue.rules import zones

TICK: Final = timedelta(microseconds=1)
SEARCHED: Final = timedelta(days=366 * 60)
SEARCHED_PERIODS: Final = 60
FREQUENCIES: Final[dict[str, Literal[0, 1, 2, 3, 4, 5]]] = {
    "YEARLY": dateutil_rrule.YEARLY,
    "MONTHLY": dateutil_rrule.MONTHLY,
    "WEEKLY": dateutil_rrule.WEEKLY,
    "DAILY": dateutil_rrule.DAILY,
    "HOURLY": dateutil_rrule.HOURLY,
    "MINUTELY": dateutil_rrule.MINUTELY,
}
LAST_WALL: Final = datetime.combine(date(9990, 1, 1), time())

PERIODS: Final = {
    "YEARLY": timedelta(days=366),
    "MONTHLY": timedelta(days=31),
    "WEEKLY": timedelta(days=7),
    "DAILY": timedelta(days=1),
    "HOURLY": timedelta(hours=1),
    "MINUTELY": timedelta(minutes=1),
}


@dataclass(frozen=True, slots=True)
class Bound:
    """The last moment of a rule: an instant, or a wall time where it was written without an offset."""

    instant: datetime | None
    wall: datetime | None


@dataclass(frozen=True, slots=True)
class Rrule:
    """A calendar rule in a zone. DTSTART is the wall time `start` and the instant `first`.

    `parts` are dateutil's arguments for the rest. `excluded` and `added` are EXDATE and RDATE.
    """

    text: str
    zone: ZoneInfo
    start: datetime
    first: datetime
    freq: str
    interval: int
    parts: tuple[tuple[str, Any], ...]
    count: int | None = None
    until: Bound | None = None
    excluded: frozenset[datetime] = frozenset()
    added: tuple[datetime, ...] = ()

    @property
    def is_elapsed(self) -> bool:
        """Say whether it goes on in elapsed time."""
        return self.freq in ("HOURLY", "MINUTELY")

    @property
    def period(self) -> timedelta:
        return PERIODS[self.freq] * self.interval


def walk(rule: Rrule, after: datetime) -> Iterator[datetime]:
    """Yield the times later than `after`, in order and each once; it ends where the bounded search ends."""
    if rule.count is not None:
        counted = _counted(rule)
        yield from counted[bisect_right(counted, after) :]
        return
    extra = [moment for moment in rule.added if moment > after]
    for moment in _ruled(rule, after):
        while extra and extra[0] <= moment:
            added = extra.pop(0)
            if added < moment:
                yield added
        if moment not in rule.excluded:
            yield moment
    yield from extra


def last_before(rule: Rrule, before: datetime) -> datetime | None:
    """Return the last time earlier than `before`, looking back in growing windows."""
    earliest = min([rule.first, *rule.added]) - TICK
    if before <= earliest:
        return None
    window = rule.period * 2
    while True:
        after = max(before - window, earliest)
        found = None
        for moment in walk(rule, after):
            if moment >= before:
                break
            found = moment
        if found is not None or after == earliest or window > max(SEARCHED, rule.period * SEARCHED_PERIODS):
            return found
        window = min(window * 4, before - earliest)


def is_impossible(rule: Rrule) -> bool:
    """Say whether the rule names no time at all, its end and its exceptions left aside."""
    return not rule.added and next(_placed(rule, rule.first - TICK), None) is None


def planned_wall(rule: Rrule, moment: datetime) -> datetime | None:
    """Return the wall time that the rule names for one of its times, none in elapsed time."""
    if rule.is_elapsed:
        return None
    wall = moment.astimezone(rule.zone).replace(tzinfo=None, fold=0)
    for planned in _expand(rule, wall - zones.MADE_UP):
        if planned > wall:
            return None
        if zones.place_date(planned, rule.zone) == moment:
            return planned
    return None


def _ruled(rule: Rrule, after: datetime) -> Iterator[datetime]:
    """Yield the placed times later than `after` up to the rule's end."""
    for moment in _placed(rule, after):
        if rule.until is not None and _is_past(rule, moment):
            return
        yield moment


def _is_past(rule: Rrule, moment: datetime) -> bool:
    assert rule.until is not None
    if rule.until.instant is not None:
        return moment > rule.until.instant
    assert rule.until.wall is not None
    return moment.astimezone(rule.zone).replace(tzinfo=None) > rule.until.wall


@lru_cache(maxsize=256)
def _counted(rule: Rrule) -> tuple[datetime, ...]:
    """Return all times of a rule with COUNT; what is excluded counts too."""
    named = set(islice(_ruled(rule, rule.first - TICK), rule.count))
    return tuple(sorted(named - rule.excluded | set(rule.added)))


def _placed(rule: Rrule, after: datetime) -> Iterator[datetime]:
    return _placed_elapsed(rule, after) if rule.is_elapsed else _placed_dates(rule, after)


def _placed_dates(rule: Rrule, after: datetime) -> Iterator[datetime]:
    """Yield the times of a rule of days or longer: wall times, placed, and put in order where a gap moved one."""
    wall = after.astimezone(rule.zone).replace(tzinfo=None, fold=0)
    moved: list[datetime] = []
    last = after
    for planned in _expand(rule, wall - zones.MADE_UP):
        moment = zones.place_date(planned, rule.zone)
        while moved and (moment is None or moved[0] < moment):
            last = moved.pop(0)
            yield last
        if moment is None or moment <= last or moment in moved:
            continue
        if moment.astimezone(rule.zone).replace(tzinfo=None) != planned:
            moved.append(moment)
        else:
            last = moment
            yield last
    yield from moved


def _placed_elapsed(rule: Rrule, after: datetime) -> Iterator[datetime]:
    """Yield the times of a rule of hours or minutes, expanded within one stretch of the zone after the other."""
    start, lower = rule.first.replace(tzinfo=None), after.replace(tzinfo=None)
    instant = max(lower, start)
    searched_to = instant + SEARCHED
    while instant < searched_to:
        stretch = zones.stretch_at(rule.zone, instant)
        begin = start + max(-((start - instant) // rule.period) - 1, 0) * rule.period
        if begin < stretch.end:
            for planned in _iterate(rule, begin + stretch.offset, stretch.wall_end):
                moment = planned - stretch.offset
                if moment > lower and moment >= start and moment >= stretch.start:
                    yield moment.replace(tzinfo=UTC)
        instant = stretch.end


def _expand(rule: Rrule, wall: datetime) -> Iterator[datetime]:
    """Yield the wall times at or after `wall`, by a copy of the rule that starts shortly before it."""
    begin = _fast_forward(rule, wall)
    end = min(max(wall, begin) + max(SEARCHED, rule.period * SEARCHED_PERIODS), LAST_WALL)
    for planned in _iterate(rule, begin, end):
        if planned >= max(wall, rule.start):
            yield planned


def _iterate(rule: Rrule, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the wall times that dateutil names in [begin, end), for elapsed rules from the full hour or minute on."""
    parts = dict(rule.parts)
    if rule.is_elapsed:
        parts.setdefault("bysecond", begin.second)
        begin = begin.replace(second=0)
        if rule.freq == "HOURLY":
            parts.setdefault("byminute", begin.minute)
            begin = begin.replace(minute=0)
    until = end - timedelta(seconds=1)
    try:
        yield from dateutil_rrule.rrule(FREQUENCIES[rule.freq], begin, rule.interval, until=until, **parts)
    except ValueError:
        return  # dateutil's word for an interval that never meets BYHOUR or BYMINUTE


def _fast_forward(rule: Rrule, wall: datetime) -> datetime:
    """Return a start in step with the rule's own, at the beginning of a period that is not later than `wall`."""
    start = rule.start
    if wall - start < 3 * rule.period:
        return start
    midnight = start.replace(hour=0, minute=0, second=0)
    if rule.freq in ("DAILY", "WEEKLY"):
        week_start = dict(rule.parts).get("wkst", 0)
        begin = midnight - timedelta(days=(start.weekday() - week_start) % 7 if rule.freq == "WEEKLY" else 0)
        return begin + ((wall - begin) // rule.period - 1) * rule.period
    unit = rule.interval * (12 if rule.freq == "YEARLY" else 1)
    first = start.year * 12 + (0 if rule.freq == "YEARLY" else start.month - 1)
    there = wall.year * 12 + wall.month - 1
    year, month = divmod(first + (there - first) // unit * unit, 12)
    return midnight.replace(year=year, month=month + 1, day=1)
