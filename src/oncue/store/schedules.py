"""The clock's verbs: what comes due, and the one write that makes runs and moves schedules together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from oncue.model import Change, Firing, Schedule, TaskId
from oncue.rules import identity
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask


def upcoming(*, after: tuple[datetime, int], until: datetime, limit: int) -> Steps[list[Schedule]]:
    """Return active schedules due after (time, task) `after` and up to `until`, earliest first."""
    rows = yield ask("read_upcoming", after_at=after[0], after_id=after[1], until=until, limit=limit)
    return [codec.read_schedule(row) for row in rows]


def read_clock(host: datetime) -> Steps[datetime]:
    """Return the time by which everything is decided. SQLite keeps the host's, and never gives an earlier one again."""
    rows = yield ask("read_clock", host=host)
    moment = codec.as_time(rows[0]["sampled_at"])
    assert moment is not None
    return moment


def reset_clock(host: datetime) -> Steps[None]:
    """Forget the floor of a SQLite store whose host's clock once ran ahead."""
    yield ask("reset_clock", host=host)


def record_firings(firings: Sequence[Firing], *, now: datetime) -> Steps[set[TaskId]]:
    """Write runs, ledger and next times of the schedules that still stand as they were read; return which those are.

    A schedule that changed meanwhile is left alone, with everything that was decided about it.
    """
    moved = yield ask("advance_schedules", rows=[_advance(firing) for firing in firings])
    won = {TaskId(row["task_id"]) for row in moved}
    kept = [firing for firing in firings if firing.schedule.task_id in won]
    if runs := [run for firing in kept for run in _runs(firing, now)]:
        yield ask("insert_scheduled_runs", rows=runs)
        yield Wake("dispatcher", now)
        yield Change("run", "", "due", facts={"count": len(runs)})
    if entries := [entry for firing in kept for entry in _entries(firing, now)]:
        yield ask("insert_ledger", rows=entries)
    for firing in kept:
        if firing.state != "active":
            yield Change("schedule", str(firing.schedule.task_id), firing.state, firing.reason)
    return won


def _advance(firing: Firing) -> tuple[object, ...]:
    schedule = firing.schedule
    return schedule.task_id, schedule.version, firing.next_at, firing.last_due_at, firing.state, firing.reason


def _runs(firing: Firing, now: datetime) -> list[tuple[object, ...]]:
    if not firing.runs:
        return []
    schedule = firing.schedule
    timing = codec.read_timing(schedule.timing)
    overlap = None if timing.overlap == "allow" else timing.overlap
    rows: list[tuple[object, ...]] = []
    for run in firing.runs:
        cause = identity.schedule_cause(run.due_at)
        uuid = identity.run_uuid(schedule.task_uuid, cause)
        rows.append(
            (
                uuid,
                schedule.task_id,
                schedule.task_version,
                cause,
                run.due_at,
                run.previous_due_at,
                now,
                overlap,
                run.caught_up,
            )
        )
    return rows


def _entries(firing: Firing, now: datetime) -> list[tuple[object, ...]]:
    schedule = firing.schedule
    return [
        (
            schedule.task_id,
            schedule.task_version,
            entry.first_due_at,
            entry.last_due_at,
            entry.count,
            entry.verdict,
            entry.reason,
            now,
        )
        for entry in firing.ledger
    ]
