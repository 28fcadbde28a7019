"""Verbs on tasks: apply, pause, resume, and what others read of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import uuid4

from oncue.definition import Definition
from oncue.errors import Conflict, NotFound
from oncue.model import Change, Json, LedgerEntry, Schedule, ScheduleState, Task, TaskId, Timing
from oncue.rules import firing, times
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask
from oncue.store.schedules import decide, note_in_ledger, record_firings


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying one definition came to."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "removed"]
    version: int


def apply(definitions: Sequence[Definition], *, prune: bool, actor: str, now: datetime) -> Steps[list[Applied]]:
    """Make the store's tasks as these definitions say, all or none. What is due already is first decided as before."""
    _check_names(definitions)
    yield ask("begin_change")
    tasks = {task.name: task for task in (yield from every())}
    applied: list[Applied] = []
    for definition in definitions:
        old = tasks.pop(definition.name, None) or tasks.pop(definition.renamed_from or "", None)
        if old is None:
            applied.append((yield from _create(definition, now=now)))
        elif replace(old.definition, renamed_from=None) == replace(definition, renamed_from=None):
            applied.append(Applied(definition.name, "unchanged", old.version))
        else:
            applied.append((yield from _change(old, definition, now=now)))
    if prune:
        for task in tasks.values():
            applied.append((yield from _remove(task, now=now)))
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


def _create(definition: Definition, *, now: datetime) -> Steps[Applied]:
    uuid = uuid4()
    rows = yield ask("insert_task", uuid=uuid, name=definition.name, now=now)
    task_id = TaskId(rows[0]["id"])
    yield from _write_definition(task_id, 1, definition, now=now)
    if definition.schedule is not None:
        timing = codec.write_timing(_timing(definition, definition.schedule, anchor=now))
        yield from _write_schedule(Schedule(task_id, uuid, 1, _first_version(1), None, None, timing), now=now)
    yield Change("task", definition.name, "active", "created")
    return Applied(definition.name, "created", 1)


def _first_version(task_version: int) -> int:
    """Return where a schedule's version begins: above all that an earlier schedule of the task can have had.

    A clock may still hold that one; its version must not fit the new row.
    """
    return task_version << 32


def _change(old: Task, definition: Definition, *, now: datetime) -> Steps[Applied]:
    version = old.version + 1
    schedule = yield from _decide_due(old.id, now=now)
    yield ask("change_task", id=old.id, name=definition.name, version=version, now=now)
    yield from _write_definition(old.id, version, definition, now=now)
    if definition.schedule is None:
        yield from _leave_behind(schedule, now=now)
        yield ask("delete_schedule", task_id=old.id)
    elif schedule is None or codec.read_timing(schedule.timing).schedule != definition.schedule:
        yield from _leave_behind(schedule, now=now)
        timing = codec.write_timing(_timing(definition, definition.schedule, anchor=now))
        last = schedule.last_due_at if schedule else None
        state: ScheduleState = "paused" if old.state == "paused" else "active"
        fresh = Schedule(old.id, old.uuid, version, _first_version(version), None, last, timing, state)
        yield from _write_schedule(fresh, now=now)
    else:
        kept = codec.read_timing(schedule.timing)
        changed = replace(kept, misfire=definition.misfire, overlap=definition.overlap)
        yield ask("change_timing", task_id=old.id, task_version=version, timing=codec.write_timing(changed))
        if schedule.next_at is not None:
            yield Wake("clock", schedule.next_at)
    yield Change("task", definition.name, old.state, "changed", {"version": version})
    return Applied(definition.name, "changed", version)


def _decide_due(task_id: TaskId, *, now: datetime) -> Steps[Schedule | None]:
    """Decide by the old version what is due already, and return the schedule as it stands then."""
    schedule = yield from _schedule(task_id)
    while schedule is not None and schedule.state == "active" and schedule.next_at and schedule.next_at <= now:
        yield from record_firings([decide(schedule, now=now)], now=now)
        schedule = yield from _schedule(task_id)
    return schedule


def _leave_behind(schedule: Schedule | None, *, now: datetime) -> Steps[None]:
    """Note the due times that a schedule which is paused or stopped takes with it."""
    if schedule is None or schedule.next_at is None or schedule.next_at > now:
        return
    if schedule.state == "paused":
        entry = _passed(schedule, reason=schedule.reason or "paused", now=now)[1]
        yield from note_in_ledger(schedule, [entry] if entry else [], now=now)
    elif schedule.state == "stopped":
        reason = f"the schedule was stopped: {schedule.reason}"
        entry = LedgerEntry(schedule.next_at, schedule.next_at, 1, "stopped", reason)
        yield from note_in_ledger(schedule, [entry], now=now)


def _schedule(task_id: TaskId) -> Steps[Schedule | None]:
    rows = yield ask("lock_schedule", task_id=task_id)
    return codec.read_schedule(rows[0]) if rows else None


def _remove(task: Task, *, now: datetime) -> Steps[Applied]:
    reason = "removed by apply --prune"
    schedule = yield from _decide_due(task.id, now=now)
    yield from _leave_behind(schedule, now=now)
    yield ask("remove_task", id=task.id, reason=reason, now=now)
    yield ask("delete_schedule", task_id=task.id)
    yield Change("task", task.name, "removed", reason)
    return Applied(task.name, "removed", task.version)


def _write_definition(task_id: TaskId, version: int, definition: Definition, *, now: datetime) -> Steps[None]:
    text = codec.write_definition(replace(definition, renamed_from=None))
    yield ask("insert_definition", task_id=task_id, version=version, definition=text, now=now)


def _timing(definition: Definition, schedule: Json, *, anchor: datetime) -> Timing:
    hashed = "H" in str(schedule.get("cron", ""))
    return Timing(schedule, anchor, definition.misfire, definition.overlap, definition.name if hashed else "")


def _write_schedule(schedule: Schedule, *, now: datetime) -> Steps[None]:
    """Write a schedule whose trigger is new: it first fires strictly after now."""
    after = max(now, schedule.last_due_at) if schedule.last_due_at else now
    next_at = times.next_after(codec.read_trigger(schedule.timing), after)
    state, reason = (schedule.state, None) if next_at else ("finished", "no further times")
    yield ask(
        "write_schedule",
        task_id=schedule.task_id,
        task_uuid=schedule.task_uuid,
        task_version=schedule.task_version,
        version=schedule.version,
        state=state,
        reason=reason,
        next_at=next_at,
        last_due_at=schedule.last_due_at,
        timing=schedule.timing,
    )
    if next_at is not None:
        yield Wake("clock", next_at)


def pause(name: str, *, reason: str, actor: str, now: datetime) -> Steps[Task]:
    """Stop a task's triggers until it is resumed. What is due already is decided first; a paused task stays so."""
    yield ask("begin_change")
    task = yield from read(name)
    if task.state == "paused":
        return task
    yield from _decide_due(task.id, now=now)
    yield ask("pause_task", id=task.id, reason=reason, now=now)
    yield ask("pause_schedule", task_id=task.id, reason=reason)
    yield ask("insert_audit", now=now, actor=actor, verb="pause", subject=name, detail=reason)
    yield Change("task", name, "paused", reason)
    yield Wake("ingest", now)
    return replace(task, state="paused", reason=reason, changed_at=now)


def resume(name: str, *, actor: str, now: datetime) -> Steps[Task]:
    """Let a task's triggers work again. Times that passed meanwhile go into the ledger, and do not run."""
    yield ask("begin_change")
    task = yield from read(name)
    if task.state != "paused":
        raise Conflict(f'task "{name}" is {task.state}, not paused: there is nothing to resume.')
    yield ask("resume_task", id=task.id, now=now)
    schedule = yield from _schedule(task.id)
    if schedule is not None and schedule.state == "paused":
        yield from _resume_schedule(schedule, reason=task.reason or "paused", now=now)
    yield ask("insert_audit", now=now, actor=actor, verb="resume", subject=name, detail=None)
    yield Change("task", name, "active", "resumed")
    yield Wake("ingest", now)
    return replace(task, state="active", reason=None, changed_at=now)


def _resume_schedule(schedule: Schedule, *, reason: str, now: datetime) -> Steps[None]:
    next_at, entry = _passed(schedule, reason=reason, now=now)
    state, why = ("active", None) if next_at else ("finished", "no further times")
    last = entry.last_due_at if entry else schedule.last_due_at
    yield ask("resume_schedule", task_id=schedule.task_id, state=state, reason=why, next_at=next_at, last_due_at=last)
    yield from note_in_ledger(schedule, [entry] if entry else [], now=now)
    if next_at is not None:
        yield Wake("clock", next_at)


def _passed(schedule: Schedule, *, reason: str, now: datetime) -> tuple[datetime | None, LedgerEntry | None]:
    trigger = codec.read_trigger(schedule.timing)
    return firing.pass_over(schedule, trigger, now=now, verdict="paused", reason=f"paused: {reason}")


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
