"""Timetables in words, for people: what a composed schedule means, and how one of its times came to stand there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from oncue.rules.triggers import composed, exclusion, moving, words
from oncue.rules.triggers.days import Listed, day_at, first_instant, last_instant
from oncue.rules.triggers.reasons import shown
from oncue.rules.triggers.timetable import Timetable

DAY: Final = timedelta(days=1)


def describe(table: Timetable) -> str:
    """Return one sentence that says when a timetable is due."""
    sentence = "; or ".join(_inner(words.describe(kind)) for kind in table.parts)
    if table.days.only:
        sentence += f", only on {_names(table.days.only)}"
    if table.days.never:
        sentence += f", not on {_names(table.days.never)}"
    if table.move is not None:
        sentence += f", moved to the {table.move} such day"
    if table.excluded:
        sentence += f"; except {' and '.join(_inner(words.describe(kind)) for kind in table.excluded)}"
    sentence += _bounds(table)
    if table.overrides:
        sentence += f"; with {len(table.overrides)} change{'s' if len(table.overrides) > 1 else ''} by hand"
    return f"{sentence[0].upper()}{sentence[1:]}."


def note_of(table: Timetable, moment: datetime) -> str | None:
    """Say what moved one of the times: a change by hand, a calendar, or a change of the clocks."""
    for override in table.overrides:
        if override.moved_to == moment and composed.is_planned(table, override.due_at):
            why = f" ({override.reason})" if override.reason else ""
            return f"moved by hand from {shown(table.zone, override.due_at)}{why}"
    if not composed.is_named(table, moment):
        origin = origin_of(table, moment)
        return None if origin is None else f"moved from {day_at(table.zone, origin):%a %Y-%m-%d} by its calendar"
    for kind in table.parts:
        if exclusion.names((kind,), moment) and (note := words.note_of(kind, moment)):
            return note
    return None


def origin_of(table: Timetable, moment: datetime) -> datetime | None:
    """Return a time that a calendar moved to a moment, none if there is none."""
    if table.move is None:
        return None
    shown_day = day_at(table.zone, moment)
    # A clock that skips midnight shows the day after; other zones than the table's can be off by one either way.
    for target in (shown_day, shown_day - DAY, shown_day + DAY):
        beside = target - DAY if table.move == "next" else target + DAY
        if target in table.days and beside not in table.days:
            origin = moving.landed(table, moving.run_of(table, beside)).get(moment)
            if origin is not None:
                return origin
    return None


def _bounds(table: Timetable) -> str:
    start = table.starts_at and _bound(table.zone, table.starts_at, is_day=_is_first(table.zone, table.starts_at))
    end = table.ends_at and _bound(table.zone, table.ends_at, is_day=_is_last(table.zone, table.ends_at))
    said = " ".join([f"from {start}"] * bool(start) + [f"until {end}"] * bool(end))
    return f"; {said}" if said else ""


def _bound(zone: ZoneInfo, moment: datetime, *, is_day: bool) -> str:
    local = moment.astimezone(zone)
    return str(local.date()) if is_day else local.isoformat(" ", "seconds")


def _is_first(zone: ZoneInfo, moment: datetime) -> bool:
    return first_instant(zone, day_at(zone, moment)) == moment


def _is_last(zone: ZoneInfo, moment: datetime) -> bool:
    return last_instant(zone, day_at(zone, moment)) == moment


def _names(listed: Sequence[Listed]) -> str:
    return " and ".join(one.calendar.name for one in listed)


def _inner(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].removesuffix(".")
