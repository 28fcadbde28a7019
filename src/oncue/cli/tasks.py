"""Commands on tasks: apply, list, show, preview, fire, pause, resume."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from oncue import wall
from oncue.api import shapes
from oncue.app import Oncue
from oncue.cli import following
from oncue.cli.ahead import is_timed, read_trigger
from oncue.cli.next import plan_of, rows_of
from oncue.cli.output import AsJson, print_fields, print_json, print_table, say, show, show_time
from oncue.cli.session import opened, run
from oncue.cli.when import moment_option
from oncue.definition import Calendar, Definition
from oncue.model import Schedule
from oncue.plan import plan, plan_calendars
from oncue.rules import pacing, times
from oncue.store import calendars as calendar_verbs
from oncue.store import codec, followed, tasks
from oncue.taskfile import check_references, read_task_file

Name = Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")]
SHOWN = 2000  # characters of a message
AHEAD = 3  # due times that are shown of a task
TICK = timedelta(microseconds=1)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(apply)
    app.command("tasks")(list_tasks)
    app.command("show")(show_task)
    for command in (preview, fire, pause, resume):
        app.command()(command)


def apply(
    files: Annotated[list[Path], typer.Argument(help="Task files.")],
    prune: Annotated[bool, typer.Option("--prune", help="Remove tasks that no file names.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Show what task files change, then change it."""

    async def work() -> None:
        now = wall.now()
        calendars = [one for file in files for one in read_task_file(file, now=now).calendars]
        async with opened(may_create=not dry_run, else_empty=dry_run) as oncue:
            known = await oncue.store.read(calendar_verbs.every)
            all_calendars = known | {one.name: one for one in calendars}
            read = [read_task_file(file, calendars=all_calendars, now=now) for file in files]
            definitions = [one for file in read for one in file.definitions]
            check_references(definitions, oncue.config)
            old = {task.name: task.definition for task in await oncue.tasks()}
            planned = plan(old, definitions, prune=prune)
            planned = replace(planned, tasks=(*plan_calendars(known, calendars), *planned.tasks))
            for line in [*planned.lines(), *await _changes_by_hand(oncue, definitions)]:
                say(line)
            for line in _without_times(definitions, all_calendars, now=now):
                say(line)
            if dry_run or planned.is_empty or not (yes or _agreed(removes=bool(planned.named("removed")))):
                return
            applied = await oncue.apply(definitions, calendars=calendars, prune=prune, actor="cli")
            say(f"Applied: {sum(one.verdict != 'unchanged' for one in applied)} of {len(applied)} task(s) changed.")

    run(work)


def list_tasks(as_json: AsJson = False) -> None:
    """List all tasks."""

    async def work() -> None:
        async with opened() as oncue:
            schedules = await oncue.store.read(tasks.schedules)
            of = await oncue.store.read(followed.every)
            every = await oncue.tasks()
            found = [shapes.task_shape(task, schedules.get(task.id), of.get(task.id)) for task in every]
        if as_json:
            print_json(shapes.Page(items=found))
            return
        rows = [(one.name, _state(one), one.schedule.next_at if one.schedule else None, _cues(one)) for one in found]
        print_table(("TASK", "STATE", "NEXT", "CUE"), rows, none="No tasks yet: `oncue apply tasks.toml`.")

    run(work)


def show_task(task: Name, as_json: AsJson = False) -> None:
    """Show one task."""

    async def work() -> None:
        async with opened() as oncue:
            found = await _shown(oncue, task)
            stored = await oncue.store.read(tasks.read, task)
            row = await oncue.store.read(tasks.schedule_of, stored.id)
            remarks = [] if as_json else await following.remarks_of(oncue, stored.id)
        if as_json:
            print_json(found)
            return
        schedule = found.schedule
        print_fields(
            [
                ("task", found.name),
                ("description", found.description),
                ("state", _state(found)),
                ("version", found.version),
                ("cue", _cues(found)),
                ("next", schedule.next_at if schedule else None),
                ("last due", schedule.last_due_at if schedule else None),
                ("changed", found.changed_at),
                ("id", found.id),
            ]
        )
        for line in [*_upcoming(row), *remarks]:
            say(line)
        say("\n" + json.dumps(found.definition, indent=2, ensure_ascii=False))

    run(work)


def preview(
    task: Name,
    at: Annotated[datetime | None, moment_option("The due time to ask for (else now).")] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1000, help="How many messages.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show who would be resolved now, and the exact messages. Nothing is sent."""

    async def work() -> None:
        async with opened() as oncue:
            found = await oncue.store.read(tasks.read, task)
            shape = shapes.preview_shape(found, await oncue.preview(task, due_at=at, limit=count))
        if as_json:
            print_json(shape)
            return
        for message in shape.messages:
            say(f"{message.key or '(no key)'}  {message.error or _body(message)}")
            for name, value in message.headers.items():
                say(f"    {name}: {show(value)}")
        say(_summary(shape))

    run(work)


def fire(
    task: Name,
    key: Annotated[str | None, typer.Option(help="Makes asking twice safe.", show_default=False)] = None,
    at: Annotated[datetime | None, moment_option("The due time that the run is for (else now).")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a run now, besides the schedule."""

    async def work() -> None:
        async with opened() as oncue:
            uuid, is_new = await oncue.fire(task, key=key or uuid4().hex, due_at=at)
        if as_json:
            print_json(shapes.FiredShape(run=uuid, duplicate=not is_new))
            return
        say(f"run {uuid} is due." if is_new else f"this key made run {uuid} before: nothing new.")

    run(work)


def pause(
    task: Name,
    reason: Annotated[str, typer.Option(help="Why, for whoever looks later.")] = "paused on the command line",
    until: Annotated[datetime | None, moment_option("When it goes on by itself (else when it is resumed).")] = None,
) -> None:
    """Stop a task's triggers until it is resumed, or until a moment."""

    async def work() -> None:
        async with opened() as oncue:
            await oncue.pause(task, reason=reason, until=until, actor="cli")
        say(f'task "{task}" is paused{f" until {show_time(until)}" if until else ""}: {reason}.')

    run(work)


def resume(task: Name) -> None:
    """Let a task's triggers work again."""

    async def work() -> None:
        async with opened() as oncue:
            await oncue.resume(task, actor="cli")
            found = await _shown(oncue, task)
        next_at = found.schedule.next_at if found.schedule else None
        say(f'task "{task}" is active' + (f"; next at {show_time(next_at)}." if next_at else "."))

    run(work)


def _upcoming(schedule: Schedule | None) -> list[str]:
    """Return the next few times of an active schedule, and up to when its calendars are known."""
    if schedule is None or schedule.state != "active" or schedule.next_at is None:
        return []
    plan = plan_of(schedule, after=schedule.next_at - TICK, count=AHEAD)
    return ["", *rows_of(plan), *plan.remarks]


def _agreed(*, removes: bool) -> bool:
    """Ask on a terminal. Elsewhere nobody is there to ask: changes go on, removals need --yes."""
    if sys.stdin.isatty():
        return typer.confirm("Apply this?")
    if removes:
        typer.echo("Nothing is applied: removing tasks needs --yes where nobody can be asked.", err=True)
        raise typer.Exit(1)
    return True


def _state(task: shapes.TaskShape) -> str:
    schedule = task.schedule
    if task.state == "active" and schedule is not None and schedule.state != "active":
        return f"{schedule.state} ({schedule.reason})"
    until = f", until {show_time(task.resume_at)}" if task.resume_at else ""
    return f"{task.state} ({task.reason}{until})" if task.reason else task.state


def _cues(task: shapes.TaskShape) -> str:
    words = [task.schedule.words] if task.schedule else []
    words += [f"On {one['event']}." for one in task.definition.get("on", [])]
    return " ".join(words)


def _body(message: shapes.MessageShape) -> str:
    text = message.body if message.body is not None else f"base64:{message.body_base64}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _summary(shape: shapes.PreviewShape) -> str:
    count, when = len(shape.messages), show_time(shape.due_at)
    if not count:
        return f"Nobody would be resolved for {when}. (A task that takes its entity from an event resolves that event.)"
    more = ", and more" if shape.more else ""
    return f"{count} message(s){more}, as they would go out for {when}. Nothing was sent."


async def _shown(oncue: Oncue, name: str) -> shapes.TaskShape:
    task = await oncue.store.read(tasks.read, name)
    schedule = await oncue.store.read(tasks.schedule_of, task.id)
    return shapes.task_shape(task, schedule, await oncue.store.read(followed.of, task.id))


async def _changes_by_hand(oncue: Oncue, definitions: Sequence[Definition]) -> list[str]:
    """Return a line for each task whose times change, and whose changes by hand go with the old ones."""
    schedules = await oncue.store.read(tasks.schedules)
    names = {task.id: task.name for task in await oncue.tasks()}
    held = {names[id]: codec.read_timing(one.timing) for id, one in schedules.items() if id in names}
    lost = {}
    for definition in definitions:
        timing = held.get(definition.renamed_from or definition.name) or held.get(definition.name)
        if timing is not None and timing.overrides and definition.schedule is not None:
            same = pacing.trigger_of(timing.schedule) == pacing.trigger_of(definition.schedule)
            lost[definition.name] = 0 if same else len(timing.overrides)
    return [
        f'task "{name}": {count} change(s) by hand (skip, move) are dropped with its old times.'
        for name, count in lost.items()
        if count
    ]


def _without_times(definitions: Sequence[Definition], calendars: Mapping[str, Calendar], *, now: datetime) -> list[str]:
    """Return a line for each task whose schedule is over before it begins."""
    return [
        f'task "{definition.name}": its schedule has no time after now, so it will never fire.'
        for definition in definitions
        if is_timed(definition)
        and set(times.calendar_names(definition.schedule or {})) <= set(calendars)
        and times.next_after(read_trigger(definition, calendars, anchor=now), now) is None
    ]
