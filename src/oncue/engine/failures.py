"""The failure handler: drains dead-letter queues into the store, and carries out requeues at their rate."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from pydantic_core import to_json

from oncue import crash
from oncue.adapters.base import Broker
from oncue.adapters.envelopes.trace import mark_requeue, read_address, read_requeue
from oncue.adapters.registry import Adapters
from oncue.definition import BrokerTarget
from oncue.errors import AdapterError, NotFound, StoreUnavailable
from oncue.model import Attempt, Confirmed, DeadLetter, DeadMessage, Message, NewDeadLetter, Requeue, Run
from oncue.observe.log import log
from oncue.rules import identity, requeuing
from oncue.store import failures, runs
from oncue.store.base import Store

BEFORE_STORE = crash.point("failures.before_store")
BEFORE_ACKNOWLEDGE = crash.point("failures.before_acknowledge")
BEFORE_REQUEUE = crash.point("failures.before_requeue")
AFTER_REQUEUE = crash.point("failures.after_requeue")

BACKOFF = (1.0, 2.0, 5.0, 10.0)
LOST = "nobody knows which queue it failed in: discard it, or publish it by hand"
LEFT = 100  # strangers that a dead handler left, taken at once


class Failures:
    """`queues` are the dead-letter queues to drain: (broker, queue).

    What it publishes itself is its own for a `lease`; what was not settled by then is taken by whoever is alive.
    """

    name = "failures"

    def __init__(
        self,
        store: Store,
        adapters: Adapters,
        *,
        now: Callable[[], datetime],
        queues: Sequence[tuple[str, str]] = (),
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._now = now
        self._queues = queues
        self._lease = lease
        self._drains: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.unread: dict[tuple[str, str], str] = {}

    async def step(self, now: datetime) -> datetime | None:
        """Keep every queue drained, and send what requeues may send now."""
        for queue in self._queues:
            if queue not in self._drains or self._drains[queue].done():
                self._drains[queue] = asyncio.create_task(self._drain_queue(*queue))
        for requeue in await self._store.read(failures.ready_requeues, now=now, limit=20):
            await self._advance(requeue, now)
        left = await self._store.write(failures.retake_strangers, before=now - self._lease, now=now, limit=LEFT)
        await self._publish(left)
        return await self._store.read(failures.next_requeue)

    async def drain(self) -> None:
        """Stop reading queues: what was not acknowledged stays with its broker."""
        for task in self._drains.values():
            task.cancel()
        await asyncio.gather(*self._drains.values(), return_exceptions=True)

    async def _drain_queue(self, broker_name: str, queue: str) -> None:
        """Read one dead-letter queue for ever: each message stored first, then acknowledged."""
        failed = 0
        while True:
            try:
                broker = self._adapters.broker(broker_name)
                async for message in broker.consume(queue):
                    if failed:
                        log.info("dead-letter queue read again", broker=broker_name, queue=queue)
                    failed = 0
                    self.unread.pop((broker_name, queue), None)
                    await self._take(broker, message)
            except (AdapterError, StoreUnavailable) as error:
                self.unread[broker_name, queue] = str(error)
                if not failed:
                    log.warning("dead-letter queue not read", broker=broker_name, queue=queue, error=str(error))
            failed += 1
            await asyncio.sleep(BACKOFF[min(failed, len(BACKOFF)) - 1])

    async def _take(self, broker: Broker, message: DeadMessage) -> None:
        letter = await self._capture(message)
        BEFORE_STORE()
        await self._store.write(failures.record, [letter], now=self._now())
        BEFORE_ACKNOWLEDGE()
        await broker.acknowledge(message)

    async def _capture(self, message: DeadMessage) -> NewDeadLetter:
        """Return a dead message with all the context that its headers lead to; strangers go by their bytes."""
        traced = read_address(message.headers)
        address, key = traced if traced is not None else (None, None)
        run = await self._find_run(address.run_uuid) if address is not None else None
        message_id = address.message_id if address is not None else None
        requeue = address.requeue if address is not None else read_requeue(message.headers)
        return NewDeadLetter(
            identity=identity.broker_identity(
                message_id, requeue, message.queue, deaths=message.deaths, body=_all_of(message)
            ),
            kind="message",
            reason=message.reason,
            task_id=run.task_id if run else None,
            task_name=run.task_name if run else None,
            task_version=run.task_version if run else None,
            run_id=run.id if run else None,
            run_uuid=run.uuid if run else None,
            message_id=message_id,
            key=key,
            requeue=requeue,
            attempts=(Attempt(self._now(), message.reason),),
            broker=message.broker,
            queue=message.queue,
            origin=message.origin,
            body=message.body,
            content_type=message.content_type,
            headers=message.headers,
            properties=message.properties,
        )

    async def _find_run(self, uuid: UUID) -> Run | None:
        try:
            return await self._store.read(runs.read, uuid)
        except NotFound:
            return None

    async def _advance(self, requeue: Requeue, now: datetime) -> None:
        """Send the next part of a requeue, or move it on by what came back of the last."""
        plan = requeuing.plan(requeue, now=now)
        if plan.count:
            BEFORE_REQUEUE()
            strangers = await self._store.write(
                failures.send_requeued, requeue, count=plan.count, state=plan.state, ready_at=plan.ready_at, now=now
            )
            AFTER_REQUEUE()
            await self._publish(strangers)
        else:
            await self._store.write(
                failures.move_requeue, requeue, plan.state, reason=plan.reason, ready_at=plan.ready_at, now=now
            )

    async def _publish(self, letters: Sequence[DeadLetter]) -> None:
        """Publish messages that no task of ours made to the queues that they failed in, byte for byte."""
        groups: dict[tuple[str | None, str | None], list[DeadLetter]] = defaultdict(list)
        for letter in letters:
            groups[letter.what.broker, letter.what.origin].append(letter)
        for (broker, queue), group in groups.items():
            errors = await self._send(group, BrokerTarget(broker, queue)) if broker and queue else [LOST] * len(group)
            for letter, error in zip(group, errors, strict=True):
                await self._store.write(failures.settle_stranger, letter, error=error, now=self._now())

    async def _send(self, letters: Sequence[DeadLetter], target: BrokerTarget) -> list[str | None]:
        """Return what went wrong with each: None where the broker confirmed it."""
        messages = [_as_it_was(letter) for letter in letters]
        try:
            outcomes = await self._adapters.broker(target.broker).publish(messages, target=target)
        except AdapterError as failure:
            return [str(failure)] * len(letters)
        return [None if isinstance(outcome, Confirmed) else outcome.reason for outcome in outcomes]


def _all_of(message: DeadMessage) -> bytes:
    """Return what tells one stranger from another: two workers' messages may have the same body."""
    return to_json(message.properties, fallback=str) + message.body


def _as_it_was(letter: DeadLetter) -> Message:
    what, requeue = letter.what, letter.what.requeue + 1
    content_type = what.content_type or "application/octet-stream"
    headers = mark_requeue(what.headers, requeue)
    return Message(letter.uuid, what.key or "", what.body or b"", content_type, headers, what.properties, requeue)
