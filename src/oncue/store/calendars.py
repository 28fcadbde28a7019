"""Verbs on calendars: store, remove, list, and what a change would move.

A schedule keeps a copy of those that it refers to; where one changes, these schedules are reckoned again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from oncue.definition import Calendar
from oncue.errors import Conflict, NotFound, TaskFileError, TriggerError
from oncue.model import Change, Schedule, TaskId
from oncue.rules import times
from oncue.rules.calendar_words import describe_calendar
from oncue.store import changing, codec, reckoning
from oncue.store.base import Steps, ask

EVERYONE: Final = 2**31


@dataclass(frozen=True, slots=True)
class Retimed:
    """A task whose next time another calendar moves."""

    task: str
    old: datetime | None
    new: datetime | None


@dataclass(frozen=True, slots=True)
class Stored:
    """What storing a calendar comes to."""

    verdict: Literal["created", "changed", "unchanged"]
    moved: tuple[Retimed, ...] = ()


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


def put(calendar: Calendar, *, actor: str, now: datetime) -> Steps[Stored]:
    """Store one calendar, and reckon again who uses it. Raises TaskFileError: it leaves a task no time."""
    yield from changing.begin(now=now)
    known = yield from every()
    changed = yield from write([calendar], actor=actor, now=now)
    moved = yield from retime(changed, now=now)
    return Stored(_verdict(calendar, known), tuple(moved))


def preview(calendar: Calendar, *, now: datetime) -> Steps[Stored]:
    """Return what storing a calendar would come to; nothing is written. Raises TaskFileError, as `put` would."""
    known = yield from every()
    moved: list[Retimed] = []
    changed = {calendar.name: calendar} if known.get(calendar.name) != calendar else {}
    for task_id, name in (yield from _users(changed)).items():
        rows = yield ask("read_schedule", task_id=task_id)
        for schedule in map(codec.read_schedule, rows):
            moved += _moves(name, schedule, _by_calendars(name, schedule, changed, now=now), now=now)
    return Stored(_verdict(calendar, known), tuple(moved))


def write(calendars: Sequence[Calendar], *, actor: str, now: datetime) -> Steps[dict[str, Calendar]]:
    """Write calendars, and return those that changed by name: `retime` in the same transaction those who use them."""
    if not calendars:
        return {}
    known = yield from every()
    changed = {one.name: one for one in calendars if known.get(one.name) != one}
    for calendar in changed.values():
        yield ask("write_calendar", name=calendar.name, definition=codec.write_calendar(calendar), now=now)
        detail = describe_calendar(calendar)
        yield ask("insert_audit", now=now, actor=actor, verb="calendar", subject=calendar.name, detail=detail)
        yield Change("calendar", calendar.name, _verdict(calendar, known), detail)
    return changed


def retime(changed: Mapping[str, Calendar], *, now: datetime) -> Steps[list[Retimed]]:
    """Reckon again the schedules that refer to calendars which changed; return which of their next times moved.

    What is due already is decided by the old ones, and none is due again before now by the new ones. Raises
    TaskFileError: a schedule has no time left by the new ones.
    """
    moved: list[Retimed] = []
    for task_id, name in (yield from _users(changed)).items():
        schedule = yield from reckoning.decide_due(task_id, now=now)
        if schedule is None or not _refers(schedule, changed):
            continue
        if schedule.state in ("active", "paused"):
            yield from reckoning.leave_behind(schedule, now=now)
        fresh = _by_calendars(name, schedule, changed, now=now)
        yield from reckoning.write_reckoned(fresh)
        for one in _moves(name, schedule, fresh, now=now):
            detail = f"by its calendar: next due {reckoning.told(one.new)} instead of {reckoning.told(one.old)}"
            yield Change("schedule", name, "reckoned", detail)
            moved.append(one)
    return moved


def remove(name: str, *, actor: str, now: datetime) -> Steps[None]:
    """Forget a calendar. Raises NotFound, and Conflict where a schedule refers to it."""
    yield from changing.begin(now=now)
    yield from read(name)
    if users := (yield from users_of(name)):
        more = f" and {len(users) - 5} more" if len(users) > 5 else ""
        raise Conflict(f'calendar "{name}" is used by {", ".join(users[:5])}{more}: change these tasks first.')
    yield ask("delete_calendar", name=name)
    yield ask("insert_audit", now=now, actor=actor, verb="calendar", subject=name, detail="removed")
    yield Change("calendar", name, "removed")


def users_of(name: str) -> Steps[list[str]]:
    """Return the names of the tasks whose schedules refer to a calendar."""
    rows = yield ask("list_calendar_users", pattern=_pattern(name), limit=EVERYONE)
    return sorted(row["name"] for row in rows)


def users_to_come(name: str, *, limit: int) -> Steps[list[str]]:
    """Return the names of the first tasks whose schedules refer to a calendar and can still fire."""
    rows = yield ask("list_calendar_users_to_come", pattern=_pattern(name), limit=limit)
    return sorted(row["name"] for row in rows)


def _users(changed: Mapping[str, Calendar]) -> Steps[dict[TaskId, str]]:
    """Return the tasks that refer to calendars, in the order in which their schedules are locked."""
    found: dict[TaskId, str] = {}
    for name in changed:
        rows = yield ask("list_calendar_users", pattern=_pattern(name), limit=EVERYONE)
        found |= {TaskId(row["task_id"]): row["name"] for row in rows}
    return dict(sorted(found.items()))


def _pattern(name: str) -> str:
    """Return what the text of a timing holds where it refers to a calendar, for `like`."""
    escaped = name.replace("_", "!_")
    return f'%{{"name":"{escaped}",%'


def _refers(schedule: Schedule, changed: Mapping[str, Calendar]) -> bool:
    return any(changed.get(one.name, one) != one for one in codec.read_timing(schedule.timing).calendars)


def _by_calendars(task: str, schedule: Schedule, changed: Mapping[str, Calendar], *, now: datetime) -> Schedule:
    """Return a schedule as it is by other calendars. Raises TaskFileError: it has no time left."""
    timing = codec.read_timing(schedule.timing)
    fresh = replace(timing, calendars=tuple(changed.get(one.name, one) for one in timing.calendars))
    if schedule.state == "stopped":  # with its reason; its next time was promised, and waits to be tried again
        return replace(schedule, timing=codec.write_timing(fresh))
    after = _decided_to(schedule, now)
    try:
        found = reckoning.reckoned(schedule, fresh, after=after)
    except TriggerError as error:
        raise TaskFileError(f"[task.{task}] schedule: {error}") from None
    if schedule.state != "finished" and found.next_at is None and schedule.next_at is not None:
        names = " and ".join(f'"{one.name}"' for one in timing.calendars if one.name in changed)
        raise TaskFileError(
            f'task "{task}" would have no time left by calendar {names}. '
            "Keep a day on which it is due, or change the task first."
        )
    return replace(found, since=after)


def _moves(task: str, old: Schedule, new: Schedule, *, now: datetime) -> list[Retimed]:
    before = old.next_at
    if old.state != "stopped" and before is not None and before <= now:  # it is decided by the old calendars first
        before = times.next_after(codec.read_trigger(old.timing), _decided_to(old, now))
    return [Retimed(task, before, new.next_at)] if before != new.next_at else []


def _decided_to(schedule: Schedule, now: datetime) -> datetime:
    return max(now, schedule.decided_to or now)


def _verdict(calendar: Calendar, known: Mapping[str, Calendar]) -> Literal["created", "changed", "unchanged"]:
    before = known.get(calendar.name)
    return "created" if before is None else "changed" if before != calendar else "unchanged"
