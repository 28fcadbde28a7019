"""What a timetable excludes: does a trigger name this very instant, and how far does that go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from oncue.rules.triggers import days as calendars
from oncue.rules.triggers import kinds, zones
from oncue.rules.triggers.at import At
from oncue.rules.triggers.cron import Cron
from oncue.rules.triggers.days import MonthSet
from oncue.rules.triggers.every import Every
from oncue.rules.triggers.kinds import TICK, Kind
from oncue.rules.triggers.pattern import Pattern
from oncue.rules.triggers.placing import WILDCARD
from oncue.rules.triggers.rrule import Rrule
from oncue.rules.triggers.timetable import Timetable

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
ALL_60: Final = (1 << 60) - 1
ALL_24: Final = (1 << 24) - 1


@dataclass(frozen=True, slots=True)
class Grid:
    """The seconds, minutes and hours, as bits, that a clock of one offset may show at the times of a trigger."""

    seconds: int
    minutes: int
    hours: int


@dataclass(frozen=True, slots=True)
class _Unnamed:
    """The days on which some triggers can have times and a pattern has none, and all days of months past a stretch."""

    pattern: Pattern
    own: tuple[MonthSet, ...]
    stretch: zones.Stretch

    def days_in(self, year: int, month: int) -> int:
        first, last = self.stretch.wall_start, self.stretch.wall_end
        if not (first.year, first.month) <= (year, month) <= (last.year, last.month):
            return calendars.days_of(year, month)
        days = 0 if self.own else calendars.days_of(year, month)
        for own in self.own:
            days |= own.days_in(year, month)
        return days & ~self.pattern.days_in(year, month)


def names(triggers: Iterable[Kind], moment: datetime) -> bool:
    """Say whether one of some triggers names exactly this instant."""
    return any(_may_name(kind, moment) and kinds.next_after(kind, moment - TICK) == moment for kind in triggers)


def leap(table: Timetable, moment: datetime, *, is_back: bool) -> datetime | None:
    """Return from where on, beyond an excluded time, others can be left; none if that is not known.

    It is known where a cron names every second, minute or hour that the parts can have, away from changes of clocks.
    """
    for cron in table.excluded:
        if isinstance(cron, Cron) and names((cron,), moment):
            found = _block(cron, table.parts, moment.replace(tzinfo=None))
            if found is not None:
                return (found[0] if is_back else found[1] - TICK).replace(tzinfo=UTC)
    return None


def _block(cron: Cron, parts: Sequence[Kind], instant: datetime) -> tuple[datetime, datetime] | None:
    """Return the time [begin, end) around an instant of a cron in which it names all times of some parts."""
    stretch = zones.stretch_at(cron.zone, instant)
    begin, end = stretch.start, stretch.end
    if not all(kind.placing == WILDCARD for kind in (cron, *parts)):
        # Away from changes of the clocks what they show is shown once, and nothing is made up for.
        begin, end = max(stretch.settled, stretch.fresh - stretch.offset), stretch.lasting - stretch.offset
    grids = [_grid(kind, cron, stretch.offset) for kind in parts]
    if not begin <= instant < end or not all(grid and not grid.seconds & ~cron.pattern.seconds for grid in grids):
        return None
    wall = instant + stretch.offset
    first = wall.replace(second=0, microsecond=0)
    last = first + MINUTE
    if all(grid and not grid.minutes & ~cron.pattern.minutes for grid in grids):
        first = first.replace(minute=0)
        last = first + HOUR
        if all(grid and not grid.hours & ~cron.pattern.hours for grid in grids):
            first, last = _named_days(cron, parts, wall.date(), stretch)
    return max(begin, first - stretch.offset), min(end, last - stretch.offset)


def _named_days(cron: Cron, parts: Sequence[Kind], day: date, stretch: zones.Stretch) -> tuple[datetime, datetime]:
    """Return the wall times from and up to which a cron names the days of all parts, as far as the stretch goes."""
    own = [kinds.days_of(kind) if kind.zone is cron.zone else None for kind in parts]
    unnamed = _Unnamed(cron.pattern, tuple(one for one in own if one) if all(own) else (), stretch)
    before, after = calendars.last_day(unnamed, day), calendars.first_day(unnamed, day)
    first = datetime.combine(before, time()) + DAY if before else stretch.wall_start
    return first, datetime.combine(after, time()) if after else stretch.wall_end


def _grid(kind: Kind, cron: Cron, offset: timedelta) -> Grid | None:
    """Return what a clock of one offset shows at a trigger's times, none if that is not whole seconds of the zone."""
    match kind:
        case Cron() | Rrule():
            pattern = kind.pattern
            known = kind.zone is cron.zone and not (isinstance(kind, Rrule) and kind.added)
            return Grid(pattern.seconds, pattern.minutes, pattern.hours) if known else None
        case At():
            return _grid_of(kind.moments[0], offset, DAY) if len(kind.moments) == 1 else None
        case Every():
            if kind.step.is_elapsed:
                return _grid_of(kind.anchor, offset, kind.step.elapsed)
            known = kind.zone is cron.zone and not kind.step.elapsed
            wall = kind.anchor.astimezone(kind.zone).replace(tzinfo=UTC)
            return _grid_of(wall, timedelta(), DAY) if known else None


def _grid_of(anchor: datetime, offset: timedelta, step: timedelta) -> Grid | None:
    """Return what the clock shows at steps from an anchor."""
    if anchor.microsecond or step.microseconds:
        return None
    wall = anchor + offset
    seconds, minutes, hours = (step % unit == timedelta() for unit in (MINUTE, HOUR, DAY))
    return Grid(
        1 << wall.second if seconds else ALL_60,
        1 << wall.minute if minutes else ALL_60,
        1 << wall.hour if hours else ALL_24,
    )


def _may_name(kind: Kind, moment: datetime) -> bool:
    """Say whether a trigger may name a moment, by its pattern: calendar rules are slow to ask."""
    if not isinstance(kind, Rrule) or kind.added:
        return True
    instant = moment.replace(tzinfo=None)
    stretch = zones.stretch_at(kind.zone, instant)
    if instant < stretch.settled:
        return True
    wall = instant + stretch.offset
    return kind.pattern.first_from(wall) == wall
