"""How a process ends, and what an outage leaves: all is given back, told once, and goes on."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from oncue.definition import EventResolver, Retry, Subscription
from oncue.engine.loop import Component, Loop
from oncue.engine.watch import Watch
from oncue.errors import StoreUnavailable, TriggerError
from oncue.model import Event
from oncue.rules import binding
from oncue.store import deliveries, events, runs
from oncue.store.base import Database, Store
from oncue.testing.until import until
from tests.engine.stage import LEASE, NOON, Stage

pytestmark = pytest.mark.anyio

PAID = (Subscription("order.paid"),)


def paid(name: str = "e1", **changes: Any) -> Event:
    return replace(Event(name, "shop", "order.paid", NOON, "3", {"total": 12}), **changes)


async def cut(drain: Any) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await drain


async def test_an_ingest_that_is_cut_short_gives_its_runs_back_uncounted(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))
    stage.worker.gate = asyncio.Event()
    await stage.ingest.accept(paid())
    await until(lambda: stage.worker.took)

    await cut(stage.ingest.drain())

    (run,) = await stage.runs()
    assert (run.state, run.attempts, run.ready_at) == ("due", 0, stage.now)


async def test_a_dispatcher_that_is_cut_short_gives_its_deliveries_back_uncounted(stage: Stage) -> None:
    await stage.apply(stage.definition(retry=Retry(first=timedelta(seconds=1))))
    stage.worker.answer = lambda key: 500 if key == "4" else 200
    await stage.fire_next()
    stage.worker.gate, taken = asyncio.Event(), len(stage.worker.took)
    stage.advance(seconds=2)
    await stage.dispatcher.step(stage.now)
    await until(lambda: len(stage.worker.took) > taken)

    await cut(stage.dispatcher.drain())

    (run,) = await stage.runs()
    (late,) = await stage.deliveries(run.id)
    assert (late.state, late.attempts, late.ready_at, late.reason) == (
        "waiting",
        1,
        stage.now,
        "interrupted by a drain",
    )


async def test_a_delivery_whose_dispatchers_all_die_becomes_a_dead_letter(stage: Stage) -> None:
    await stage.apply(stage.definition(retry=Retry(attempts=3, first=timedelta(seconds=1))))
    stage.worker.answer = lambda key: 500 if key == "4" else 200
    await stage.fire_next()
    stage.worker.answer, taken = lambda _key: 200, len(stage.worker.took)
    for _ in range(2):
        stage.advance(seconds=2 * LEASE.total_seconds())
        await stage.store.write(deliveries.claim, now=stage.now, until=stage.now + LEASE, limit=1)
    stage.advance(seconds=2 * LEASE.total_seconds())

    await stage.dispatch()

    (run,), (letter,) = await stage.runs(), await stage.letters()
    assert (run.state, run.dead, len(stage.worker.took)) == ("partial", 1, taken)
    assert letter.what.reason == "tried 3 times without an end: HTTP 500"


@pytest.mark.parametrize("name", ["clock", "watch"])
async def test_a_look_that_failed_is_taken_again_at_the_next_step(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A step that does nothing after one that failed would be told as a recovery."""
    watch = Watch(stage.store, every=timedelta(seconds=1))
    component: Component = watch if name == "watch" else stage.clock
    await component.step(stage.now)
    stage.advance(seconds=1)

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("down")

    monkeypatch.setattr(stage.store, "read", fail)

    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await component.step(stage.now)


async def test_a_write_that_fails_after_its_caller_is_gone_leaves_no_complaint(stage: Stage) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def fail(_steps: Any) -> Any:
        await asyncio.sleep(0.01)
        raise StoreUnavailable("down")

    store = Store(cast("Database", SimpleNamespace(write=fail, close=stage.store.database.close)))
    caller = asyncio.create_task(store.write(runs.claim, now=NOON, until=NOON, limit=1))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    await until(lambda: not store._under_way)
    del caller
    gc.collect()

    assert complaints == []


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


async def test_a_batch_that_fails_leaves_no_later_event_without_an_answer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))
    monkeypatch.setattr("oncue.engine.ingest.BATCH", 1)
    write = stage.store.write

    async def fail_once(verb: Any, *args: Any, **kwargs: Any) -> Any:
        if verb is events.accept:
            monkeypatch.setattr(stage.store, "write", write)
            raise RuntimeError("unforeseen")
        return await write(verb, *args, **kwargs)

    monkeypatch.setattr(stage.store, "write", fail_once)
    async with asyncio.timeout(5):
        first, second = await asyncio.gather(
            stage.ingest.accept(paid("first")), stage.ingest.accept(paid("second")), return_exceptions=True
        )
        await stage.ingest.drain()

    assert isinstance(first, StoreUnavailable)
    assert getattr(second, "verdict", None) == "accepted"


async def test_an_ingest_that_was_frozen_past_its_lease_sends_nothing_late(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))
    read = stage.store.read

    async def freeze(verb: Any, *args: Any, **kwargs: Any) -> Any:
        if verb is runs.read and stage.now == NOON:
            stage.advance(seconds=3 * LEASE.total_seconds())
            await stage.dispatch()
        return await read(verb, *args, **kwargs)

    monkeypatch.setattr(stage.store, "read", freeze)
    await stage.ingest.accept(paid())
    await stage.ingest.drain()

    assert await stage.states() == ["done"]
    assert stage.worker.keys == ["3"]


class Stuck:
    """A component whose step never ends, and that notes how it is drained."""

    name = "watch"

    def __init__(self) -> None:
        self.is_stepping = False
        self.is_drained = False

    async def step(self, now: datetime) -> datetime | None:
        self.is_stepping = True
        await asyncio.Event().wait()
        return None

    async def drain(self) -> None:
        self.is_drained = True


async def test_a_step_that_never_ends_does_not_outlast_the_drain(stage: Stage) -> None:
    loop, stuck = Loop(stage.store), Stuck()
    running = asyncio.create_task(loop.run([stuck], drain=timedelta(milliseconds=100)))
    await until(lambda: stuck.is_stepping)

    loop.stop()

    async with asyncio.timeout(2):
        await running
    assert stuck.is_drained


async def test_a_second_request_to_end_waits_for_nobody(stage: Stage) -> None:
    loop, stuck = Loop(stage.store), Stuck()
    running = asyncio.create_task(loop.run([stuck], drain=timedelta(minutes=5)))
    await until(lambda: stuck.is_stepping)

    loop.stop()
    loop.hurry()

    async with asyncio.timeout(2):
        await running
    assert stuck.is_drained
