"""When to try again: backoff with full jitter, a cap, and an end. The jitter is a hash, so that a replay agrees."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from oncue.definition import Retry

GIVE_BACK = Retry(attempts=0, first=timedelta(milliseconds=500), cap=timedelta(seconds=15))


def is_exhausted(policy: Retry, attempts: int) -> bool:
    """Say whether `attempts` counted tries are all that the policy allows."""
    return attempts >= policy.attempts


def retry_at(policy: Retry, attempts: int, *, now: datetime, seed: str, at_least: timedelta | None = None) -> datetime:
    """Return when to try again after `attempts` tries: a moment up to the backoff, by a hash of `seed` (full jitter).

    `at_least` is what the other side asked for (Retry-After); it is obeyed up to a day.
    """
    growth = 2 ** min(max(attempts - 1, 0), 30) if policy.backoff == "exponential" else 1
    wait = min(policy.first * growth, policy.cap)
    spread = fraction(f"{seed}:{attempts}")
    asked = min(at_least, timedelta(days=1)) if at_least else timedelta()
    return now + max(wait * spread, asked)


def fraction(seed: str) -> float:
    """Return a number in [0, 1) that is always the same for `seed`."""
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=6).digest()) / 2**48
