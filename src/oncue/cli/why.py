"""Why a task ran, or did not: one sentence for each due time, from its runs, the ledger and its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from oncue.api.shapes import Shape, Time
from oncue.cli.output import show_seconds, show_time
from oncue.model import Run, Schedule, Task
from oncue.rules import binding, times, verdicts
from oncue.store import codec

TICK: Final = timedelta(microseconds=1)
LATE: Final = "was made for rows that appeared behind the horizon"
CAUSES: Final = {
    "schedule": "was due by its schedule",
    "event": "was started by an event",
    "manual": "was fired by hand",
    "backfill": "was asked for by a backfill",
    "requeue": "was started by a requeue",
}


class WhyTime(Shape):
    """One due time, or several of one verdict, with what became of it. `state` is that of the run, if there is one."""

    first_due_at: Time
    last_due_at: Time
    count: int
    verdict: str
    reason: str | None
    task_version: int | None
    run: UUID | None
    state: str | None
    text: str


class WhyShape(Shape):
    """What became of a task's due times, the latest first."""

    task: str
    times: list[WhyTime]


def explain(task: Task, runs: Sequence[Run], ledger: Sequence[Mapping[str, Any]]) -> list[WhyTime]:
    """Return a sentence for each due time on record, the latest first."""
    told = [_of_run(run, grace=task.definition.misfire.grace) for run in runs] + [_of_entry(entry) for entry in ledger]
    return sorted(told, key=lambda one: one.last_due_at, reverse=True)


def only_due(schedule: Schedule | None, ledger: Sequence[dict[str, Any]], *, at: datetime) -> list[dict[str, Any]]:
    """Return the entries that speak of one moment: of a range, only where the moment is one of its due times."""
    if schedule is not None and codec.read_followed(schedule.timing) is not None:
        return list(ledger)  # a row is a span of time, whoever was due in it
    trigger = codec.read_trigger(schedule.timing) if schedule else None
    named = trigger is not None and times.next_after(trigger, at - TICK) == at
    left_out = trigger is not None and bool(times.dropped_between(trigger, at - TICK, at))
    return [entry for entry in ledger if entry["count"] == 1 or trigger is None or named or left_out]


def holding(runs: Sequence[Run], at: datetime) -> list[Run]:
    """Return the runs of a followed schedule whose windows hold a moment."""
    return [run for run in runs if run.previous_due_at is not None and run.previous_due_at < at <= run.due_at]


def explain_nothing(task: Task, schedule: Schedule | None, *, at: datetime | None, now: datetime) -> WhyTime:
    """Return the sentence for a time at which nothing is on record."""
    moment = at or now
    return WhyTime(
        first_due_at=moment,
        last_due_at=moment,
        count=0,
        verdict="nothing",
        reason=None,
        task_version=None,
        run=None,
        state=None,
        text=_nothing(task, schedule, at=at, now=now),
    )


def _of_run(run: Run, *, grace: timedelta) -> WhyTime:
    verdict, cause = verdicts.of_run(run, grace=grace), _cause(run)
    caught_up = " and was caught up" if run.caught_up else ""
    ends = f"Run {run.uuid}, version {run.task_version}."
    return WhyTime(
        first_due_at=run.due_at,
        last_due_at=run.due_at,
        count=1,
        verdict=verdict,
        reason=run.reason,
        task_version=run.task_version,
        run=run.uuid,
        state=run.state,
        text=f"{show_time(run.due_at)}  {verdict}: it {cause}{caught_up}, and {_what_became_of(run)}. {ends}",
    )


def _what_became_of(run: Run) -> str:
    after = binding.lateness(run)
    late = f", {show_seconds(after.total_seconds())} late" if after is not None else ""
    if run.starts_at is not None:
        late += f" after its jitter of {show_seconds((run.starts_at - run.due_at).total_seconds())}"
    counts = f"{run.confirmed} sent" + "".join(
        f", {count} {word}"
        for count, word in ((run.open, "open"), (run.dead, "dead"), (run.dropped, "dropped"))
        if count
    )
    return {
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


def _cause(run: Run) -> str:
    return LATE if run.kind == "schedule" and ":late:" in run.cause else CAUSES.get(run.kind, run.cause)


def _of_entry(entry: Mapping[str, Any]) -> WhyTime:
    count, first, last = entry["count"], entry["first_due_at"], entry["last_due_at"]
    verdict, version = verdicts.of_entry(entry["verdict"]), entry["task_version"]
    span = "it" if count == 1 else f"{count} times since {show_time(first)}"
    if count == 1 and first != last:
        span = f"whoever was due since {show_time(first)}"
    text = f"{show_time(last)}  {verdict}: {span} did not run: {entry['reason']}. Version {version}."
    return WhyTime(
        first_due_at=first,
        last_due_at=last,
        count=count,
        verdict=verdict,
        reason=entry["reason"],
        task_version=version,
        run=None,
        state=None,
        text=text,
    )


def _explained(schedule: Schedule, at: datetime) -> str:
    if codec.read_followed(schedule.timing) is not None:
        return "its data says who is due then."
    return times.explain(codec.read_trigger(schedule.timing), at)


def _nothing(task: Task, schedule: Schedule | None, *, at: datetime | None, now: datetime) -> str:
    if schedule is None:
        return f'Task "{task.name}" has no schedule: it runs when an event starts it, or when it is fired.'
    following = f" Next: {show_time(schedule.next_at)}." if schedule.next_at else ""
    if schedule.state != "active":
        return f'Nothing is on record: the schedule of "{task.name}" is {schedule.state} ({schedule.reason}).'
    if at is None:
        return f'Task "{task.name}" has not been due yet.{following}'
    if at > now:
        return f"{show_time(at)}  That time has not come yet: {_explained(schedule, at)}{following}"
    if at < task.created_at:
        return f'Task "{task.name}" was created at {show_time(task.created_at)}, after that time.{following}'
    if codec.read_followed(schedule.timing) is not None:
        return f"{show_time(at)}  Nobody was due then by the data, when it was asked.{following}"
    return f"{show_time(at)}  It was not due then: {times.explain(codec.read_trigger(schedule.timing), at)}"
