"""The kinds of a single trigger, and what each answers: the next time, the one before, how many, and the walk."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from typing import Final

from oncue.errors import TriggerError
from oncue.rules.triggers import every as steps
from oncue.rules.triggers import rrule as calendar
from oncue.rules.triggers import zones
from oncue.rules.triggers.at import At, last_moment, next_moment
from oncue.rules.triggers.cron import Cron, is_ended
from oncue.rules.triggers.days import MonthSet
from oncue.rules.triggers.every import Every
from oncue.rules.triggers.pattern import HORIZON, SECOND
from oncue.rules.triggers.rrule import Rrule

TICK: Final = timedelta(microseconds=1)
LAST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=2)

Kind = At | Every | Cron | Rrule


def next_after(kind: Kind, after: datetime) -> datetime | None:
    """Return the first time strictly later than `after`, in UTC; none if there is none, or only beyond the search."""
    after = after.astimezone(UTC)
    try:
        match kind:
            case Cron(_, zone, pattern):
                return zones.first_placed(pattern, zone, after, kind.placing)
            case Every():
                return steps.next_step(kind, after)
            case Rrule():
                return calendar.next_time(kind, after)
            case At():
                return next_moment(kind, after)
    except OverflowError:
        return None  # the end of the calendar


def previous_before(kind: Kind, before: datetime) -> datetime | None:
    """Return the last time strictly earlier than `before`, in UTC; none if there is none, or only beyond the search."""
    before = before.astimezone(UTC)
    try:
        match kind:
            case Cron(_, zone, pattern):
                return zones.last_placed(pattern, zone, before, kind.placing)
            case Every():
                return steps.last_step(kind, before)
            case Rrule():
                return calendar.last_before(kind, before)
            case At():
                return last_moment(kind, before)
    except OverflowError:
        return None


def walk(kind: Kind, after: datetime) -> Iterator[datetime]:
    """Yield the times later than `after`."""
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

    The cost does not grow with the count, but for calendar steps: they walk.
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
        case Cron(_, zone, pattern):
            return zones.count_placed(pattern, zone, after.astimezone(UTC), until.astimezone(UTC), kind.placing)
        case Every():
            return steps.count_steps(kind, after, until)
        case Rrule():
            return calendar.count_times(kind, after.astimezone(UTC), until.astimezone(UTC))
        case At():
            return sum(after < moment <= until for moment in kind.moments)


def skipped_walls(kind: Kind, moment: datetime) -> list[datetime]:
    """Return the wall times that the clocks skipped and that a trigger makes up for at one of its times."""
    skipped = zones.walls_behind(kind.zone, moment, kind.placing)
    return [] if skipped is None else walls_in(kind, *skipped)


def walls_in(kind: Kind, low: datetime, high: datetime) -> list[datetime]:
    """Return the wall times in [low, high) that a trigger names, none of elapsed time."""
    match kind:
        case Cron(_, _, pattern):
            walls = []
            wall = pattern.first_from(low)
            while wall is not None and wall < high:
                walls.append(wall)
                wall = pattern.first_from(wall + SECOND)
            return walls
        case Every():
            return steps.walls_in(kind, low, high)
        case Rrule():
            return calendar.walls_in(kind, low, high)
        case At():
            return [kind.wall] if kind.wall and low <= kind.wall < high else []


def goes_by_clock(kind: Kind) -> bool:
    """Say whether changes of the clocks matter to a trigger: it names wall times, not elapsed time or an instant."""
    match kind:
        case Cron():
            return True
        case Every():
            return not kind.step.is_elapsed
        case Rrule():
            return not kind.is_elapsed
        case At():
            return kind.wall is not None


def days_of(kind: Kind) -> MonthSet | None:
    """Return the days that a trigger's wall times can have, none where that is not known."""
    match kind:
        case Cron():
            return kind.pattern
        case Rrule():
            return None if kind.added else kind.pattern
        case Every():
            step = kind.step
            return None if step.elapsed or (step.months and step.days) else _Counted(kind)
        case At():
            return None


def check(kind: Kind, after: datetime) -> None:
    """Raise TriggerError for a kind that can never fire. One that has merely ended is not refused."""
    if isinstance(kind, Cron) and not is_ended(kind, after) and _is_far(next_after(kind, after), after):
        raise TriggerError(
            f'cron: "{kind.text}" has no time in the 13 years after {after.date()}. Write a day that its months have.'
        )
    if isinstance(kind, Rrule) and calendar.is_impossible(kind):
        raise TriggerError(f'rrule: "{kind.text}" names no time at all. Check its BY parts against each other.')


def _is_far(found: datetime | None, after: datetime) -> bool:
    return found is None or found - after > HORIZON


@dataclass(frozen=True, slots=True)
class _Counted:
    """The days that steps of days or of months come to."""

    every: Every

    def days_in(self, year: int, month: int) -> int:
        """Return its days of a month, bit 1 for the first."""
        step, anchor = self.every.step, steps.anchor_wall(self.every)
        length = monthrange(year, month)[1]
        if step.months:
            months = (year - anchor.year) * 12 + month - anchor.month
            return 0 if months % step.months else 1 << min(anchor.day, length)
        first = (anchor.toordinal() - date(year, month, 1).toordinal()) % step.days + 1
        return sum(1 << day for day in range(first, length + 1, step.days))
