"""Calendar rules of RFC 5545: `DTSTART=20260306T090000;FREQ=DAILY;COUNT=10;EXDATE=...`.

dateutil expands them in naive wall time, one period after the other and only where a pattern of bit sets says that the
period can match, and `zones.py` places the result. Rules of hours and minutes go on in elapsed time: they are the real
times of their pattern that lie in step with the start.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from dateutil import rrule as dateutil_rrule

from oncue.rules import zones
from oncue.rules.pattern import HORIZON, SECOND, Pattern
from oncue.rules.placing import CALENDAR, WILDCARD, Placing

TICK: Final = timedelta(microseconds=1)
SEARCHED: Final = timedelta(days=366 * 41)
"""How far a walk looks for the next time: a given weekday falls on 29 February again after at most 40 years."""

SEARCHED_PERIODS: Final = 60
LAST_YEAR: Final = 9990
MOST_MISSES: Final = 20_000
PERIODS: Final = {
    "YEARLY": timedelta(days=366),
    "MONTHLY": timedelta(days=31),
    "WEEKLY": timedelta(days=7),
    "DAILY": timedelta(days=1),
    "HOURLY": timedelta(hours=1),
    "MINUTELY": timedelta(minutes=1),
}
FREQUENCIES: Final[dict[str, Literal[0, 1, 2, 3]]] = {
    "YEARLY": dateutil_rrule.YEARLY,
    "MONTHLY": dateutil_rrule.MONTHLY,
    "WEEKLY": dateutil_rrule.WEEKLY,
    "DAILY": dateutil_rrule.DAILY,
}
PERIODS_AT_ONCE: Final = {"WEEKLY": 8, "DAILY": 32}


@dataclass(frozen=True, slots=True)
class Bound:
    """The last moment of a rule: an instant, or a wall time where it was written without an offset."""

    instant: datetime | None
    wall: datetime | None


@dataclass(frozen=True, slots=True)
class Rrule:
    """A calendar rule in a zone. DTSTART is the wall time `start` and the instant `first`.

    `parts` are dateutil's arguments for the rest. `pattern` matches at least what the rule names, and for elapsed rules
    exactly that; with `follows_start` they keep the start's minute. `excluded` and `added` are EXDATE and RDATE.
    """

    text: str
    zone: ZoneInfo
    start: datetime
    first: datetime
    freq: str
    interval: int
    parts: tuple[tuple[str, Any], ...]
    pattern: Pattern
    placing: Placing = CALENDAR
    follows_start: bool = False
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


def walk(rule: Rrule, after: datetime, until: datetime | None = None) -> Iterator[datetime]:
    """Yield the times later than `after`, in order and each once; it ends where the bounded search ends.

    With `until` the search does not go on much longer than that.
    """
    if rule.count is not None:
        counted = _counted(rule)
        yield from counted[bisect_right(counted, after) :]
        return
    extra = [moment for moment in rule.added if moment > after]
    for moment in _ruled(rule, after, until):
        while extra and extra[0] <= moment:
            added = extra.pop(0)
            if added < moment:
                yield added
        if moment not in rule.excluded:
            yield moment
    yield from extra


def last_before(rule: Rrule, before: datetime) -> datetime | None:
    """Return the last time earlier than `before`, looking back in growing windows."""
    if rule.count is not None:
        counted = _counted(rule)
        place = bisect_left(counted, before)
        return counted[place - 1] if place else None
    earliest = min([rule.first, *rule.added]) - TICK
    window = rule.period * 2
    while before > earliest:
        after = max(before - window, earliest)
        found = None
        for moment in walk(rule, after, before):
            if moment >= before:
                break
            found = moment
        if found is not None or after == earliest or window > max(SEARCHED, rule.period * SEARCHED_PERIODS):
            return found
        window = min(window * 4, before - earliest)
    return None


def count_elapsed(rule: Rrule, after: datetime, until: datetime) -> int | None:
    """Return how many times lie in (after, until], none if only a walk can tell."""
    if not rule.is_elapsed or rule.count is not None or rule.added or rule.excluded or rule.until is not None:
        return None
    if rule.interval > 1 or rule.follows_start:
        return None
    lower = max(after, rule.first - TICK).astimezone(UTC).replace(tzinfo=None)
    upper = until.astimezone(UTC).replace(tzinfo=None)
    return zones.count_placed(rule.pattern, rule.zone, lower, max(lower, upper), WILDCARD)


def is_impossible(rule: Rrule) -> bool:
    """Say whether the rule names no time at all, its end and its exceptions left aside."""
    return not rule.added and next(_placed(rule, rule.first - TICK, None), None) is None


def walls_in(rule: Rrule, low: datetime, high: datetime) -> list[datetime]:
    """Return the wall times in [low, high) that a rule of days or longer names."""
    return list(takewhile(lambda wall: wall < high, _expand(rule, low, high)))


def _ruled(rule: Rrule, after: datetime, until: datetime | None) -> Iterator[datetime]:
    """Yield the placed times later than `after` up to the rule's end."""
    for moment in _placed(rule, after, until):
        if rule.until is not None and _is_past(rule.until, moment, rule.zone):
            return
        yield moment


def _is_past(bound: Bound, moment: datetime, zone: ZoneInfo) -> bool:
    if bound.instant is not None:
        return moment > bound.instant
    return bound.wall is not None and moment.astimezone(zone).replace(tzinfo=None) > bound.wall


@lru_cache(maxsize=256)
def _counted(rule: Rrule) -> tuple[datetime, ...]:
    """Return all times of a rule with COUNT; what is excluded counts too."""
    named = set(islice(_ruled(rule, rule.first - TICK, None), rule.count))
    return tuple(sorted(named - rule.excluded | set(rule.added)))


def _placed(rule: Rrule, after: datetime, until: datetime | None) -> Iterator[datetime]:
    return _placed_elapsed(rule, after, until) if rule.is_elapsed else _placed_dates(rule, after, until)


def _placed_dates(rule: Rrule, after: datetime, until: datetime | None) -> Iterator[datetime]:
    """Yield the times of a rule of days or longer: wall times, placed, and put in order where clocks change."""
    wall = after.astimezone(rule.zone).replace(tzinfo=None, fold=0)
    until_wall = until and until.astimezone(rule.zone).replace(tzinfo=None) + timedelta(days=1)
    waiting: list[datetime] = []
    last = after
    for planned in _expand(rule, wall - timedelta(days=1), until_wall):
        shown = zones.first_shown(planned, rule.zone)
        waiting = sorted({*waiting, *zones.place_wall(planned, rule.zone, rule.placing)})
        while waiting and waiting[0] <= shown:
            moment = waiting.pop(0)
            if moment > last:
                last = moment
                yield moment
    yield from (moment for moment in waiting if moment > last)


def _placed_elapsed(rule: Rrule, after: datetime, until: datetime | None) -> Iterator[datetime]:
    """Yield the times of a rule of hours or minutes: the real times of its pattern that are in step with its start."""
    unit, first = PERIODS[rule.freq], rule.first.replace(tzinfo=None)
    inside = timedelta(minutes=rule.start.minute if rule.freq == "HOURLY" else 0, seconds=rule.start.second)
    base = first - inside
    lower = max(after.replace(tzinfo=None), first - SECOND)
    limit = lower + SEARCHED if until is None else until.replace(tzinfo=None)
    misses = 0
    while misses < MOST_MISSES and (found := zones.first_placed(rule.pattern, rule.zone, lower, WILDCARD)):
        step, rest = divmod(found - base, unit)
        if step % rule.interval:
            lower = base + (step // rule.interval + 1) * rule.period - SECOND
        elif rule.follows_start and rest != inside:
            lower = base + step * unit + (inside if rest < inside else unit) - SECOND
        else:
            yield found.replace(tzinfo=UTC)
            lower, misses = found, -1
        misses += 1
        if found > limit:
            return


def _expand(rule: Rrule, wall: datetime, until: datetime | None) -> Iterator[datetime]:
    """Yield the wall times at or after `wall`, period by period."""
    wall = max(wall, rule.start)
    end = _end_of_search(rule, wall) if until is None else until
    at_least = min((abs(place) for place in dict(rule.parts).get("bysetpos", ())), default=1)
    searched = wall.replace(microsecond=0)
    while searched <= end and searched.year < LAST_YEAR - 14:
        near = rule.pattern.first_from(searched)
        if near is None:
            searched += HORIZON
            continue
        begin, stop, following = _period_of(rule, near)
        if near < stop and rule.pattern.count_in(begin, stop) >= at_least:
            following = begin + PERIODS_AT_ONCE[rule.freq] * rule.period if rule.freq in PERIODS_AT_ONCE else following
            for planned in _iterate(rule, begin, following):
                if planned >= wall:
                    yield planned
                    end = _end_of_search(rule, planned) if until is None else until
        searched = following


def _end_of_search(rule: Rrule, wall: datetime) -> datetime:
    reach = max(SEARCHED, rule.period * SEARCHED_PERIODS)
    return wall + min(reach, timedelta(days=365 * max(LAST_YEAR - wall.year, 0)))


def _iterate(rule: Rrule, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Return the wall times that dateutil names in [begin, end)."""
    until = end - SECOND
    return iter(dateutil_rrule.rrule(FREQUENCIES[rule.freq], begin, rule.interval, until=until, **dict(rule.parts)))


def _period_of(rule: Rrule, wall: datetime) -> tuple[datetime, datetime, datetime]:
    """Return the last period in step with the start that begins by `wall`: its begin, its end, and the next begin."""
    midnight = rule.start.replace(hour=0, minute=0, second=0)
    if rule.freq in ("DAILY", "WEEKLY"):
        week_start = dict(rule.parts).get("wkst", 0)
        first = midnight - timedelta(days=(midnight.weekday() - week_start) % 7 if rule.freq == "WEEKLY" else 0)
        begin = first + (wall - first) // rule.period * rule.period
        return begin, begin + PERIODS[rule.freq], begin + rule.period
    unit = 12 if rule.freq == "YEARLY" else 1
    first_month = midnight.year * 12 + (0 if rule.freq == "YEARLY" else midnight.month - 1)
    steps = (wall.year * 12 + wall.month - 1 - first_month) // (unit * rule.interval)
    months = first_month + steps * unit * rule.interval
    ends = (months, months + unit, min(months + unit * rule.interval, 12 * LAST_YEAR + 60))
    begin, stop, following = (midnight.replace(end // 12, end % 12 + 1, 1) for end in ends)
    return begin, stop, following
