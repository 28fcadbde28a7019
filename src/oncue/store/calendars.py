"""Verbs on calendars: put, remove, list.

A schedule keeps a copy of those that it refers to; where one changes, these schedules are reckoned again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from oncue.definition import Calendar
from oncue.errors import Conflict, NotFound
from oncue.model import Change
from oncue.store import codec, reckoning
from oncue.store.base import Steps, ask


def every() -> Steps[dict[str, Calendar]]:
    """Return all calendars by name."""
    rows = yield ask("list_calendars")
    return {row["name"]: codec.read_calendar(row["definition"]) for row in rows}


def read(name: str) -> Steps[Calendar]:
    """Return a calendar. Raises NotFound, with the names that there are."""
    known = yield from every()
    if name not in known:
        raise NotFound(
            f'no calendar "{name}". Known calendars: {", ".join(known) or "none"}. '
            f"Write [calendar.{name}] in a task file, or import one: oncue calendars import {name} --country GR."
        )
    return known[name]


def put(calendars: Sequence[Calendar], *, actor: str, now: datetime) -> Steps[list[str]]:
    """Write calendars, and reckon again the schedules that refer to them; return the names of those that changed."""
    if not calendars:
        return []
    known = yield from every()
    changed = {one.name: one for one in calendars if known.get(one.name) != one}
    for calendar in changed.values():
        yield ask("write_calendar", name=calendar.name, definition=codec.write_calendar(calendar), now=now)
        detail = f"{len(calendar.dates)} dates" + (f", until {calendar.known_until}" if calendar.known_until else "")
        yield ask("insert_audit", now=now, actor=actor, verb="calendar", subject=calendar.name, detail=detail)
        yield Change("calendar", calendar.name, "changed" if calendar.name in known else "created", detail)
    if changed:
        yield from reckoning.use_calendars(changed, now=now)
    return list(changed)


def import_one(calendar: Calendar, *, actor: str, now: datetime) -> Steps[bool]:
    """Write one calendar; answer whether it changed."""
    yield ask("begin_change")
    return bool((yield from put([calendar], actor=actor, now=now)))


def remove(name: str, *, actor: str, now: datetime) -> Steps[None]:
    """Forget a calendar. Raises NotFound, and Conflict where a schedule refers to it."""
    yield ask("begin_change")
    yield from read(name)
    if users := (yield from users_of(name)):
        raise Conflict(f'calendar "{name}" is used by {", ".join(users[:5])}: change these tasks first.')
    yield ask("delete_calendar", name=name)
    yield ask("insert_audit", now=now, actor=actor, verb="calendar", subject=name, detail="removed")
    yield Change("calendar", name, "removed")


def users_of(name: str) -> Steps[list[str]]:
    """Return the names of the tasks whose schedules refer to a calendar."""
    rows = yield ask("list_schedules")
    ids = [row["task_id"] for row in rows if name in {one.name for one in codec.read_timing(row["timing"]).calendars}]
    return sorted(row["name"] for row in (yield ask("read_task_names", ids=ids)))
