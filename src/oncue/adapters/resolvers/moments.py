"""Times as databases and callables give them: aware or not, texts in several spellings, seconds since 1970.

What has no offset is in UTC, as all that Oncue binds.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TEXT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d)?([.,]\d+)?)? ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?", re.ASCII | re.IGNORECASE
)


def read_moment(value: Any) -> datetime:
    """Return a time in UTC. Raises ValueError: it is none; the sentence does not hold the value."""
    try:
        match value:
            case datetime():
                return _in_utc(value)
            case date():
                return datetime(value.year, value.month, value.day, tzinfo=UTC)
            case str():
                return _in_utc(_parse(value.strip()))
            case bool():
                raise ValueError("yes or no")
            case int() | float() | Decimal():
                return EPOCH + timedelta(microseconds=round(value * 1_000_000))
            case _:
                raise ValueError(type(value).__name__)
    except (ValueError, OverflowError, ArithmeticError):
        kind = "text" if isinstance(value, str) else type(value).__name__
        raise ValueError(f"it is no time, but {kind}: give a time, as 2026-03-28T12:00:00Z.") from None


def canonical(moment: datetime) -> str:
    """Return a time as text of fixed width in UTC, so that texts sort as times do."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")


def spelled_like(moment: datetime, text: str) -> str:
    """Return a time in the spelling of a text, so that a column of such texts compares with it as times do."""
    found = TEXT.fullmatch(text.strip())
    if found is None or found[3] is None:
        return canonical(moment)
    local = moment.astimezone(_parse(text.strip()).tzinfo or UTC)
    fraction = f".{local.microsecond:06}" if found[5] or local.microsecond else ""
    if found[5]:
        fraction = found[5][0] + fraction[1:].ljust(9, "0")[: len(found[5]) - 1]
    return f"{local:%Y-%m-%d}{found[2]}{local:%H:%M:%S}{fraction}{found[6] or ''}"


def _parse(text: str) -> datetime:
    found = TEXT.fullmatch(text)
    if found is None:
        raise ValueError("not a time")
    zone = (found[6] or "").upper().replace("UTC", "Z")
    fraction = (found[5] or "").replace(",", ".")[:7]
    return datetime.fromisoformat(
        f"{found[1]}T{found[3] or '00:00'}{found[4] or ':00'}{fraction.ljust(7, '0') if fraction else ''}{zone}"
    )


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
