"""Dialects of cron text: which fields stand where, how weekdays are numbered, and where a `?` or a year may be.

A dialect changes the spelling only. Text goes in, the words of each field come out, in lower case and with `?` as `*`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Final

from oncue.errors import TriggerError

SECOND: Final = "second"
MINUTE: Final = "minute"
HOUR: Final = "hour"
DAY: Final = "day of the month"
MONTH: Final = "month"
WEEKDAY: Final = "weekday"
YEAR: Final = "year"

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
LEFT_OUT: Final = {SECOND: "0", YEAR: "*"}
ORDERS: Final[dict[str, dict[int, tuple[str, ...]]]] = {
    "unix": {5: (MINUTE, HOUR, DAY, MONTH, WEEKDAY), 6: (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)},
    "quartz": {
        6: (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY),
        7: (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR),
    },
    "aws": {6: (MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR)},
}
REMEDIES: Final = {
    "unix": "Write five (minute hour day month weekday), or six with the second first",
    "quartz": "Write six (second minute hour day month weekday), or seven with the year last",
    "aws": "Write six (minute hour day month weekday year)",
}


@dataclass(frozen=True, slots=True)
class Field:
    """What one field may hold, and in which dialect. A value stands for the bit value - `shift`.

    `hash_high` is where `H` ends: 28 for days, so that it falls into every month. `sunday` is a second number for it.
    """

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    hash_high: int | None = None
    shift: int = 0
    sunday: int | None = None
    dialect: str = "unix"


EVERYWHERE: Final = (
    Field(SECOND, 0, 59),
    Field(MINUTE, 0, 59),
    Field(HOUR, 0, 23),
    Field(DAY, 1, 31, hash_high=28),
    Field(MONTH, 1, 12, MONTHS),
    Field(YEAR, 1970, 2199, shift=1970),
)
FIELDS: Final[dict[str, tuple[Field, ...]]] = {
    "unix": (*EVERYWHERE, Field(WEEKDAY, 0, 6, WEEKDAYS, sunday=7)),
    **{
        dialect: tuple(
            replace(field, dialect=dialect) for field in (*EVERYWHERE, Field(WEEKDAY, 1, 7, WEEKDAYS, shift=1))
        )
        for dialect in ("quartz", "aws")
    },
}


def read_fields(text: str, dialect: str) -> dict[str, str]:
    """Return the word of each field."""
    if dialect not in ORDERS:
        near = difflib.get_close_matches(dialect, ORDERS, n=1)
        hint = f'Did you mean "{near[0]}"?' if near else f"Write one of {', '.join(ORDERS)}."
        raise TriggerError(f'dialect: there is no cron dialect "{dialect}". {hint}')
    words = _words(text, dialect)
    if len(words) not in ORDERS[dialect]:
        raise _miscounted(text, words, dialect)
    fields = LEFT_OUT | dict(zip(ORDERS[dialect][len(words)], words, strict=True))
    _check_question_marks(fields, dialect)
    if dialect == "unix" and re.fullmatch(r"(19|20|21)[0-9]{2}", fields[WEEKDAY]):
        raise TriggerError(
            f'cron: in the weekday field "{fields[WEEKDAY]}" stands a year. Write dialect = "aws" for six fields '
            'with the year last, or "quartz" for seven.'
        )
    return {name: _without_mark(word, dialect) for name, word in fields.items()}


def wrong(field: Field, text: str, what: str, remedy: str) -> TriggerError:
    """Return the refusal of a field's text."""
    of = "" if field.dialect == "unix" else f" of the {field.dialect} dialect"
    if field.dialect != "unix" and field.name == WEEKDAY:
        remedy += " 1 is Sunday."
    return TriggerError(f'cron: in the {field.name} field "{text}"{of}, {what}. {remedy}')


def _without_mark(word: str, dialect: str) -> str:
    return f"*{word[1:]}" if word == "?" or (dialect == "unix" and word.startswith("?")) else word


def _words(text: str, dialect: str) -> list[str]:
    lowered = text.lower().strip()
    if wrapped := re.fullmatch(r"cron\((.*)\)", lowered):
        if dialect != "aws":
            raise TriggerError(f'cron: "{text}" is spelled as in AWS. Write dialect = "aws" beside it.')
        lowered = wrapped[1]
    words = lowered.split()
    if dialect == "unix" and len(words) == 1 and words[0].startswith("@"):
        if words[0] not in MACROS:
            known = ", ".join(MACROS)
            raise TriggerError(f'cron: there is no macro "{text.strip()}". Known macros: {known}.')
        return MACROS[words[0]].split()
    return words


def _miscounted(text: str, words: list[str], dialect: str) -> TriggerError:
    of = "" if dialect == "unix" else f", which is not a text of the {dialect} dialect"
    hint = ""
    if dialect == "unix" and len(words) == 7:
        hint = ', or dialect = "quartz" for seven'
    elif text.strip().lower().startswith(("rate(", "at(")):
        hint = '. A rate is every = "5m", a single moment at = "2027-01-01T00:00:00"'
    elif dialect != "unix" and len(words) in (1, 5):
        hint = ", or leave the dialect out: this is a unix text"
    elif dialect == "aws" and len(words) == 7:
        hint = ', or dialect = "quartz" for seven'
    count = f"{len(words)} field{'' if len(words) == 1 else 's'}"
    return TriggerError(f'cron: "{text}" has {count}{of}. {REMEDIES[dialect]}{hint}.')


def _check_question_marks(fields: dict[str, str], dialect: str) -> None:
    """Raise TriggerError for a `?` that stands for neither kind of day, or is missing where it has to be."""
    for name, word in fields.items():
        if word.startswith("?") and name not in (DAY, WEEKDAY):
            hint = ', or dialect = "aws" if the year is last' if dialect == "unix" else ""
            raise TriggerError(
                f'cron: in the {name} field "{word}", a ? stands for a day or a weekday only. Write *{hint}.'
            )
    if dialect == "unix":
        return
    marks = [name for name in (DAY, WEEKDAY) if fields[name] == "?"]
    if len(marks) == 1:
        return
    both = f'"{fields[DAY]}" and "{fields[WEEKDAY]}"'
    remedy = "Write a ? in exactly one of the two, or leave the dialect out if this is a unix text"
    raise TriggerError(
        f"cron: in the day of the month and weekday fields {both} of the {dialect} dialect, "
        f"{'both' if marks else 'neither'} is a ?. {remedy}."
    )
