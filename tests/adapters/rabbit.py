"""RabbitMQ from the team's side, and a TCP proxy that breaks the line to it on command."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import pika

from oncue.adapters.brokers.amqp import AmqpBroker
from oncue.testing.conformance.brokers import Taken

T = TypeVar("T")


class Proxy:
    """Sits between an adapter and its broker."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._deaf = False
        self._mute = False
        self._lines: set[tuple[asyncio.Task[None], asyncio.StreamWriter]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = urlsplit(self._url)._replace(netloc=f"guest:guest@127.0.0.1:{port}").geturl()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.sever()
        await asyncio.gather(*(task for task, _ in self._lines), return_exceptions=True)

    def sever(self) -> None:
        """Cut all lines at once, as a crash does."""
        for _, writer in self._lines:
            writer.transport.abort()

    def lose_answers(self, lose: bool) -> None:
        """Let nothing of the broker's through, from now on."""
        self._mute = lose

    def block(self, reason: str) -> None:
        """Say `connection.blocked` and read no more, as a broker does that is short of memory or disk."""
        self._deaf = True
        for _, writer in self._lines:
            writer.write(method_frame(10, 60, bytes([len(reason)]) + reason.encode()))

    def unblock(self) -> None:
        self._deaf = False
        for _, writer in self._lines:
            writer.write(method_frame(10, 61, b""))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (asyncio.current_task(), writer)
        self._lines.add(line)
        to_broker = None
        try:
            address = urlsplit(self._url)
            from_broker, to_broker = await asyncio.open_connection(address.hostname, address.port or 5672)
            pumps = [
                asyncio.create_task(self._pump(reader, to_broker, held=lambda: self._deaf)),
                asyncio.create_task(self._pump(from_broker, writer, lost=lambda: self._mute)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            self._lines.discard(line)
            for end in filter(None, (writer, to_broker)):
                end.transport.abort()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        held: Callable[[], bool] = lambda: False,
        lost: Callable[[], bool] = lambda: False,
    ) -> None:
        while data := await reader.read(65_536):
            while held():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            if not lost():
                writer.write(data)
                await writer.drain()


def method_frame(class_id: int, method_id: int, arguments: bytes) -> bytes:
    payload = struct.pack(">HH", class_id, method_id) + arguments
    return struct.pack(">BHI", 1, 0, len(payload)) + payload + b"\xce"


class RabbitRig:
    """A `BrokerRig` on a real RabbitMQ; its adapters go through a proxy."""

    def __init__(self, url: str, proxy: Proxy) -> None:
        self.url = url
        self.proxy = proxy
        self._made: list[AmqpBroker] = []

    def connect(self, *, url: str | None = None, confirm_within: float = 10.0) -> AmqpBroker:
        self._made.append(AmqpBroker("main", url or self.proxy.url, confirm_within=confirm_within))
        return self._made[-1]

    def connect_to_nothing(self) -> AmqpBroker:
        return self.connect(url="amqp://guest:guest@127.0.0.1:1/")

    async def declare(self, **arguments: Any) -> tuple[str, str]:
        name = f"work-{uuid4().hex[:12]}"
        dead = f"{name}.dead"
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}

        def make(channel: Any) -> None:
            channel.queue_declare(dead, durable=True)
            channel.queue_declare(name, durable=True, arguments=letters | arguments)

        await self.do(make)
        return name, dead

    async def take(self, queue: str) -> list[Taken]:
        def drain(channel: Any) -> list[Taken]:
            taken = []
            while (got := channel.basic_get(queue, auto_ack=True))[0]:
                taken.append(Taken(got[2], got[1].content_type, got[1].headers))
            return taken

        return await self.do(drain)

    async def reject(self, queue: str) -> None:
        def refuse(channel: Any) -> None:
            method, _, _ = channel.basic_get(queue)
            channel.basic_reject(method.delivery_tag, requeue=False)

        await self.do(refuse)

    async def remove(self, queue: str) -> None:
        await self.do(lambda channel: channel.queue_delete(queue))

    async def sever(self) -> None:
        self.proxy.sever()

    async def do(self, work: Callable[[Any], T]) -> T:
        """Do something on a channel as the team would."""

        def connected() -> T:
            connection = pika.BlockingConnection(pika.URLParameters(self.url))
            try:
                return work(connection.channel())
            finally:
                connection.close()

        return await asyncio.to_thread(connected)

    async def close(self) -> None:
        await asyncio.gather(*(broker.close() for broker in self._made))
