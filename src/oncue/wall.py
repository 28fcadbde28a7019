"""The only file that asks the machine for the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


def now() -> datetime:
    """Return the host's time, aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds on a clock that only goes forward."""
    return time.monotonic()


class Carried:
    """The store's time, carried from sample to sample by the monotonic clock.

    A sample is stamped when its reply arrives: it is as old as the reply was under way, so the error is towards late.
    """

    def __init__(self) -> None:
        self._sample: datetime | None = None
        self._stamp = 0.0

    def feed(self, sample: datetime) -> timedelta:
        """Take a new sample, and return how far it is ahead of what was carried."""
        ahead = sample - self.now() if self._sample else timedelta()
        self._sample, self._stamp = sample, monotonic()
        return ahead

    def now(self) -> datetime:
        """Return the store's time as it is now; the host's before the first sample."""
        if self._sample is None:
            return now()
        return self._sample + timedelta(seconds=monotonic() - self._stamp)
