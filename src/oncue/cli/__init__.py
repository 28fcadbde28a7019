"""The command line: the outermost room, which composes all others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oncue.cli import (
    backfills,
    calendars,
    catch_up,
    components,
    doctor,
    failures,
    ops,
    overrides,
    runs,
    tasks,
    zones,
)
from oncue.cli.demo import demo
from oncue.cli.lint import lint_
from oncue.cli.next import next_
from oncue.cli.session import remember
from oncue.cli.simulate import simulate_

app = typer.Typer(
    help="Runs work on cue: at an exact time, or the moment a domain event happens.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
components.add_to(app)
tasks.add_to(app)
app.command("next")(next_)
app.command("simulate")(simulate_)
app.command("lint")(lint_)
overrides.add_to(app)
calendars.add_to(app)
runs.add_to(app)
backfills.add_to(app)
catch_up.add_to(app)
failures.add_to(app)
ops.add_to(app)
doctor.add_to(app)
zones.add_to(app)
app.command()(demo)


@app.callback()
def _commands(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", envvar="ONCUE_CONFIG", help="The configuration (else oncue.toml).", show_default=False
        ),
    ] = None,
    store: Annotated[str | None, typer.Option("--store", help="The store's URL.", show_default=False)] = None,
) -> None:
    """Runs work on cue: at an exact time, or the moment a domain event happens."""
    remember(config, store)


def main() -> None:
    """Run the command line."""
    app()
