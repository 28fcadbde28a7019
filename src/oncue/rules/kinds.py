"""The kinds of a single trigger, and what each answers: the next time, the one before, how many, and the walk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

from oncue.errors import TriggerError
from oncue.rules import every as steps
from oncue.rules import rrule as calendar
from oncue.rules import zones
from oncue.rules.at import At
from oncue.rules.cron import Cron
from oncue.rules.every import Every
from oncue.rules.rrule import Rrule

TICK: Final = timedelta(microseconds=1)
LAST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=2)

Kind = At | Every | Cron | Rrule


def next_after(kind: Kind, after: datetime) -> datetime | None:
    """Return the first time strictly later than `after`, in UTC; none if there is none, or only beyond the search."""
    after = after.astimezone(UTC)
    try:
        match kind:
            case Cron(_, zone, pattern, is_wildcard):
                found = zones.first_placed(pattern, zone, after.replace(tzinfo=None), is_wildcard=is_wildcard)
                return found and found.replace(tzinfo=UTC)
            case Every():
                return steps.next_step(kind, after)
            case Rrule():
                return next(calendar.walk(kind, after), None)
            case At():
                return kind.moment if kind.moment > after else None
    except OverflowError:
        return None  # the end of the calendar


def previous_before(kind: Kind, before: datetime) -> datetime | None:
    """Return the last time strictly earlier than `before`, in UTC; none if there is none, or only beyond the search."""
    before = before.astimezone(UTC)
    try:
        match kind:
            case Cron(_, zone, pattern, is_wildcard):
                found = zones.last_placed(pattern, zone, before.replace(tzinfo=None), is_wildcard=is_wildcard)
                return found and found.replace(tzinfo=UTC)
            case Every():
                return steps.last_step(kind, before)
            case Rrule():
                return calendar.last_before(kind, before)
            case At():
                return kind.moment if kind.moment < before else None
    except OverflowError:
        return None


def walk(kind: Kind, after: datetime) -> Iterator[datetime]:
    """Yield the times later than `after`."""
    if isinstance(kind, Rrule):
        with suppress(OverflowError):
            yield from calendar.walk(kind, after.astimezone(UTC))
        return
    while (moment := next_after(kind, after)) is not None:
        yield moment
        after = moment


def walk_back(kind: Kind, before: datetime) -> Iterator[datetime]:
    """Yield the times earlier than `before`, the latest first."""
    while (moment := previous_before(kind, before)) is not None:
        yield moment
        before = moment


def count_between(kind: Kind, after: datetime, until: datetime) -> tuple[int, datetime | None, datetime | None]:
    """Return how many times lie in (after, until], the first and the last of them.

    The cost does not grow with the count for cron and for elapsed steps; the other kinds walk.
    """
    first = next_after(kind, after)
    if first is None or first > until:
        return 0, None, None
    last = previous_before(kind, min(until, LAST) + TICK) or first
    count = count_fast(kind, after, last)
    if count is None:
        count = sum(1 for _ in takewhile(lambda moment: moment <= until, walk(kind, after)))
    return count, first, last


def count_fast(kind: Kind, after: datetime, until: datetime) -> int | None:
    """Return how many times lie in (after, until] where the cost does not grow with them, none if only a walk tells."""
    match kind:
        case Cron(_, zone, pattern, is_wildcard):
            lower, upper = (moment.astimezone(UTC).replace(tzinfo=None) for moment in (after, until))
            return zones.count_placed(pattern, zone, lower, upper, is_wildcard=is_wildcard)
        case Every():
            return steps.count_steps(kind, after, until)
        case Rrule():
            return calendar.count_elapsed(kind, after, until)
        case At():
            return int(after < kind.moment <= until)


def check(kind: Kind, after: datetime) -> None:
    """Raise TriggerError for a kind that can never fire. One that has merely ended is not refused."""
    if isinstance(kind, Cron) and next_after(kind, after) is None:
        raise TriggerError(
            f'cron: "{kind.text}" has no time in the 13 years after {after.date()}. Write a day that its months have.'
        )
    if isinstance(kind, Rrule) and calendar.is_impossible(kind):
        raise TriggerError(f'rrule: "{kind.text}" names no time at all. Check its BY parts against each other.')
