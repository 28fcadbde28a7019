"""Durations as people write them: `30s`, `1h30m`, `2d`, or ISO 8601 `PT30S`. Exact to the microsecond.

A day is 24 hours here: what follows the wall is a schedule's `every`, and is read by `every.py`.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

NUMBER: Final = r"(\d{1,12}(?:\.\d{1,9})?)"
UNITS: Final = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
}
SHORT: Final = re.compile("".join(f"(?:{NUMBER}{unit})?" for unit in UNITS), re.ASCII)
ISO: Final = re.compile(f"P(?:{NUMBER}W)?(?:{NUMBER}D)?(?:T(?:{NUMBER}H)?(?:{NUMBER}M)?(?:{NUMBER}S)?)?", re.ASCII)
LONGEST: Final = timedelta(days=36_600)
SPELLINGS: Final = 'Write for example "250ms", "30s", "1h30m", "2d", "1w" or "PT30S".'


def read_duration(text: str) -> timedelta:
    """Return the duration that a text means. Raises ValueError with a sentence."""
    short = SHORT.fullmatch(text.strip())
    iso = ISO.fullmatch(text.strip().upper())
    found = short if short and any(short.groups()) else iso if iso and not text.strip().upper().endswith("T") else None
    if found is None or not any(found.groups()):
        raise ValueError(f'"{text}" is not a duration. {SPELLINGS}')
    parts = zip(found.groups(), UNITS.values(), strict=False)
    total = sum((Fraction(part) * size for part, size in parts if part), Fraction(0))
    if total.denominator != 1:
        raise ValueError(f'"{text}" is finer than a microsecond. {SPELLINGS}')
    if total > LONGEST // timedelta(microseconds=1):
        raise ValueError(f'"{text}" is longer than a hundred years. {SPELLINGS}')
    return timedelta(microseconds=int(total))


def write_duration(duration: timedelta) -> str:
    """Return the shortest text that reads back as this duration: `1h30m`. Raises ValueError for a negative one."""
    rest = duration // timedelta(microseconds=1)
    if rest < 0:
        raise ValueError(f"{duration} is negative. A duration is not.")
    if rest % 1000:
        return f"PT{rest // 1_000_000}.{rest % 1_000_000:06}S"
    words = []
    for unit, size in UNITS.items():
        if unit == "w" and rest % size:
            continue  # 10 days are ten days, not a week and three
        count, rest = divmod(rest, size)
        words += [f"{count}{unit}"] if count else []
    return "".join(words) or "0s"
