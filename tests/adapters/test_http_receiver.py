"""The HTTP receiver, against a real server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from oncue.adapters.receivers.http import HttpReceiver
from oncue.errors import ConfigError
from oncue.model import Confirmed, Refused, Unreachable
from oncue.testing.conformance.receivers import ReceiverConformance, ReceiverRig, make_message
from tests.free_port import free_port


class TestHttpReceiver(ReceiverConformance):
    @pytest.fixture
    def peers(self) -> set[object]:
        return set()

    @pytest.fixture
    async def rig(self, peers: set[object]) -> AsyncIterator[ReceiverRig]:
        rig = ReceiverRig(HttpReceiver(), "", str(free_port()))
        now = 0

        async def take(request: web.Request) -> web.StreamResponse:
            nonlocal now
            now += 1
            rig.most_at_once = max(rig.most_at_once, now)
            peers.add(request.transport and request.transport.get_extra_info("peername"))
            body = await request.read()
            rig.got.append((body, {name.lower(): value for name, value in request.headers.items()}))
            await asyncio.sleep(0.005)  # so that requests overlap
            now -= 1
            match rig.answer(body):
                case "hang":
                    await asyncio.Event().wait()
                case "cut":
                    assert request.transport is not None
                    request.transport.abort()
                case str() as way if " " in way:
                    return await stream(request, *way.split())
                case int() as status:
                    return web.Response(status=status, text="as asked" if status >= 300 else None)
                case (int() as status, {"X-Body": text}):
                    return web.Response(status=status, text=text)
                case (int() as status, dict() as headers):
                    return web.Response(status=status, headers=headers)
            return web.Response()

        async def stream(request: web.Request, way: str, status: str) -> web.StreamResponse:
            response = web.StreamResponse(status=int(status))
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                while way == "endless":
                    await response.write(b"x" * 65_536)
                await asyncio.Event().wait()
            return response

        application = web.Application()
        application.router.add_post("/hook", take)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        rig.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        yield rig
        await rig.receiver.close()
        await runner.cleanup()

    async def test_a_connection_is_kept_between_two_sends(self, rig: ReceiverRig, peers: set[object]) -> None:
        for status in (200, 500, 204, 429):
            rig.answer = lambda _, status=status: status
            await rig.receiver.send([make_message()], target=self.target(rig))

        assert len(peers) == 1

    async def test_a_header_by_reference_is_read_for_each_page_and_never_shown(self, rig: ReceiverRig) -> None:
        secrets = {"env:HOOK_TOKEN": "Bearer one"}
        receiver = HttpReceiver(read_secret=lambda text: secrets.get(text, text))
        target = self.target(rig, headers={"Authorization": "env:HOOK_TOKEN"})

        assert await receiver.send([make_message()], target=target) == [Confirmed()]
        secrets["env:HOOK_TOKEN"] = "Bearer two"
        assert await receiver.send([make_message()], target=target) == [Confirmed()]

        assert [headers["authorization"] for _, headers in rig.got] == ["Bearer one", "Bearer two"]
        await receiver.close()

    async def test_a_reference_to_nothing_sends_nothing_and_counts_no_attempt(self, rig: ReceiverRig) -> None:
        def read_secret(text: str) -> str:
            raise ConfigError("the variable HOOK_TOKEN is not set.")

        receiver = HttpReceiver(read_secret=read_secret)

        (outcome,) = await receiver.send([make_message()], target=self.target(rig, headers={"Authorization": "env:X"}))

        assert isinstance(outcome, Unreachable), outcome
        assert "HOOK_TOKEN is not set" in outcome.reason
        assert rig.got == []
        await receiver.close()

    async def test_retry_after_counts_only_where_it_is_meant(self, rig: ReceiverRig) -> None:
        rig.answer = lambda _: (500, {"Retry-After": "7"})

        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig))

        assert isinstance(outcome, Refused)
        assert outcome.retry_after is None

    async def test_a_host_that_does_not_take_the_connection_is_unreachable(self, rig: ReceiverRig) -> None:
        with socket.socket() as full, contextlib.ExitStack() as waiting:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for _ in range(4):  # fill its queue, so that further handshakes get no answer
                line = waiting.enter_context(socket.socket())
                line.setblocking(False)
                line.connect_ex(full.getsockname())
            url = f"http://127.0.0.1:{full.getsockname()[1]}/hook"

            (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig, url=url))

        assert isinstance(outcome, Unreachable), outcome
