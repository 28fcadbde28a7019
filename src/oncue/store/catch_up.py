"""Verbs on runs that a task's `hold` made wait for a person: list, release, drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from oncue.definition import Overlap
from oncue.model import Change, RunId, TaskId
from oncue.store import codec, tasks, watch
from oncue.store.base import Row, Steps, Wake, ask
from oncue.store.endings import tell_ended

SHOWN: Final = 10  # due times
ROWS: Final = 1000  # of the ledger
EVER: Final = timedelta(days=36_500)
PASSED_OVER: Final = ("coalesced", "missed")


@dataclass(frozen=True, slots=True)
class Held:
    """The held runs of one task: how many, for which due times, and since when. `overlap` None takes no turns."""

    task_id: TaskId
    task_name: str
    task_version: int
    count: int
    first_due_at: datetime
    last_due_at: datetime
    since: datetime
    overlap: Overlap | None


@dataclass(frozen=True, slots=True)
class ToCatchUp:
    """What a task's policies would do after an outage: the runs that wait, and what was passed over in their favour.

    `due_times` are the first of them, `passed_over` entries of the ledger. `expires` is the task's.
    """

    held: Held
    due_times: tuple[datetime, ...]
    passed_over: tuple[dict[str, Any], ...]
    expires: timedelta | None


def every() -> Steps[list[Held]]:
    """Return the tasks that have held runs, by name."""
    rows = yield ask("count_held_runs")
    return [
        Held(
            TaskId(row["task_id"]),
            row["name"],
            row["task_version"],
            row["count"],
            codec.known_time(row["first_due_at"]),
            codec.known_time(row["last_due_at"]),
            codec.known_time(row["since"]),
            row["overlap"],
        )
        for row in rows
    ]


def due_times(task_id: TaskId, *, limit: int) -> Steps[list[datetime]]:
    """Return the due times of a task's held runs, the earliest first."""
    rows = yield ask("list_held_runs", task_id=task_id, limit=limit)
    return [codec.known_time(row["due_at"]) for row in rows]


def plan(name: str | None = None, *, now: datetime) -> Steps[list[ToCatchUp]]:
    """Return what waits to be caught up, of one task or of all. Raises NotFound: there is no such task."""
    found = yield from every()
    if name is not None:
        found = [one for one in found if one.task_name == name]  # also of a task that was removed since
        if not found:
            yield from tasks.read(name)
    planned: list[ToCatchUp] = []
    for held in found:
        moments = yield from due_times(held.task_id, limit=SHOWN)
        task = yield from tasks.at_version(held.task_id, held.task_version)
        passed_over = yield from _passed_over(held, now=now)
        planned.append(ToCatchUp(held, tuple(moments), passed_over, task.definition.expires))
    return planned


def _passed_over(held: Held, *, now: datetime) -> Steps[tuple[dict[str, Any], ...]]:
    """Return what the ledger says of the same outage: entries that were written with the first held run, or later."""
    entries = yield from watch.ledger(held.task_id, first=now - EVER, last=now, limit=ROWS)
    return tuple(one for one in entries[::-1] if one["created_at"] >= held.since and one["verdict"] in PASSED_OVER)


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
