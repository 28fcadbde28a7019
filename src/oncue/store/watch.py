"""Verbs that look over everything: who is alive, what is late or stuck, how much there is, and what is past keeping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from oncue.store import codec, followed
from oncue.store.base import Steps, ask
from oncue.zonedata import edition

MOST = 100_000


@dataclass(frozen=True, slots=True)
class Component:
    """One running component, as it last wrote of itself."""

    instance: str
    name: str
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    zone_data: str | None


@dataclass(frozen=True, slots=True)
class Audited:
    """One thing that somebody did."""

    happened_at: datetime
    actor: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What the store looks like at one moment. Ages are those of the oldest; None where there is none."""

    tasks: int
    schedules: Mapping[str, int]
    runs_due: int
    runs_running: int
    runs_settling: int
    deliveries_waiting: int
    dead_letters_open: int
    oldest_schedule: datetime | None
    oldest_run: datetime | None
    stopped: tuple[tuple[str, str], ...]
    runs_held: int = 0


def beat(instance: str, name: str, *, host: str, pid: int, started_at: datetime, now: datetime) -> Steps[None]:
    """Say that a component of this process is alive."""
    yield ask(
        "beat",
        instance=instance,
        name=name,
        host=host,
        pid=pid,
        started_at=started_at,
        now=now,
        zone_data=edition(),
    )


def leave(instance: str) -> Steps[None]:
    """Take a component off the list when it ends in order."""
    yield ask("leave", instance=instance)


def components() -> Steps[list[Component]]:
    rows = yield ask("list_components")
    return [
        Component(
            row["instance"],
            row["name"],
            row["host"],
            row["pid"],
            codec.known_time(row["started_at"]),
            codec.known_time(row["seen_at"]),
            row["zone_data"],
        )
        for row in rows
    ]


def figures(*, now: datetime) -> Steps[Figures]:
    """Return counts and ages, each by an index; what is many is counted up to MOST."""
    tasks = (yield ask("count_tasks", limit=MOST))[0]["count"]
    schedules = {row["state"]: row["count"] for row in (yield ask("count_schedules", limit=MOST))}
    open_runs = {row["state"]: row["count"] for row in (yield ask("count_open_runs", limit=MOST))}
    deliveries = (yield ask("count_deliveries", limit=MOST))[0]["count"]
    letters = (yield ask("count_dead_letters", limit=MOST))[0]["count"]
    oldest_schedule = yield ask("oldest_schedule", now=now)
    oldest_run = yield ask("oldest_run", now=now)
    stopped = yield ask("list_stopped", limit=100)
    return Figures(
        tasks=tasks,
        schedules=schedules,
        runs_due=open_runs.get("due", 0) + open_runs.get("queued", 0),
        runs_running=open_runs.get("running", 0),
        runs_settling=open_runs.get("settling", 0),
        deliveries_waiting=deliveries,
        dead_letters_open=letters,
        oldest_schedule=codec.as_time(oldest_schedule[0]["next_at"]) if oldest_schedule else None,
        oldest_run=codec.as_time(oldest_run[0]["ready_at"]) if oldest_run else None,
        stopped=tuple((row["name"], row["reason"] or "") for row in stopped),
        runs_held=open_runs.get("held", 0),
    )


def held(*, now: datetime, before: datetime, limit: int = 1000) -> Steps[list[tuple[str, str, datetime]]]:
    """Return (task, reason, since) of runs asked for before a moment that were tried in vain and wait to be again."""
    rows = yield ask("list_held", now=now, before=before, limit=limit)
    return [(row["name"], row["reason"], codec.known_time(row["asked_at"])) for row in rows]


def ledger(task_id: int, *, first: datetime, last: datetime, limit: int) -> Steps[list[dict[str, Any]]]:
    """Return what the ledger says of a task's due times between two moments, latest first."""
    rows = yield ask("read_ledger", task_id=task_id, first=first, last=last, limit=limit)
    return [
        {
            "first_due_at": codec.known_time(row["first_due_at"]),
            "last_due_at": codec.known_time(row["last_due_at"]),
            "count": row["count"],
            "verdict": row["verdict"],
            "reason": row["reason"],
            "task_version": row["task_version"],
            "created_at": codec.known_time(row["created_at"]),
        }
        for row in rows
    ]


def audit(verb: str, *, limit: int) -> Steps[list[Audited]]:
    """Return the latest entries of the audit with a verb."""
    rows = yield ask("list_audit", verb=verb, limit=limit)
    return [
        Audited(codec.known_time(row["happened_at"]), row["actor"], row["subject"], row["detail"] or "") for row in rows
    ]


def runs_between(task_id: int, *, first: datetime, last: datetime, limit: int) -> Steps[list[Any]]:
    """Return a task's runs due between two moments, latest first."""
    rows = yield ask("read_runs_between", task_id=task_id, first=first, last=last, limit=limit)
    return [codec.read_run(row) for row in rows]


def sweep(*, ended_before: datetime, events_before: datetime, silent_before: datetime, limit: int) -> Steps[int]:
    """Delete what is past its retention, a batch at a time; answer how many rows went."""
    gone = 0
    runs = [row["id"] for row in (yield ask("old_runs", before=ended_before, limit=limit))]
    if runs:
        yield ask("delete_deliveries_of", ids=runs)
        yield ask("delete_runs", ids=runs)
        gone += len(runs)
    for name, before in (
        ("delete_dead_letters", ended_before),
        ("delete_ledger", ended_before),
        ("delete_audit", ended_before),
        ("delete_events", events_before),
        ("delete_backfills", ended_before),
        ("delete_components", silent_before),
    ):
        gone += len((yield ask(name, before=before, limit=limit)))
    return gone + (yield from followed.sweep(limit=limit))
