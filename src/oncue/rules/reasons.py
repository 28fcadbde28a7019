"""Why a time of a timetable was left out, moved or changed, in words."""

from __future__ import annotations

from datetime import date, datetime

from oncue.definition import Override
from oncue.rules.days import Listed, day_at
from oncue.rules.timetable import Timetable


def left_out(table: Timetable, first: datetime, last: datetime) -> str:
    """Say why the calendars of a timetable leave out its times from `first` to `last`."""
    if first == last:
        return f"left out by its calendar: {of_day(table, day_at(table.zone, first))}"
    only = [f"only on {listed.calendar.name}" for listed in table.days.only]
    never = [f"not on {listed.calendar.name}" for listed in table.days.never]
    return f"left out by its calendar: {', '.join([*only, *never])}"


def of_day(table: Timetable, day: date) -> str:
    """Say why a day is not allowed: "2026-12-25 is Christmas Day in gr-holidays"."""
    for listed in table.days.never:
        if day in listed:
            return f"{day} is {_name(listed, day)} in {listed.calendar.name}"
    for listed in table.days.only:
        if day not in listed:
            return f"{day}, a {day:%A}, is no day of {listed.calendar.name}{_until(listed, day)}"
    return f"{day} is allowed"


def by_hand(override: Override) -> str:
    """Say what a change by hand does, with its reason."""
    why = f": {override.reason}" if override.reason else ""
    if override.moved_to is None:
        return f"skipped by hand{why}"
    return f"moved by hand{why}"


def _name(listed: Listed, day: date) -> str:
    return listed.calendar.dates.get(day) or (f"a {day:%A}" if day not in listed.calendar.dates else "a day")


def _until(listed: Listed, day: date) -> str:
    known = listed.calendar.known_until
    return f", which is filled to {known} only" if known is not None and day > known else ""
