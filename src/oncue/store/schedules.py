"""The clock's verbs: what comes due, and the one write that makes runs and moves schedules together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from oncue.model import Change, Schedule, TaskId
from oncue.rules import firing, followed, identity, states
from oncue.rules.firing import Firing, LedgerEntry
from oncue.store import codec
from oncue.store import followed as following
from oncue.store.base import Steps, Wake, ask
from oncue.zonedata import edition

FIRST: Final = states.first("run")
HELD: Final = states.move("run", FIRST, "hold")
READY_AT: Final = 6  # of a row of insert_scheduled_runs
TO_CATCH_UP: Final = "missed, and held for a person: see `oncue catch-up`"


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


def decide(schedule: Schedule, *, now: datetime) -> Firing:
    """Decide one schedule; one whose rule cannot be followed is stopped with its reason, and its neighbours run on."""
    try:
        misfire, pace = codec.read_timing(schedule.timing).misfire, codec.read_pacing(schedule.timing)
        if codec.read_followed(schedule.timing) is not None:
            return followed.decide(schedule, misfire, now=now)
        return firing.decide(schedule, codec.read_trigger(schedule.timing), misfire, now=now, pace=pace)
    except (ValueError, OverflowError, LookupError, OSError) as error:
        return firing.stop(schedule, str(error) or type(error).__name__)


def record_firings(firings: Sequence[Firing], *, now: datetime) -> Steps[set[TaskId]]:
    """Write runs, ledger and next times of the schedules that still stand as they were read; return which those are.

    A schedule that changed meanwhile is left alone, with everything that was decided about it.
    """
    firings = sorted(firings, key=lambda one: one.schedule.task_id)  # one lock order: two clocks never wait in a ring
    moved = yield ask("advance_schedules", rows=[_advance(one) for one in firings], zone_data=edition())
    won = {TaskId(row["task_id"]) for row in moved}
    kept = [one for one in firings if one.schedule.task_id in won]
    if runs := [run for one in kept for run in _runs(one, now)]:
        yield ask("insert_scheduled_runs", rows=runs, now=now)
        yield Wake("dispatcher", min(run[READY_AT] for run in runs))
        yield Change("run", "", "due", facts={"count": len(runs)})
    if entries := [_entry(one.schedule, entry, now) for one in kept for entry in one.ledger]:
        yield ask("insert_ledger", rows=entries)
    if windows := [one for one in kept if followed.is_followed(codec.read_timing(one.schedule.timing).schedule)]:
        yield from following.advance(windows, now=now)
    for one in kept:
        if one.state != "active":
            yield Change("schedule", str(one.schedule.task_id), one.state, one.reason)
    return won


def note_in_ledger(schedule: Schedule, entries: Sequence[LedgerEntry], *, now: datetime) -> Steps[None]:
    """Write down which due times of a schedule made no run, and why."""
    if entries:
        yield ask("insert_ledger", rows=[_entry(schedule, entry, now) for entry in entries])


def _advance(fired: Firing) -> tuple[object, ...]:
    schedule = fired.schedule
    return (
        schedule.task_id,
        schedule.version,
        fired.next_at,
        fired.last_due_at,
        fired.state,
        fired.reason,
        fired.runs_left,
    )


def _runs(fired: Firing, now: datetime) -> list[tuple[Any, ...]]:
    if not fired.runs:
        return []
    schedule = fired.schedule
    timing = codec.read_timing(schedule.timing)
    overlap = None if timing.overlap == "allow" else timing.overlap
    rows: list[tuple[Any, ...]] = []
    for run in fired.runs:
        cause = identity.schedule_cause(run.due_at)
        rows.append(
            (
                identity.run_uuid(schedule.task_uuid, cause),
                schedule.task_id,
                schedule.task_version,
                cause,
                run.due_at,
                run.previous_due_at,
                max(now, run.starts_at) if run.starts_at else now,
                run.starts_at,
                run.spread_until,
                HELD if run.held else FIRST,
                TO_CATCH_UP if run.held else None,
                overlap,
                run.caught_up,
            )
        )
    return rows


def _entry(schedule: Schedule, entry: LedgerEntry, now: datetime) -> tuple[object, ...]:
    return (
        schedule.task_id,
        schedule.task_version,
        entry.first_due_at,
        entry.last_due_at,
        entry.count,
        entry.verdict,
        entry.reason,
        now,
    )
