"""Dead letters that no task of ours made: each is kept, goes back to where it failed, and may die again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from oncue.definition import BrokerTarget
from oncue.engine.failures import Failures
from oncue.model import Confirmed, DeadMessage, Message, Outcome
from oncue.store import failures
from oncue.testing.until import until
from tests.engine.stage import LEASE, Stage

pytestmark = pytest.mark.anyio


class OneBroker:
    """Stands for the adapters, and for the one broker that they know."""

    def __init__(self) -> None:
        self.dead: asyncio.Queue[DeadMessage] = asyncio.Queue()
        self.acknowledged = 0
        self.published: list[Message] = []

    def broker(self, _name: str) -> OneBroker:
        return self

    async def publish(self, messages: Sequence[Message], *, target: BrokerTarget) -> list[Outcome]:
        self.published += messages
        return [Confirmed()] * len(messages)

    async def consume(self, _queue: str) -> AsyncIterator[DeadMessage]:
        while True:
            yield await self.dead.get()

    async def acknowledge(self, _message: DeadMessage) -> None:
        self.acknowledged += 1


def dead(body: bytes = b"strange", headers: dict[str, Any] | None = None, **properties: Any) -> DeadMessage:
    return DeadMessage(
        broker="main",
        queue="work.dead",
        origin="work",
        reason="rejected",
        deaths=1,
        body=body,
        content_type="text/plain",
        headers=headers or {},
        properties=properties,
        tag=None,
    )


def handler(stage: Stage, broker: OneBroker) -> Failures:
    adapters: Any = broker
    return Failures(stage.store, adapters, now=lambda: stage.now, queues=[("main", "work.dead")], lease=LEASE)


async def take(stage: Stage, broker: OneBroker, *messages: DeadMessage) -> None:
    taking, before = handler(stage, broker), broker.acknowledged
    for message in messages:
        broker.dead.put_nowait(message)
    await taking.step(stage.now)
    await until(lambda: broker.acknowledged == before + len(messages))
    await taking.drain()


async def requeue(stage: Stage) -> None:
    await stage.store.write(failures.requeue, everything=True, rate=50, ask_again=False, actor="test", now=stage.now)


async def test_a_stranger_is_stored_once_however_often_its_broker_delivers_it(stage: Stage) -> None:
    await take(stage, OneBroker(), dead(), dead())

    assert len(await stage.letters()) == 1


async def test_two_strangers_with_the_same_body_are_two_dead_letters(stage: Stage) -> None:
    await take(stage, OneBroker(), dead(correlation_id="a"), dead(correlation_id="b"))

    assert len(await stage.letters()) == 2


async def test_a_stranger_that_was_requeued_and_dies_again_is_another_dead_letter(stage: Stage) -> None:
    broker = OneBroker()
    await take(stage, broker, dead())

    for _ in range(2):
        await requeue(stage)
        await handler(stage, broker).step(stage.now)
        again = broker.published[-1]
        await take(stage, broker, dead(again.body, dict(again.headers)))

    assert [letter.state for letter in await stage.letters()] == ["open", "recovered", "recovered"]
    assert [message.body for message in broker.published] == [b"strange"] * 2


async def test_what_a_dead_handler_was_to_publish_is_published_by_another(stage: Stage) -> None:
    broker = OneBroker()
    await take(stage, broker, dead())
    await requeue(stage)
    (made,) = await stage.store.read(failures.ready_requeues, now=stage.now, limit=1)
    ready_at = stage.now + timedelta(seconds=1)
    await stage.store.write(failures.send_requeued, made, count=1, state="canary", ready_at=ready_at, now=stage.now)

    await handler(stage, broker).step(stage.now + LEASE / 2)
    before = list(broker.published)
    await handler(stage, broker).step(stage.now + LEASE * 1.1)

    assert (before, [message.body for message in broker.published]) == ([], [b"strange"])
    assert [letter.state for letter in await stage.letters()] == ["recovered"]
