"""The text of a calendar rule, `DTSTART=...;FREQ=...;...`, read into an `Rrule`; what is written badly is refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import prod
from typing import Any, Final
from zoneinfo import ZoneInfo

from dateutil import rrule as dateutil_rrule

from oncue.errors import TriggerError
from oncue.rules.at import EARLIEST_YEAR, LATEST_YEAR
from oncue.rules.pattern import MonthEnd, Pattern
from oncue.rules.placing import CALENDAR, WILDCARD, read_placing, refuse_placing
from oncue.rules.rrule import PERIODS, Bound, Rrule

LONGEST: Final = 10_000
MOST_COUNT: Final = 10_000
MOST_TIMES: Final = {"HOURLY": 60, "MINUTELY": 60}
MOST_TIMES_A_DAY: Final = 1440
WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
NUMBERS: Final = {
    "BYSETPOS": (-366, 366),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 59),
}
KNOWN: Final = ("DTSTART", "FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *NUMBERS, "EXDATE", "RDATE")
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,5}", re.ASCII)
BYDAY: Final = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)


def read_rrule(text: str, zone: ZoneInfo, *, anchor: datetime | None = None, dst: object = None) -> Rrule:
    """Return the calendar rule that a text means. Without DTSTART it starts at the anchor."""
    if len(text) > LONGEST:
        raise TriggerError(f"rrule: the text has {len(text)} characters. Write at most {LONGEST}.")
    fields = _fields(text)
    freq = fields.get("FREQ", "")
    if freq not in PERIODS:
        known = ", ".join(PERIODS)
        hint = ' For seconds write a step, such as every = "PT30S".' if freq == "SECONDLY" else ""
        raise TriggerError(f'rrule: FREQ is "{freq}". Write one of {known}.{hint}')
    if freq in ("HOURLY", "MINUTELY"):
        refuse_placing(dst, f"a rule with FREQ={freq}")
        placing = WILDCARD
    else:
        placing = read_placing(dst, CALENDAR)
    start, first = _read_start(fields.get("DTSTART"), zone, anchor)
    parts = _read_parts(fields, freq, start)
    excluded = frozenset(_read_moments("EXDATE", fields.get("EXDATE"), zone))
    added = sorted(set(_read_moments("RDATE", fields.get("RDATE"), zone)) - excluded)
    return Rrule(
        text=text,
        zone=zone,
        start=start,
        first=first,
        freq=freq,
        interval=_read_number("INTERVAL", fields.get("INTERVAL", "1"), 1, 1000),
        parts=tuple(parts.items()),
        pattern=_pattern_of(parts, start),
        placing=placing,
        follows_start=freq == "HOURLY" and "byminute" not in parts,
        count=_read_number("COUNT", fields["COUNT"], 1, MOST_COUNT) if "COUNT" in fields else None,
        until=_read_until(fields["UNTIL"]) if "UNTIL" in fields else None,
        excluded=excluded,
        added=tuple(added),
    )


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in re.split(r"[;\n]", text.strip().upper()):
        name, equals, value = (word.strip() for word in part.removeprefix("RRULE:").partition("="))
        if not name and not equals:
            continue
        if name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known parts: {', '.join(KNOWN)}."
            raise TriggerError(f'rrule: there is no part "{name}". {hint}')
        if not value:
            raise TriggerError(f"rrule: {name} has no value. Write {name}=... or leave it out.")
        if name in fields and name not in ("EXDATE", "RDATE"):
            raise TriggerError(f"rrule: {name} stands there twice. Leave one of them out.")
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def _read_start(text: str | None, zone: ZoneInfo, anchor: datetime | None) -> tuple[datetime, datetime]:
    """Return DTSTART as a wall time and as an instant."""
    if text is None and anchor is None:
        raise TriggerError("rrule: DTSTART is missing. Write DTSTART=20260306T090000;FREQ=...")
    moment = anchor.replace(microsecond=0) if text is None and anchor else _read_time("DTSTART", text or "")
    if moment.tzinfo is None or moment.tzinfo is zone:
        moment = moment.replace(tzinfo=None)
        return moment, moment.replace(tzinfo=zone).astimezone(UTC)
    return moment.astimezone(zone).replace(tzinfo=None, fold=0), moment.astimezone(UTC)


def _read_until(text: str) -> Bound:
    """Return the end of the rule; a date without a time means the whole of that day."""
    until = _read_time("UNTIL", text)
    if until.tzinfo is not None:
        return Bound(until.astimezone(UTC), None)
    return Bound(None, until if "T" in text else until + timedelta(days=1, seconds=-1))


def _read_moments(name: str, text: str | None, zone: ZoneInfo) -> list[datetime]:
    moments = []
    for item in text.split(",") if text else ():
        moment = _read_time(name, item)
        if "T" not in item:
            raise TriggerError(f"rrule: {name} {item} has no time. Write it in full, such as {item}T090000.")
        moments.append((moment if moment.tzinfo else moment.replace(tzinfo=zone, fold=0)).astimezone(UTC))
    return moments


def _read_time(name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text).replace(microsecond=0)
        if name != "UNTIL" and not EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
            raise ValueError(moment)
    except ValueError:
        years = "" if name == "UNTIL" else f" from {EARLIEST_YEAR} to {LATEST_YEAR}"
        message = f'rrule: {name} "{text}" is not a time{years}. Write it as 20260306T090000, with a Z for UTC.'
        raise TriggerError(message) from None
    return moment


def _refuse_odd_parts(fields: dict[str, str], freq: str) -> None:
    for name in ("BYSETPOS", "BYYEARDAY", "BYWEEKNO"):
        if name in fields and freq in ("HOURLY", "MINUTELY"):
            raise TriggerError(f"rrule: {name} is not known with FREQ={freq}. Leave it out, or write FREQ=DAILY.")


def _read_parts(fields: dict[str, str], freq: str, start: datetime) -> dict[str, Any]:
    """Return dateutil's arguments, with all that it would take from the start spelled out."""
    _refuse_odd_parts(fields, freq)
    parts: dict[str, Any] = {}
    for name, (low, high) in NUMBERS.items():
        if name in fields:
            numbers = {_read_number(name, item, low, high) for item in fields[name].split(",")}
            if low < 0 and 0 in numbers:
                raise TriggerError(f"rrule: {name} has a 0. Count from 1, or from -1 for the last.")
            parts[name.lower()] = tuple(sorted(numbers))
    if "BYDAY" in fields:
        parts["byweekday"] = tuple(_read_weekday(item, freq) for item in fields["BYDAY"].split(","))
    if "bysetpos" in parts and len(parts) == 1:
        raise TriggerError("rrule: BYSETPOS stands alone. Add what it picks from, such as BYDAY=MO,TU,WE,TH,FR.")
    if "WKST" in fields:
        if fields["WKST"] not in WEEKDAYS:
            raise TriggerError(f'rrule: WKST "{fields["WKST"]}" is not a weekday. Write one of {", ".join(WEEKDAYS)}.')
        parts["wkst"] = WEEKDAYS.index(fields["WKST"])
    _add_defaults(parts, freq, start)
    times = prod(len(parts.get(name, (0,))) for name in ("byhour", "byminute", "bysecond"))
    if times > MOST_TIMES.get(freq, MOST_TIMES_A_DAY):
        raise TriggerError(f'rrule: {times} times in each period are too many. Write a step, such as every = "PT1S".')
    return parts


def _add_defaults(parts: dict[str, Any], freq: str, start: datetime) -> None:
    if not {"byweekno", "byyearday", "bymonthday", "byweekday"} & parts.keys():
        if freq == "YEARLY":
            parts.setdefault("bymonth", (start.month,))
        if freq in ("YEARLY", "MONTHLY"):
            parts["bymonthday"] = (start.day,)
        if freq == "WEEKLY":
            parts["byweekday"] = (start.weekday(),)
    if freq not in ("HOURLY", "MINUTELY"):
        parts.setdefault("byhour", (start.hour,))
        parts.setdefault("byminute", (start.minute,))
        parts.setdefault("bysecond", (start.second,))


def _pattern_of(parts: dict[str, Any], start: datetime) -> Pattern:
    """Return a pattern of the parts, but for places in weeks, years and sets, which only dateutil knows."""
    days = parts.get("bymonthday", range(1, 32))
    weekdays = {getattr(day, "weekday", day) for day in parts.get("byweekday", range(7))}
    from_end = _mask(-1 - day for day in days if day < 0)
    return Pattern(
        seconds=_mask(parts.get("bysecond", (start.second,))),
        minutes=_mask(parts.get("byminute", range(60))),
        hours=_mask(parts.get("byhour", range(24))),
        days=_mask(day for day in days if day > 0),
        months=_mask(parts.get("bymonth", range(1, 13))),
        weekdays=_mask((day + 1) % 7 for day in weekdays),
        special=MonthEnd(before_last=from_end) if from_end else None,
    )


def _mask(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in set(numbers))


def _read_weekday(item: str, freq: str) -> Any:
    match = BYDAY.fullmatch(item.strip())
    nth = int(match[1]) if match and match[1] else None
    if not match or nth == 0:
        raise TriggerError(f'rrule: BYDAY "{item}" is not a weekday. Write for example MO, 2MO or -1FR.')
    if nth is not None and freq not in ("MONTHLY", "YEARLY"):
        raise TriggerError(f"rrule: BYDAY {item} counts within a month, but FREQ is {freq}. Write {match[2]}.")
    weekday = dateutil_rrule.weekdays[WEEKDAYS.index(match[2])]
    return weekday(nth) if nth else weekday


def _read_number(name: str, text: str, low: int, high: int) -> int:
    if not NUMBER.fullmatch(text.strip()) or not low <= int(text) <= high:
        raise TriggerError(f'rrule: {name} "{text}" is not a number from {low} to {high}. Write one that is.')
    return int(text)
