"""A TCP proxy that brings faults about: delay, loss in one or both directions, cuts, resets, refusals."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Self
from urllib.parse import urlsplit

CHUNK = 65_536


@dataclass
class Faults:
    """What happens to bytes of one direction. Change it at any time."""

    delay: timedelta = timedelta()
    is_lost: bool = False  # bytes vanish, as in a network that is cut: nobody is told
    is_held: bool = False  # bytes are not read, so that the sender's buffers fill
    cut_after: int | None = None  # bytes that still pass before all lines are cut


class FaultProxy:
    """Stands before a server, on a port that it keeps: `async with FaultProxy("127.0.0.1", 5432) as proxy`."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self.port = 0
        self.to_server, self.to_client = Faults(), Faults()
        self.passed = 0
        self._server: asyncio.Server | None = None
        self._lines: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}

    @classmethod
    def before(cls, url: str) -> Self:
        """Return a proxy before the server that `url` names; `rewrite` then names the proxy."""
        address = urlsplit(url)
        assert address.hostname
        assert address.port, f"{url} names no port"
        return cls(address.hostname, address.port)

    def rewrite(self, url: str) -> str:
        """Return `url` with the proxy in the place of the server."""
        login = urlsplit(url).netloc.rpartition("@")[0]
        return urlsplit(url)._replace(netloc=f"{login}@" * bool(login) + f"127.0.0.1:{self.port}").geturl()

    async def __aenter__(self) -> Self:
        await self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        self.cut()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def accept(self) -> None:
        """Take new connections (again)."""
        self._server = self._server or await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Refuse new connections, as a server does that is down; open ones stay."""
        if self._server:
            self._server.close()
        self._server = None

    def cut(self) -> None:
        """Close all connections without a word; what was on its way is lost."""
        for line in self._lines:
            line.cancel()

    def reset(self) -> None:
        """Close all connections with a reset, as a host does that has forgotten them."""
        for writer in (writer for writers in self._lines.values() for writer in writers):
            end = writer.get_extra_info("socket")
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.cut()

    def black_hole(self) -> None:
        """Let all bytes of both directions vanish, new connections' too."""
        self.to_server.is_lost = self.to_client.is_lost = True

    def heal(self) -> None:
        """End the faults of both directions. A line that lost bytes does not come to life again: cut it."""
        self.to_server, self.to_client = Faults(), Faults()

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        line = asyncio.current_task()
        assert line
        with self._line(line, to_client) as writers:
            from_server, to_server = await asyncio.open_connection(*self._target)
            writers.append(to_server)
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._carry(from_client, to_server, lambda: self.to_server))
                ways.create_task(self._carry(from_server, to_client, lambda: self.to_client))

    @contextlib.contextmanager
    def _line(self, line: asyncio.Task[None], writer: asyncio.StreamWriter) -> Iterator[list[asyncio.StreamWriter]]:
        self._lines[line] = [writer]
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError, ExceptionGroup):
                yield self._lines[line]
        finally:
            for end in self._lines.pop(line):
                end.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, faults: Callable[[], Faults]
    ) -> None:
        """Carry bytes one way; what comes in is stamped, so that a delay shortens no throughput."""
        loop, under_way = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

        async def deliver() -> None:
            while True:
                stamp, chunk = await under_way.get()
                await asyncio.sleep(stamp + faults().delay.total_seconds() - loop.time())
                if not chunk:
                    return writer.write_eof()
                self._pass(writer, chunk, faults())
                await writer.drain()

        async with asyncio.TaskGroup() as group:
            group.create_task(deliver())
            while True:
                while faults().is_held:  # noqa: ASYNC110  the test changes it in passing
                    await asyncio.sleep(0.01)
                chunk = await reader.read(CHUNK)
                if not faults().is_lost:
                    under_way.put_nowait((loop.time(), chunk))
                if not chunk:
                    break

    def _pass(self, writer: asyncio.StreamWriter, chunk: bytes, faults: Faults) -> None:
        if faults.is_lost:
            return
        if faults.cut_after is not None:
            chunk, faults.cut_after = chunk[: faults.cut_after], max(0, faults.cut_after - len(chunk))
        writer.write(chunk)
        self.passed += len(chunk)
        if faults.cut_after == 0:
            self.cut()
