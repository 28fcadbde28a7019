"""What every `Broker` promises. A rig stands for the broker itself and the team's workers beside the adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, cast
from uuid import UUID, uuid4

import pytest

from oncue.adapters.base import Broker
from oncue.definition import BrokerTarget
from oncue.errors import AdapterError
from oncue.model import Confirmed, DeadMessage, Key, Message, Refused, Unreachable
from oncue.testing.until import until


@dataclass(frozen=True, slots=True)
class Taken:
    """A message as a worker took it."""

    body: bytes
    content_type: str
    headers: Mapping[str, Any]


class BrokerRig(Protocol):
    """A real broker, seen from the team's side. Queue names are its own to make, so that suites can share a broker."""

    def connect(self) -> Broker:
        """Return a new adapter on this broker; the rig closes it at the end."""
        ...

    def connect_to_nothing(self) -> Broker:
        """Return a new adapter on a broker that is not there."""
        ...

    async def declare(self) -> tuple[str, str]:
        """Make a queue and the dead-letter queue that takes what its workers reject; return their names."""
        ...

    async def take(self, queue: str) -> list[Taken]:
        """Take all that stands in a queue, as its workers would."""
        ...

    async def reject(self, queue: str) -> None:
        """Take one message as a worker would, and reject it for good."""
        ...

    async def remove(self, queue: str) -> None:
        """Delete a queue."""
        ...

    async def sever(self) -> None:
        """Cut all connections of the adapters at once."""
        ...


def make_message(key: Key = 1, *, body: bytes = b'{"key":1}', id: UUID | None = None, **headers: Any) -> Message:
    """Return a message that needs only what a test is about."""
    return Message(id=id or uuid4(), key=key, body=body, content_type="application/json", headers=headers)


class BrokerConformance:
    """Subclass it with a fixture `rig` that yields a `BrokerRig`."""

    async def test_a_message_arrives_byte_for_byte_with_its_headers(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        message = make_message(body='{"name":"Zoë"}\0'.encode(), run="r1", key=7, word="Ω")

        outcomes = await rig.connect().publish([message], target=BrokerTarget("main", queue))

        (taken,) = await rig.take(queue)
        assert outcomes == [Confirmed()]
        assert (taken.body, taken.content_type) == (message.body, "application/json")
        assert {name: taken.headers[name] for name in message.headers} == message.headers

    async def test_no_messages_have_no_outcomes(self, rig: BrokerRig) -> None:
        assert await rig.connect().publish([], target=BrokerTarget("main", "unused")) == []

    async def test_many_messages_are_all_confirmed_and_keep_their_order(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        messages = [make_message(body=b"%d" % number) for number in range(2_500)]

        outcomes = await rig.connect().publish(messages, target=BrokerTarget("main", queue))

        assert outcomes == [Confirmed()] * 2_500
        assert [taken.body for taken in await rig.take(queue)] == [message.body for message in messages]

    async def test_a_body_of_a_megabyte_arrives_whole(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        message = make_message(body=b"x" * 1_000_000)

        assert await rig.connect().publish([message], target=BrokerTarget("main", queue)) == [Confirmed()]

        assert [len(taken.body) for taken in await rig.take(queue)] == [1_000_000]

    async def test_an_absent_queue_refuses_each_message_by_name(self, rig: BrokerRig) -> None:
        messages = [make_message(), make_message()]

        outcomes = await rig.connect().publish(messages, target=BrokerTarget("main", "no-such-queue"))

        assert all(isinstance(outcome, Refused) and "no-such-queue" in outcome.reason for outcome in outcomes)
        assert len(outcomes) == 2

    async def test_a_target_that_fails_leaves_the_others_alone(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker = rig.connect()
        good = [make_message() for _ in range(300)]

        refused, confirmed = await asyncio.gather(
            broker.publish([make_message() for _ in range(300)], target=BrokerTarget("main", "no-such-queue")),
            broker.publish(good, target=BrokerTarget("main", queue)),
        )

        assert all(isinstance(outcome, Refused) for outcome in refused)
        assert confirmed == [Confirmed()] * 300

    async def test_a_broker_that_is_not_there_is_unreachable(self, rig: BrokerRig) -> None:
        outcomes = await rig.connect_to_nothing().publish([make_message()], target=BrokerTarget("main", "any"))

        assert len(outcomes) == 1
        assert isinstance(outcomes[0], Unreachable)

    async def test_it_publishes_again_after_its_connection_was_cut(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker, target = rig.connect(), BrokerTarget("main", queue)
        await broker.publish([make_message()], target=target)

        await rig.sever()

        async def confirms() -> bool:
            return await broker.publish([make_message()], target=target) == [Confirmed()]

        assert await until(confirms)

    async def test_depth_counts_what_stands_in_a_queue(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker = rig.connect()
        await broker.publish([make_message(), make_message()], target=BrokerTarget("main", queue))

        async def both_stand() -> bool:
            return await broker.depth(queue) == 2

        assert await until(both_stand)

    async def test_depth_is_none_where_there_is_no_queue(self, rig: BrokerRig) -> None:
        assert await rig.connect().depth("no-such-queue") is None

    async def test_a_rejected_message_is_read_with_its_death(self, rig: BrokerRig) -> None:
        queue, dead = await rig.declare()
        broker, message = rig.connect(), make_message(key=7, run="r1")
        await broker.publish([message], target=BrokerTarget("main", queue))
        await rig.reject(queue)

        (read,) = await consume(broker, dead, count=1)

        assert (read.broker, read.queue, read.origin, read.deaths) == ("main", dead, queue, 1)
        assert "reject" in read.reason
        assert (read.body, read.content_type, read.headers["run"]) == (message.body, "application/json", "r1")

    async def test_an_acknowledged_message_is_gone(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker = rig.connect()
        await broker.publish([make_message()], target=BrokerTarget("main", queue))

        await consume(broker, queue, count=1, acknowledge=True)
        await broker.close()

        assert await rig.connect().depth(queue) == 0

    async def test_what_was_not_acknowledged_returns_when_the_reader_closes(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker, message = rig.connect(), make_message()
        await broker.publish([message], target=BrokerTarget("main", queue))

        await consume(broker, queue, count=1)

        (again,) = await consume(broker, queue, count=1)
        assert again.body == message.body

    async def test_an_acknowledgement_after_its_connection_is_ignored(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker = rig.connect()
        await broker.publish([make_message()], target=BrokerTarget("main", queue))
        (read,) = await consume(broker, queue, count=1)
        await rig.sever()

        await broker.acknowledge(read)

        assert len(await consume(rig.connect(), queue, count=1)) == 1

    async def test_reading_an_absent_queue_says_so(self, rig: BrokerRig) -> None:
        with pytest.raises(AdapterError, match="no-such-queue"):
            await consume(rig.connect(), "no-such-queue", count=1)

    async def test_a_reader_is_told_when_its_connection_is_cut(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker = rig.connect()
        await broker.publish([make_message()], target=BrokerTarget("main", queue))

        with pytest.raises(AdapterError):
            await read_all(broker, queue, then=rig.sever)

    async def test_a_reader_is_told_when_its_queue_is_deleted(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker = rig.connect()
        await broker.publish([make_message()], target=BrokerTarget("main", queue))

        with pytest.raises(AdapterError, match=queue):
            await read_all(broker, queue, then=lambda: rig.remove(queue))

    async def test_a_cancelled_reader_gives_back_what_it_held(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker = rig.connect()
        await broker.publish([make_message()], target=BrokerTarget("main", queue))
        held = asyncio.Event()

        async def read() -> None:
            async for _ in broker.consume(queue):
                held.set()

        reader = asyncio.create_task(read())
        await held.wait()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)

        assert reader.cancelled()
        assert len(await consume(broker, queue, count=1)) == 1

    async def test_a_cancelled_publish_leaves_the_broker_usable(self, rig: BrokerRig) -> None:
        queue, _ = await rig.declare()
        broker, target = rig.connect(), BrokerTarget("main", queue)
        messages = [make_message() for _ in range(1_000)]
        publishing = asyncio.create_task(broker.publish(messages, target=target))
        await asyncio.sleep(0)
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)

        assert await broker.publish([make_message()], target=target) == [Confirmed()]


async def consume(broker: Broker, queue: str, *, count: int, acknowledge: bool = False) -> list[DeadMessage]:
    """Read `count` messages of a queue and close the reader."""
    found: list[DeadMessage] = []
    async with asyncio.timeout(10), aclosing(cast(Any, broker.consume(queue))) as messages:
        async for message in messages:
            found.append(message)
            if acknowledge:
                await broker.acknowledge(message)
            if len(found) == count:
                break
    return found


async def read_all(broker: Broker, queue: str, *, then: Callable[[], Awaitable[None]]) -> None:
    """Read a queue without an end, and do something after each message."""
    async with asyncio.timeout(10):
        async for _ in broker.consume(queue):
            await then()
