"""How every change of tasks begins: one transaction after another, and pauses that are over end first."""

from __future__ import annotations

from datetime import datetime

from oncue.model import Change, TaskId
from oncue.store import codec, reckoning
from oncue.store.base import Steps, Wake, ask

MOST = 1_000


def begin(*, now: datetime) -> Steps[None]:
    """Begin a change: nobody else changes a task until the end of this transaction.

    A pause whose end is over ends as of that moment, so that what was due since then is due, whoever looks first.
    """
    yield ask("begin_change")
    for row in (yield ask("list_ended_pauses", until=now, limit=MOST)):
        yield from resume_task(
            TaskId(row["id"]),
            row["name"],
            reason=row["reason"],
            since=codec.known_time(row["changed_at"]),
            actor="clock",
            now=codec.known_time(row["resume_at"]),
        )


def resume_task(
    task_id: TaskId, name: str, *, reason: str | None, since: datetime, actor: str, now: datetime
) -> Steps[None]:
    """Let a paused task's triggers work again. Times that passed meanwhile go into the ledger, and do not run."""
    yield ask("resume_task", id=task_id, now=now)
    schedule = yield from reckoning.lock(task_id)
    if schedule is not None and schedule.state == "paused":
        yield from reckoning.resume_schedule(schedule, since=since, reason=reason or "paused", now=now)
    yield ask("insert_audit", now=now, actor=actor, verb="resume", subject=name, detail=None)
    yield Change("task", name, "active", "resumed")
    yield Wake("ingest", now)


def next_end(*, until: datetime) -> Steps[datetime | None]:
    """Return when the next pause ends, if that is by a moment."""
    rows = yield ask("list_ended_pauses", until=until, limit=1)
    return codec.known_time(rows[0]["resume_at"]) if rows else None
