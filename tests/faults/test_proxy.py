"""The fault proxy does what it says, seen from a client of an echo server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.anyio

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def proxy() -> AsyncIterator[FaultProxy]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionResetError):
            while chunk := await reader.read(1000):
                writer.write(chunk)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, FaultProxy("127.0.0.1", server.sockets[0].getsockname()[1]) as made:
        yield made


@pytest.fixture
async def line(proxy: FaultProxy) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    yield reader, writer
    writer.transport.abort()


async def say(line: Line, text: bytes) -> bytes:
    line[1].write(text)
    return await line[0].readexactly(len(text))


async def test_it_carries_bytes_and_the_end_of_a_stream(proxy: FaultProxy, line: Line) -> None:
    assert await say(line, b"hello") == b"hello"

    line[1].write_eof()

    assert await line[0].read() == b""


async def test_a_delay_holds_for_each_direction(proxy: FaultProxy, line: Line) -> None:
    proxy.to_server.delay = proxy.to_client.delay = timedelta(seconds=0.05)
    loop = asyncio.get_running_loop()
    begin = loop.time()

    await say(line, b"hello")

    assert loop.time() - begin >= 0.1


async def test_bytes_that_are_lost_one_way_are_never_answered(proxy: FaultProxy, line: Line) -> None:
    proxy.to_client.is_lost = True

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(say(line, b"hello"), timeout=0.1)


async def test_a_black_hole_takes_new_connections_and_says_nothing(proxy: FaultProxy) -> None:
    proxy.black_hole()
    line = await asyncio.open_connection("127.0.0.1", proxy.port)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(say(line, b"hello"), timeout=0.1)

    line[1].transport.abort()


async def test_held_bytes_pass_once_it_is_healed(proxy: FaultProxy, line: Line) -> None:
    await say(line, b"hello")
    proxy.to_server.is_held = True
    answer = asyncio.create_task(say(line, b"again"))

    proxy.heal()

    assert await answer == b"again"


async def test_a_cut_comes_after_exactly_so_many_bytes(proxy: FaultProxy, line: Line) -> None:
    proxy.to_client.cut_after = 3
    line[1].write(b"hello")

    assert await line[0].read() == b"hel"


async def test_a_reset_is_seen_as_one(proxy: FaultProxy, line: Line) -> None:
    await say(line, b"hello")

    proxy.reset()

    with pytest.raises(ConnectionResetError):
        await line[0].read()


async def test_it_refuses_and_accepts_again_on_the_same_port(proxy: FaultProxy) -> None:
    await proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", proxy.port)

    await proxy.accept()

    line = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await say(line, b"hello") == b"hello"
    line[1].close()


def test_a_url_is_rewritten_with_its_login_and_path() -> None:
    proxy = FaultProxy.before("amqp://guest:guest@localhost:5672/%2F")
    proxy.port = 1234

    assert proxy.rewrite("amqp://guest:guest@localhost:5672/%2F") == "amqp://guest:guest@127.0.0.1:1234/%2F"
