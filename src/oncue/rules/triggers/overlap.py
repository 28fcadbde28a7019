"""How many instants triggers have in common: two cron texts by their bits, others abreast, with leaps over the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from oncue.rules.triggers import zones
from oncue.rules.triggers.cron import Cron
from oncue.rules.triggers.days import Days, day_at
from oncue.rules.triggers.kinds import TICK, Kind
from oncue.rules.triggers.pattern import ALL_WEEKDAYS, Pattern
from oncue.rules.triggers.placing import WILDCARD
from oncue.rules.triggers.search import AHEAD, Way
from oncue.rules.triggers.timetable import Timetable

MOST_WALKED: Final = 20_000
A_MONTH: Final = timedelta(days=32)


@dataclass(frozen=True, slots=True)
class Count:
    """A number of times; if it is not exact there may be more."""

    number: int
    is_exact: bool = True


def most_steps(table: Timetable) -> int:
    """Return how far two sides are walked abreast at most: each step asks every trigger."""
    return 2 * MOST_WALKED // (len(table.parts) + len(table.excluded))


def count_common(
    some: Sequence[Kind], others: Sequence[Kind], table: Timetable, after: datetime, until: datetime, *, most: int
) -> Count:
    """Return how many instants on allowed days of a timetable in (after, until] are named on both sides.

    After `most` steps the number is a lower bound.
    """
    if len(some) == len(others) == 1 and isinstance(some[0], Cron) and isinstance(others[0], Cron):
        one, other = some[0], others[0]
        if one.zone is other.zone is table.zone and one.placing == other.placing == WILDCARD:
            return Count(_count_shared(one, other, table.days, after, until))
    number = 0
    for walked, (moment, is_common) in enumerate(abreast(some, others, AHEAD, after)):
        if moment > until:
            break
        if walked == most:
            return Count(number, is_exact=False)
        number += is_common and day_at(table.zone, moment) in table.days
    return Count(number)


def abreast(some: Sequence[Kind], others: Sequence[Kind], way: Way, start: datetime) -> Iterator[tuple[datetime, bool]]:
    """Yield times of the one side, each with whether the other has it too; what lies between is leapt over."""
    moment = way.nearest(some, start)
    while moment is not None:
        other = way.nearest(others, moment - way.tick)
        if other is None:
            return
        yield moment, other == moment
        moment = way.nearest(some, moment if other == moment else other - way.tick)


def _count_shared(one: Cron, other: Cron, days: Days, after: datetime, until: datetime) -> int:
    """Return how many real wall times in (after, until] two patterns share on a set of days."""
    number = 0
    start, end = ((moment + TICK).astimezone(UTC).replace(tzinfo=None) for moment in (after, until))
    stretch = zones.stretch_at(one.zone, start)
    while stretch.start < end:
        wall = max(start, stretch.start) + stretch.offset
        last = min(end, stretch.end) + stretch.offset
        while wall < last:
            following = (wall.replace(day=1) + A_MONTH).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            shared = _shared(one.pattern, other.pattern, days, wall)
            number += shared.count_in(_whole(wall), _whole(min(last, following)))
            wall = following
        stretch = zones.stretch_at(one.zone, stretch.end)
    return number


def _shared(one: Pattern, other: Pattern, days: Days, wall: datetime) -> Pattern:
    """Return what two patterns share in the month of a wall time."""
    year, month = wall.year, wall.month
    return Pattern(
        seconds=one.seconds & other.seconds,
        minutes=one.minutes & other.minutes,
        hours=one.hours & other.hours,
        days=one.days_in(year, month) & other.days_in(year, month) & days.days_in(year, month),
        months=1 << month,
        weekdays=ALL_WEEKDAYS,
    )


def _whole(wall: datetime) -> datetime:
    """Return the first whole second from a wall time on."""
    return wall if wall.microsecond == 0 else wall.replace(microsecond=0) + timedelta(seconds=1)
