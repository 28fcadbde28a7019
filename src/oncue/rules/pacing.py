"""What a schedule says beside its times: `jitter`, `spread` and `max_runs`. None of it changes when a run is due.

A jitter moves a run's start, and a spread its messages, by a share that is hashed from who and when: the same on every
host and every retry, and never so far that it meets the next due time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from oncue.errors import TriggerError
from oncue.model import Json, Key
from oncue.rules.durations import read_duration
from oncue.rules.identity import time_text

KEYS: Final = ("jitter", "spread", "max_runs")
TICK: Final = timedelta(microseconds=1)
SHARES: Final = 2**53  # as many as a float holds apart: the last of 2**64 would round to 1
MOST_RUNS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Pacing:
    """How far starts (`jitter`) and messages (`spread`) are moved apart, and how many runs are made at most."""

    jitter: timedelta = timedelta()
    spread: timedelta = timedelta()
    max_runs: int | None = None


NONE: Final = Pacing()


def read_pacing(spec: Mapping[str, object]) -> Pacing:
    """Return what a task file's `schedule` says of its pace. Raises TriggerError."""
    if not any(key in spec for key in KEYS):
        return NONE
    return Pacing(_duration(spec, "jitter"), _duration(spec, "spread"), _max_runs(spec.get("max_runs")))


def trigger_of(spec: Json) -> Json:
    """Return a schedule without its pace: what decides when it is due."""
    return {key: value for key, value in spec.items() if key not in KEYS}


def starts_at(pacing: Pacing, task: UUID, due_at: datetime, *, following: datetime | None) -> datetime | None:
    """Return the moment of a run after jitter, earlier than the `following` due time; None without jitter."""
    if not pacing.jitter:
        return None
    return due_at + share(f"{task}:{time_text(due_at)}") * _room(pacing.jitter, due_at, following)


def spread_until(pacing: Pacing, start: datetime, *, following: datetime | None) -> datetime | None:
    """Return by when all messages of a run that starts at `start` are out; None where they go at once."""
    return start + _room(pacing.spread, start, following) if pacing.spread else None


def sent_at(task: UUID, key: Key, due_at: datetime, *, start: datetime, until: datetime) -> datetime:
    """Return when the message to one entity goes out: its own share of the time from `start` to `until`."""
    return start + share(f"{task}:{time_text(due_at)}:{key}") * max(until - start, timedelta())


def share(text: str) -> float:
    """Return a number in [0, 1) that is always the same for a text."""
    return (int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 11) / SHARES


def _room(wanted: timedelta, start: datetime, following: datetime | None) -> timedelta:
    if following is None:
        return wanted
    return max(min(wanted, following - start - TICK), timedelta())


def _duration(spec: Mapping[str, object], key: str) -> timedelta:
    value = spec.get(key)
    if value is None:
        return timedelta()
    if not isinstance(value, str):
        raise TriggerError(f'{key}: {value!r} is not a duration. Write it in quotes, for example "30s" or "5m".')
    try:
        found = read_duration(value)
    except ValueError as error:
        raise TriggerError(f"{key}: {error}") from None
    if found <= timedelta():
        raise TriggerError(f"{key}: {value} is no time at all. Write how far apart they may lie, or leave it out.")
    return found


def _max_runs(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_RUNS:
        raise TriggerError(f"max_runs: {value!r} is not a number of runs. Write a whole number from 1.")
    return value
