"""The HTTP receiver, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from oncue.adapters.receivers.http import HttpReceiver
from oncue.testing.conformance.receivers import ReceiverConformance, ReceiverRig
from tests.free_port import free_port


class TestHttpReceiver(ReceiverConformance):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[ReceiverRig]:
        rig = ReceiverRig(HttpReceiver(), "", str(free_port()))
        now = 0

        async def take(request: web.Request) -> web.StreamResponse:
            nonlocal now
            now += 1
            rig.most_at_once = max(rig.most_at_once, now)
            body = await request.read()
            rig.got.append((body, {name.lower(): value for name, value in request.headers.items()}))
            await asyncio.sleep(0)
            now -= 1
            match rig.answer(body):
                case "hang":
                    await asyncio.Event().wait()
                case "cut":
                    assert request.transport is not None
                    request.transport.abort()
                case int() as status:
                    return web.Response(status=status, text="as asked" if status >= 300 else None)
                case (int() as status, dict() as headers):
                    return web.Response(status=status, headers=headers)
            return web.Response()

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
