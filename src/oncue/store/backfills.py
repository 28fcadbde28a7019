"""Verbs on backfills: runs that somebody asked for, for due times of a schedule that passed. The schedule stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from oncue.errors import NotFound
from oncue.model import Change, RunId, Schedule, Task, TaskId
from oncue.rules import backfilling, identity
from oncue.store import codec, tasks
from oncue.store.base import Row, Steps, Wake, ask
from oncue.store.endings import tell_ended

BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class Planned:
    """What a backfill would make of a task: a run for each of `moments`.

    `ran` counts, by state, the schedule's own runs that are on record for these times; `before` are backfills that
    covered some of the span earlier.
    """

    task: Task
    schedule: Schedule
    moments: tuple[datetime, ...]
    previous_due_at: datetime | None
    ran: Mapping[str, int] = field(default_factory=dict)
    before: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Backfill:
    """Runs that were asked for together. `states` counts those that are still kept."""

    id: int
    uuid: UUID
    task_id: TaskId
    task_name: str
    task_version: int
    first_due_at: datetime
    last_due_at: datetime
    total: int
    actor: str
    created_at: datetime
    states: Mapping[str, int]


def subject(name: str) -> Steps[tuple[Task, Schedule]]:
    """Return a task with its schedule. Raises NotFound, and Conflict where it has no due times of its own."""
    task = yield from tasks.read(name)
    schedule = yield from tasks.schedule_of(task.id)
    backfilling.check(task.definition, schedule)
    assert schedule is not None
    return task, schedule


def look_back(task: Task, moments: Sequence[datetime]) -> Steps[tuple[dict[str, int], tuple[UUID, ...]]]:
    """Return how many of these due times have a run of the schedule on record, by state, and earlier backfills."""
    uuids = [identity.run_uuid(task.uuid, identity.schedule_cause(moment)) for moment in moments]
    rows = yield ask("count_runs_by_uuid", ids=uuids)
    before = yield ask("list_backfills_between", task_id=task.id, first=moments[0], last=moments[-1])
    return {row["state"]: row["count"] for row in rows}, tuple(codec.known_uuid(row["uuid"]) for row in before)


def make(
    planned: Planned, *, key: str, pace: timedelta | None, actor: str, now: datetime
) -> Steps[tuple[Backfill, bool]]:
    """Make all runs of a backfill, or none. Raises NotFound: the task was removed meanwhile.

    The same key again answers the backfill that it made before, and False.
    """
    task, moments = planned.task, planned.moments
    uuid = identity.backfill_uuid(task.uuid, key)
    version = planned.schedule.task_version
    rows = yield ask(
        "insert_backfill",
        uuid=uuid,
        task_id=task.id,
        task_version=version,
        first_due_at=moments[0],
        last_due_at=moments[-1],
        total=len(moments),
        actor=actor,
        now=now,
    )
    if not rows:
        earlier = yield from known(task.uuid, key)
        if earlier is None:
            raise NotFound(f'task "{task.name}" was removed just now: nothing is backfilled.')
        return earlier, False
    made = _runs(planned, uuid, pace=pace, now=now)
    for start in range(0, len(made), BATCH):
        part, id = made[start : start + BATCH], rows[0]["id"]
        yield ask("insert_backfill_runs", rows=part, task_id=task.id, task_version=version, backfill_id=id, now=now)
    detail = f"{len(made)} run(s), {identity.time_text(moments[0])} to {identity.time_text(moments[-1])}"
    yield ask("insert_audit", now=now, actor=actor, verb="backfill", subject=task.name, detail=detail)
    yield Wake("dispatcher", now)
    yield Change("run", "", "due", facts={"count": len(made)})
    return (yield from read(uuid)), True


def _runs(planned: Planned, backfill: UUID, *, pace: timedelta | None, now: datetime) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    previous = planned.previous_due_at
    for place, due_at in enumerate(planned.moments):
        cause = identity.backfill_cause(backfill, due_at)
        turn = now + place * pace if pace else None
        rows.append((identity.run_uuid(planned.task.uuid, cause), cause, due_at, previous, turn or now, turn))
        previous = due_at
    return rows


def read(uuid: UUID) -> Steps[Backfill]:
    """Return a backfill with its progress. Raises NotFound."""
    rows = yield ask("read_backfill", uuid=uuid)
    if not rows:
        raise NotFound(f"no backfill {uuid}. `oncue backfills` lists them.")
    return (yield from _with_progress(rows))[0]


def known(task_uuid: UUID, key: str) -> Steps[Backfill | None]:
    """Return the backfill that a key made of a task before."""
    rows = yield ask("read_backfill", uuid=identity.backfill_uuid(task_uuid, key))
    return (yield from _with_progress(rows))[0] if rows else None


def latest(*, before: int | None = None, limit: int) -> Steps[list[Backfill]]:
    """Return backfills with their progress, the latest first."""
    rows = yield ask("list_backfills", before=before or 2**62, limit=limit)
    return (yield from _with_progress(rows))


def cancel(uuid: UUID, *, reason: str, actor: str, now: datetime) -> Steps[Backfill]:
    """End the runs of a backfill that wait; what runs goes on. Raises NotFound."""
    backfill = yield from read(uuid)
    rows = yield ask("cancel_backfill_runs", backfill_id=backfill.id, reason=reason, now=now)
    detail = f"{backfill.uuid}: {len(rows)} run(s), {reason}"
    yield ask("insert_audit", now=now, actor=actor, verb="cancel", subject=backfill.task_name, detail=detail)
    yield from tell_ended([RunId(row["id"]) for row in rows], now=now)
    return (yield from read(uuid))


def _with_progress(rows: Sequence[Row]) -> Steps[list[Backfill]]:
    states: dict[int, dict[str, int]] = {row["id"]: {} for row in rows}
    for row in (yield ask("count_backfill_runs", ids=list(states))) if states else ():
        states[row["backfill_id"]][row["state"]] = row["count"]
    return [
        Backfill(
            row["id"],
            codec.known_uuid(row["uuid"]),
            TaskId(row["task_id"]),
            row["task_name"],
            row["task_version"],
            codec.known_time(row["first_due_at"]),
            codec.known_time(row["last_due_at"]),
            row["total"],
            row["actor"],
            codec.known_time(row["created_at"]),
            states[row["id"]],
        )
        for row in rows
    ]
