"""The text of a calendar rule, `DTSTART=...;FREQ=...;...`, read into an `Rrule`; what is written badly is refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import prod
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules.triggers.at import EARLIEST_YEAR, LATEST_YEAR
from oncue.rules.triggers.pace import Pace
from oncue.rules.triggers.pattern import ALL_WEEKDAYS, MINUTE, SECOND, MonthEnd, Pattern
from oncue.rules.triggers.placing import CALENDAR, WILDCARD, Placing, read_placing, refuse_placing
from oncue.rules.triggers.recurrence import Recurrence, Steps
from oncue.rules.triggers.rrule import Rrule
from oncue.rules.triggers.zones import first_shown, place_wall

LONGEST: Final = 10_000
SEARCHED: Final = timedelta(days=366 * 41)
"""How far a walk looks for the next time: a given weekday falls on 29 February again after at most 40 years."""

SEARCHED_PERIODS: Final = 60
PERIODS: Final = {
    "YEARLY": timedelta(days=366),
    "MONTHLY": timedelta(days=31),
    "WEEKLY": timedelta(days=7),
    "DAILY": timedelta(days=1),
    "HOURLY": timedelta(hours=1),
    "MINUTELY": timedelta(minutes=1),
}
ELAPSED: Final = ("HOURLY", "MINUTELY")
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


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a rule: numbers by name, weekdays (Sunday as 0) with their number if they have one."""

    freq: str
    interval: int
    numbers: dict[str, tuple[int, ...]]
    weekdays: tuple[tuple[int, int | None], ...]
    week_start: int


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
    start, anchored = _read_start(fields.get("DTSTART"), zone, anchor)
    parts = _read_parts(fields, freq, start)
    if freq in ELAPSED:
        refuse_placing(dst, f"a rule with FREQ={freq}")
        rule = _elapsed(text, zone, parts, start, anchored)
    else:
        rule = _dated(text, zone, parts, start, anchored, read_placing(dst, CALENDAR))
    if "COUNT" in fields:
        rule = replace(rule, count=_read_number("COUNT", fields["COUNT"], 1, MOST_COUNT))
    if "UNTIL" in fields:
        rule = _with_end(rule, fields["UNTIL"])
    return _with_exceptions(rule, fields)


def _dated(
    text: str, zone: ZoneInfo, parts: Parts, start: datetime, anchored: datetime | None, placing: Placing
) -> Rrule:
    """Return a rule of days or longer. With an offset its start is that instant, even the second of two."""
    named = Recurrence(
        _pattern_of(parts, start), start, parts.freq, parts.week_start, parts.numbers.get("BYSETPOS", ())
    )
    first = anchored or first_shown(start, zone)
    rule = Rrule(text, zone, start, first, parts.freq, parts.interval, named, placing)
    if anchored is not None and anchored not in place_wall(start, zone, placing) and named.first_from(start) == start:
        return replace(rule, added=(anchored,))
    return rule


def _elapsed(text: str, zone: ZoneInfo, parts: Parts, start: datetime, anchored: datetime | None) -> Rrule:
    """Return a rule of hours or minutes. Without BYMINUTE an hour has the start's minute, wherever clocks put it."""
    first = anchored or start.replace(tzinfo=zone).astimezone(UTC)
    minute = timedelta(minutes=start.minute if parts.freq == "HOURLY" else 0, seconds=start.second)
    follows_start = parts.freq == "HOURLY" and "BYMINUTE" not in parts.numbers
    pace = Pace(
        pattern=_pattern_of(parts, start),
        base=first.replace(tzinfo=None) - minute,
        period=PERIODS[parts.freq] * parts.interval // MINUTE,
        run=1 if follows_start else PERIODS[parts.freq] // MINUTE,
        phase=start.minute if follows_start else 0,
    )
    return Rrule(text, zone, start, first, parts.freq, parts.interval, pace, WILDCARD)


def _with_end(rule: Rrule, text: str) -> Rrule:
    """Return the rule with its end; a date without a time means the whole of that day."""
    until = _read_time("UNTIL", text)
    if until.tzinfo is not None:
        return replace(rule, until=until.astimezone(UTC))
    last = until if "T" in text else until + timedelta(days=1, seconds=-1)
    if isinstance(rule.named, Recurrence):
        return replace(rule, named=replace(rule.named, last=last))
    try:
        return replace(rule, until=first_shown(last + SECOND, rule.zone) - SECOND)
    except OverflowError:
        return rule  # the end of the calendar ends it too


def _with_exceptions(rule: Rrule, fields: dict[str, str]) -> Rrule:
    """Return the rule with EXDATE and RDATE; without an offset they go by the same clock as the rule."""
    placing = CALENDAR if rule.is_elapsed else rule.placing
    walls, excluded = _read_moments("EXDATE", fields.get("EXDATE"))
    gone = {*excluded, *(moment for wall in walls for moment in place_wall(wall, rule.zone, placing))}
    more_walls, added = _read_moments("RDATE", fields.get("RDATE"))
    added |= {moment for wall in more_walls for moment in place_wall(wall, rule.zone, placing)} | set(rule.added)
    if isinstance(rule.named, Recurrence):
        rule = replace(rule, named=replace(rule.named, excluded=frozenset(walls)))
    else:
        excluded = gone
    return replace(rule, excluded=frozenset(excluded), added=tuple(sorted(added - gone)))


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


def _read_start(text: str | None, zone: ZoneInfo, anchor: datetime | None) -> tuple[datetime, datetime | None]:
    """Return DTSTART as a wall time, and as an instant if it was written with an offset."""
    if text is None and anchor is None:
        raise TriggerError("rrule: DTSTART is missing. Write DTSTART=20260306T090000;FREQ=...")
    moment = anchor.replace(microsecond=0) if text is None and anchor else _read_time("DTSTART", text or "")
    if moment.tzinfo is None or moment.tzinfo is zone:
        return moment.replace(tzinfo=None), None
    return moment.astimezone(zone).replace(tzinfo=None, fold=0), moment.astimezone(UTC)


def _read_moments(name: str, text: str | None) -> tuple[set[datetime], set[datetime]]:
    """Return the moments of a list as wall times and, where they have an offset, as instants."""
    walls, instants = set(), set()
    for item in text.split(",") if text else ():
        moment = _read_time(name, item)
        if "T" not in item:
            raise TriggerError(f"rrule: {name} {item} has no time. Write it in full, such as {item}T090000.")
        if moment.tzinfo is None:
            walls.add(moment)
        else:
            instants.add(moment.astimezone(UTC))
    return walls, instants


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
        if name in fields and freq in ELAPSED:
            raise TriggerError(f"rrule: {name} is not known with FREQ={freq}. Leave it out, or write FREQ=DAILY.")


def _read_parts(fields: dict[str, str], freq: str, start: datetime) -> Parts:
    """Return the BY parts, with all that is taken from the start spelled out."""
    _refuse_odd_parts(fields, freq)
    numbers: dict[str, tuple[int, ...]] = {}
    for name, (low, high) in NUMBERS.items():
        if name in fields:
            chosen = {_read_number(name, item, low, high) for item in fields[name].split(",")}
            if low < 0 and 0 in chosen:
                raise TriggerError(f"rrule: {name} has a 0. Count from 1, or from -1 for the last.")
            numbers[name] = tuple(sorted(chosen))
    weekdays = tuple(_read_weekday(item, freq) for item in fields["BYDAY"].split(",")) if "BYDAY" in fields else ()
    if "BYSETPOS" in numbers and len(numbers) == 1 and not weekdays:
        raise TriggerError("rrule: BYSETPOS stands alone. Add what it picks from, such as BYDAY=MO,TU,WE,TH,FR.")
    week_start = fields.get("WKST", "MO")
    if week_start not in WEEKDAYS:
        raise TriggerError(f'rrule: WKST "{week_start}" is not a weekday. Write one of {", ".join(WEEKDAYS)}.')
    if not weekdays and not {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"} & numbers.keys():
        if freq == "YEARLY":
            numbers.setdefault("BYMONTH", (start.month,))
        if freq in ("YEARLY", "MONTHLY"):
            numbers["BYMONTHDAY"] = (start.day,)
        if freq == "WEEKLY":
            weekdays = ((start.isoweekday() % 7, None),)
    times = prod(len(numbers.get(name, (0,))) for name in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    if times > MOST_TIMES.get(freq, MOST_TIMES_A_DAY):
        raise TriggerError(f'rrule: {times} times in each period are too many. Write a step, such as every = "PT1S".')
    interval = _read_number("INTERVAL", fields.get("INTERVAL", "1"), 1, 1000)
    return Parts(freq, interval, numbers, weekdays, WEEKDAYS.index(week_start))


def _pattern_of(parts: Parts, start: datetime) -> Pattern:
    """Return the pattern of the parts: days, months and times of the day, and which days are in step."""
    numbers, is_elapsed = parts.numbers, parts.freq in ELAPSED
    days = numbers.get("BYMONTHDAY", range(1, 32))
    from_end = _mask(-1 - day for day in days if day < 0)
    plain = _mask(weekday for weekday, nth in parts.weekdays if nth is None)
    places = tuple((weekday, nth) for weekday, nth in parts.weekdays if nth is not None)
    year_days = numbers.get("BYYEARDAY", ())
    steps = Steps(
        freq=parts.freq,
        interval=1 if is_elapsed else parts.interval,
        start=start.date(),
        week_start=parts.week_start,
        weekdays=plain,
        places=places,
        in_year=parts.freq == "YEARLY" and "BYMONTH" not in numbers,
        year_days=(_year_mask(year_days, 365), _year_mask(year_days, 366)) if year_days else None,
        weeks=frozenset(numbers.get("BYWEEKNO", ())),
    )
    return Pattern(
        seconds=_mask(numbers.get("BYSECOND", (start.second,))),
        minutes=_mask(numbers.get("BYMINUTE", range(60) if is_elapsed else (start.minute,))),
        hours=_mask(numbers.get("BYHOUR", range(24) if is_elapsed else (start.hour,))),
        days=_mask(day for day in days if day > 0),
        months=_mask(numbers.get("BYMONTH", range(1, 13))),
        weekdays=plain if plain and not places else ALL_WEEKDAYS,
        special=MonthEnd(before_last=from_end) if from_end else None,
        rhythm=steps if steps.interval > 1 or places or year_days or steps.weeks else None,
        reach=SEARCHED if is_elapsed else max(SEARCHED, PERIODS[parts.freq] * parts.interval * SEARCHED_PERIODS),
    )


def _year_mask(days: Iterable[int], length: int) -> int:
    """Return bits of the days of a year, bit 1 for its first day."""
    return _mask(day if day > 0 else length + 1 + day for day in days if abs(day) <= length)


def _mask(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in set(numbers))


def _read_weekday(item: str, freq: str) -> tuple[int, int | None]:
    """Return a weekday, Sunday as 0, and its number in the month or year."""
    match = BYDAY.fullmatch(item.strip())
    nth = int(match[1]) if match and match[1] else None
    if not match or nth == 0:
        raise TriggerError(f'rrule: BYDAY "{item}" is not a weekday. Write for example MO, 2MO or -1FR.')
    if nth is not None and freq not in ("MONTHLY", "YEARLY"):
        raise TriggerError(f"rrule: BYDAY {item} counts within a month, but FREQ is {freq}. Write {match[2]}.")
    return (WEEKDAYS.index(match[2]) + 1) % 7, nth


def _read_number(name: str, text: str, low: int, high: int) -> int:
    if not NUMBER.fullmatch(text.strip()) or not low <= int(text) <= high:
        raise TriggerError(f'rrule: {name} "{text}" is not a number from {low} to {high}. Write one that is.')
    return int(text)
