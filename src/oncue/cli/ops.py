"""Commands around everything: emit, migrate, version."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated
from uuid import uuid4

import typer

from oncue.api import cloudevents, shapes
from oncue.app import Oncue
from oncue.cli.output import AsJson, print_json, say
from oncue.cli.session import opened, read_config, run
from oncue.config import hidden


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (emit, migrate, version):
        app.command()(command)


def emit(
    type: Annotated[str, typer.Argument(metavar="TYPE", help="The event's type, such as order.paid.")],
    subject: Annotated[str | None, typer.Option(help="Who it is about.", show_default=False)] = None,
    data: Annotated[str | None, typer.Option(help="Its data, as JSON.", show_default=False)] = None,
    id: Annotated[str | None, typer.Option(help="Its id (else a new one).", show_default=False)] = None,
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "/oncue/cli",
    as_json: AsJson = False,
) -> None:
    """Take an event in; what it starts is left to the dispatchers."""

    async def work() -> None:
        async with opened() as oncue:
            attributes = {"specversion": "1.0", "id": id or uuid4().hex, "source": source, "type": type}
            attributes |= {"subject": subject} if subject is not None else {}
            body = cloudevents.read_json(data.encode("utf-8", "surrogateescape")) if data is not None else None
            event = cloudevents.read_event({**attributes, "data": body}, now=await oncue.now())
            accepted = await oncue.emit(event)
        is_duplicate = accepted.verdict == "duplicate"
        made = [one.uuid for one in accepted.runs]
        if as_json:
            print_json(shapes.AcceptedShape(id=event.id, duplicate=is_duplicate, runs=made))
            return
        if is_duplicate:
            say(f"event {event.id} was taken in before: nothing new.")
            return
        say(f"event {event.id} is taken in; it started {len(made)} run(s)." + "".join(f"\n  {one}" for one in made))

    run(work)


def migrate() -> None:
    """Bring the store's schema up to date. Safe at any time, and when two do it at once."""

    async def work() -> None:
        oncue = Oncue(read_config())
        try:
            done = await oncue.store.database.migrate()
        finally:
            await oncue.close()
        for name in done:
            say(f"applied {name}")
        say(f"{hidden(oncue.config.store)} is up to date.")

    run(work)


def version() -> None:
    """Print the version."""
    try:
        say(metadata.version("oncue"))
    except metadata.PackageNotFoundError:
        say("unknown: Oncue runs from its source and is not installed")
