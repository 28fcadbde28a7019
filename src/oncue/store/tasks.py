"""Verbs on tasks: apply, pause, resume, and what others read of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Literal
from uuid import UUID, uuid4

from oncue.definition import Calendar, Definition
from oncue.errors import Conflict, NotFound, TaskFileError, TriggerError
from oncue.model import Change, Json, Schedule, ScheduleState, Task, TaskId, Timing
from oncue.rules import times
from oncue.rules.followed import is_followed
from oncue.store import calendars as calendar_verbs
from oncue.store import changing, codec, followed, reckoning
from oncue.store.base import Steps, Wake, ask
from oncue.store.reckoning import decide_due, leave_behind, runs_left

NO_UUIDS: Mapping[str, UUID] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying one definition came to."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "removed"]
    version: int


def apply(
    definitions: Sequence[Definition],
    *,
    calendars: Sequence[Calendar] = (),
    uuids: Mapping[str, UUID] = NO_UUIDS,
    prune: bool,
    actor: str,
    now: datetime,
) -> Steps[list[Applied]]:
    """Make the store's tasks as these definitions say, all or none. What is due already is first decided as before.

    A new task gets the id that `uuids` names for it, else one of its own. Calendars are written first, and who uses
    them is reckoned again last: tasks that change or go with them are not held against them. Raises TaskFileError: a
    calendar is not known, or leaves a task no time.
    """
    _check_names(definitions)
    yield from changing.begin(now=now)
    changed = yield from calendar_verbs.write(calendars, actor=actor, now=now)
    known = yield from calendar_verbs.every()
    tasks = {task.name: task for task in (yield from every())}
    applied: list[Applied] = []
    for definition in definitions:
        old = tasks.pop(definition.name, None) or tasks.pop(definition.renamed_from or "", None)
        if old is None:
            uuid = uuids.get(definition.name) or uuid4()
            applied.append((yield from _create(definition, uuid, calendars=known, now=now)))
        elif replace(old.definition, renamed_from=None) == replace(definition, renamed_from=None):
            applied.append(Applied(definition.name, "unchanged", old.version))
        else:
            applied.append((yield from _change(old, definition, calendars=known, now=now)))
    if prune:
        for task in tasks.values():
            applied.append((yield from _remove(task, now=now)))
    yield from calendar_verbs.retime(changed, now=now)
    for one in applied:
        if one.verdict != "unchanged":
            yield ask("insert_audit", now=now, actor=actor, verb="apply", subject=one.name, detail=one.verdict)
    if any(one.verdict != "unchanged" for one in applied):
        yield Wake("ingest", now)
    return applied


def _check_names(definitions: Sequence[Definition]) -> None:
    counts = Counter(definition.name for definition in definitions)
    for name, count in counts.items():
        if count > 1:
            raise Conflict(f'task "{name}" is defined {count} times: give each task a name of its own.')


def _create(definition: Definition, uuid: UUID, *, calendars: Mapping[str, Calendar], now: datetime) -> Steps[Applied]:
    rows = yield ask("insert_task", uuid=uuid, name=definition.name, now=now)
    task_id = TaskId(rows[0]["id"])
    yield from _write_definition(task_id, 1, definition, now=now)
    if definition.schedule is not None:
        timing = _timing(definition, definition.schedule, calendars=calendars, anchor=now, now=now)
        fresh = Schedule(task_id, uuid, 1, _first_version(1), None, None, codec.write_timing(timing))
        yield from reckoning.write_schedule(replace(fresh, runs_left=runs_left(None, timing)), now=now)
    yield Change("task", definition.name, "active", "created")
    return Applied(definition.name, "created", 1)


def _first_version(task_version: int) -> int:
    """Return where a schedule's version begins: above all that an earlier schedule of the task can have had.

    A clock may still hold that one; its version must not fit the new row.
    """
    return task_version << 32


def _change(old: Task, definition: Definition, *, calendars: Mapping[str, Calendar], now: datetime) -> Steps[Applied]:
    version = old.version + 1
    schedule = yield from decide_due(old.id, now=now)
    yield ask("change_task", id=old.id, name=definition.name, version=version, now=now)
    yield from _write_definition(old.id, version, definition, now=now)
    if definition.schedule is None:
        yield from leave_behind(schedule, now=now)
        yield ask("delete_schedule", task_id=old.id)
    else:
        yield from _change_schedule(old, schedule, definition, calendars=calendars, now=now)
    yield Change("task", definition.name, old.state, "changed", {"version": version})
    return Applied(definition.name, "changed", version)


def _change_schedule(
    task: Task, old: Schedule | None, definition: Definition, *, calendars: Mapping[str, Calendar], now: datetime
) -> Steps[None]:
    assert definition.schedule is not None
    version = task.version + 1
    kept = codec.read_timing(old.timing) if old else None
    anchor = reckoning.anchor_of(kept, definition.schedule, now=now) if kept else now
    timing = _timing(definition, definition.schedule, calendars=calendars, anchor=anchor, now=now)
    if old is not None and kept is not None and reckoning.is_due_as_before(kept, timing):
        changed = replace(kept, schedule=timing.schedule, misfire=timing.misfire, overlap=timing.overlap)
        yield ask("change_timing", task_id=task.id, task_version=version, timing=codec.write_timing(changed))
        if old.next_at is not None:
            yield Wake("clock", old.next_at)
        if old.state == "stopped" and is_followed(timing.schedule):
            yield from followed.go_on(replace(old, state="active"), reach=None, now=now)
        return
    if old is not None and kept is not None and reckoning.has_same_trigger(kept, timing):
        yield from _count_anew(replace(old, task_version=version), kept, timing, now=now)
        return
    goes_on = kept is not None and is_followed(kept.schedule) and is_followed(timing.schedule)
    yield from leave_behind(None if goes_on else old, now=now)
    last, left = old.last_due_at if old else None, runs_left(old, timing)
    state: ScheduleState = "paused" if task.state == "paused" else "active"
    text = codec.write_timing(timing)
    fresh = Schedule(task.id, task.uuid, version, _first_version(version), None, last, text, state, runs_left=left)
    yield from reckoning.write_schedule(fresh, old=old, now=now)


def _count_anew(old: Schedule, kept: Timing, timing: Timing, *, now: datetime) -> Steps[None]:
    """Write a schedule whose trigger stays, by other calendars or with another number of runs."""
    timing = replace(timing, overrides=kept.overrides)
    fresh = replace(old, runs_left=runs_left(old, timing))
    if kept.calendars != timing.calendars or old.state == "finished":  # none is due before now by what is new
        yield from leave_behind(old, now=now)
        fresh = replace(fresh, since=max(now, old.decided_to or now))
    if fresh.state == "stopped":
        fresh = replace(fresh, state="active", reason=None)
    yield from reckoning.reckon(fresh, timing, now=now)


def _timing(
    definition: Definition, schedule: Json, *, calendars: Mapping[str, Calendar], anchor: datetime, now: datetime
) -> Timing:
    """Return the timing of a definition. Raises TaskFileError: it cannot be followed with these calendars."""
    try:
        timing = reckoning.timing_of(definition, schedule, calendars=calendars, anchor=anchor)
        if not is_followed(schedule):
            times.check(codec.read_trigger(codec.write_timing(timing)), now)
    except TriggerError as error:
        what = str(error).removeprefix("schedule: ")
        raise TaskFileError(f"[task.{definition.name}] schedule: {what}") from None
    return timing


def _remove(task: Task, *, now: datetime) -> Steps[Applied]:
    reason = "removed by apply --prune"
    schedule = yield from decide_due(task.id, now=now)
    yield from leave_behind(schedule, now=now)
    yield ask("remove_task", id=task.id, reason=reason, now=now)
    yield ask("delete_schedule", task_id=task.id)
    yield Change("task", task.name, "removed", reason)
    return Applied(task.name, "removed", task.version)


def _write_definition(task_id: TaskId, version: int, definition: Definition, *, now: datetime) -> Steps[None]:
    text = codec.write_definition(replace(definition, renamed_from=None))
    yield ask("insert_definition", task_id=task_id, version=version, definition=text, now=now)


def pause(name: str, *, reason: str, actor: str, now: datetime, until: datetime | None = None) -> Steps[Task]:
    """Stop a task's triggers until it is resumed, or until a moment. What is due already is decided first.

    A paused task stays so; asked again with another end, it takes that one and the reason.
    """
    if until is not None and until <= now:
        raise Conflict(f'task "{name}" cannot be paused until {until:%Y-%m-%d %H:%M:%S}Z: that is over.')
    yield from changing.begin(now=now)
    task = yield from read(name)
    if task.state == "paused" and until == task.resume_at:
        return task
    if task.state == "active":
        schedule = yield from decide_due(task.id, now=now)
        if schedule is not None and is_followed(codec.read_timing(schedule.timing).schedule):
            yield from followed.rest(task.id)
    yield ask("pause_task", id=task.id, reason=reason, resume_at=until, now=now)
    yield ask("pause_schedule", task_id=task.id, reason=reason)
    detail = f"{reason}, until {until:%Y-%m-%d %H:%M:%S}Z" if until else reason
    yield ask("insert_audit", now=now, actor=actor, verb="pause", subject=name, detail=detail)
    yield Change("task", name, "paused", detail)
    yield Wake("ingest", now)
    if until is not None:
        yield Wake("clock", until)
    return replace(task, state="paused", reason=reason, changed_at=now, resume_at=until)


def resume(name: str, *, actor: str, now: datetime) -> Steps[Task]:
    """Let a task's triggers work again. Times that passed meanwhile go into the ledger, and do not run."""
    yield from changing.begin(now=now)
    task = yield from read(name)
    if task.state != "paused":
        raise Conflict(f'task "{name}" is {task.state}, not paused: there is nothing to resume.')
    yield from changing.resume_task(task.id, name, reason=task.reason, since=task.changed_at, actor=actor, now=now)
    return replace(task, state="active", reason=None, changed_at=now, resume_at=None)


def read(name: str) -> Steps[Task]:
    """Return a task by name. Raises NotFound, with the names that there are."""
    rows = yield ask("read_task", name=name)
    if rows:
        return codec.read_task(rows[0])
    known = [row["name"] for row in (yield ask("list_task_names", limit=20))]
    raise NotFound(f'no task "{name}". Known tasks: {", ".join(known) or "none; apply a task file first"}.')


def every() -> Steps[list[Task]]:
    """Return all tasks that are not removed, by name."""
    rows = yield ask("list_tasks")
    return [codec.read_task(row) for row in rows]


def fingerprint() -> Steps[int]:
    """Return a number that differs whenever a task was created, changed, paused, resumed or removed."""
    rows = yield ask("read_changes")
    count: int = rows[0]["count"]
    return count


def schedules() -> Steps[dict[TaskId, Schedule]]:
    """Return all schedules by task: for listings."""
    rows = yield ask("list_schedules")
    return {TaskId(row["task_id"]): codec.read_schedule(row) for row in rows}


def schedule_of(task_id: TaskId) -> Steps[Schedule | None]:
    rows = yield ask("read_schedule", task_id=task_id)
    return codec.read_schedule(rows[0]) if rows else None


def at_version(task_id: int, version: int) -> Steps[Task]:
    """Return a task as it was at one version: runs finish by theirs, also when the task has been removed since."""
    rows = yield ask("read_task_at_version", task_id=task_id, version=version)
    if not rows:
        raise NotFound(f"no version {version} of task {task_id} is kept.")
    return codec.read_task(rows[0])
