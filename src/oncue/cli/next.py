"""`oncue next`: when is it due? For a task that is stored or in a file, or for a schedule given on the spot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from oncue import wall
from oncue.cli import upcoming
from oncue.cli.ahead import ask_store, read_trigger, with_calendars
from oncue.cli.session import opened
from oncue.errors import NotFound, OncueError
from oncue.model import Schedule
from oncue.rules import identity, times, zones
from oncue.rules.at import read_moment
from oncue.store import codec, tasks
from oncue.taskfile import read_task_file

USAGE = "Give a task, or exactly one of --cron, --every, --at and --rrule."
FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Plan:
    """The times that a trigger is due at, in order; `remark` is what keeps a task from running then."""

    trigger: times.Trigger
    moments: list[datetime]
    remark: str | None = None


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
    typer.echo(_as_json(plan) if as_json else _as_table(plan, count))


def next_of_spec(spec: Mapping[str, Any], *, after: datetime, count: int) -> Plan:
    """Return the next times of a schedule in the form of a task file. Steps begin at `after`."""
    trigger = times.read_trigger(spec, anchor=after)
    if "rrule" not in spec:
        # A rule that names no time is shown as such here: `apply` is where it is refused.
        times.check(trigger, after)
    return Plan(trigger, times.times_between(trigger, after, FOREVER, count))


def next_of_file(file: Path, task: str, *, after: datetime, count: int) -> Plan:
    """Return the next times of a task of a file, as if it were applied at `after`. Raises NotFound, TaskFileError."""
    read = read_task_file(file)
    known = {one.name: one for one in read.definitions}
    if task not in known:
        raise NotFound(f'{file} has no task "{task}". Its tasks: {", ".join(known) or "none"}.')
    if known[task].schedule is None:
        raise NotFound(_without_schedule(task))
    calendars = with_calendars(read, ask_store(read.definitions))
    trigger = read_trigger(known[task], calendars, anchor=after)
    return Plan(trigger, times.times_between(trigger, after, FOREVER, count))


def next_of_task(task: str, *, after: datetime, count: int) -> Plan:
    """Return the next times of a stored task. Raises NotFound: there is none, or it has no schedule."""
    return asyncio.run(_read_stored(task, after, count))


def moments_of(schedule: Schedule, *, after: datetime, count: int) -> list[datetime]:
    """Return the next times of a stored schedule: no more than it has runs left, and none where it is finished."""
    found = times.times_between(codec.read_trigger(schedule.timing), after, FOREVER, count)
    if schedule.state == "finished":
        return [moment for moment in found if schedule.decided_to is not None and moment <= schedule.decided_to]
    if schedule.runs_left is None or schedule.next_at is None:
        return found
    gone = [moment for moment in found if moment < schedule.next_at]
    return found[: len(gone) + schedule.runs_left]


async def _read_stored(task: str, after: datetime, count: int) -> Plan:
    async with opened() as oncue:
        found = await oncue.store.read(tasks.read, task)
        schedule = await oncue.store.read(tasks.schedule_of, found.id)
    if schedule is None:
        raise NotFound(_without_schedule(task))
    remark = None
    if schedule.state in ("paused", "stopped"):
        remark = f"It is {schedule.state} ({schedule.reason}): none of them runs until that is over."
    trigger = codec.read_trigger(schedule.timing)
    return Plan(trigger, moments_of(schedule, after=after, count=count), remark)


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


def _as_table(plan: Plan, count: int) -> str:
    rows = upcoming.rows_of(plan.trigger, plan.moments) if plan.moments else []
    end = [] if len(plan.moments) == count else ["No further times."]
    remark = [plan.remark] if plan.remark else []
    lines = [times.describe(plan.trigger), "", *rows, *end, *upcoming.horizon_of(plan.trigger), *remark]
    return "\n".join(lines)


def _refuse(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(2)
