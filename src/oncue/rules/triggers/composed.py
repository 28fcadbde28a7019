"""What a timetable answers: its times, with those moved by a calendar and those changed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from oncue.errors import TriggerError
from oncue.rules.triggers import exclusion, kinds, moving
from oncue.rules.triggers.days import EVERY_DAY, Days, day_at
from oncue.rules.triggers.kinds import TICK
from oncue.rules.triggers.search import AHEAD, BACK, Step, Way, is_on, merged, named, times_of
from oncue.rules.triggers.timetable import Timetable


def walk(table: Timetable, after: datetime) -> Iterator[datetime]:
    """Yield the times later than `after`."""
    with suppress(OverflowError):
        yield from times_of(_changed(table, AHEAD, after.astimezone(UTC)))


def walk_back(table: Timetable, before: datetime) -> Iterator[datetime]:
    """Yield the times earlier than `before`, the latest first."""
    with suppress(OverflowError):
        yield from times_of(_changed(table, BACK, before.astimezone(UTC)))


def next_after(table: Timetable, after: datetime) -> datetime | None:
    """Return the first time strictly later than `after`; none if there is none, or only beyond the search."""
    return next(walk(table, after), None)


def previous_before(table: Timetable, before: datetime) -> datetime | None:
    """Return the last time strictly earlier than `before`; none if there is none, or only beyond the search."""
    return next(walk_back(table, before), None)


def is_time(table: Timetable, moment: datetime) -> bool:
    """Say whether a moment is one of the times."""
    with suppress(OverflowError):
        return is_on(_changed(table, AHEAD, moment - TICK), moment)
    return False


def is_planned(table: Timetable, moment: datetime) -> bool:
    """Say whether a moment is one of the times, the changes by hand left aside."""
    with suppress(OverflowError):
        return is_on(_planned(table, AHEAD, moment - TICK), moment)
    return False


def is_named(table: Timetable, moment: datetime) -> bool:
    """Say whether a moment is named on an allowed day, within the bounds, and not excluded."""
    if not table.is_within(moment) or day_at(table.zone, moment) not in table.days:
        return False
    return exclusion.names(table.parts, moment) and not exclusion.names(table.excluded, moment)


def check(table: Timetable, after: datetime) -> None:
    """Raise TriggerError for a timetable that can never fire. One that has merely ended is not refused."""
    for kind in (*table.parts, *table.excluded):
        kinds.check(kind, after)
    if next_after(table, after) is not None or previous_before(table, after + TICK) is not None:
        return
    bare = replace(table, excluded=(), overrides=())
    if _first(bare, EVERY_DAY, after) is None:
        return
    if _first(bare, table.days, after) is None:
        raise TriggerError(
            "schedule: it has no time in the next 13 years: its calendar allows no day on which it is due. "
            'Allow such a day, or add move = "next".'
        )
    raise TriggerError(
        "except: it leaves no time in the next 13 years: all that the schedule names is excluded. Exclude less."
    )


def _first(table: Timetable, days: Days, after: datetime) -> datetime | None:
    return next(times_of(named(table, days, AHEAD, after.astimezone(UTC))), None)


def _changed(table: Timetable, way: Way, start: datetime) -> Iterator[Step]:
    if not table.overrides:
        return _planned(table, way, start)
    gone = {override.due_at.astimezone(UTC) for override in table.overrides}
    kept = ((moment, is_time and moment not in gone) for moment, is_time in _planned(table, way, start))
    return merged([kept, _by_hand(table, way, start)], way)


def _by_hand(table: Timetable, way: Way, start: datetime) -> Iterator[Step]:
    """Walk over the moments that times were moved to by hand. A change of a time that is none is void."""
    found = [(o.moved_to.astimezone(UTC), o.due_at.astimezone(UTC)) for o in table.overrides if o.moved_to]
    for moved_to, due_at in sorted(found, reverse=way.is_back):
        if way.is_beyond(moved_to, start):
            yield moved_to, False
            yield moved_to, is_planned(table, due_at)


def _planned(table: Timetable, way: Way, start: datetime) -> Iterator[Step]:
    here = named(table, table.days, way, start)
    return here if table.move is None else merged([here, moving.moved(table, way, start)], way)
