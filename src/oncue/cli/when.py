"""Times on the command line: ISO 8601; without an offset, in the reader's zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import typer


def moment_option(help: str, *names: str) -> Any:
    """Return an option that takes a time, named for its parameter or by `names`."""
    return typer.Option(*names, parser=read_moment, metavar="TIME", help=help, show_default=False)


def read_moment(text: str | datetime) -> datetime:
    """Return a time in UTC. Raises BadParameter."""
    if isinstance(text, datetime):
        return text
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f'"{text}" is not a time: write it as 2026-03-28T09:00:00+02:00.') from None
