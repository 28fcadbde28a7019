"""Cron text: five fields, six with seconds first, or a macro; read into a `Pattern` of bit sets.

Fields take names, lists, ranges, steps and `a/n`; days also `L`, `LW`, `15W`, weekdays `5L` and `5#3`, and every field
`H`, a place that is hashed from the task's name, so that a thousand hourly tasks do not all start at minute 0.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules.pattern import MonthEnd, Pattern
from oncue.rules.placing import FIXED, WILDCARD, Placing, read_placing

LONGEST: Final = 1000
MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
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


@dataclass(frozen=True, slots=True)
class Field:
    """What one field may hold. `hash_high` is where `H` ends: 28 for days, so that it falls into every month."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    hash_high: int | None = None


SECOND: Final = Field("second", 0, 59)
MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
DAY: Final = Field("day of the month", 1, 31, hash_high=28)
MONTH: Final = Field("month", 1, 12, MONTHS)
WEEKDAY: Final = Field("weekday", 0, 6, WEEKDAYS)


def read_cron(text: str, zone: ZoneInfo, *, name: str = "", dst: object = None) -> Cron:
    """Return the cron trigger that a text means; `name` is what `H` is hashed from."""
    if len(text) > LONGEST:
        raise TriggerError(f"cron: the text has {len(text)} characters. Write at most {LONGEST}.")
    fields = _fields(text)
    seconds, minutes, hours, days, months, weekdays = fields
    day_set, day_special = _read_days(days, name)
    weekday_set, special = _read_weekdays(weekdays, day_special, name)
    pattern = Pattern(
        seconds=_read_field(SECOND, seconds, name),
        minutes=_read_field(MINUTE, minutes, name),
        hours=_read_field(HOUR, hours, name),
        days=day_set,
        months=_read_field(MONTH, months, name),
        weekdays=weekday_set,
        is_either=not (days.startswith("*") or weekdays.startswith("*")),
        special=special if special != MonthEnd() else None,
    )
    is_wildcard = minutes.startswith("*") or hours.startswith("*")
    return Cron(text, zone, pattern, is_wildcard, read_placing(dst, WILDCARD if is_wildcard else FIXED))


def _fields(text: str) -> list[str]:
    """Return the six fields in lower case, with `?` as `*`."""
    words = text.lower().split()
    if len(words) == 1 and words[0].startswith("@"):
        if words[0] not in MACROS:
            known = ", ".join(MACROS)
            raise TriggerError(f'cron: there is no macro "{text.strip()}". Known macros: {known}.')
        words = MACROS[words[0]].split()
    if len(words) == 5:
        words = ["0", *words]
    if len(words) != 6:
        raise TriggerError(
            f'cron: "{text}" has {len(words)} fields. Write five (minute hour day month weekday), '
            "or six with the second first."
        )
    return [re.sub(r"^\?", "*", word) for word in words]


def _read_field(field: Field, text: str, name: str) -> int:
    mask = 0
    for item in text.split(","):
        mask |= _read_item(field, item, name, text)
    return mask


def _read_days(text: str, name: str) -> tuple[int, MonthEnd]:
    mask, special = 0, MonthEnd()
    for item in text.split(","):
        if item == "l":
            special = replace(special, before_last=special.before_last | 1)
        elif item in ("lw", "wl"):
            special = replace(special, last_workday=True)
        elif match := re.fullmatch(r"l-([0-9]{1,2})", item, re.ASCII):
            before = _within(DAY, match[1], text, low=1, high=30)
            special = replace(special, before_last=special.before_last | 1 << before)
        elif match := re.fullmatch(r"([0-9]{1,2})w", item, re.ASCII):
            special = replace(special, nearest=special.nearest | 1 << _within(DAY, match[1], text))
        else:
            mask |= _read_item(DAY, item, name, text)
    return mask, special


def _read_weekdays(text: str, special: MonthEnd, name: str) -> tuple[int, MonthEnd]:
    mask = 0
    for item in text.split(","):
        if item == "l":
            mask |= 1 << 6
        elif match := re.fullmatch(r"([0-9]|[a-z]{3})l", item, re.ASCII):
            weekday = _value(WEEKDAY, match[1], text) % 7
            special = replace(special, last_weekdays=special.last_weekdays | 1 << weekday)
        elif match := re.fullmatch(r"([0-9]|[a-z]{3})#([0-9]{1,2})", item, re.ASCII):
            weekday = _value(WEEKDAY, match[1], text) % 7
            nth = _within(WEEKDAY, match[2], text, low=1, high=5)
            special = replace(special, nth_weekdays=special.nth_weekdays | 1 << 7 * (nth - 1) + weekday)
        else:
            mask |= _read_item(WEEKDAY, item, name, text)
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
        if field is WEEKDAY and last_text == "sun":
            last = 7 if first else 0
        if first > last:
            raise _wrong(field, text, f'the range "{base}" runs backwards', "Write two ranges with a comma instead.")
    else:
        first = _value(field, base, text)
        first = first % 7 if field is WEEKDAY else first
        last = field.high if slash else first
    mask = sum(1 << value for value in range(first, last + 1, step))
    return (mask | mask >> 7) & 0b1111111 if field is WEEKDAY else mask


def _read_hashed(field: Field, hashed: re.Match[str], step: int | None, name: str, text: str) -> int:
    low, high = field.low, field.hash_high or field.high
    if hashed[1] is not None:
        low, high = _within(field, hashed[1], text), _within(field, hashed[2], text)
        if low > high:
            raise _wrong(field, text, f'the range "{hashed[0]}" runs backwards', "Write the smaller number first.")
    place = int.from_bytes(hashlib.blake2b(f"{name}:{field.name}".encode(), digest_size=8).digest())
    if step is None:
        return 1 << low + place % (high - low + 1)
    return sum(1 << value for value in range(low + place % min(step, high - low + 1), high + 1, step))


def _value(field: Field, text: str, whole: str) -> int:
    """Return the number of a value or of its name; a weekday may be 7."""
    if text in field.names:
        return field.names.index(text) + field.low
    return _within(field, text, whole, high=7 if field is WEEKDAY else None)


def _within(field: Field, text: str, whole: str, *, low: int | None = None, high: int | None = None) -> int:
    low, high = field.low if low is None else low, field.high if high is None else high
    if not NUMBER.fullmatch(text):
        names = f" or a name such as {field.names[1]}" if field.names else ""
        raise _wrong(field, whole, f'"{text}" is not a number', f"Write a number from {low} to {high}{names}.")
    if not low <= int(text) <= high:
        raise _wrong(field, whole, f"{text} is out of range", f"Write a number from {low} to {high}.")
    return int(text)


def _wrong(field: Field, text: str, what: str, remedy: str) -> TriggerError:
    return TriggerError(f'cron: in the {field.name} field "{text}", {what}. {remedy}')
