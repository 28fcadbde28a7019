"""Cron text: five fields, six with seconds first, or a macro; read into a `Pattern` of bit sets.

Fields take names, lists, ranges, steps and `a/n`; days also `L`, `LW`, `15W`, weekdays `5L` and `5#3`, and every field
`H`, a place that is hashed from the task's name, so that a thousand hourly tasks do not all start at minute 0. A
dialect (`dialect.py`) says which fields there are and how weekdays are numbered; what they mean is the same in all.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules.triggers.dialect import (
    DAY,
    FIELDS,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    YEAR,
    Field,
    read_fields,
    wrong,
)
from oncue.rules.triggers.pattern import ALL_WEEKDAYS, MonthEnd, Pattern
from oncue.rules.triggers.placing import FIXED, WILDCARD, Placing, read_placing
from oncue.rules.triggers.zones import TICK, first_placed, last_placed

LONGEST: Final = 1000
NUMBER: Final = re.compile(r"[0-9]{1,4}", re.ASCII)
HASHED: Final = re.compile(r"h(?:\(([0-9]{1,2})-([0-9]{1,2})\))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron text in a zone. It is a wildcard if its minute or its hour text begins with `*`, else it is fixed."""

    text: str
    zone: ZoneInfo
    pattern: Pattern
    is_wildcard: bool
    placing: Placing = FIXED


def read_cron(text: str, zone: ZoneInfo, *, name: str = "", dialect: str = "unix", dst: object = None) -> Cron:
    """Return the cron trigger that a text means; `name` is what `H` is hashed from."""
    if len(text) > LONGEST:
        raise TriggerError(f"cron: the text has {len(text)} characters. Write at most {LONGEST}.")
    words = read_fields(text, dialect)
    fields = {field.name: (field, words[field.name]) for field in FIELDS[dialect]}
    day_set, day_special = _read_days(*fields[DAY], name)
    weekday_set, special = _read_weekdays(*fields[WEEKDAY], day_special, name)
    seconds, minutes, hours, months = (_read_field(*fields[part], name) for part in (SECOND, MINUTE, HOUR, MONTH))
    pattern = Pattern(
        seconds=seconds,
        minutes=minutes,
        hours=hours,
        days=day_set,
        months=months,
        weekdays=weekday_set,
        is_either=not (words[DAY].startswith("*") or words[WEEKDAY].startswith("*")),
        special=special if special != MonthEnd() else None,
        years=_read_years(*fields[YEAR]),
    )
    is_wildcard = words[MINUTE].startswith("*") or words[HOUR].startswith("*")
    return Cron(text, zone, pattern, is_wildcard, read_placing(dst, WILDCARD if is_wildcard else FIXED))


def is_ended(cron: Cron, moment: datetime) -> bool:
    """Say whether it has years, and its last time was not later than a moment."""
    if cron.pattern.years is None:
        return False
    is_over = first_placed(cron.pattern, cron.zone, moment.astimezone(UTC), cron.placing) is None
    return is_over and last_placed(cron.pattern, cron.zone, moment.astimezone(UTC) + TICK, cron.placing) is not None


def _read_field(field: Field, text: str, name: str) -> int:
    mask = 0
    for item in text.split(","):
        mask |= _read_item(field, item, name, text)
    return mask


def _read_years(field: Field, text: str) -> frozenset[int] | None:
    """Return the years, none for all of them."""
    if "h" in text:
        raise wrong(field, text, "a year has no H", "Write years, such as 2026 or 2026-2030.")
    mask = _read_field(field, text, "")
    years = frozenset(field.low + bit for bit in range(mask.bit_length()) if mask >> bit & 1)
    return years if len(years) <= field.high - field.low else None


def _read_days(field: Field, text: str, name: str) -> tuple[int, MonthEnd]:
    mask, special = 0, MonthEnd()
    for item in text.split(","):
        if item == "l":
            special = replace(special, before_last=special.before_last | 1)
        elif item in ("lw", "wl"):
            special = replace(special, last_workday=True)
        elif match := re.fullmatch(r"l-([0-9]{1,2})", item, re.ASCII):
            before = _within(field, match[1], text, low=1, high=30)
            special = replace(special, before_last=special.before_last | 1 << before)
        elif match := re.fullmatch(r"([0-9]{1,2})w", item, re.ASCII):
            special = replace(special, nearest=special.nearest | 1 << _within(field, match[1], text))
        else:
            mask |= _read_item(field, item, name, text)
    return mask, special


def _read_weekdays(field: Field, text: str, special: MonthEnd, name: str) -> tuple[int, MonthEnd]:
    mask = 0
    for item in text.split(","):
        if item == "l":
            mask |= 1 << 6
        elif match := re.fullmatch(r"([0-9]|[a-z]{3})l", item, re.ASCII):
            weekday = (_value(field, match[1], text) - field.low) % 7
            special = replace(special, last_weekdays=special.last_weekdays | 1 << weekday)
        elif match := re.fullmatch(r"([0-9]|[a-z]{3})#([0-9]{1,2})", item, re.ASCII):
            weekday = (_value(field, match[1], text) - field.low) % 7
            nth = _within(field, match[2], text, low=1, high=5)
            special = replace(special, nth_weekdays=special.nth_weekdays | 1 << 7 * (nth - 1) + weekday)
        else:
            mask |= _read_item(field, item, name, text)
    return mask, special


def _read_item(field: Field, item: str, name: str, text: str) -> int:
    """Return the bit set of one item of a list: `*`, `a`, `a-b` or `H`, each with or without a step."""
    base, slash, step_text = item.partition("/")
    step = _within(field, step_text, text, low=1, high=field.high - field.low + 1) if slash else 1
    if hashed := HASHED.fullmatch(base):
        return _read_hashed(field, hashed, step if slash else None, name, text)
    first_text, dash, last_text = base.partition("-")
    if base == "*":
        first, last = field.low, field.high
    elif dash:
        first, last = _value(field, first_text, text), _value(field, last_text, text)
        if last_text == "sun" and first > field.low:
            last = field.low + 7
        if first > last:
            raise wrong(field, text, f'the range "{base}" runs backwards', "Write two ranges with a comma instead.")
    else:
        first = _value(field, base, text)
        first = field.low if first == field.sunday else first
        last = field.high if slash else first
    mask = sum(1 << value - field.shift for value in range(first, last + 1, step))
    return (mask | mask >> 7) & ALL_WEEKDAYS if field.name == WEEKDAY else mask


def _read_hashed(field: Field, hashed: re.Match[str], step: int | None, name: str, text: str) -> int:
    low, high = field.low, field.hash_high or field.high
    if hashed[1] is not None:
        low, high = _within(field, hashed[1], text), _within(field, hashed[2], text)
        if low > high:
            raise wrong(field, text, f'the range "{hashed[0]}" runs backwards', "Write the smaller number first.")
    place = int.from_bytes(hashlib.blake2b(f"{name}:{field.name}".encode(), digest_size=8).digest())
    if step is None:
        return 1 << low + place % (high - low + 1) - field.shift
    return sum(1 << value - field.shift for value in range(low + place % min(step, high - low + 1), high + 1, step))


def _value(field: Field, text: str, whole: str) -> int:
    """Return the number of a value or of its name; 7 is Sunday too where 0 is."""
    if text in field.names:
        return field.names.index(text) + field.low
    return _within(field, text, whole, high=field.sunday or field.high)


def _within(field: Field, text: str, whole: str, *, low: int | None = None, high: int | None = None) -> int:
    low, high = field.low if low is None else low, field.high if high is None else high
    if not NUMBER.fullmatch(text):
        names = f" or a name such as {field.names[1]}" if field.names else ""
        raise wrong(field, whole, f'"{text}" is not a number', f"Write a number from {low} to {high}{names}.")
    if not low <= int(text) <= high:
        raise wrong(field, whole, f"{text} is out of range", f"Write a number from {low} to {high}.")
    return int(text)
