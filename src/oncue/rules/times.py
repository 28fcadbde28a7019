"""Triggers: when a schedule is due. Text in, aware UTC times out, by the one set of time rules.

Each kind has its own file (`cron`, `every`, `rrule`); what clocks do when they change is in `zones`. Here is what the
other rooms use, the same for every kind.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules import every as steps
from oncue.rules import rrule as calendar
from oncue.rules import zones
from oncue.rules.at import At, last_moment, next_moment, read_anchor, read_at
from oncue.rules.cron import Cron, is_ended, read_cron
from oncue.rules.every import Every
from oncue.rules.pattern import HORIZON
from oncue.rules.rrule import Rrule
from oncue.rules.rrule_text import read_rrule
from oncue.rules.words import describe, note_of

__all__ = [
    "At",
    "Cron",
    "Every",
    "Rrule",
    "Trigger",
    "TriggerError",
    "check",
    "count_between",
    "describe",
    "next_after",
    "note_of",
    "previous_before",
    "read_trigger",
    "times_between",
]

KINDS: Final = ("cron", "every", "at", "rrule")
TICK: Final = timedelta(microseconds=1)
LAST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=2)


Trigger = At | Every | Cron | Rrule


def read_trigger(spec: Mapping[str, object], *, anchor: datetime | None = None, name: str = "") -> Trigger:
    """Return the trigger of a task file's `schedule`.

    `anchor` is where steps without their own begin: the task's creation. `name` is the task's, for `H` in cron texts.
    """
    kind, text = _read_kind(spec)
    zone_name = spec.get("zone", "UTC")
    if not isinstance(zone_name, str):
        raise TriggerError(f'zone: {zone_name!r} is not text. Write an IANA name, such as "Europe/Athens".')
    zone = zones.read_zone(zone_name)
    dst = spec.get("dst")
    if kind == "cron":
        dialect = _text("dialect", spec.get("dialect", "unix"))
        return read_cron(text, zone, name=name, dialect=dialect, dst=dst)
    if kind == "at":
        return read_at(text, zone, has_zone="zone" in spec, dst=dst)
    if "anchor" in spec:
        anchor = read_anchor("anchor", _text("anchor", spec["anchor"]), zone)
    if kind == "rrule":
        return read_rrule(text, zone, anchor=anchor, dst=dst)
    return _read_every(text, zone, anchor, dst)


def next_after(trigger: Trigger, after: datetime) -> datetime | None:
    """Return the first time strictly later than `after`, in UTC; none if there is none, or only beyond the search."""
    after = after.astimezone(UTC)
    try:
        match trigger:
            case Cron(_, zone, pattern):
                return zones.first_placed(pattern, zone, after, trigger.placing)
            case Every():
                return steps.next_step(trigger, after)
            case Rrule():
                return calendar.next_time(trigger, after)
            case At():
                return next_moment(trigger, after)
    except OverflowError:
        return None  # the end of the calendar


def previous_before(trigger: Trigger, before: datetime) -> datetime | None:
    """Return the last time strictly earlier than `before`, in UTC; none if there is none, or only beyond the search."""
    before = before.astimezone(UTC)
    try:
        match trigger:
            case Cron(_, zone, pattern):
                return zones.last_placed(pattern, zone, before, trigger.placing)
            case Every():
                return steps.last_step(trigger, before)
            case Rrule():
                return calendar.last_before(trigger, before)
            case At():
                return last_moment(trigger, before)
    except OverflowError:
        return None


def times_between(trigger: Trigger, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """Return the times in (after, until], the first `limit` of them."""
    return list(islice(takewhile(lambda moment: moment <= until, _walk(trigger, after)), limit))


def count_between(trigger: Trigger, after: datetime, until: datetime) -> tuple[int, datetime | None, datetime | None]:
    """Return how many times lie in (after, until], the first and the last of them.

    The cost does not grow with the count, but for calendar steps: they walk.
    """
    first = next_after(trigger, after)
    if first is None or first > until:
        return 0, None, None
    last = previous_before(trigger, min(until, LAST) + TICK) or first
    count = None
    if isinstance(trigger, Cron):
        count = zones.count_placed(trigger.pattern, trigger.zone, after.astimezone(UTC), last, trigger.placing)
    if isinstance(trigger, Every):
        count = steps.count_steps(trigger, after, until)
    if isinstance(trigger, Rrule):
        count = calendar.count_times(trigger, after.astimezone(UTC), until.astimezone(UTC))
    if count is None:
        count = sum(1 for _ in takewhile(lambda moment: moment <= until, _walk(trigger, after)))
    return count, first, last


def check(trigger: Trigger, after: datetime) -> None:
    """Raise TriggerError for a schedule that can never fire. One that has merely ended is not refused."""
    if isinstance(trigger, Cron) and not is_ended(trigger, after) and _is_far(next_after(trigger, after), after):
        raise TriggerError(
            f'cron: "{trigger.text}" has no time in the 13 years after {after.date()}. '
            "Write a day that its months have."
        )
    if isinstance(trigger, Rrule) and calendar.is_impossible(trigger):
        raise TriggerError(f'rrule: "{trigger.text}" names no time at all. Check its BY parts against each other.')


def _is_far(found: datetime | None, after: datetime) -> bool:
    return found is None or found - after > HORIZON


def _walk(trigger: Trigger, after: datetime) -> Iterator[datetime]:
    while (moment := next_after(trigger, after)) is not None:
        yield moment
        after = moment


def _read_kind(spec: Mapping[str, object]) -> tuple[str, str]:
    known = (*KINDS, "zone", "anchor", "dialect", "dst")
    for key in spec:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f'Did you mean "{near[0]}"?' if near else f"Known keys: {', '.join(known)}."
            raise TriggerError(f'schedule: there is no key "{key}". {hint}')
    kinds = [kind for kind in KINDS if kind in spec]
    if len(kinds) != 1:
        given = f"has both {' and '.join(kinds)}" if kinds else "says nothing"
        raise TriggerError(f"schedule: it {given}. Write exactly one of {', '.join(KINDS)}.")
    kind = kinds[0]
    if "anchor" in spec and kind not in ("every", "rrule"):
        raise TriggerError(f"anchor: {kind} has no anchor. Leave it out.")
    if "dialect" in spec and kind != "cron":
        raise TriggerError(f"dialect: {kind} has no dialect. Leave it out.")
    return kind, _text(kind, spec[kind])


def _text(field: str, value: object) -> str:
    """Return a value as text; TOML knows dates and times of its own."""
    if isinstance(value, (datetime, date)) and field in ("at", "anchor"):
        return value.isoformat()
    if not isinstance(value, str):
        raise TriggerError(f"{field}: {value!r} is not text. Write it in quotes.")
    if not value.strip():
        raise TriggerError(f"{field}: it is empty. Write when the task is due.")
    return value.strip()


def _read_every(text: str, zone: ZoneInfo, anchor: datetime | None, dst: object) -> Every:
    step_text = text
    if text.startswith("R"):
        head, _, rest = text.partition("/")
        anchor_text, slash, step_text = rest.rpartition("/")
        if head != "R" or not slash:
            raise TriggerError(f'every: "{text}" is not a repetition. Write R/<anchor>/<duration>.')
        anchor = read_anchor("every", anchor_text, zone)
    step = steps.read_step(step_text)
    if anchor is None:
        raise TriggerError(
            f'anchor: every = "{text}" has nothing to count from. Write anchor = "2026-01-31T09:00:00Z".'
        )
    return steps.read_every(text, zone, step=step, anchor=anchor, dst=dst)
