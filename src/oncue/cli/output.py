"""How commands speak: JSON in the API's shapes, or tables for people; times in the reader's zone, UTC beside."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oncue.observe.log import escape

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WIDE = 10_000


def say(text: str) -> None:
    """Print one line or more, whatever they hold."""
    typer.echo("\n".join(escape(line) for line in text.splitlines()))


def print_json(shape: BaseModel) -> None:
    """Print what the API would answer."""
    typer.echo(shape.model_dump_json(indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, none: str) -> None:
    """Print rows under their headings, or the sentence `none`."""
    if not rows:
        typer.echo(none)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(escape(show(value))) for value in row))
    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)
    with console.capture() as captured:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def agreed(question: str, *, refusal: str) -> bool:
    """Ask on a terminal. Elsewhere nobody is there to ask: the command ends with a sentence, exit 1."""
    if sys.stdin.isatty():
        return typer.confirm(question, err=True)
    typer.echo(refusal, err=True)
    raise typer.Exit(1)


def say_more(next_cursor: str | None) -> None:
    """Say below a table that it does not show everything."""
    if next_cursor is not None:
        typer.echo("There are more: --limit shows them.")


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Print names and values beneath each other; those without a value are left out."""
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        if value is not None and value != "":
            say(f"{name:{width}}  {show(value)}")


def show(value: object) -> str:
    """Return a value as a person reads it."""
    match value:
        case None:
            return "-"
        case datetime():
            return show_time(value)
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)


def show_time(moment: datetime, *, with_date: bool = True) -> str:
    """Return a time in the reader's zone, and UTC beside it where that is another."""
    local, utc = moment.astimezone(), moment.astimezone(UTC)
    if not local.utcoffset():
        return f"{utc:%Y-%m-%d %H:%M:%S}Z" if with_date else f"{utc:%H:%M:%S}Z"
    there = f"{local:%Y-%m-%d %H:%M:%S%z}" if with_date else f"{local:%H:%M:%S%z}"
    beside = f"{utc:%H:%M:%S}Z" if local.date() == utc.date() else f"{utc:%m-%d %H:%M:%S}Z"
    return f"{there[:-2]}:{there[-2:]} ({beside})"


def show_seconds(seconds: float | None) -> str:
    """Return a lateness as a person reads it."""
    if seconds is None:
        return "-"
    if abs(seconds) < 120:
        return f"{seconds:.2f} s"
    return f"{seconds / 60:.1f} min" if abs(seconds) < 7200 else f"{seconds / 3600:.1f} h"
