"""Why a task ran, or did not: one sentence for each due time, from its runs, the ledger and its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from oncue.api.shapes import Shape, Time
from oncue.cli.output import show_seconds, show_time
from oncue.model import Run, Schedule, Task
from oncue.rules import binding, times
from oncue.store import codec

CAUSES: Final = {
    "schedule": "was due by its schedule",
    "event": "was started by an event",
    "manual": "was fired by hand",
    "requeue": "was started by a requeue",
}


class WhyTime(Shape):
    """One due time, or several of one verdict, with what became of it."""

    first_due_at: Time
    last_due_at: Time
    count: int
    verdict: str
    reason: str | None
    run: UUID | None
    text: str


class WhyShape(Shape):
    """What became of a task's due times, the latest first."""

    task: str
    times: list[WhyTime]


def explain(runs: Sequence[Run], ledger: Sequence[Mapping[str, Any]]) -> list[WhyTime]:
    """Return a sentence for each due time on record, the latest first."""
    told = [_of_run(run) for run in runs] + [_of_entry(entry) for entry in ledger]
    return sorted(told, key=lambda one: one.last_due_at, reverse=True)


def explain_nothing(task: Task, schedule: Schedule | None, *, at: datetime | None, now: datetime) -> WhyTime:
    """Return the sentence for a time at which nothing is on record."""
    moment = at or now
    return WhyTime(
        first_due_at=moment,
        last_due_at=moment,
        count=0,
        verdict="nothing",
        reason=None,
        run=None,
        text=_nothing(task, schedule, at=at, now=now),
    )


def _of_run(run: Run) -> WhyTime:
    after = binding.lateness(run)
    late = f", {show_seconds(after.total_seconds())} late" if after is not None else ""
    counts = f"{run.confirmed} sent" + "".join(
        f", {count} {word}"
        for count, word in ((run.open, "open"), (run.dead, "dead"), (run.dropped, "dropped"))
        if count
    )
    caught_up = " and was caught up" if run.caught_up else ""
    what = {
        "due": "it waits for a dispatcher" if run.reason is None else f"it waits to be tried again: {run.reason}",
        "queued": f"it waits: {run.reason}",
        "running": f"it runs now{late}: {counts} so far",
        "held": f"it is held: {run.reason}",
        "settling": f"it was handed over{late}, with deliveries still open: {counts}",
        "done": f"it ran{late}: {counts}" + (f" ({run.reason})" if run.reason else ""),
        "partial": f"it ran{late}, and some of it failed: {counts}",
        "failed": f"it failed: {run.reason}",
        "skipped": f"it did not run: {run.reason}",
        "expired": f"it did not run in time: {run.reason}",
        "cancelled": f"it was cancelled: {run.reason}",
    }[run.state]
    text = f"{show_time(run.due_at)}  It {CAUSES.get(run.kind, run.cause)}{caught_up}, and {what}. Run {run.uuid}."
    return WhyTime(
        first_due_at=run.due_at,
        last_due_at=run.due_at,
        count=1,
        verdict=run.state,
        reason=run.reason,
        run=run.uuid,
        text=text,
    )


def _of_entry(entry: Mapping[str, Any]) -> WhyTime:
    count, first, last = entry["count"], entry["first_due_at"], entry["last_due_at"]
    span = f"{show_time(last)}  It" if count == 1 else f"{show_time(last)}  {count} times since {show_time(first)}"
    text = f"{span} did not run: {entry['verdict']}, {entry['reason']}."
    return WhyTime(
        first_due_at=first,
        last_due_at=last,
        count=count,
        verdict=entry["verdict"],
        reason=entry["reason"],
        run=None,
        text=text,
    )


def _nothing(task: Task, schedule: Schedule | None, *, at: datetime | None, now: datetime) -> str:
    if schedule is None:
        return f'Task "{task.name}" has no schedule: it runs when an event starts it, or when it is fired.'
    following = f" Next: {show_time(schedule.next_at)}." if schedule.next_at else ""
    if schedule.state != "active":
        return f'Nothing is on record: the schedule of "{task.name}" is {schedule.state} ({schedule.reason}).'
    if at is None:
        return f'Task "{task.name}" has not been due yet.{following}'
    if at > now:
        return f"That time has not come yet.{following}"
    if at < task.created_at:
        return f'Task "{task.name}" was created at {show_time(task.created_at)}, after that time.{following}'
    trigger = codec.read_trigger(schedule.timing)
    before, after = times.previous_before(trigger, at), times.next_after(trigger, at)
    around = " and ".join(show_time(moment) for moment in (before, after) if moment)
    return f"It was not due then. Its due times around that: {around or 'none'}."
