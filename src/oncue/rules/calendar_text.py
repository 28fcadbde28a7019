"""Calendars as people write them: a table of a task file, an iCalendar file, or a plain list of dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Final

from oncue.definition import Calendar
from oncue.model import Json
from oncue.rules import shape
from oncue.rules.days import WEEKDAYS as WEEK

KEYS: Final = ("weekdays", "dates", "except", "known_until", "source")
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
EXAMPLE: Final = 'Write for example weekdays = "mon-fri" or dates = ["2026-12-25"].'
MOST_DATES: Final = 10_000
PROPERTY: Final = re.compile(r"(DTSTART|DTEND|SUMMARY|RRULE)[^:]*:(.*)")


def check_name(name: str) -> None:
    """Raise ValueError for a name that no calendar can have."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{shape.shown(name)} is not a calendar's name. Write small letters, digits, dots, dashes and underscores."
        )


def read_calendar(name: str, value: Any) -> Calendar:
    """Return the calendar that a table means. Raises ValueError with all of its mistakes."""
    check_name(name)
    table = dict(shape.table(value))
    read = shape.each(table.items(), _read_key)
    if not read.get("weekdays") and not read.get("dates"):
        raise ValueError(f"it names no day. {EXAMPLE}")
    return Calendar(
        name,
        weekdays=read.get("weekdays", ()),
        dates=read.get("dates", {}),
        without=tuple(sorted(read.get("except", {}))),
        known_until=read.get("known_until"),
        source=read.get("source", ""),
    )


def write_calendar(calendar: Calendar) -> Json:
    """Return a calendar as `read_calendar` takes it; what it does not say is left out."""
    dates: Any = [day.isoformat() for day in sorted(calendar.dates)]
    if any(calendar.dates.values()):
        dates = {day.isoformat(): calendar.dates[day] for day in sorted(calendar.dates)}
    table: Json = {
        "weekdays": list(calendar.weekdays),
        "dates": dates,
        "except": [day.isoformat() for day in calendar.without],
        "known_until": calendar.known_until and calendar.known_until.isoformat(),
        "source": calendar.source,
    }
    return {key: item for key, item in table.items() if item}


def read_dates(text: str) -> dict[date, str]:
    """Return the days of an iCalendar text, or of lines that each begin with a date, with what is said of them.

    Raises ValueError that names the line.
    """
    if "BEGIN:VCALENDAR" in text:
        return _read_ics(text)
    found: dict[date, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].strip()
        if not words:
            continue
        day, _, said = words.replace(",", " ", 1).replace(";", " ", 1).partition(" ")
        try:
            found[date.fromisoformat(day.strip("\"'"))] = said.strip(" \"'")
        except ValueError:
            raise ValueError(
                f'line {number}: "{day[:40]}" is not a date. Write one a line, as 2026-12-25, and its name after it.'
            ) from None
    return found


def _read_ics(text: str) -> dict[date, str]:
    found: dict[date, str] = {}
    unfolded = re.sub(r"\r?\n[ \t]", "", text)
    for number, block in enumerate(re.findall(r"BEGIN:VEVENT(.*?)END:VEVENT", unfolded, re.DOTALL), 1):
        properties = dict(PROPERTY.findall(block))
        said = properties.get("SUMMARY", "").strip().replace("\\,", ",")
        if "RRULE" in properties:
            raise ValueError(f'event {number} ("{said[:60]}") repeats by a rule. Export it as single days.')
        try:
            first = _ics_day(properties["DTSTART"])
            last = _ics_day(properties["DTEND"]) if "DTEND" in properties else None
        except (KeyError, ValueError):
            raise ValueError(
                f'event {number} ("{said[:60]}") has no day. Give it a DTSTART such as 20261225.'
            ) from None
        for ordinal in range(first.toordinal(), max(last.toordinal() if last else 0, first.toordinal() + 1)):
            found[date.fromordinal(ordinal)] = said
            if len(found) > MOST_DATES:
                raise ValueError(f"there are more than {MOST_DATES:,} days. Import fewer years.")
    return found


def _ics_day(text: str) -> date:
    return datetime.strptime(text.strip()[:8], "%Y%m%d").date()  # noqa: DTZ007  a day has no zone


def _read_key(key: str, value: Any) -> Any:
    match key:
        case "weekdays":
            return _read_weekdays(value)
        case "dates" | "except":
            return _read_days(value)
        case "known_until":
            return _read_day(value)
        case "source":
            return shape.read(str, value)
    raise ValueError(f"there is no such key.{shape.near(key, KEYS)}")


def _read_weekdays(value: Any) -> tuple[str, ...]:
    """Return the weekdays of "mon-fri", "sat, sun" or a list, in the order of the week."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)):
        raise ValueError(f"{shape.shown(value)} names no weekdays. {EXAMPLE}")
    chosen: set[str] = set()
    for word in words:
        first, dash, last = str(word).strip().lower().partition("-")
        if first not in WEEK or (dash and last not in WEEK):
            raise ValueError(f"{shape.shown(word)} is no weekday.{shape.near(word, WEEK)}")
        begin, end = WEEK.index(first), WEEK.index(last if dash else first)
        if begin > end:
            raise ValueError(f'the range "{word}" runs backwards. Write two, with a comma.')
        chosen.update(WEEK[begin : end + 1])
    return tuple(day for day in WEEK if day in chosen)


def _read_days(value: Any) -> dict[date, str]:
    if isinstance(value, Mapping):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, (list, tuple)):
        items = ((day, "") for day in value)
    else:
        raise ValueError(f"{shape.shown(value)} is not a list of dates. {EXAMPLE}")
    found = {_read_day(day): shape.read(str, said) for day, said in items}
    if len(found) > MOST_DATES:
        raise ValueError(f"there are {len(found):,} dates. Write at most {MOST_DATES:,}.")
    return found


def _read_day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{shape.shown(value)} is not a date. Write it as 2026-12-25.") from None
