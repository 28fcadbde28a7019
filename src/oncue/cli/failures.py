"""`oncue failures`: the failure handler as a component; with a subcommand, what failed and what to do with it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from oncue.api import failure_shapes, shapes
from oncue.api.page import page_of
from oncue.app import RequeueVerb
from oncue.cli.components import Listen, component
from oncue.cli.output import AsJson, print_fields, print_json, print_table, say, say_more
from oncue.cli.session import opened, run
from oncue.model import DeadLetterState
from oncue.store import failures

Ids = Annotated[list[UUID] | None, typer.Argument(metavar="[ID]...", help="Dead letters.", show_default=False)]
OfTask = Annotated[str | None, typer.Option("--task", help="All open ones of this task.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="All open ones.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many.")]
group = typer.Typer(
    help="Run the failure handler; with a subcommand: see what failed, requeue it, discard it.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(group, name="failures")


@group.callback()
def handler(context: typer.Context, listen: Listen = None) -> None:
    """Run the failure handler; with a subcommand: see what failed, requeue it, discard it."""
    if context.invoked_subcommand is None:
        run(lambda: component("failures", listen))


@group.command("list")
def list_dead_letters(
    task: Annotated[str | None, typer.Option(help="Only those of this task.", show_default=False)] = None,
    state: Annotated[DeadLetterState | None, typer.Option(help="Only those in this state.", show_default=False)] = None,
    limit: Limit = 20,
    by_reason: Annotated[bool, typer.Option("--groups", help="Count open ones by reason.")] = False,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the latest first."""

    async def work() -> None:
        async with opened() as oncue:
            if by_reason:
                _show_groups(await oncue.store.read(failures.groups), as_json=as_json)
                return
            found = await oncue.store.read(failures.latest, task=task, state=state, before=None, limit=limit + 1)
        page = page_of(found, failure_shapes.dead_letter_shape, limit=limit)
        if as_json:
            print_json(page)
            return
        rows = [(one.created_at, one.task, one.key, one.state, one.reason, one.id) for one in page.items]
        print_table(("SINCE", "TASK", "KEY", "STATE", "REASON", "ID"), rows, none="No dead letters.")
        say_more(page.next_cursor)

    run(work)


@group.command("show")
def show_dead_letter(
    id: Annotated[UUID, typer.Argument(metavar="ID", help="The dead letter's id.")], as_json: AsJson = False
) -> None:
    """Show one dead letter, with its attempts and what it carried."""

    async def work() -> None:
        async with opened() as oncue:
            letter = failure_shapes.dead_letter_detail(await oncue.store.read(failures.read, id))
        if as_json:
            print_json(letter)
            return
        same = ("kind", "state", "reason", "task", "run", "message_id", "key", "requeues", "broker", "queue", "origin")
        named = [(name.replace("_", " "), getattr(letter, name)) for name in same]
        body = letter.body if letter.body is not None else letter.body_base64
        print_fields(
            [("id", letter.id), *named, ("since", letter.created_at), ("ended", letter.ended_at), ("body", body)]
        )
        for attempt in letter.attempts:
            print_fields([("attempt", f"{attempt.at:%Y-%m-%d %H:%M:%S}Z  {attempt.error}")])

    run(work)


@group.command()
def requeue(
    ids: Ids = None,
    task: OfTask = None,
    everything: All = False,
    rate: Annotated[float | None, typer.Option(help="Messages a second.", min=0.01, show_default=False)] = None,
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="Ask the resolver whether they still qualify.")] = True,
    as_json: AsJson = False,
) -> None:
    """Put open dead letters back: one first, the rest at the rate if it arrived."""

    async def work() -> None:
        async with opened() as oncue:
            made = await oncue.store.write(
                failures.requeue,
                uuids=ids or (),
                task=task,
                everything=everything,
                rate=rate or oncue.config.failures.rate,
                ask_again=ask,
                actor="cli",
                now=await oncue.now(),
            )
        if as_json:
            print_json(failure_shapes.requeue_shape(made))
            return
        say(f"requeue {made.uuid}: {made.total} dead letter(s). Watch it: `oncue failures requeues`.")

    run(work)


@group.command()
def discard(
    reason: Annotated[str, typer.Option(help="Why, for whoever looks later.")],
    ids: Ids = None,
    task: OfTask = None,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Close open dead letters for good."""

    async def work() -> None:
        async with opened() as oncue:
            count = await oncue.store.write(
                failures.discard,
                uuids=ids or (),
                task=task,
                everything=everything,
                reason=reason,
                actor="cli",
                now=await oncue.now(),
            )
        if as_json:
            print_json(failure_shapes.DiscardedShape(discarded=count))
            return
        say(f"{count} dead letter(s) discarded: {reason}.")

    run(work)


@group.command()
def requeues(
    pause: Annotated[UUID | None, typer.Option(help="Pause this one.", show_default=False)] = None,
    resume: Annotated[UUID | None, typer.Option(help="Resume this one.", show_default=False)] = None,
    cancel: Annotated[UUID | None, typer.Option(help="Cancel this one.", show_default=False)] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List requeues, the latest first; or pause, resume or cancel one."""

    async def work() -> None:
        async with opened() as oncue:
            asked: list[tuple[UUID | None, RequeueVerb]] = [(pause, "pause"), (resume, "resume"), (cancel, "cancel")]
            for id, verb in asked:
                if id is not None:
                    await oncue.move_requeue(id, verb)
            found = [
                failure_shapes.requeue_shape(one) for one in await oncue.store.read(failures.list_requeues, limit=limit)
            ]
        if as_json:
            print_json(shapes.Page(items=found))
            return
        rows = [
            (one.created_at, one.state, one.total, one.sent, one.recovered, one.failed, one.reason, one.id)
            for one in found
        ]
        columns = ("SINCE", "STATE", "TOTAL", "SENT", "RECOVERED", "FAILED", "REASON", "REQUEUE")
        print_table(columns, rows, none="No requeues.")

    run(work)


def _show_groups(found: list[tuple[str | None, str | None, str, int]], *, as_json: bool) -> None:
    groups = failure_shapes.group_shapes(found)
    if as_json:
        print_json(shapes.Page(items=groups))
        return
    rows = [(one.count, one.task, one.queue, one.reason) for one in groups]
    print_table(("COUNT", "TASK", "QUEUE", "REASON"), rows, none="No open dead letters.")
