"""Commands on one due time to come: skip, move, restore."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from oncue.cli.output import say, show_time
from oncue.cli.session import opened, run
from oncue.cli.when import moment_option, read_moment
from oncue.model import Schedule

Name = Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")]
DueAt = Annotated[
    datetime, typer.Argument(parser=read_moment, metavar="TIME", help="One of its due times, as `oncue next` shows it.")
]
Reason = Annotated[str, typer.Option(help="Why, for whoever looks later.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (skip, move, restore):
        app.command()(command)


def skip(task: Name, due_at: DueAt, reason: Reason = "skipped on the command line") -> None:
    """Leave out one due time to come."""

    async def work() -> None:
        async with opened() as oncue:
            schedule = await oncue.skip(task, due_at, reason=reason, actor="cli")
        say(f'task "{task}" will not run at {show_time(due_at)}: {reason}. {_next(schedule)}')
        say(f'To take it back: oncue restore {task} "{due_at.isoformat()}"')

    run(work)


def move(
    task: Name,
    due_at: DueAt,
    to: Annotated[datetime, moment_option("When it is to run instead.")],
    reason: Reason = "moved on the command line",
) -> None:
    """Let one due time to come run at another moment instead."""

    async def work() -> None:
        async with opened() as oncue:
            schedule = await oncue.move(task, due_at, to=to, reason=reason, actor="cli")
        say(f'task "{task}" will run at {show_time(to)} instead of {show_time(due_at)}: {reason}. {_next(schedule)}')
        say(f'To take it back: oncue restore {task} "{due_at.isoformat()}"')

    run(work)


def restore(task: Name, due_at: DueAt) -> None:
    """Take back that a due time was skipped or moved."""

    async def work() -> None:
        async with opened() as oncue:
            schedule = await oncue.restore(task, due_at, actor="cli")
        say(f'task "{task}" will run at {show_time(due_at)} as scheduled. {_next(schedule)}')

    run(work)


def _next(schedule: Schedule) -> str:
    return f"Next: {show_time(schedule.next_at)}." if schedule.next_at else "There are no further times."
