"""Commands on runs: list, why, cancel."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

import typer

from oncue.api import shapes
from oncue.api.page import page_of
from oncue.cli import why as reasons
from oncue.cli.output import AsJson, print_fields, print_json, print_table, say, say_more, show_seconds
from oncue.cli.session import opened, run
from oncue.cli.when import moment_option
from oncue.model import RunState
from oncue.rules.followed import is_followed
from oncue.store import runs, tasks, watch

EVER = timedelta(days=36_500)
NEAR = timedelta(seconds=1)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("runs")(list_runs)
    app.command()(why)
    app.command()(cancel)


def list_runs(
    id: Annotated[UUID | None, typer.Argument(metavar="RUN", help="Show this one only.", show_default=False)] = None,
    task: Annotated[str | None, typer.Option(help="Only runs of this task.", show_default=False)] = None,
    state: Annotated[RunState | None, typer.Option(help="Only runs in this state.", show_default=False)] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the latest runs, or show one with its deliveries."""

    async def work() -> None:
        async with opened() as oncue:
            if id is not None:
                one = await oncue.store.read(runs.read, id)
                detail = shapes.run_detail(one, await oncue.store.read(runs.deliveries, one.id, limit=100))
                if as_json:
                    print_json(detail)
                else:
                    _show_run(detail)
                return
            task_id = (await oncue.store.read(tasks.read, task)).id if task else None
            found = await oncue.store.read(runs.latest, task_id=task_id, state=state, before=None, limit=limit + 1)
        page = page_of(found, shapes.run_shape, limit=limit)
        if as_json:
            print_json(page)
            return
        rows = [
            (one.due_at, one.task, one.state, show_seconds(one.late_seconds), one.confirmed, one.dead, one.open, one.id)
            for one in page.items
        ]
        print_table(("DUE", "TASK", "STATE", "LATE", "SENT", "DEAD", "OPEN", "RUN"), rows, none="No runs.")
        say_more(page.next_cursor)

    run(work)


def why(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    at: Annotated[datetime | None, moment_option("The due time to explain (else the latest).")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many due times.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Say why a task ran, or did not."""

    async def work() -> None:
        async with opened() as oncue:
            found = await oncue.store.read(tasks.read, task)
            schedule = await oncue.store.read(tasks.schedule_of, found.id)
            now = await oncue.now()
            first, last = (at, at + NEAR) if at else (now - EVER, now + EVER)
            made = await oncue.store.read(watch.runs_between, found.id, first=first, last=last, limit=limit)
            missed = await oncue.store.read(watch.ledger, found.id, first=first, last=last, limit=limit)
            if at is not None and not made and schedule is not None and is_followed(found.definition.schedule):
                made = await oncue.store.read(watch.runs_between, found.id, first=at, last=now + EVER, limit=1000)
                made = reasons.holding(made, at)
        if at is not None and not made:
            missed = reasons.only_due(schedule, missed, at=at)
        told = reasons.explain(found, made, missed)[:limit]
        if not told:
            told = [reasons.explain_nothing(found, schedule, at=at, now=now)]
        if as_json:
            print_json(reasons.WhyShape(task=task, times=told))
            return
        for one in told:
            say(one.text)

    run(work)


def cancel(
    id: Annotated[UUID, typer.Argument(metavar="RUN", help="The run's id.")],
    reason: Annotated[str, typer.Option(help="Why, for whoever looks later.")] = "cancelled on the command line",
) -> None:
    """End a run: at once where it waits, at its next page where it is being handed over."""

    async def work() -> None:
        async with opened() as oncue:
            say(f"run {id}: {await oncue.cancel(id, reason=reason)}.")

    run(work)


def _show_run(run: shapes.RunDetailShape) -> None:
    counts = ("resolved", "confirmed", "open", "dead", "dropped")
    print_fields(
        [
            ("run", run.id),
            ("task", f"{run.task}, version {run.task_version}"),
            ("cause", run.cause),
            ("state", f"{run.state}: {run.reason}" if run.reason else run.state),
            ("due", run.due_at),
            ("started", run.started_at),
            ("late", show_seconds(run.late_seconds)),
            ("ended", run.ended_at),
            ("entities", ", ".join(f"{getattr(run, name)} {name}" for name in counts if getattr(run, name))),
        ]
    )
    if run.deliveries:
        say("")
        rows = [(one.key, one.state, one.attempts, one.ready_at, one.reason) for one in run.deliveries]
        print_table(("KEY", "STATE", "TRIES", "NEXT", "REASON"), rows, none="")
