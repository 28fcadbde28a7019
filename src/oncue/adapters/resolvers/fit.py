"""Values as a database's columns want them: keys and what events carry come as text and numbers, as JSON has them.

What does not fit raises ValueError, TypeError or ArithmeticError, which never hold the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

WIDTHS: Final = {"int2": 15, "int4": 31, "int8": 63}


def for_sqlite(value: Any) -> Any:
    """Return a value as SQLite compares it with what its own functions write: times as text in UTC."""
    match value:
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        case date():
            return value.isoformat()
        case int() if not is_int8(value):
            raise ValueError("it is a number of more than 64 bits.")
        case str() if not _is_text(value):
            raise ValueError("it is no text: half of a character is missing.")
        case _:
            return value


def for_postgres(value: Any, kind: str) -> Any:
    """Return a value as a parameter of a type takes it; of a type that is not known here, as it is."""
    if value is None:
        return None
    if kind in WIDTHS:
        return _int(value, WIDTHS[kind])
    return FITS[kind](value) if kind in FITS else value


def whole(text: str) -> int | None:
    """Return the number that a text is in its only spelling, such as 42: not 042, +42 or 4_2."""
    if len(text) > 20 or not text.isascii() or not text.removeprefix("-").isdigit():
        return None
    number = int(text)
    return number if str(number) == text else None


def is_int8(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _int(value: Any, width: int) -> int:
    number = whole(value) if isinstance(value, str) else int(value)
    if number is None or (isinstance(value, float | Decimal) and number != value):
        raise ValueError("not a whole number")
    if not -(2**width) <= number < 2**width:
        raise ValueError("too large")
    return number


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case date():
            return value.isoformat()
        case str() if not _is_text(value):
            raise ValueError("no text")
        case _:
            return str(value)


def _date(value: Any) -> date:
    if isinstance(value, datetime):
        return value.astimezone(UTC).date()
    return value if isinstance(value, date) else date.fromisoformat(value)


def _moment(value: Any) -> datetime:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _number(value: Any) -> Decimal:
    number = Decimal(str(value))
    if not number.is_finite():
        raise ValueError("no number")
    return number


def _float(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("no number")
    return number


def _is_text(value: str) -> bool:
    """Say whether a text can be written as UTF-8: JSON can carry half of a surrogate pair."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


FITS: Final[dict[str, Callable[[Any], Any]]] = {
    "text": _text,
    "varchar": _text,
    "bpchar": _text,
    "name": _text,
    "citext": _text,
    "uuid": lambda value: value if isinstance(value, UUID) else UUID(value),
    "date": _date,
    "timestamptz": _moment,
    "timestamp": lambda value: _moment(value).replace(tzinfo=None),
    "numeric": _number,
    "float4": _float,
    "float8": _float,
}
