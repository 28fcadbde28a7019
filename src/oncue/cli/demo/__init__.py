"""`oncue demo`: Oncue at work, killed and started again, beside a shop and a worker that it did not make."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from oncue.cli.demo.playing import play
from oncue.cli.demo.screen import Screen
from oncue.cli.session import fail
from oncue.errors import ConfigError, OncueError


def demo(
    once: Annotated[bool, typer.Option("--once", help="End after the story; exit 1 if a part was not seen.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the demo keeps its files.")] = Path("oncue-demo"),
) -> None:
    """Show Oncue at work: about half a minute, on this machine alone."""
    screen = Screen()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(ConfigError(f"{folder} cannot be made: {error.strerror}. Name another folder with --folder."))
    try:
        code = asyncio.run(play(folder, screen, once=once))
    except OncueError as error:
        fail(error)
    except KeyboardInterrupt:
        screen.text(f"\nEnded. What was seen so far stands in {folder}.")
        code = 130
    raise typer.Exit(code)
