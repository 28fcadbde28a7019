"""Serves an ASGI app inside the loop that is there already; signals are the business of whoever runs the process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from datetime import datetime

import uvicorn
from starlette.types import ASGIApp

from oncue.config import read_listen
from oncue.errors import ConfigError

GRACE = 5  # seconds for requests under way


class Server:
    """An HTTP server, and a component of the loop: it says that it is alive, and is drained with the others."""

    name = "api"

    def __init__(self, app: ASGIApp, listen: str) -> None:
        self._socket = _bind(listen)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        self._server = _Quiet(config)
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begin to serve; the socket listens already."""
        self._serving = asyncio.create_task(self._server.serve([self._socket]))

    def stop(self) -> None:
        """Take no more connections; let requests under way end."""
        self._server.should_exit = True

    async def step(self, now: datetime) -> datetime | None:
        """Nothing to do: requests come by themselves."""
        return None

    async def drain(self) -> None:
        """Stop, and return when the last request has its answer. When cut short, end them all."""
        self.stop()
        if self._serving is not None:
            try:
                await asyncio.wait([self._serving])
            finally:
                self._serving.cancel()
        self._socket.close()


class _Quiet(uvicorn.Server):
    """uvicorn without handlers for signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bind(listen: str) -> socket.socket:
    try:
        host, port = read_listen(listen)
    except ValueError as error:
        raise ConfigError(f"listen: {error}") from None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"cannot listen on {listen}: {why}. Choose another with --listen.") from None
