"""The executables: all components in one process (`up`), or each in its own; they end in order when asked to.

The HTTP side is imported where it is used: it takes half a second to load, which most commands have no use for.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from oncue import wall
from oncue.app import ENGINE, Oncue
from oncue.cli.output import say
from oncue.cli.session import read_config, run
from oncue.config import NO_FLAGS, Config, hidden
from oncue.errors import StoreUnavailable
from oncue.observe.log import log, set_up_logging
from oncue.taskfile import TaskFile, read_task_file

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from oncue.api.server import Server

Listen = Annotated[str | None, typer.Option(help="Serve HTTP on host:port.", show_default=False)]
TaskFileOption = Annotated[Path | None, typer.Argument(help="A task file to apply first.", show_default=False)]
RETRY: Final = 1.0  # seconds
MakeApp = Callable[[Oncue], "ASGIApp"]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (up, clock, ingest, dispatcher, watch, api):
        app.command()(command)


def up(file: TaskFileOption = None, listen: Listen = None) -> None:
    """Run all components and the API in one process."""

    async def work() -> None:
        from oncue.api.app import create_app

        config = _start({"api.listen": listen})
        read = read_task_file(file, now=wall.now()) if file else None
        await carry(Oncue(config), ENGINE, create_app, listen=config.api.listen, file=read)

    run(work)


def clock(listen: Listen = None) -> None:
    """Run a clock: it fires what is due."""
    run(lambda: component("clock", listen))


def ingest(listen: Listen = None) -> None:
    """Run an ingest: it takes events in over HTTP."""

    async def work() -> None:
        from oncue.api.app import create_events_app

        config = _start({"ingest.listen": listen})
        await carry(Oncue(config), ["ingest"], create_events_app, listen=config.ingest.listen)

    run(work)


def dispatcher(listen: Listen = None) -> None:
    """Run a dispatcher: it carries out runs."""
    run(lambda: component("dispatcher", listen))


def watch(listen: Listen = None) -> None:
    """Run the watch: it looks for what is late, stuck or growing."""
    run(lambda: component("watch", listen))


def api(listen: Listen = None) -> None:
    """Run the HTTP API. It takes events in too."""

    async def work() -> None:
        from oncue.api.app import create_app

        config = _start({"api.listen": listen})
        await carry(Oncue(config), ["ingest"], create_app, listen=config.api.listen)

    run(work)


async def component(name: str, listen: str | None) -> None:
    """Run one component; its health and metrics are served where `listen` says so."""
    from oncue.api.app import create_health_app

    await carry(Oncue(_start()), [name], create_health_app, listen=listen)


async def carry(
    oncue: Oncue,
    names: Sequence[str],
    make_app: MakeApp,
    *,
    listen: str | None,
    file: TaskFile | None = None,
) -> None:
    """Run components until a signal asks for a drain; a second one cuts the drain short."""
    from oncue.api.app import create_app
    from oncue.api.server import Server

    await _reach(oncue)
    async with oncue:
        if file is not None:
            for applied in await oncue.apply(file.definitions, calendars=file.calendars, actor="up"):
                say(f'task "{applied.name}" {applied.verdict}, version {applied.version}')
        server = Server(make_app(oncue), listen) if listen else None
        _heed_signals(oncue, server)
        if server is not None:
            server.start()
        where = f"listening on {server.url}" if server else "not listening"
        say(f"oncue runs {', '.join(names)}: {where}, store {hidden(oncue.config.store)}")
        is_api = server is not None and make_app is create_app
        await oncue.run(names, beside=[server] if server is not None and is_api else [])
        if server is not None:
            await server.drain()
        await oncue.ingest.drain()


async def _reach(oncue: Oncue) -> None:
    """Wait for a server that is away, as running components do. A file that cannot be used is told at once."""
    is_told = False
    while True:
        try:
            return await oncue.open()
        except StoreUnavailable as error:
            if not oncue.store.database.has_own_clock:
                raise
            if not is_told:
                log.warning("store unavailable", component="start", error=str(error))
            is_told = True
        await asyncio.sleep(RETRY)


def _start(flags: Mapping[str, Any] = NO_FLAGS) -> Config:
    config = read_config(flags)
    set_up_logging(config.log.format, config.log.level)
    return config


def _heed_signals(oncue: Oncue, server: Server | None) -> None:
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if oncue.loop.is_stopping:
            for one in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(one)
            oncue.loop.hurry()
            return
        oncue.loop.stop()
        if server is not None:
            server.stop()

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, asked)
