"""The command line: the outermost room, which composes all others."""

from __future__ import annotations

import typer

from oncue.cli.demo import demo
from oncue.cli.next import next_

app = typer.Typer(
    help="Runs work on cue: at an exact time, or the moment a domain event happens.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("next")(next_)
app.command("demo")(demo)


@app.callback()
def _commands() -> None:
    """Runs work on cue: at an exact time, or the moment a domain event happens."""


def main() -> None:
    """Run the command line."""
    app()
