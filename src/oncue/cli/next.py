"""`oncue next`: when is it due? For a task that is stored or in a file, or for a schedule given on the spot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn
from zoneinfo import ZoneInfo

import typer

from oncue import wall
from oncue.cli import following, upcoming
from oncue.cli.ahead import ask_store, read_trigger, with_calendars
from oncue.cli.session import opened
from oncue.errors import NotFound, OncueError
from oncue.model import Schedule
from oncue.rules import followed, identity, times
from oncue.rules.triggers import zones
from oncue.rules.triggers.at import read_moment
from oncue.store import codec, tasks
from oncue.taskfile import read_task_file

USAGE = "Give a task, or exactly one of --cron, --every, --at and --rrule."
FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Plan:
    """The times that a schedule is due at, in order, with what is to be said of each and of all."""

    words: str
    zone: ZoneInfo
    moments: list[datetime]
    notes: list[str]
    remarks: list[str]


def next_(
    task: Annotated[str | None, typer.Argument(help="The task, as named in the task file.", show_default=False)] = None,
    cron: Annotated[str | None, typer.Option(help='Five cron fields, such as "0 9 * * mon-fri".')] = None,
    every: Annotated[str | None, typer.Option(help="A step, such as 5m, P1D or R/<anchor>/PT5M.")] = None,
    at: Annotated[str | None, typer.Option(help="One time, in ISO 8601.")] = None,
    rrule: Annotated[str | None, typer.Option(help="DTSTART=20260306T090000;FREQ=DAILY;...")] = None,
    zone: Annotated[str | None, typer.Option(help="The time zone of the schedule (else UTC).")] = None,
    dialect: Annotated[str | None, typer.Option(help="How the cron is spelled: unix, quartz or aws.")] = None,
    dst: Annotated[str | None, typer.Option(help="What clock changes do: gap=skip,repeat=both.")] = None,
    start: Annotated[str | None, typer.Option(help="No time is before this.")] = None,
    end: Annotated[str | None, typer.Option(help="No time is after this.")] = None,
    file: Annotated[Path | None, typer.Option(help="Look the task up in this task file, not in the store.")] = None,
    after: Annotated[str | None, typer.Option(help="Only times later than this (else now).")] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="How many times.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show when a task, or a schedule given on the spot, is due next."""
    kinds = _given(cron=cron, every=every, at=at, rrule=rrule)
    spec = kinds | _given(zone=zone, dialect=dialect, dst=_read_dst(dst), start=start, end=end)
    if len(kinds) + (task is not None) != 1:
        _refuse(USAGE)
    if task is None and file is not None:
        _refuse("--file is looked through for a task: name it.")
    if task is not None and (wrong := [key for key in spec if key != "zone"]):
        _refuse(f"--{wrong[0]} is part of a schedule given on the spot: task {task} has its own.")
    try:
        begin = _read_after(after, zone)
        if task is None:
            plan = next_of_spec(spec, after=begin, count=count)
        elif file is None:
            plan = next_of_task(task, after=begin, count=count)
        else:
            plan = next_of_file(file, task, after=begin, count=count)
    except OncueError as error:
        _refuse(str(error))
    typer.echo(_as_json(plan) if as_json else _as_table(plan))


def next_of_spec(spec: Mapping[str, Any], *, after: datetime, count: int) -> Plan:
    """Return the next times of a schedule in the form of a task file. Steps begin at `after`."""
    trigger = times.read_trigger(spec, anchor=after)
    if "rrule" not in spec:
        # A rule that names no time is shown as such here: `apply` is where it is refused.
        times.check(trigger, after)
    return _plan(trigger, times.times_between(trigger, after, FOREVER, count), count)


def next_of_file(file: Path, task: str, *, after: datetime, count: int) -> Plan:
    """Return the next times of a task of a file, as if it were applied at `after`. Raises NotFound, TaskFileError."""
    read = read_task_file(file)
    known = {one.name: one for one in read.definitions}
    if task not in known:
        raise NotFound(f'{file} has no task "{task}". Its tasks: {", ".join(known) or "none"}.')
    spec = known[task].schedule
    if spec is None:
        raise NotFound(_without_schedule(task))
    if followed.is_followed(spec):
        return _plan_followed(followed.read_followed(spec), [], [])
    calendars = with_calendars(read, ask_store(read.definitions))
    trigger = read_trigger(known[task], calendars, anchor=after)
    times.check(trigger, after)
    return _plan(trigger, times.times_between(trigger, after, FOREVER, count), count)


def next_of_task(task: str, *, after: datetime, count: int) -> Plan:
    """Return the next times of a stored task. Raises NotFound: there is none, or it has no schedule."""
    return asyncio.run(_read_stored(task, after, count))


def plan_of(schedule: Schedule, *, after: datetime, count: int) -> Plan:
    """Return the next times of a stored schedule: no more than it has runs left, and none where it is finished."""
    remarks = []
    if schedule.state in ("paused", "stopped"):
        remarks = [f"It is {schedule.state} ({schedule.reason}): none of them runs until that is over."]
    if (rule := codec.read_followed(schedule.timing)) is not None:
        known = [schedule.next_at] if schedule.next_at is not None and schedule.next_at > after else []
        return _plan_followed(rule, known, remarks)
    trigger = codec.read_trigger(schedule.timing)
    found = times.times_between(trigger, after, FOREVER, count)
    if schedule.state == "finished":
        found = [moment for moment in found if schedule.decided_to is not None and moment <= schedule.decided_to]
    elif schedule.runs_left is not None and schedule.next_at is not None:
        gone = [moment for moment in found if moment < schedule.next_at]
        found = found[: len(gone) + schedule.runs_left]
    return _plan(trigger, found, count, remarks)


def rows_of(plan: Plan) -> list[str]:
    """Return the times of a plan as a table."""
    return upcoming.rows_of(plan.zone, plan.moments, plan.notes) if plan.moments else []


def _plan(trigger: times.Trigger, moments: list[datetime], count: int, remarks: Sequence[str] = ()) -> Plan:
    end = [] if len(moments) == count else ["No further times."]
    notes = upcoming.notes_of(trigger, moments)
    told = [*end, *upcoming.horizon_of(trigger), *remarks]
    return Plan(times.describe(trigger), trigger.zone, moments, notes, told)


def _plan_followed(rule: followed.Followed, known: list[datetime], remarks: list[str]) -> Plan:
    """Return the one time that is known of a schedule that is read from data."""
    told = "Only that one is known: the next is read from data, and again when the task is touched."
    if not known:
        told = "None is known now: the next is read from data, and again when the task is touched."
    return Plan(followed.describe(rule), rule.zone, known, [""] * len(known), [told, *remarks])


async def _read_stored(task: str, after: datetime, count: int) -> Plan:
    async with opened() as oncue:
        found = await oncue.store.read(tasks.read, task)
        schedule = await oncue.store.read(tasks.schedule_of, found.id)
        remarks = await following.remarks_of(oncue, found.id)
    if schedule is None:
        raise NotFound(_without_schedule(task))
    plan = plan_of(schedule, after=after, count=count)
    return replace(plan, remarks=[*plan.remarks, *remarks])


def _without_schedule(task: str) -> str:
    return f'task "{task}" has no schedule: it runs when an event starts it, or when it is fired.'


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _read_dst(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        _refuse(f'--dst "{text}" is not understood: write it as gap=skip,repeat=both, or one of the two.')
    return {key.strip(): policy.strip() for key, _, policy in pairs}


def _read_after(text: str | None, zone: str | None) -> datetime:
    if text is None:
        return wall.now().replace(microsecond=0)
    return read_moment("after", text, zones.read_zone(zone or "UTC"))


def _as_json(plan: Plan) -> str:
    return json.dumps({"times": [identity.time_text(moment) for moment in plan.moments]})


def _as_table(plan: Plan) -> str:
    return "\n".join([plan.words, "", *rows_of(plan), *plan.remarks])


def _refuse(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(2)
