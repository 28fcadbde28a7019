"""Calendars as people write them: a table of a task file, an iCalendar file, or a plain list of dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final

from oncue.definition import Calendar
from oncue.model import Json
from oncue.rules import shape
from oncue.rules.triggers.days import WEEKDAYS

KEYS: Final = ("weekdays", "dates", "except", "known_until", "source")
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
EXAMPLE: Final = 'Write for example weekdays = "mon-fri" or dates = ["2026-12-25"].'
MOST_DATES: Final = 10_000
LONGEST_NAME: Final = 200
PROPERTY: Final = re.compile(r"(DTSTART|DTEND|SUMMARY|RRULE)(?:;(?:[^:\"]|\"[^\"]*\")*)?:(.*)", re.IGNORECASE)


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
    found = _read_ics(text) if text.lstrip().startswith("BEGIN:VCALENDAR") else _read_lines(text)
    if not found:
        raise ValueError("it holds no day. Write one a line, as 2026-12-25, or give an iCalendar file with events.")
    return found


def _read_lines(text: str) -> dict[date, str]:
    found: dict[date, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].strip()
        if not words:
            continue
        day, _, said = words.replace(",", " ", 1).replace(";", " ", 1).partition(" ")
        try:
            read = date.fromisoformat(day.strip("\"'"))
        except ValueError:
            raise ValueError(
                f'line {number}: "{day[:40]}" is not a date. Write one a line, as 2026-12-25, and its name after it.'
            ) from None
        _name_day(found, read, said.strip(" \"'"))
    return found


def _read_ics(text: str) -> dict[date, str]:
    found: dict[date, str] = {}
    for number, event in _events(text):
        said = re.sub(r"\\([,;\\])", r"\1", event.get("SUMMARY", "").strip())
        where = f'line {number}: the event "{said[:60]}"'
        if "RRULE" in event:
            raise ValueError(f"{where} repeats by a rule. Export it as single days.")
        try:
            first = _ics_day(event["DTSTART"])
            last = _ics_day(event["DTEND"]) if "DTEND" in event else first
        except (KeyError, ValueError):
            raise ValueError(f"{where} has no day. Give it a DTSTART such as 20261225.") from None
        for ordinal in range(first.toordinal(), max(last.toordinal(), first.toordinal() + 1)):
            _name_day(found, date.fromordinal(ordinal), said)
    return found


def _events(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the properties of each event with the line on which it begins; those of an alarm inside are not its own."""
    number, inside = 0, ""
    event: dict[str, str] | None = None
    for place, line in _unfolded(text):
        match = PROPERTY.match(line)
        if line.startswith("BEGIN:") and event is not None:
            inside = inside or line[6:].strip()
        elif line.startswith("END:") and inside:
            inside = "" if line[4:].strip() == inside else inside
        elif line.strip() == "BEGIN:VEVENT":
            number, event = place, {}
        elif line.strip() == "END:VEVENT" and event is not None:
            yield number, event
            event = None
        elif match and event is not None and not inside:
            event.setdefault(match[1].upper(), match[2])


def _unfolded(text: str) -> list[tuple[int, str]]:
    """Return the content lines of an iCalendar text, each with the number of its first line."""
    lines: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line[:1] in (" ", "\t") and lines:
            lines[-1][1].append(line[1:])
        else:
            lines.append((number, [line]))
    return [(number, "".join(parts)) for number, parts in lines]


def _name_day(found: dict[date, str], day: date, said: str) -> None:
    """Add a day to those found; one that is there already has both names."""
    names = dict.fromkeys(name for name in (*found.get(day, "").split("; "), said[:LONGEST_NAME]) if name)
    found[day] = "; ".join(names)[:LONGEST_NAME]
    if len(found) > MOST_DATES:
        raise ValueError(f"there are more than {MOST_DATES:,} days. Import fewer years.")


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
        if first not in WEEKDAYS or (dash and last not in WEEKDAYS):
            raise ValueError(f"{shape.shown(word)} is no weekday.{shape.near(word, WEEKDAYS)}")
        begin, end = WEEKDAYS.index(first), WEEKDAYS.index(last if dash else first)
        if begin > end:
            raise ValueError(f'the range "{word}" runs backwards. Write two, with a comma.')
        chosen.update(WEEKDAYS[begin : end + 1])
    return tuple(day for day in WEEKDAYS if day in chosen)


def _read_days(value: Any) -> dict[date, str]:
    if isinstance(value, Mapping):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, (list, tuple)):
        items = ((day, "") for day in value)
    else:
        raise ValueError(f"{shape.shown(value)} is not a list of dates. {EXAMPLE}")
    found = {_read_day(day): _read_name(said) for day, said in items}
    if len(found) > MOST_DATES:
        raise ValueError(f"there are {len(found):,} dates. Write at most {MOST_DATES:,}.")
    return found


def _read_name(value: Any) -> str:
    name: str = shape.read(str, value)
    if len(name) > LONGEST_NAME:
        raise ValueError(f"the name of a day has {len(name):,} characters. Write at most {LONGEST_NAME}.")
    return name


def _read_day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{shape.shown(value)} is not a date. Write it as 2026-12-25.") from None
