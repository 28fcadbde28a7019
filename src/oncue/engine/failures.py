"""The failure handler: drains dead-letter queues into the store, and carries out requeues at their rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from oncue import crash
from oncue.adapters.base import Broker
from oncue.adapters.envelopes.trace import read_address
from oncue.adapters.registry import Adapters
from oncue.errors import AdapterError, NotFound, StoreUnavailable
from oncue.model import Attempt, BrokerTarget, Confirmed, DeadLetter, DeadMessage, Message, NewDeadLetter, Requeue, Run
from oncue.observe.log import log
from oncue.rules import identity, requeuing
from oncue.store import failures, runs
from oncue.store.base import Store

BEFORE_STORE = crash.point("failures.before_store")
BEFORE_ACKNOWLEDGE = crash.point("failures.before_acknowledge")
BEFORE_REQUEUE = crash.point("failures.before_requeue")
AFTER_REQUEUE = crash.point("failures.after_requeue")

BACKOFF = (1.0, 2.0, 5.0, 10.0)


class Failures:
    """`queues` are the dead-letter queues to drain: (broker, queue)."""

    name = "failures"

    def __init__(
        self,
        store: Store,
        adapters: Adapters,
        *,
        now: Callable[[], datetime],
        queues: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._now = now
        self._queues = queues
        self._drains: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.unread: dict[tuple[str, str], str] = {}

    async def step(self, now: datetime) -> datetime | None:
        """Keep every queue drained, and send what requeues may send now."""
        for queue in self._queues:
            if queue not in self._drains or self._drains[queue].done():
                self._drains[queue] = asyncio.create_task(self._drain_queue(*queue))
        for requeue in await self._store.read(failures.ready_requeues, now=now, limit=20):
            await self._advance(requeue, now)
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
        requeue = address.requeue if address is not None else 0
        return NewDeadLetter(
            identity=identity.broker_identity(
                message_id, requeue, message.queue, deaths=message.deaths, body=message.body
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
            for letter in strangers:
                await self._publish(letter)
        else:
            await self._store.write(
                failures.move_requeue, requeue, plan.state, reason=plan.reason, ready_at=plan.ready_at, now=now
            )

    async def _publish(self, letter: DeadLetter) -> None:
        """Publish a message that no task of ours made to the queue that it failed in, byte for byte."""
        what = letter.what
        error: str | None = "nobody knows which queue it failed in: discard it, or publish it by hand"
        if what.broker and what.origin and what.body is not None:
            target = BrokerTarget(what.broker, what.origin)
            try:
                outcomes = await self._adapters.broker(what.broker).publish([_as_it_was(letter)], target=target)
                error = None if isinstance(outcomes[0], Confirmed) else outcomes[0].reason
            except AdapterError as failure:
                error = str(failure)
        await self._store.write(failures.settle_stranger, letter, error=error, now=self._now())


def _as_it_was(letter: DeadLetter) -> Message:
    what = letter.what
    headers: Mapping[str, object] = {
        name: value for name, value in what.headers.items() if not name.startswith(("x-death", "x-first-", "x-last-"))
    }
    content_type = what.content_type or "application/octet-stream"
    return Message(letter.uuid, what.key or "", what.body or b"", content_type, headers, what.properties, what.requeue)
