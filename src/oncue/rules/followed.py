"""Followed schedules: the next time is read from the user's data, and a firing is a window that ends at it.

The horizon is where the last window ended: a schedule's `decided_to`. What stands here decides; asking is the engine's.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from oncue.definition import Misfire
from oncue.errors import TriggerError
from oncue.model import Schedule
from oncue.rules.durations import read_duration, write_duration
from oncue.rules.firing import Firing, LedgerEntry, PlannedRun, Verdict
from oncue.rules.triggers import zones

KEYS: Final = ("next", "recheck", "lookback", "zone")
RECHECK: Final = timedelta(minutes=1)
LOOKBACK: Final = timedelta(hours=1)
SHORTEST: Final = timedelta(seconds=1)
FIRST_BACKOFF: Final = timedelta(seconds=1)
NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
PLACE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NEXT: Final = 'Write next = { sql = "select min(…) from … where … > :after", source = "app" }, or { python = "…:…" }.'

Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class SqlNext:
    """Asks a source for the first time after `:after`."""

    sql: str
    source: str


@dataclass(frozen=True, slots=True)
class PythonNext:
    """Calls `module:name` with `after`, for the first time after it."""

    place: str


@dataclass(frozen=True, slots=True)
class Followed:
    """A schedule whose next time is read from data: asked for at a touch, after each firing and each `recheck`.

    Rows that appear behind the horizon are looked for until `lookback` has passed.
    """

    next: SqlNext | PythonNext
    zone: ZoneInfo
    recheck: timedelta = RECHECK
    lookback: timedelta = LOOKBACK


def is_followed(spec: Mapping[str, object] | None) -> bool:
    """Say whether a task file's `schedule` is followed."""
    return spec is not None and "next" in spec


def read_followed(spec: Mapping[str, object]) -> Followed:
    """Return the followed schedule of a task file. Raises TriggerError, which names the key."""
    for key in spec:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, n=1)
            hint = f'Did you mean "{near[0]}"?' if near else f"Its keys are {', '.join(KEYS)}."
            raise TriggerError(f"{key}: a followed schedule has no such key. {hint}")
    zone = spec.get("zone", "UTC")
    if not isinstance(zone, str):
        raise TriggerError(f'zone: {zone!r} is not text. Write an IANA name, such as "Europe/Athens".')
    recheck = _duration(spec, "recheck", RECHECK)
    if recheck < SHORTEST:
        raise TriggerError(f"recheck: {write_duration(recheck)} is too short. Write 1s or longer.")
    return Followed(_read_next(spec["next"]), zones.read_zone(zone), recheck, _duration(spec, "lookback", LOOKBACK))


def describe(followed: Followed) -> str:
    """Return a short sentence that says where the next time is read."""
    match followed.next:
        case SqlNext(_, source):
            return f"Followed: the next time is read by a query from {source}."
        case PythonNext(place):
            return f"Followed: the next time is read by {place} in Python."


def decide(schedule: Schedule, misfire: Misfire, *, now: datetime) -> Firing:
    """Return the window that a followed schedule fires. The schedule must be due; what is next is to be asked.

    On time it ends at the due time. After an outage it ends now, and leaves out what the policy does not catch up.
    """
    due, horizon = schedule.next_at, schedule.decided_to
    assert due is not None
    if now - due <= misfire.grace:
        return Firing(schedule, (PlannedRun(due, horizon),), (), None, due, "active")
    is_left_out = misfire.catch_up == "none"
    oldest = now - (misfire.grace if is_left_out else misfire.max_age)
    why = "its grace" if is_left_out else f"{misfire.max_age}, the age that is caught up"
    entry = LedgerEntry(due, oldest, 1, "missed", f"missed by more than {why}") if due <= oldest else None
    ledger = (entry,) if entry else ()
    if is_left_out:  # who was due within the grace is asked for again, and runs
        return Firing(schedule, (), ledger, None, oldest, "active")
    run = PlannedRun(now, oldest if entry else horizon, caught_up=True, held=misfire.hold)
    return Firing(schedule, (run,), ledger, None, now, "active")


def passed(schedule: Schedule, *, since: datetime, now: datetime, verdict: Verdict, reason: str) -> LedgerEntry:
    """Return the ledger entry for whoever was due while a schedule rested: nobody asked who that was."""
    first = min(since, now)
    if schedule.next_at is not None and schedule.next_at <= now:
        first = schedule.next_at
    return LedgerEntry(first, now, 1, verdict, reason)


def left_out(fired: Firing) -> datetime | None:
    """Return the end of what a firing leaves out by its policy: no later look may bring it back."""
    return max((entry.last_due_at for entry in fired.ledger), default=None)


def due_of(answer: datetime, followed: Followed, misfire: Misfire, *, seen_at: datetime, now: datetime) -> datetime:
    """Return when an answer makes a schedule due; `seen_at` is when its data was last asked, in vain or not.

    An answer in the past is due at once. It is no misfire as long as somebody kept asking: then the window ends now.
    """
    was_away = now - seen_at > followed.recheck + misfire.grace
    return now if now - answer > misfire.grace and not was_away else answer


def ask_again_at(failures: int, followed: Followed, *, now: datetime) -> datetime:
    """Return when to ask again after so many failures in a row: a backoff up to `recheck`."""
    return now + min(FIRST_BACKOFF * (1 << min(failures - 1, 30)), followed.recheck)


def free_spans(after: datetime, until: datetime, taken: Sequence[Span]) -> list[Span]:
    """Return the parts of (after, until] that lie in none of the spans `taken`, each (start, end] too."""
    free: list[Span] = []
    for start, end in sorted(taken):
        if after < min(start, until):
            free.append((after, min(start, until)))
        after = max(after, end)
    if after < until:
        free.append((after, until))
    return free


def reach_after(
    reach: datetime, followed: Followed, *, horizon: datetime, still_open: Sequence[Span], now: datetime
) -> datetime:
    """Return where the next look behind the horizon begins, after one at `now`.

    It stays behind what is still open, and behind all that may still appear within the lookback.
    """
    first_open = min((start for start, _ in still_open), default=horizon)
    return max(reach, min(now - followed.lookback, first_open, horizon))


def _read_next(value: object) -> SqlNext | PythonNext:
    if not isinstance(value, Mapping):
        raise TriggerError(f"next: {value!r} is not a table. {NEXT}")
    match sorted(value):
        case ["source", "sql"]:
            return SqlNext(_text(value["sql"], "sql"), _text(value["source"], "source"))
        case ["python"]:
            place = _text(value["python"], "python")
            if not PLACE.fullmatch(place):
                raise TriggerError(f'next: python = "{place}" is no place. Write module:name, as shop.times:next_due.')
            return PythonNext(place)
        case keys:
            raise TriggerError(f"next: it says {' and '.join(map(str, keys)) or 'nothing'}. {NEXT}")


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise TriggerError(f"next: {key} = {value!r} is not text. Write it in quotes.")
    if not value.strip():
        raise TriggerError(f"next: {key} is empty. {NEXT}")
    return value


def _duration(spec: Mapping[str, object], key: str, default: timedelta) -> timedelta:
    value = spec.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise TriggerError(f'{key}: {value!r} is not text. Write it in quotes, such as "1m".')
    try:
        return read_duration(value)
    except ValueError as error:
        raise TriggerError(f"{key}: {error}") from None
