"""What every command begins and ends with: the configuration, an open store, and errors as sentences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import typer

from oncue.app import Oncue
from oncue.config import NO_FLAGS, Config, load_config
from oncue.errors import ConfigError, NotFound, OncueError
from oncue.observe.log import escape, set_up_logging

T = TypeVar("T")
WRONG_CONFIG: Final = 78
_given: ContextVar[tuple[Path | None, str | None]] = ContextVar("given", default=(None, None))


def remember(config: Path | None, store: str | None) -> None:
    """Keep what was given before the command, for `read_config`."""
    _given.set((config, store))


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command; errors of ours end it with one sentence: exit 78 for the configuration's, else 1."""
    try:
        return asyncio.run(work())
    except OncueError as error:
        fail(error)


def fail(error: OncueError) -> NoReturn:
    """End the command with the error's sentence."""
    typer.echo("\n".join(escape(line) for line in str(error).splitlines()), err=True)
    raise typer.Exit(WRONG_CONFIG if isinstance(error, ConfigError) else 1)


def read_config(flags: Mapping[str, Any] = NO_FLAGS) -> Config:
    """Return the configuration, with `--config` and `--store` as given before the command. Raises ConfigError."""
    path, store = _given.get()
    return load_config(path, flags={"store": store, **flags})


@asynccontextmanager
async def opened(*, may_create: bool = False, else_empty: bool = False) -> AsyncIterator[Oncue]:
    """Open the store of the configuration for one command, quietly. Raises ConfigError, NotFound, SchemaError.

    Where there is none, it is made, or an empty one stands in for it, in memory.
    """
    config = read_config()
    set_up_logging("text", "error")
    if else_empty and not has_store(config):
        config = replace(config, store="sqlite://:memory:")
    elif not may_create:
        expect_store(config)
    # Runs that a command makes are left to dispatchers: it ends before their receivers answer.
    async with Oncue(replace(config, ingest=replace(config.ingest, in_flight=0))) as oncue:
        yield oncue


def expect_store(config: Config) -> None:
    """A command that only looks makes no file in whatever folder it is called in."""
    if not has_store(config):
        path = store_file(config)
        raise NotFound(f'no store at "{path}": start one with `oncue up`, or name another in oncue.toml or --store.')


def has_store(config: Config) -> bool:
    """Say whether the store is there; of a server nobody knows before it is asked."""
    return not config.store.startswith("sqlite://") or store_file(config).exists()


def store_file(config: Config) -> Path:
    """Return the file of a SQLite store."""
    return Path(config.store.partition("://")[2].removeprefix("/"))
