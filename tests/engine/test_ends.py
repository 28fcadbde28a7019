"""How a process ends, and what an outage leaves: all is given back, told once, and goes on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from oncue.errors import StoreUnavailable, TriggerError
from oncue.model import Event, Retry, Subscription
from oncue.rules import binding
from oncue.testing.until import until
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio

PAID = (Subscription("order.paid"),)


def paid(name: str = "e1", **changes: Any) -> Event:
    return replace(Event(name, "shop", "order.paid", NOON, "3", {"total": 12}), **changes)


async def cut(drain: Any) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await drain


async def test_what_one_outage_failed_is_told_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    await stage.apply(*(stage.definition(f"greet-{number}") for number in range(5)))
    stage.advance(minutes=1)
    await stage.tick()

    async def fail(_run: object) -> None:
        raise StoreUnavailable("down")

    monkeypatch.setattr(stage.handover, "work", fail)
    await stage.dispatcher.step(stage.now)
    await until(lambda: not stage.dispatcher._tasks)

    with pytest.raises(StoreUnavailable):
        await stage.dispatcher.step(stage.now)
    await stage.dispatcher.step(stage.now)


async def test_a_run_whose_zone_has_vanished_fails_with_that_reason(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.apply(stage.definition(retry=Retry(attempts=1)))
    stage.advance(minutes=1)
    await stage.tick()

    def vanished(name: str) -> None:
        raise TriggerError(f'zone: there is no time zone "{name}".')

    monkeypatch.setattr(binding, "read_zone", vanished)
    await stage.dispatch()

    (run,) = await stage.runs()
    assert (run.state, run.reason) == ("failed", 'zone: there is no time zone "UTC".')
