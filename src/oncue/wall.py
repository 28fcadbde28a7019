"""The only file that asks the machine for the time. `engine/loop.py` and the outermost rooms ask it, nobody else."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the time of this machine, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds that never go backwards, to measure with."""
    return time.monotonic()
