"""RabbitMQ: publishes with confirms and `mandatory`, a page in flight at a time, and drains dead-letter queues.

Queues and exchanges are the team's: none is ever declared here. Two connections, because a broker that is short of
memory stops reading from one that publishes, and dead letters must still be acknowledged then.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from pika.exceptions import AMQPError

from oncue.adapters.brokers.amqp_connection import AmqpConnection, is_refusal
from oncue.adapters.brokers.amqp_fields import read_death, read_properties, to_plain, without_deaths, write_properties
from oncue.definition import BrokerTarget
from oncue.errors import AdapterError
from oncue.model import Confirmed, DeadMessage, Message, Outcome, Refused, Unknown, Unreachable

__all__ = ["AmqpBroker", "without_deaths"]

PAGE = 1_000  # messages in flight on one channel
CHANNELS = 64  # that publish at the same time; more publishers wait for one of them
PREFETCH = 100  # dead letters on their way that are not yet acknowledged
BREATH = 20  # messages written before others on the loop get their turn
CONFIRMED = Confirmed()
UNWRITABLE = (AMQPError, ValueError, TypeError, OverflowError, AssertionError, struct.error)


class AmqpBroker:
    """A team's RabbitMQ. `confirm_within` bounds a page from the first connect to its last confirm, in seconds."""

    def __init__(self, name: str, url: str, *, confirm_within: float = 10.0) -> None:
        self._name = name
        self._confirm_within = confirm_within
        self._writing = AmqpConnection(name, url, purpose="publish")
        self._reading = AmqpConnection(name, url, purpose="dead letters")
        self._channels = asyncio.Semaphore(CHANNELS)
        self._idle: list[_ConfirmingChannel] = []

    async def publish(self, messages: Sequence[Message], *, target: BrokerTarget) -> list[Outcome]:
        """Return one outcome a message, in their order. Never raises for what the broker does."""
        outcomes: list[Outcome] = []
        for start in range(0, len(messages), PAGE):
            page = _Page(messages[start : start + PAGE], target)
            try:
                async with asyncio.timeout(self._confirm_within):
                    await self._carry(page)
            except TimeoutError:
                page.end(self._give_up(page))
            except AdapterError as error:
                page.end(Unreachable(str(error)))
            outcomes += [outcome for outcome in page.outcomes if outcome is not None]
        return outcomes

    async def consume(self, queue: str) -> AsyncGenerator[DeadMessage, None]:
        """Yield what stands in a dead-letter queue; what is not acknowledged returns to it when this is closed.

        Raises AdapterError when the queue is absent or deleted, or the connection is lost: the caller asks again.
        """
        arrived: asyncio.Queue[DeadMessage | str] = asyncio.Queue()
        channel = await self._reading.channel()

        def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            tag = _Tag(channel, method.delivery_tag)
            arrived.put_nowait(_read_message(self._name, queue, tag=tag, properties=properties, body=body))

        try:
            channel.add_on_close_callback(lambda _, error: arrived.put_nowait(self._reading.explain(error)))
            channel.add_on_cancel_callback(lambda _: arrived.put_nowait("the queue was deleted or moved"))
            await self._reading.call(channel, channel.basic_qos, prefetch_count=PREFETCH)
            await self._reading.call(channel, channel.basic_consume, queue, on_message)
            while not isinstance(message := await arrived.get(), str):
                yield message
            raise AdapterError(f'broker "{self._name}", queue "{queue}": {message}')
        finally:
            if channel.is_open:
                channel.close()

    async def acknowledge(self, message: DeadMessage) -> None:
        """Take a message off its queue. One whose channel is gone is left alone: the broker delivers it again."""
        tag: _Tag = message.tag
        if tag.channel.is_open:
            tag.channel.basic_ack(tag.number)

    async def depth(self, queue: str) -> int | None:
        """Return how many messages stand in a queue; None where it does not exist. Raises AdapterError."""
        channel = await self._reading.channel()
        try:
            declared = await self._reading.call(channel, channel.queue_declare, queue, passive=True)
        except AdapterError as error:
            if is_refusal(error.__cause__, 404):
                return None
            raise
        finally:
            if channel.is_open:
                channel.close()
        return int(declared.method.message_count)

    async def close(self) -> None:
        """Close both connections; acknowledgements are sent first. Pages in flight end as unknown."""
        await asyncio.gather(self._writing.close(), self._reading.close())

    async def _carry(self, page: _Page) -> None:
        """Bring a page to the broker and wait until all of it is answered. Raises AdapterError if nothing was sent."""
        async with self._channels:
            await self._writing.wait_unblocked()
            confirming = await self._confirming_channel()
            try:
                ended_by = await confirming.carry(page)
            finally:
                if confirming.is_free:
                    self._idle.append(confirming)
                else:
                    confirming.close()
        if ended_by is None:
            return
        if not is_refusal(ended_by):
            page.end(Unknown(f'broker "{self._name}": {self._writing.explain(ended_by)}'))
        elif not is_refusal(ended_by, 406):
            page.end(Refused(f'broker "{self._name}": {self._writing.explain(ended_by)}'))
        elif len(page.messages) == 1:
            page.end(Refused(f'broker "{self._name}": {self._writing.explain(ended_by)}', again=False))
        else:
            await self._carry_singly(page)

    async def _carry_singly(self, page: _Page) -> None:
        """Send again, one by one, what one bad message took down with its channel: the broker does not say which."""
        for index, message in enumerate(page.messages):
            if page.outcomes[index] is None:
                single = _Page([message], page.target)
                await self._carry(single)
                page.outcomes[index] = single.outcomes[0]

    async def _confirming_channel(self) -> _ConfirmingChannel:
        while self._idle:
            if (confirming := self._idle.pop()).is_free:
                return confirming
        confirming = _ConfirmingChannel(await self._writing.channel())
        await self._writing.call(confirming.channel, confirming.channel.confirm_delivery, confirming.on_confirm)
        return confirming

    def _give_up(self, page: _Page) -> Outcome:
        """Say what became of a page that was not answered in time. Cuts the connection, unless it is only blocked."""
        if self._writing.blocked is not None:
            return Unreachable(f'broker "{self._name}" blocks publishers: {self._writing.blocked}')
        if page.connection is None:
            return Unreachable(f'broker "{self._name}": no free channel within {self._confirm_within:g} s')
        self._writing.drop(page.connection, "no confirm in time")
        return Unknown(f'broker "{self._name}": no confirm within {self._confirm_within:g} s')


@dataclass(frozen=True, slots=True)
class _Tag:
    """The handle of a message that was read. The channel says whether it still holds: a new one has other numbers."""

    channel: Any
    number: int


class _Page:
    """Messages in flight to one target, with what became of each so far."""

    def __init__(self, messages: Sequence[Message], target: BrokerTarget) -> None:
        self.messages = messages
        self.target = target
        self.outcomes: list[Outcome | None] = [None] * len(messages)
        self.connection: Any = None  # which carries it; None: nothing was sent

    def end(self, outcome: Outcome) -> None:
        """Give all that have none this outcome."""
        self.outcomes = [outcome if known is None else known for known in self.outcomes]


class _ConfirmingChannel:
    """A channel in confirm mode. It carries one page at a time, so that a bad target fails nobody else's messages."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self._page: _Page | None = None
        self._sent = 0
        self._lowest = 1
        self._open: dict[int, int] = {}  # delivery tag -> index in the page
        self._by_message_id: dict[str, list[int]] = {}
        self._closed_by: BaseException | None = None
        self._over = asyncio.Event()
        channel.add_on_return_callback(self._on_return)
        channel.add_on_close_callback(self._on_close)

    @property
    def is_free(self) -> bool:
        """It is open and owes no answer."""
        return bool(self.channel.is_open) and not self._open

    def close(self) -> None:
        if self.channel.is_open and self.channel.connection.is_open:
            self.channel.close()

    async def carry(self, page: _Page) -> BaseException | None:
        """Write a page and wait until all of it is answered; return what closed the channel before that, if it did."""
        self._page, self._by_message_id = page, {}
        page.connection = self.channel.connection
        frame_size = page.connection.params.frame_max
        for index in range(len(page.messages)):
            if index % BREATH == BREATH - 1:
                await asyncio.sleep(0)
            if not self.channel.is_open:
                break
            self._write(page, index, frame_size=frame_size)
        while self._open and self._closed_by is None:
            self._over.clear()
            await self._over.wait()
        return self._closed_by

    def on_confirm(self, frame: Any) -> None:
        """Take the broker's ack or nack of one message, or of all up to one."""
        method, last = frame.method, frame.method.delivery_tag
        tags = range(self._lowest, last + 1) if method.multiple else (last,)
        outcome = (
            CONFIRMED if method.NAME == "Basic.Ack" else Refused("the broker refused it (nack): the queue is full")
        )
        for tag in tags:
            self._settle(tag, outcome)
        if method.multiple:
            self._lowest = last + 1
        if not self._open:
            self._over.set()

    def _write(self, page: _Page, index: int, *, frame_size: int) -> None:
        message, target = page.messages[index], page.target
        try:
            properties = write_properties(message)
            if _may_exceed(message, frame_size // 8) and len(b"".join(properties.encode())) > frame_size - 512:
                # A header that does not fit one frame makes the broker close the connection, on all targets.
                page.outcomes[index] = Refused(f"its headers are larger than {frame_size} bytes", again=False)
                return
            self.channel.basic_publish(target.exchange, target.queue, message.body, properties, mandatory=True)
        except UNWRITABLE as error:  # pika writes nothing before all is encoded
            reason = f"its headers, properties or target do not fit AMQP ({type(error).__name__})"
            page.outcomes[index] = Refused(reason, again=False)
            return
        self._sent += 1
        self._open[self._sent] = index

    def _settle(self, tag: int, outcome: Outcome) -> None:
        index = self._open.pop(tag, None)
        # A returned message is acknowledged after its return, and stays refused.
        if index is not None and self._page is not None and self._page.outcomes[index] is None:
            self._page.outcomes[index] = outcome

    def _on_close(self, _: Any, error: BaseException) -> None:
        self._closed_by = error
        self._over.set()

    def _on_return(self, _: Any, method: Any, properties: Any, __: bytes) -> None:
        page = self._page
        if page is None:
            return
        if not self._by_message_id:  # built for the first return of a page: most pages have none
            for index, message in enumerate(page.messages):
                self._by_message_id.setdefault(_message_id(message), []).append(index)
        waiting = self._by_message_id.get(properties.message_id)
        if waiting:
            page.outcomes[waiting.pop(0)] = Refused(_unroutable(page.target, method.reply_text))


def _read_message(broker: str, queue: str, *, tag: _Tag, properties: Any, body: bytes) -> DeadMessage:
    headers = to_plain(properties.headers or {})
    death = read_death(headers)
    return DeadMessage(
        broker=broker,
        queue=queue,
        origin=death.origin,
        reason=death.reason,
        deaths=death.count,
        body=body,
        content_type=properties.content_type or "",
        headers=headers,
        properties=read_properties(properties),
        tag=tag,
    )


def _message_id(message: Message) -> str:
    return str(message.properties.get("message_id") or message.id)


def _may_exceed(message: Message, limit: int) -> bool:
    return (
        sum(len(value if isinstance(value, str | bytes) else repr(value)) for value in message.headers.values()) > limit
    )


def _unroutable(target: BrokerTarget, text: str) -> str:
    if target.exchange:
        return f'unroutable: exchange "{target.exchange}" leads to no queue for "{target.queue}" ({text})'
    return f'unroutable: no queue "{target.queue}" ({text})'
