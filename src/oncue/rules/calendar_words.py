"""Calendars in words: what one holds, whether a day is in it, where it came from, and how to carry it on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from oncue.definition import Calendar
from oncue.rules.triggers.days import WEEKDAYS, read_listed

ENDS_SOON: Final = 60  # days before the end of what a calendar knows
IMPORTED: Final = re.compile(r"holidays \S+ (--.+)")
"""What the source of a calendar says that was imported from the library: its version, and the options."""


def describe_calendar(calendar: Calendar) -> str:
    """Say what a calendar holds: "mon-fri, 41 dates, except 3"."""
    parts = [", ".join(_ranges(calendar.weekdays))] if calendar.weekdays else []
    if calendar.dates:
        parts.append(_count(len(calendar.dates)))
    if calendar.without:
        parts.append(f"except {_count(len(calendar.without))}")
    return ", ".join(parts)


def explain_day(calendar: Calendar, day: date) -> str:
    """Say whether a day is in a calendar, and why."""
    name, shown = calendar.name, f"{day}, a {day:%A},"
    if day in calendar.without:
        return f"{shown} is not in {name}: it is one of its exceptions."
    if day in calendar.dates:
        return f"{shown} is in {name}: {calendar.dates[day] or 'it is one of its dates'}."
    if day in read_listed(calendar):
        return f"{shown} is in {name}: it holds {', '.join(_ranges(calendar.weekdays))}."
    if calendar.known_until is not None and day > calendar.known_until:
        return f"{shown} is not in {name}, which is known until {calendar.known_until} only."
    return f"{shown} is not in {name}."


def holds(calendar: Calendar, day: date) -> bool:
    """Say whether a day is in a calendar."""
    return day in read_listed(calendar)


def days_left(calendar: Calendar, today: date) -> int | None:
    """Return how many days a calendar is still known for; negative past its end, none where it has no end."""
    return None if calendar.known_until is None else (calendar.known_until - today).days


def how_to_continue(calendar: Calendar) -> str:
    """Say how a calendar comes to know more years, by where it came from."""
    again = f"oncue calendars import {calendar.name}"
    if calendar.source.startswith("file "):
        return f"import a file with more years: {again} --file FILE"
    if imported := IMPORTED.fullmatch(calendar.source):
        return f"import more years: {again} {imported[1]}"
    return f"write more days, and a later known_until, where [calendar.{calendar.name}] is written"


def day_changes(old: Calendar | None, new: Calendar) -> list[str]:
    """Return what a new calendar changes, a line each: its weekdays, and each day that is added, dropped or renamed."""
    before = old or Calendar(new.name)
    lines = []
    if before.weekdays != new.weekdays:
        words = [", ".join(_ranges(one.weekdays)) or "none" for one in (before, new)]
        lines.append(f"~ weekdays: {words[0]} → {words[1]}")
    for day in sorted({*before.dates, *new.dates}):
        lines += _day_change(day, before.dates.get(day), new.dates.get(day))
    for day in sorted({*before.without} ^ {*new.without}):
        lines.append(f"{'+' if day in new.without else '-'} except {day} {day:%a}")
    if old is not None and old.known_until != new.known_until:
        lines.append(f"~ known until: {old.known_until or 'no end'} → {new.known_until or 'no end'}")
    return lines


def _day_change(day: date, old: str | None, new: str | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{'+' if old is None else '-'} {day} {day:%a}  {new or old or ''}".rstrip()
    elif old != new:
        yield f"~ {day} {day:%a}  {old or '(no name)'} → {new or '(no name)'}"


def _ranges(weekdays: Sequence[str]) -> list[str]:
    """Return weekdays with neighbours drawn together: mon-fri."""
    found: list[list[str]] = []
    for day in WEEKDAYS:
        if day not in weekdays:
            continue
        if found and WEEKDAYS.index(found[-1][-1]) == WEEKDAYS.index(day) - 1:
            found[-1].append(day)
        else:
            found.append([day])
    return [one[0] if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in found]


def _count(count: int) -> str:
    return f"{count:,} date{'s' if count != 1 else ''}"
