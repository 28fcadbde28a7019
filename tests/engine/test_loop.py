"""The loop around the components."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from oncue.engine.loop import Loop
from oncue.store import watch
from oncue.store.base import Store
from oncue.testing.until import until
from tests.engine.stage import Stage

pytestmark = pytest.mark.anyio


async def test_components_are_known_to_be_alive_before_they_take_a_step(stage: Stage) -> None:
    loop = Loop(stage.store)
    looking = Looking(stage.store, loop)

    await loop.run([looking], drain=timedelta(seconds=1))

    assert looking.alive == ["watch"]


async def test_a_heartbeat_that_failed_in_an_unexpected_way_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failed = stage.store.write, 0

    async def refuse_twice(verb: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal failed
        if verb is watch.beat and failed < 2:
            failed += 1
            raise RuntimeError("permission denied")
        return await write(verb, *args, **kwargs)

    async def is_alive() -> bool:
        return bool(await stage.store.read(watch.components))

    monkeypatch.setattr(stage.store, "write", refuse_twice)
    loop = Loop(stage.store)
    running = asyncio.create_task(loop.run([Idle()], drain=timedelta(seconds=1)))

    await until(is_alive)

    loop.stop()
    await running
    assert failed == 2


class Idle:
    """Does nothing."""

    name = "watch"

    async def step(self, now: datetime) -> datetime | None:
        return None

    async def drain(self) -> None:
        """Nothing is under way."""


class Looking:
    """Looks once who is alive, as a watch does, and stops the loop."""

    name = "watch"

    def __init__(self, store: Store, loop: Loop) -> None:
        self.store = store
        self.loop = loop
        self.alive: list[str] = []

    async def step(self, now: datetime) -> datetime | None:
        self.alive = [one.name for one in await self.store.read(watch.components)]
        self.loop.stop()
        return None

    async def drain(self) -> None:
        """Nothing is under way."""
