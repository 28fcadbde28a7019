"""What becomes of a message after one try: it is confirmed, waits to be tried again, or is dead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, assert_never

from oncue.definition import Retry
from oncue.model import Confirmed, Outcome, Refused, Unknown, Unreachable
from oncue.rules import retry


@dataclass(frozen=True, slots=True)
class Fate:
    """`ready_at` is when a message that waits is tried again; `counted` whether this try counts."""

    state: Literal["confirmed", "waiting", "dead"]
    ready_at: datetime
    counted: bool
    error: str | None


def decide(outcome: Outcome, policy: Retry, *, attempts: int, tries: int, seed: str, now: datetime) -> Fate:
    """Decide by the outcome of a try. `attempts` are those that counted, this one included; `tries` are all."""
    match outcome:
        case Confirmed():
            return Fate("confirmed", now, True, None)
        case Refused(reason, again, retry_after):
            if not again or retry.is_exhausted(policy, attempts):
                return Fate("dead", now, True, reason)
            return Fate(
                "waiting", retry.retry_at(policy, attempts, now=now, seed=seed, at_least=retry_after), True, reason
            )
        case Unknown(reason):
            if retry.is_exhausted(policy, attempts):
                return Fate("dead", now, True, reason)
            return Fate("waiting", retry.retry_at(policy, attempts, now=now, seed=seed), True, reason)
        case Unreachable(reason):
            return Fate("waiting", retry.retry_at(retry.GIVE_BACK, tries, now=now, seed=seed), False, reason)
    assert_never(outcome)
