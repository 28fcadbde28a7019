"""What commands that look ahead begin with: a task file, and what the store knows for it, where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import typer

from oncue.app import Oncue
from oncue.cli.session import opened, run
from oncue.definition import Calendar, Definition
from oncue.errors import NotFound, OncueError, TaskFileError
from oncue.model import Run
from oncue.rules import times
from oncue.rules.followed import is_followed
from oncue.store import calendars as calendar_verbs
from oncue.store import runs
from oncue.taskfile import TaskFile

LATEST = 20


@dataclass(frozen=True, slots=True)
class Known:
    """What a store knows for tasks of a file: calendars, the ids that jitter is hashed from, and how long runs took."""

    calendars: Mapping[str, Calendar] = field(default_factory=dict)
    uuids: Mapping[str, UUID] = field(default_factory=dict)
    took: Mapping[str, timedelta] = field(default_factory=dict)


def ask_store(definitions: Sequence[Definition]) -> Known:
    """Return what the store of the configuration knows; nothing where there is none. It is never made, or written."""
    return run(lambda: _ask(definitions))


def with_calendars(file: TaskFile, known: Known) -> dict[str, Calendar]:
    """Return the calendars of the store and the file. Raises TaskFileError: one that the file refers to is missing."""
    own = {one.name: one for one in file.calendars}
    found = {**known.calendars, **own}
    for definition in filter(is_timed, file.definitions):
        for name in times.calendar_names(definition.schedule or {}):
            if name not in found:
                raise TaskFileError(
                    f'task "{definition.name}": calendar "{name}" is neither in the file nor in the store: '
                    f"write [calendar.{name}] in the file, or name a store that has it."
                )
    return found


def is_timed(definition: Definition) -> bool:
    """Say whether a task's times follow from its schedule alone: not those that are read from data."""
    return definition.schedule is not None and not is_followed(definition.schedule)


def read_trigger(definition: Definition, calendars: Mapping[str, Calendar], *, anchor: datetime) -> times.Trigger:
    """Return the trigger of a task that has a schedule, as if it were applied at `anchor`."""
    return times.read_trigger(definition.schedule or {}, anchor=anchor, name=definition.name, calendars=calendars)


async def _ask(definitions: Sequence[Definition]) -> Known:
    if not definitions:
        return Known()
    try:
        async with opened() as oncue:
            ids = {task.name: task for task in await oncue.tasks()}
            known = [ids[one.name] for one in definitions if one.name in ids]
            took = {task.name: await _took(oncue, task.id) for task in known}
            calendars = await oncue.store.read(calendar_verbs.every)
        averages = {name: average for name, average in took.items() if average is not None}
        return Known(calendars, {task.name: task.uuid for task in known}, averages)
    except NotFound:
        return Known()
    except (OncueError, OSError) as error:
        typer.echo(f"What the store knows is left out: {error}", err=True)
        return Known()


async def _took(oncue: Oncue, task_id: int) -> timedelta | None:
    """Return how long the latest runs of a task took on average."""
    latest: list[Run] = await oncue.store.read(runs.latest, task_id=task_id, state="done", before=None, limit=LATEST)
    took = [one.ended_at - one.started_at for one in latest if one.started_at and one.ended_at]
    return sum(took, timedelta()) / len(took) if took else None
