"""Where in a TOML text something stands, so that a mistake can point at its line."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

Part = str | int
Place = tuple[Part, ...]

BROKEN: Final = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
NAME: Final = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
KEYS: Final = rf"{NAME}(?:\s*\.\s*{NAME})*"
HEADER: Final = re.compile(rf"\s*(\[\[?)\s*({KEYS})\s*\]")
SETTING: Final = re.compile(rf"\s*({KEYS})\s*=(.*)", re.DOTALL)


def read_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises ValueError that names the line and the column."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{origin}: it is nested too deeply. Write it flatter.") from None
    except tomllib.TOMLDecodeError as error:
        found = BROKEN.fullmatch(str(error))
        what = found[1] if found else str(error)
        where = f"{origin}:{found[2]}:{found[3]}" if found and found[2] else f"{origin}: at its end"
        hint = "Texts stand in quotes, and each key once in its table."
        raise ValueError(f"{where}: this is not TOML: {what[:1].lower()}{what[1:]}. {hint}") from None


def line_of(text: str, place: Place) -> int:
    """Return the line that comes closest to a place, such as `("task", "a", "on", 1, "match")`."""
    lines = _lines(text)
    known = (lines[place[:length]] for length in range(len(place), 0, -1) if place[:length] in lines)
    return next(known, 1)


@lru_cache(maxsize=16)
def _lines(text: str) -> dict[Place, int]:
    """Return the first line of each place of a text. Kept, for a large file can have as many mistakes as lines."""
    found: dict[Place, int] = {}
    for number, place in _places(text):
        for length in range(1, len(place) + 1):
            found.setdefault(place[:length], number)
    return found


def _places(text: str) -> Iterator[tuple[int, Place]]:
    """Yield each header and each key with its line. What stands inside of long texts is passed over."""
    table: Place = ()
    counts: Counter[Place] = Counter()
    closing = ""
    for number, line in enumerate(text.splitlines(), 1):
        if closing:
            closing = "" if closing in line else closing
            continue
        if header := HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                counts[table] += 1
                table = (*table, counts[table] - 1)
            else:
                table = _inside(table, counts)
            yield number, table
        elif setting := SETTING.match(line):
            yield number, (*table, *_parts(setting[1]))
            closing = next((mark for mark in ('"""', "'''") if setting[2].count(mark) == 1), "")


def _parts(keys: str) -> Place:
    return tuple(part.strip("\"'") for part in re.findall(NAME, keys))


def _inside(table: Place, counts: Counter[Place]) -> Place:
    """Return a table's place below the last element of a list of tables."""
    for length in range(len(table) - 1, 0, -1):
        if table[:length] in counts:
            return (*table[:length], counts[table[:length]] - 1, *table[length:])
    return table
