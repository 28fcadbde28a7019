"""Why a time of a timetable was left out, moved or changed, in words."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

from oncue.definition import Override
from oncue.rules.triggers.days import Listed, day_at
from oncue.rules.triggers.timetable import Timetable


def left_out(table: Timetable, first: datetime, last: datetime) -> str:
    """Say why the calendars of a timetable leave out its times from `first` to `last`."""
    if first == last:
        day = day_at(table.zone, first)
        return f"left out by its calendar: {day} {of_day(table, day)}"
    only = [f"only on {listed.calendar.name}" for listed in table.days.only]
    never = [f"not on {listed.calendar.name}" for listed in table.days.never]
    return f"left out by its calendar: {', '.join([*only, *never])}"


def of_day(table: Timetable, day: date) -> str:
    """Say why a day is not allowed: "is Christmas Day in gr-holidays"."""
    for listed in table.days.never:
        if day in listed:
            return f"is {listed.calendar.dates.get(day) or f'a {day:%A}'} in {listed.calendar.name}"
    for listed in table.days.only:
        if day not in listed:
            return f"is a {day:%A} that is not in {listed.calendar.name}{_horizon(listed, day)}"
    return "is allowed"


def by_hand(zone: ZoneInfo, override: Override) -> str:
    """Say what a change by hand does, with its reason."""
    why = f": {override.reason}" if override.reason else ""
    if override.moved_to is None:
        return f"skipped by hand{why}"
    return f"moved by hand to {shown(zone, override.moved_to)}{why}"


def shown(zone: ZoneInfo, moment: datetime) -> str:
    """Return a moment as a clock shows it, Fri 2026-12-25 09:00, with its offset where that is shown twice."""
    local = moment.astimezone(zone)
    is_once = local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset()
    return f"{local:%a %Y-%m-%d %H:%M:%S}".removesuffix(":00") + ("" if is_once else f" {local:%z}")


def _horizon(listed: Listed, day: date) -> str:
    known = listed.calendar.known_until
    return f", which is filled to {known} only" if known is not None and day > known else ""
