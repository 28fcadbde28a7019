"""Calendar rules of RFC 5545: `DTSTART=20260306T090000;FREQ=DAILY;COUNT=10;EXDATE=...`.

Rules of days and longer are wall times (`recurrence.py`) that `zones.py` places; those of hours and minutes go on in
elapsed time (`pace.py`). What holds for both is here: the start, the end, COUNT, and what is excluded and added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from math import inf
from typing import Final
from zoneinfo import ZoneInfo

from oncue.rules.triggers import zones
from oncue.rules.triggers.pace import Pace, count_paced, first_paced, last_paced
from oncue.rules.triggers.pattern import SECOND, Pattern
from oncue.rules.triggers.placing import CALENDAR, Placing
from oncue.rules.triggers.recurrence import Recurrence

TICK: Final = timedelta(microseconds=1)
SHORTEST: Final = {
    "YEARLY": timedelta(days=365),
    "MONTHLY": timedelta(days=28),
    "WEEKLY": timedelta(days=7),
    "DAILY": timedelta(days=1),
}
LONG_BLOCK: Final = 10
"""COUNT is counted in blocks of time, which are kept: most of a rule's past is counted only once."""


@dataclass(frozen=True, slots=True)
class Rrule:
    """A calendar rule in a zone. DTSTART is the wall time `start`, and no time is earlier than the instant `first`.

    `named` are its times before anything is excluded. `excluded` are instants of EXDATE (its wall times are in
    `named`), `added` those of RDATE.
    """

    text: str
    zone: ZoneInfo
    start: datetime
    first: datetime
    freq: str
    interval: int
    named: Recurrence | Pace
    placing: Placing = CALENDAR
    count: int | None = None
    until: datetime | None = None
    excluded: frozenset[datetime] = frozenset()
    added: tuple[datetime, ...] = ()

    @property
    def pattern(self) -> Pattern:
        """What its times, but for those added, look like on the clock: at least these, perhaps more."""
        return self.named.pattern

    @property
    def is_elapsed(self) -> bool:
        """Say whether it goes on in elapsed time."""
        return isinstance(self.named, Pace)

    @property
    def has_end(self) -> bool:
        """Say whether it has an UNTIL."""
        return self.until is not None or (isinstance(self.named, Recurrence) and self.named.last is not None)


def next_time(rule: Rrule, after: datetime) -> datetime | None:
    """Return the first time later than `after`, none if there is none, or only beyond the bounded search."""
    found = _first(rule, max(after, rule.first - TICK))
    while found is not None and found in rule.excluded:
        found = _first(rule, found)
    if found is not None and ((rule.until is not None and found > rule.until) or _is_past_count(rule, found)):
        found = None
    added = next((moment for moment in rule.added if moment > after), None)
    return min((moment for moment in (found, added) if moment is not None), default=None)


def last_before(rule: Rrule, before: datetime) -> datetime | None:
    """Return the last time earlier than `before`, none if there is none, or only beyond the bounded search."""
    found = _last(rule, before if rule.until is None else min(before, rule.until + TICK))
    if found is not None and found >= rule.first and _is_past_count(rule, found):
        found = _last(rule, _end_of_count(rule) + TICK)
    while found is not None and found in rule.excluded:
        found = _last(rule, found)
    if found is not None and found < rule.first:
        found = None
    added = next((moment for moment in reversed(rule.added) if moment < before), None)
    return max((moment for moment in (found, added) if moment is not None), default=None)


def count_times(rule: Rrule, after: datetime, until: datetime) -> int:
    """Return how many times lie in (after, until]; the cost does not grow with their number."""
    lower, upper = max(after, rule.first - TICK), until if rule.until is None else min(until, rule.until)
    if lower < upper and _is_past_count(rule, upper):
        upper = _end_of_count(rule)
    count = 0
    if lower < upper:
        excluded = sum(1 for moment in rule.excluded if lower < moment <= upper and _is_named(rule, moment))
        count = _count(rule, lower, upper) - excluded
    added = [moment for moment in rule.added if after < moment <= until]
    return count + sum(1 for moment in added if not (lower < moment <= upper and _is_named(rule, moment)))


def is_impossible(rule: Rrule) -> bool:
    """Say whether the rule names no time at all, its end and its exceptions left aside."""
    endless = rule
    if isinstance(rule.named, Recurrence):
        endless = replace(rule, named=replace(rule.named, excluded=frozenset(), last=None))
    return not rule.added and _first(endless, rule.first - TICK) is None


def walls_in(rule: Rrule, low: datetime, high: datetime) -> list[datetime]:
    """Return the wall times in [low, high) that a rule of days or longer names."""
    found: list[datetime] = []
    if isinstance(rule.named, Recurrence):
        wall = rule.named.first_from(low)
        while wall is not None and wall < high:
            found.append(wall)
            wall = rule.named.first_from(wall + SECOND)
    return found


def _first(rule: Rrule, after: datetime) -> datetime | None:
    if isinstance(rule.named, Pace):
        return first_paced(rule.named, rule.zone, after)
    return zones.first_placed(rule.named, rule.zone, after, rule.placing)


def _last(rule: Rrule, before: datetime) -> datetime | None:
    if isinstance(rule.named, Pace):
        return last_paced(rule.named, rule.zone, before)
    return zones.last_placed(rule.named, rule.zone, before, rule.placing)


def _count(rule: Rrule, after: datetime, until: datetime) -> int:
    if isinstance(rule.named, Pace):
        return count_paced(rule.named, rule.zone, after, until)
    return zones.count_placed(rule.named, rule.zone, after, until, rule.placing)


def _is_named(rule: Rrule, moment: datetime) -> bool:
    return _first(rule, moment - TICK) == moment


def _is_past_count(rule: Rrule, moment: datetime) -> bool:
    """Say whether there are more times up to a moment than COUNT allows. What is excluded counts too."""
    if rule.count is None or _most(rule, moment) <= rule.count:
        return False
    left, block = rule.count, 0
    while left >= 0 and _begin(rule, block + 1) <= moment:
        left, block = left - _number_in(rule, block), block + 1
    return left < 0 or left < _count(_with_excluded(rule), _begin(rule, block) - TICK, moment)


def _most(rule: Rrule, moment: datetime) -> float:
    """Return more times than BYSETPOS can have picked up to a moment, infinitely many if nothing is picked."""
    if not isinstance(rule.named, Recurrence) or not rule.named.places:
        return inf
    periods = (moment - rule.first) // (SHORTEST[rule.freq] * rule.interval) + 2
    return 2 * periods * len(rule.named.places)


@lru_cache(maxsize=1024)
def _end_of_count(rule: Rrule) -> datetime:
    """Return the last time that COUNT allows, where there are more after it."""
    left, block = rule.count or 0, 0
    while (number := _number_in(rule, block)) < left:
        left, block = left - number, block + 1
    whole, low, high = _with_excluded(rule), _begin(rule, block) - SECOND, _begin(rule, block + 1) - SECOND
    while high - low > SECOND:
        middle = low + (high - low) // (2 * SECOND) * SECOND
        number = _count(whole, low, middle)
        if number >= left:
            high = middle
        else:
            low, left = middle, left - number
    return high


@lru_cache(maxsize=8192)
def _number_in(rule: Rrule, block: int) -> int:
    """Return how many times a rule has in a block of time since its start."""
    return _count(_with_excluded(rule), _begin(rule, block) - TICK, _begin(rule, block + 1) - TICK)


def _begin(rule: Rrule, block: int) -> datetime:
    """Return where a block of time begins: a day, two, four, ... and from the tenth on three years each."""
    days = (1 << min(block, LONG_BLOCK)) - 1 + max(block - LONG_BLOCK, 0) * (1 << LONG_BLOCK)
    return rule.first + timedelta(days=days)


def _with_excluded(rule: Rrule) -> Rrule:
    if isinstance(rule.named, Recurrence) and rule.named.excluded:
        return replace(rule, named=replace(rule.named, excluded=frozenset()))
    return rule
