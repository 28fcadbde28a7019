"""Verbs on tasks: apply, pause, resume, and what others read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import uuid4

from oncue.errors import Conflict, NotFound
from oncue.model import Change, Definition, Json, Schedule, ScheduleState, Task, TaskId, Timing
from oncue.rules import firing, times
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask
from oncue.store.schedules import record_firings


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying one definition came to."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "removed"]
    version: int


def apply(definitions: Sequence[Definition], *, prune: bool, actor: str, now: datetime) -> Steps[list[Applied]]:
    """Make the store's tasks as these definitions say, all or none. What is due already is first decided as before."""
    tasks = {task.name: task for task in (yield from _locked())}
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


def _locked() -> Steps[list[Task]]:
    rows = yield ask("lock_tasks")
    return [codec.read_task(row) for row in rows]


def _create(definition: Definition, *, now: datetime) -> Steps[Applied]:
    uuid = uuid4()
    rows = yield ask("insert_task", uuid=uuid, name=definition.name, now=now)
    task_id = TaskId(rows[0]["id"])
    yield from _write_definition(task_id, 1, definition, now=now)
    if definition.schedule is not None:
        timing = _timing(definition, definition.schedule, anchor=now)
        yield from _write_schedule(Schedule(task_id, uuid, 1, 1, None, None, codec.write_timing(timing)), now=now)
    yield Change("task", definition.name, "active", "created")
    return Applied(definition.name, "created", 1)


def _change(old: Task, definition: Definition, *, now: datetime) -> Steps[Applied]:
    version = old.version + 1
    schedule = yield from _decide_due(old.id, now=now)
    yield ask("change_task", id=old.id, name=definition.name, version=version, now=now)
    yield from _write_definition(old.id, version, definition, now=now)
    if definition.schedule is None:
        yield ask("delete_schedule", task_id=old.id)
    elif schedule is None or codec.read_timing(schedule.timing).schedule != definition.schedule:
        timing = codec.write_timing(_timing(definition, definition.schedule, anchor=now))
        last = schedule.last_due_at if schedule else None
        state: ScheduleState = "paused" if old.state == "paused" else "active"
        version_seen = schedule.version + 1 if schedule else 1
        fresh = Schedule(old.id, old.uuid, version, version_seen, None, last, timing, state)
        yield from _write_schedule(fresh, now=now)
    else:
        kept = codec.read_timing(schedule.timing)
        timing = codec.write_timing(_timing(definition, definition.schedule, anchor=kept.anchor))
        yield ask("change_timing", task_id=old.id, task_version=version, timing=timing)
        if schedule.next_at is not None:
            yield Wake("clock", schedule.next_at)
    yield Change("task", definition.name, old.state, "changed", {"version": version})
    return Applied(definition.name, "changed", version)


def _decide_due(task_id: TaskId, *, now: datetime) -> Steps[Schedule | None]:
    """Decide by the old version what is due already, and return the schedule as it stands then."""
    schedule = yield from _schedule(task_id)
    if schedule is None or schedule.state != "active" or schedule.next_at is None or schedule.next_at > now:
        return schedule
    timing = codec.read_timing(schedule.timing)
    trigger = times.read_trigger(timing.schedule, anchor=timing.anchor, name=timing.name)
    while schedule is not None and schedule.state == "active" and schedule.next_at and schedule.next_at <= now:
        yield from record_firings([firing.decide(schedule, trigger, timing.misfire, now=now)], now=now)
        schedule = yield from _schedule(task_id)
    return schedule


def _schedule(task_id: TaskId) -> Steps[Schedule | None]:
    rows = yield ask("lock_schedule", task_id=task_id)
    return codec.read_schedule(rows[0]) if rows else None


def _remove(task: Task, *, now: datetime) -> Steps[Applied]:
    yield from _decide_due(task.id, now=now)
    yield ask("move_task", id=task.id, state="removed", reason="removed by apply --prune", now=now)
    yield ask("delete_schedule", task_id=task.id)
    yield Change("task", task.name, "removed", "removed by apply --prune")
    return Applied(task.name, "removed", task.version)


def _write_definition(task_id: TaskId, version: int, definition: Definition, *, now: datetime) -> Steps[None]:
    text = codec.write_definition(replace(definition, renamed_from=None))
    yield ask("insert_definition", task_id=task_id, version=version, definition=text, now=now)


def _timing(definition: Definition, schedule: Json, *, anchor: datetime) -> Timing:
    return Timing(schedule, anchor, definition.misfire, definition.overlap, definition.name)


def _write_schedule(schedule: Schedule, *, now: datetime) -> Steps[None]:
    """Write a schedule whose trigger is new: it first fires strictly after now."""
    timing = codec.read_timing(schedule.timing)
    trigger = times.read_trigger(timing.schedule, anchor=timing.anchor, name=timing.name)
    after = max(now, schedule.last_due_at) if schedule.last_due_at else now
    next_at = times.next_after(trigger, after)
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
    """Stop a task's triggers until it is resumed. A task that is paused already stays so, with the new reason."""
    task = yield from read(name)
    yield ask("move_task", id=task.id, state="paused", reason=reason, now=now)
    yield ask("pause_schedule", task_id=task.id, reason=reason)
    yield ask("insert_audit", now=now, actor=actor, verb="pause", subject=name, detail=reason)
    yield Change("task", name, "paused", reason)
    yield Wake("ingest", now)
    return replace(task, state="paused", reason=reason)


def resume(name: str, *, actor: str, now: datetime) -> Steps[Task]:
    """Let a task's triggers work again. Times that passed meanwhile go into the ledger, and do not run."""
    task = yield from read(name)
    if task.state != "paused":
        raise Conflict(f'task "{name}" is {task.state}, not paused: there is nothing to resume.')
    yield ask("move_task", id=task.id, state="active", reason=None, now=now)
    schedule = yield from _schedule(task.id)
    if schedule is not None and schedule.state == "paused":
        yield from _resume_schedule(schedule, reason=task.reason or "paused", now=now)
    yield ask("insert_audit", now=now, actor=actor, verb="resume", subject=name, detail=None)
    yield Change("task", name, "active", "resumed")
    yield Wake("ingest", now)
    return replace(task, state="active", reason=None)


def _resume_schedule(schedule: Schedule, *, reason: str, now: datetime) -> Steps[None]:
    timing = codec.read_timing(schedule.timing)
    trigger = times.read_trigger(timing.schedule, anchor=timing.anchor, name=timing.name)
    next_at, entry = firing.pass_over(schedule, trigger, now=now, verdict="paused", reason=f"paused: {reason}")
    state, why = ("active", None) if next_at else ("finished", "no further times")
    last = entry.last_due_at if entry else schedule.last_due_at
    yield ask("resume_schedule", task_id=schedule.task_id, state=state, reason=why, next_at=next_at, last_due_at=last)
    if entry is not None:
        row = (
            schedule.task_id,
            schedule.task_version,
            entry.first_due_at,
            entry.last_due_at,
            entry.count,
            entry.verdict,
            entry.reason,
            now,
        )
        yield ask("insert_ledger", rows=[row])
    if next_at is not None:
        yield Wake("clock", next_at)


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


def fingerprint() -> Steps[tuple[int, datetime | None]]:
    """Return something that differs whenever a task was created, changed, paused, resumed or removed."""
    rows = yield ask("read_fingerprint")
    return rows[0]["count"], codec.as_time(rows[0]["changed_at"])


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
