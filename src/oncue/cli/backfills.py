"""Commands on backfills: ask for one, with a preview; list and cancel."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Annotated, Final
from uuid import UUID, uuid4

import typer

from oncue.api import backfills as shapes
from oncue.api.page import page_of
from oncue.app import Oncue
from oncue.cli.output import AsJson, agreed, print_json, print_table, say, say_more
from oncue.cli.session import opened, run
from oncue.cli.when import moment_option
from oncue.rules import backfilling
from oncue.rules.durations import read_duration
from oncue.rules.identity import time_text


def read_pace(text: str | timedelta) -> timedelta:
    """Return a duration. Raises BadParameter."""
    if isinstance(text, timedelta):
        return text
    try:
        return read_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


REFUSAL: Final = "Nothing was made: a backfill needs --yes where nobody can be asked."
Pace = Annotated[
    timedelta | None,
    typer.Option(parser=read_pace, metavar="DURATION", help="Start one run each so long.", show_default=False),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(backfill)
    app.command("backfills")(list_backfills)


def backfill(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    first: Annotated[datetime, moment_option("The first due time, or a moment before it.", "--from")],
    last: Annotated[datetime, moment_option("The last due time, or a moment after it.", "--to")],
    pace: Pace = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would run.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    key: Annotated[str | None, typer.Option(help="Makes asking twice safe.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Run a schedule's due times of a span again, or late; the schedule itself stays where it is."""

    async def work() -> None:
        async with opened() as oncue:
            made = await oncue.backfill_by_key(task, key) if key and not dry_run else None
            is_new = made is None
            if made is None:
                plan = await _plan(oncue, task, first, last, pace=pace)
                if dry_run or not as_json or not (yes or sys.stdin.isatty()):
                    print_json(plan) if as_json else _show(plan)
                if dry_run or not (yes or agreed(f"Make {plan.runs} run(s)?", refusal=REFUSAL)):
                    return
                made, is_new = await oncue.backfill(task, first, last, pace=pace, key=key or uuid4().hex, actor="cli")
        if as_json:
            print_json(shapes.asked_shape(made, is_new=is_new))
        elif is_new:
            say(f"backfill {made.uuid}: {made.total} run(s) are due. Watch it: `oncue backfills`.")
        else:
            say(f"this key made backfill {made.uuid} before: nothing new.")

    run(work)


def list_backfills(
    cancel: Annotated[UUID | None, typer.Option(help="Cancel what waits of this one.", show_default=False)] = None,
    reason: Annotated[str, typer.Option(help="Why it is cancelled.")] = "the backfill was cancelled",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List backfills with their progress, the latest first; or cancel one."""

    async def work() -> None:
        async with opened() as oncue:
            if cancel is not None:
                ended = shapes.backfill_shape(await oncue.cancel_backfill(cancel, reason=reason, actor="cli"))
                if not as_json:
                    say(f"{ended.cancelled} run(s) of it are cancelled, {ended.running} go on.")
            found = await oncue.backfills(limit=limit + 1)
        page = page_of(found, shapes.backfill_shape, limit=limit)
        if as_json:
            print_json(page)
            return
        counts = ("total", "waiting", "running", "done", "failed", "cancelled")
        rows = [
            (
                one.created_at,
                one.task,
                one.first_due_at,
                one.last_due_at,
                *(getattr(one, name) for name in counts),
                one.id,
            )
            for one in page.items
        ]
        columns = ("SINCE", "TASK", "FROM", "TO", *(name.upper() for name in counts), "BACKFILL")
        print_table(columns, rows, none="No backfills.")
        say_more(page.next_cursor)

    run(work)


async def _plan(
    oncue: Oncue, task: str, first: datetime, last: datetime, *, pace: timedelta | None
) -> shapes.BackfillPlanShape:
    planned = await oncue.plan_backfill(task, first, last)
    backfilling.check_pace(len(planned.moments), pace)
    return shapes.plan_shape(planned, pace=pace, now=await oncue.now())


def _show(plan: shapes.BackfillPlanShape) -> None:
    say(f'A backfill of task "{plan.task}" makes {plan.runs} run(s), for these due times ({plan.zone}, and UTC):')
    for place, one in enumerate(plan.times):
        if place == shapes.SHOWN and plan.runs > len(plan.times):
            say(f"  … {plan.runs - len(plan.times)} more")
        say(f"  {one.local}  {time_text(one.due_at)}  {one.note or ''}".rstrip())
    say(plan.words)
    if plan.ran:
        counts = ", ".join(f"{count} {state}" for state, count in sorted(plan.ran.items()))
        say(f"Of these times the schedule has run on record: {counts}. They run again.")
    if plan.to_come:
        say(f"{plan.to_come} of them are still to come: they run now, and are due again then.")
    for id in plan.before:
        say(f"Backfill {id} covered some of this span before: what it ran runs again.")
    if plan.paused is not None:
        say(f"The task is paused ({plan.paused}): the backfill runs all the same, and leaves it paused.")
