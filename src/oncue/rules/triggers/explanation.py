"""Why a moment is, or is not, one of a trigger's times, in words for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from oncue.rules.triggers import composed, exclusion, moving, reasons, words, zones
from oncue.rules.triggers.days import day_at
from oncue.rules.triggers.kinds import TICK, walls_in
from oncue.rules.triggers.placing import Placing
from oncue.rules.triggers.reasons import shown
from oncue.rules.triggers.timetable import Timetable
from oncue.rules.triggers.timetable_words import note_of

SECOND: Final = timedelta(seconds=1)
ALL_COPIES: Final = Placing("skip", "both")
ALL_MADE_UP: Final = Placing("shift", "first")


def explain(table: Timetable, moment: datetime) -> str:
    """Return a sentence that says why a moment is one of the times, or why it is none."""
    moment = moment.astimezone(UTC)
    subject = _spoken(table, moment)
    if composed.is_time(table, moment):
        note = note_of(table, moment)
        return f"{subject} is one of its times{f': {note}' if note else ''}."
    for override in table.overrides:
        if override.due_at == moment and composed.is_planned(table, moment):
            return f"{subject} is {reasons.by_hand(table.zone, override)}."
    if table.starts_at is not None and moment < table.starts_at:
        return f"{subject} is before its start, {shown(table.zone, table.starts_at)}."
    if table.ends_at is not None and moment > table.ends_at:
        return f"{subject} is after its end, {shown(table.zone, table.ends_at)}."
    if exclusion.names(table.parts, moment):
        return f"{subject} {_taken_out(table, moment)}."
    return _unnamed(table, moment)


def explain_wall(table: Timetable, wall: datetime) -> str:
    """Return a sentence that says why a wall time of the timetable's zone is one of the times, or why it is none."""
    copies = zones.place_wall(wall, table.zone, ALL_COPIES)
    if not copies:
        return _skipped(table, wall)
    if len(copies) == 1:
        return explain(table, copies[0])
    twice = f"the clocks of {table.zone.key} show {_clock(wall)} twice on {wall.date()}"
    first, second = (composed.is_time(table, copy) for copy in copies)
    if first and second:
        return f"{twice}, and both are its times."
    if not first and not second:
        return f"{twice}, and neither is one of its times: {explain(table, copies[0])}"
    name, copy = ("first", copies[0]) if first else ("second", copies[1])
    return f"{twice}; the {name} is one of its times, {_utc(copy)}."


def _skipped(table: Timetable, wall: datetime) -> str:
    """Explain a wall time that no clock showed."""
    gap = f"the clocks of {table.zone.key} skip {_clock(wall)} on {wall.date()}"
    named = [kind for kind in table.parts if kind.zone is table.zone and walls_in(kind, wall, wall + SECOND)]
    if not named:
        return f"{gap}, and {_kinds(table)} names no such time{_nearest(table, zones.first_shown(wall, table.zone))}."
    placed = [moment for kind in named for moment in zones.place_wall(wall, table.zone, kind.placing)]
    if placed:
        moved = f"{gap}: it is made up for at {_clock(placed[0].astimezone(table.zone).replace(tzinfo=None))}"
        return f"{moved}." if composed.is_time(table, placed[0]) else f"{moved}, but {explain(table, placed[0])}"
    if zones.place_wall(wall, table.zone, ALL_MADE_UP):
        return f"{gap}, and this schedule leaves out what the clocks skip."
    return f"{gap}, with hours around it: nothing is made up for then."


def _taken_out(table: Timetable, moment: datetime) -> str:
    """Say why a moment that a part names is no time."""
    for kind in table.excluded:
        if exclusion.names((kind,), moment):
            return f'is left out: except names it ("{kind.text}")'
    day = day_at(table.zone, moment)
    why = f"it {reasons.of_day(table, day)}"
    if table.move is None:
        return f"is left out: {why}"
    moved_to = [moment for moment in moving.destinations(table, moment) if composed.is_planned(table, moment)]
    if moved_to:
        return f"is moved to {shown(table.zone, moved_to[0])}: {why}"
    return f"is left out: {why}, and it has no time to move to on the {table.move} allowed day"


def _unnamed(table: Timetable, moment: datetime) -> str:
    """Explain a moment that no part names: the other copy of a wall time perhaps, or nothing near."""
    wall = moment.astimezone(table.zone).replace(tzinfo=None, fold=0)
    copies = zones.place_wall(wall, table.zone, ALL_COPIES)
    for copy in copies:
        if copy != moment and composed.is_time(table, copy):
            which = "second" if copy < moment else "first"
            return (
                f"this is the {which} {_clock(wall)} of {wall.date()} in {table.zone.key}: it is due at {_utc(copy)}."
            )
    return f"{_kinds(table)} names no such time{_nearest(table, moment)}."


def _nearest(table: Timetable, moment: datetime) -> str:
    found = [composed.previous_before(table, moment), composed.next_after(table, moment - TICK)]
    near = [shown(table.zone, time) for time in found if time is not None]
    return f"; the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}" if near else ""


def _kinds(table: Timetable) -> str:
    names = [words.kind_of(kind) for kind in table.parts]
    return names[0] if len(names) == 1 else "any"


def _spoken(table: Timetable, moment: datetime) -> str:
    local = moment.astimezone(table.zone)
    return f"{_clock(local)} on {local.date()}"


def _clock(local: datetime) -> str:
    return f"{local:%H:%M:%S}".removesuffix(":00")


def _utc(moment: datetime) -> str:
    return f"{moment:%H:%M} UTC"
