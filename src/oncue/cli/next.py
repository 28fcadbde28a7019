"""`oncue next`: when is it due? For a stored task, or for a schedule given on the spot; nothing is written."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, NoReturn

import typer

from oncue import wall
from oncue.cli.session import opened
from oncue.errors import NotFound, OncueError
from oncue.rules import identity, times, zones
from oncue.rules.at import read_moment
from oncue.store import codec, tasks

USAGE = "Give a task, or exactly one of --cron, --every, --at and --rrule."


@dataclass(frozen=True, slots=True)
class Plan:
    """The times that a trigger is due at, in order."""

    trigger: times.Trigger
    moments: list[datetime]


def next_(
    task: Annotated[str | None, typer.Argument(help="The task, as named in the task file.", show_default=False)] = None,
    cron: Annotated[str | None, typer.Option(help='Five cron fields, such as "0 9 * * mon-fri".')] = None,
    every: Annotated[str | None, typer.Option(help="A step, such as 5m, P1D or R/<anchor>/PT5M.")] = None,
    at: Annotated[str | None, typer.Option(help="One time, in ISO 8601.")] = None,
    rrule: Annotated[str | None, typer.Option(help="DTSTART=20260306T090000;FREQ=DAILY;...")] = None,
    zone: Annotated[str | None, typer.Option(help="The time zone of the schedule (else UTC).")] = None,
    after: Annotated[str | None, typer.Option(help="Only times later than this (else now).")] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="How many times.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show when a task, or a schedule given on the spot, is due next."""
    given = {"cron": cron, "every": every, "at": at, "rrule": rrule}
    spec = {kind: text for kind, text in given.items() if text is not None}
    if len(spec) + (task is not None) != 1:
        _refuse(USAGE)
    try:
        start = _read_after(after, zone)
        if task is None:
            plan = next_of_spec(spec | ({"zone": zone} if zone is not None else {}), after=start, count=count)
        else:
            plan = next_of_task(task, after=start, count=count)
    except OncueError as error:
        _refuse(str(error))
    typer.echo(_as_json(plan) if as_json else _as_table(plan, count))


def next_of_spec(spec: dict[str, str], *, after: datetime, count: int) -> Plan:
    """Return the next times of a schedule in the form of a task file. Steps begin at `after`."""
    trigger = times.read_trigger(spec, anchor=after)
    if not isinstance(trigger, times.Rrule):
        # A rule that names no time is shown as such here: `apply` is where it is refused.
        times.check(trigger, after)
    return Plan(trigger, times.times_between(trigger, after, datetime.max.replace(tzinfo=UTC), count))


def next_of_task(task: str, *, after: datetime, count: int) -> Plan:
    """Return the next times of a stored task. Raises NotFound: there is none, or it has no schedule."""
    return asyncio.run(_read_stored(task, after, count))


async def _read_stored(task: str, after: datetime, count: int) -> Plan:
    async with opened() as oncue:
        found = await oncue.store.read(tasks.read, task)
        schedule = await oncue.store.read(tasks.schedule_of, found.id)
    if schedule is None:
        raise NotFound(f'task "{task}" has no schedule: it runs when an event starts it, or when it is fired.')
    trigger = codec.read_trigger(schedule.timing)
    return Plan(trigger, times.times_between(trigger, after, datetime.max.replace(tzinfo=UTC), count))


def _read_after(text: str | None, zone: str | None) -> datetime:
    if text is None:
        return wall.now().replace(microsecond=0)
    return read_moment("after", text, zones.read_zone(zone or "UTC"))


def _as_json(plan: Plan) -> str:
    return json.dumps({"times": [identity.time_text(moment) for moment in plan.moments]})


def _as_table(plan: Plan, count: int) -> str:
    zone = plan.trigger.zone
    rows = [(zone.key, "UTC", "")]
    for moment in plan.moments:
        local = moment.astimezone(zone)
        note = times.note_of(plan.trigger, moment) or ""
        rows.append((f"{local:%a} {local.isoformat(' ')}", identity.time_text(moment), note))
    if zone.key == "UTC":
        rows = [(local, note, "") for local, _, note in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in rows]
    end = [] if len(plan.moments) == count else ["No further times."]
    return "\n".join([times.describe(plan.trigger), "", *(lines if plan.moments else []), *end])


def _refuse(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(2)
