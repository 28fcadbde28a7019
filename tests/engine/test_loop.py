"""The loop around the components."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from oncue.engine.loop import Loop
from oncue.store import watch
from oncue.store.base import Store
from tests.engine.stage import Stage

pytestmark = pytest.mark.anyio


async def test_components_are_known_to_be_alive_before_they_take_a_step(stage: Stage) -> None:
    loop = Loop(stage.store)
    looking = Looking(stage.store, loop)

    await loop.run([looking], drain=timedelta(seconds=1))

    assert looking.alive == ["watch"]


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
