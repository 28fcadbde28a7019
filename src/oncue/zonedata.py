"""The only file that asks the machine which edition of the time zone database it has: "2025b", or "unknown".

`zoneinfo` reads from the system's folders first (or those of PYTHONTZPATH), and from the package `tzdata` where a zone
is not there; so does this. Editions are named by year and letter, and compare as texts.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

UNKNOWN: Final = "unknown"
NAMES: Final = re.compile(r"#?\s*(?:version\s+)?(\d{4}[a-z]{0,2})\b")
FILES: Final = ("tzdata.zi", "+VERSION", "version")


@dataclass(frozen=True, slots=True)
class Origin:
    """The edition that a process reads, and where from."""

    edition: str
    place: str


def edition() -> str:
    """Return the edition that this process reads, for as long as it lives: `zoneinfo` keeps what it has read."""
    return origin().edition


@cache
def origin() -> Origin:
    """Return the edition that this process reads, and the folder or the package that it stands in."""
    for folder in zoneinfo.TZPATH:
        for name in FILES:
            if found := _read(Path(folder) / name):
                return Origin(found, str(folder))
        if (Path(folder) / "UTC").exists():
            return Origin(UNKNOWN, str(folder))
    try:
        import tzdata  # type: ignore[import-untyped]  # it holds data, and one name
    except ImportError:
        return Origin(UNKNOWN, "nowhere")
    return Origin(str(tzdata.IANA_VERSION), "the Python package tzdata")


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            found = NAMES.match(file.readline())
    except OSError:
        return None
    return found[1] if found else None
