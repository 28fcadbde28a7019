"""Verbs on runs that a task's `hold` made wait for a person: list, release, drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from oncue.model import Change, RunId, TaskId
from oncue.store import codec
from oncue.store.base import Row, Steps, Wake, ask
from oncue.store.endings import tell_ended


@dataclass(frozen=True, slots=True)
class Held:
    """The held runs of one task: how many, for which due times, and since when."""

    task_id: TaskId
    task_name: str
    count: int
    first_due_at: datetime
    last_due_at: datetime
    since: datetime


def every() -> Steps[list[Held]]:
    """Return the tasks that have held runs, by name."""
    rows = yield ask("count_held_runs")
    return [
        Held(
            TaskId(row["task_id"]),
            row["name"],
            row["count"],
            codec.known_time(row["first_due_at"]),
            codec.known_time(row["last_due_at"]),
            codec.known_time(row["since"]),
        )
        for row in rows
    ]


def due_times(task_id: TaskId, *, limit: int) -> Steps[list[datetime]]:
    """Return the due times of a task's held runs, the earliest first."""
    rows = yield ask("list_held_runs", task_id=task_id, limit=limit)
    return [codec.known_time(row["due_at"]) for row in rows]


def release(task_ids: Sequence[TaskId], *, actor: str, now: datetime) -> Steps[int]:
    """Let held runs go: they wait their turn as caught-up runs do; answer how many."""
    rows = yield ask("release_held_runs", ids=sorted(task_ids), now=now)
    yield from _note(rows, verb="release", actor=actor, now=now)
    if rows:
        yield Wake("dispatcher", now)
        yield Change("run", "", "due", facts={"count": len(rows)})
    return len(rows)


def drop(task_ids: Sequence[TaskId], *, reason: str, actor: str, now: datetime) -> Steps[int]:
    """End held runs as cancelled; answer how many."""
    rows = yield ask("drop_held_runs", ids=sorted(task_ids), reason=reason, now=now)
    yield from _note(rows, verb="drop", actor=actor, now=now)
    yield from tell_ended([RunId(row["id"]) for row in rows], now=now)
    return len(rows)


def _note(rows: Sequence[Row], *, verb: str, actor: str, now: datetime) -> Steps[None]:
    counts: dict[int, int] = {}
    for row in rows:
        counts[row["task_id"]] = counts.get(row["task_id"], 0) + 1
    for named in (yield ask("read_task_names", ids=sorted(counts))) if counts else []:
        detail = f"{counts[named['id']]} held run(s)"
        yield ask("insert_audit", now=now, actor=actor, verb=verb, subject=named["name"], detail=detail)
