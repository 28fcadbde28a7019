"""`oncue catch-up`: what an outage left to a person's decision, shown before it is done; then run it, or drop it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from oncue.api import catch_up as shapes
from oncue.api.shapes import Page
from oncue.cli.output import AsJson, agreed, print_json, say, show_time
from oncue.cli.session import opened, run

NONE: Final = "No missed runs wait for a person."
REFUSAL: Final = "Nothing was decided: it needs --yes where nobody can be asked."


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("catch-up")(catch_up)


def catch_up(
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="Only this task.", show_default=False)] = None,
    run_them: Annotated[bool, typer.Option("--run", help="Let them run.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Cancel them.")] = False,
    reason: Annotated[str, typer.Option(help="Why they are dropped.")] = "dropped on the command line",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the missed runs that wait for a person (misfire.hold), and what they would do; run or drop them."""
    if run_them and drop:
        raise typer.BadParameter("give one of --run and --drop.")

    async def work() -> None:
        async with opened() as oncue:
            found = [shapes.catch_up_shape(one) for one in await oncue.to_catch_up(task)]
            is_asked, total = run_them or drop, sum(one.runs for one in found)
            if not as_json:
                _show(found, task, with_hint=not is_asked)
            elif not (found and is_asked):
                print_json(Page(items=found))
            if not (found and is_asked):
                return
            question = f"{'Drop' if drop else 'Run'} {total} missed run(s)?"
            if not (yes or agreed(question, refusal=REFUSAL)):
                return
            if drop:
                count = await oncue.drop_missed(task, reason=reason, actor="cli")
            else:
                count = await oncue.catch_up(task, actor="cli")
        if as_json:
            print_json(shapes.DecidedShape(do="drop" if drop else "run", runs=count))
        else:
            say(f"{count} missed run(s) dropped: {reason}." if drop else f"{count} missed run(s) are due now.")

    run(work)


def _show(found: Sequence[shapes.CatchUpShape], task: str | None, *, with_hint: bool) -> None:
    if not found:
        say(NONE)
    for one in found:
        say(f'task "{one.task}": {one.runs} missed run(s) wait for a person since {show_time(one.since)}.')
        for moment in one.due_times:
            say(f"  would run  {show_time(moment)}")
        if one.runs > len(one.due_times):
            say(f"  … {one.runs - len(one.due_times)} more, the last for {show_time(one.last_due_at)}")
        for entry in one.passed_over:
            say(f"  {entry.verdict}  {_span(entry)}: {entry.reason}")
        say(f"  {one.words}")
    if found and with_hint:
        name = f" {task}" if task else ""
        say(f"Let them run: `oncue catch-up{name} --run`. Or cancel them: `oncue catch-up{name} --drop --reason WHY`.")


def _span(entry: shapes.PassedOverShape) -> str:
    if entry.count == 1:
        return show_time(entry.last_due_at)
    return f"{entry.count} times from {show_time(entry.first_due_at)} to {show_time(entry.last_due_at)}"
