"""One page, from who is concerned to what became of each message. Used by dispatchers, and by ingest's short path."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from oncue.adapters.envelopes.trace import retrace
from oncue.adapters.registry import Adapters
from oncue.definition import BrokerTarget, Definition, EventResolver, HttpTarget, NoResolver, SqlResolver
from oncue.engine import windows
from oncue.errors import AdapterError, ResolveError, TargetError
from oncue.model import (
    Address,
    Attempt,
    DeadLetter,
    Delivery,
    Entity,
    Json,
    Key,
    Message,
    NewDeadLetter,
    NewDelivery,
    Outcome,
    Page,
    Refused,
    Run,
    Task,
    Unreachable,
)
from oncue.rules import identity, matching, outcome, pacing
from oncue.store import failures, tasks
from oncue.store.base import Store
from oncue.store.runs import Progress

T = TypeVar("T")
NO_ATTEMPTS: Mapping[Key, int] = {}


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed run with the task as it was at the run's version, and the dead letter that it is to recover."""

    run: Run
    task: Task
    letter: DeadLetter | None = None
    asks: bool = True

    @property
    def definition(self) -> Definition:
        return self.task.definition

    @property
    def requeue(self) -> int:
        return self.letter.what.requeue + 1 if self.letter else 0


@dataclass(frozen=True, slots=True)
class Tried:
    """One entity after one try: its message (None where it could not be written) and the outcome."""

    entity: Entity
    message_id: UUID
    message: Message | None
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Preview:
    """Who would be resolved for a due time, and what each would get: nothing was sent, nothing written."""

    due_at: datetime
    messages: tuple[Tried, ...]
    more: bool


class Handover:
    """Resolves pages and hands them over. `now` is the loop's time; `page` the most entities that go together."""

    def __init__(
        self,
        store: Store,
        adapters: Adapters,
        *,
        now: Callable[[], datetime],
        page: int = 1000,
        resolve_timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._now = now
        self._page = page
        self._resolve_timeout = resolve_timeout
        self._tasks: dict[tuple[int, int], Task] = {}

    async def work(self, run: Run) -> Work:
        """Return what is needed to carry out a run."""
        task = await self.task(run.task_id, run.task_version)
        if run.dead_letter_id is None:
            return Work(run, task)
        letter = await self._store.read(failures.by_id, run.dead_letter_id)
        asks = True
        if letter.requeue_id is not None:
            asks = (await self._store.read(failures.requeue_by_id, letter.requeue_id)).ask
        return Work(run, task, letter, asks)

    async def task(self, task_id: int, version: int) -> Task:
        """Return a task as it was at a version: these never change, so they are kept."""
        known = self._tasks.get((task_id, version))
        if known is None:
            known = await self._store.read(tasks.at_version, task_id, version)
            if len(self._tasks) > 10_000:
                self._tasks.clear()
            self._tasks[task_id, version] = known
        return known

    async def resolve(self, work: Work, *, cursor: str | None) -> Page:
        """Ask who is concerned now. Raises ResolveError."""
        letter = work.letter
        if letter is not None and letter.what.kind == "message":
            return Page(tuple(await self._again(work, letter)), None)
        match work.definition.resolve:
            case SqlResolver() as resolver:
                return await self._timed(self._read(work, resolver, cursor))
            case EventResolver():
                return Page((_of_event(work.run),), None)
            case NoResolver():
                return Page((Entity("", {}),), None)

    async def preview(
        self, task: Task, *, due_at: datetime, limit: int, previous_due_at: datetime | None = None
    ) -> Preview:
        """Return what a run due at `due_at` would hand over first. Raises ResolveError, TargetError."""
        work = Work(windows.hypothetical(task, due_at, previous_due_at=previous_due_at, now=self._now()), task)
        if isinstance(task.definition.resolve, EventResolver):
            return Preview(due_at, (), more=False)
        page = await self.resolve(work, cursor=None)
        shown, ids = page.entities[:limit], self.ids(work, page.entities)
        packed = [self._pack(work, entity, message_id=ids[entity.key], attempt=1) for entity in shown]
        packed += [
            Tried(Entity(key, {}), identity.message_uuid(work.run.uuid, key), None, Refused(reason, again=False))
            for key, reason in page.rejected
        ]
        return Preview(due_at, tuple(packed), more=len(shown) < len(page.entities) or page.cursor is not None)

    async def qualifying(self, work: Work, deliveries: Sequence[Delivery]) -> dict[Key, Entity]:
        """Return those entities of open deliveries that still qualify, with their data as it is now."""
        entities = {delivery.key: Entity(delivery.key, delivery.data) for delivery in deliveries}
        resolver = work.definition.resolve
        if not isinstance(resolver, SqlResolver) or not work.asks:
            return entities
        found = await self._timed(self._ask(work, resolver, list(entities)))
        if windows.is_window(work.definition, work.run):
            found = windows.still_due(found, {delivery.key: delivery.data for delivery in deliveries})
        return {entity.key: entity for entity in found}

    async def send(
        self,
        work: Work,
        entities: Sequence[Entity],
        *,
        ids: Mapping[Key, UUID],
        attempts: Mapping[Key, int] = NO_ATTEMPTS,
    ) -> list[Tried]:
        """Hand entities over and return what became of each, in their order."""
        tried = [
            self._pack(work, entity, message_id=ids[entity.key], attempt=attempts.get(entity.key, 1))
            for entity in entities
        ]
        ready = [(place, one.message) for place, one in enumerate(tried) if one.message is not None]
        if ready:
            outcomes = await self._publish(work, [message for _, message in ready])
            for (place, _), answer in zip(ready, outcomes, strict=True):
                tried[place] = replace(tried[place], outcome=answer)
        return tried

    def ids(self, work: Work, entities: Sequence[Entity]) -> dict[Key, UUID]:
        """Return the message id of each entity: the same over every retry and requeue."""
        letter = work.letter
        if letter is not None and letter.what.message_id is not None:
            return {entity.key: letter.what.message_id for entity in entities}
        if windows.is_window(work.definition, work.run):
            return windows.ids(work.task, entities)
        base = letter.what.run_uuid if letter is not None and letter.what.run_uuid else work.run.uuid
        return {entity.key: identity.message_uuid(base, entity.key) for entity in entities}

    def spread(self, work: Work, entities: Sequence[Entity]) -> tuple[list[Entity], list[NewDelivery]]:
        """Part the entities that go out now from those whose share of the task's spread comes later."""
        run, now = work.run, self._now()
        if run.spread_until is None:
            return list(entities), []
        start, ids = run.starts_at or (run.asked_at if run.caught_up else run.due_at), self.ids(work, entities)
        at_once: list[Entity] = []
        later: list[NewDelivery] = []
        for entity in entities:
            at = pacing.sent_at(work.task.uuid, entity.key, run.due_at, start=start, until=run.spread_until)
            if at <= now:
                at_once.append(entity)
            else:
                later.append(NewDelivery(ids[entity.key], entity.key, entity.data, work.requeue, at, (), 0))
        return at_once, later

    def progress(self, work: Work, page: Page, tried: Sequence[Tried], later: Sequence[NewDelivery] = ()) -> Progress:
        """Return what a page came to: what is confirmed, what waits, what is dead already."""
        now, policy = self._now(), work.definition.retry
        waiting = list(later)
        dead = [self._rejected(work, key, reason, due=page.dues.get(key)) for key, reason in page.rejected]
        confirmed = 0
        for one in tried:
            fate = outcome.decide(one.outcome, policy, attempts=1, tries=1, seed=str(one.message_id), now=now)
            errors = (Attempt(now, fate.error),) if fate.error else ()
            if fate.state == "confirmed":
                confirmed += 1
            elif fate.state == "dead":
                dead.append(self.letter(work, one, errors))
            else:
                waiting.append(
                    NewDelivery(
                        one.message_id,
                        one.entity.key,
                        one.entity.data,
                        work.requeue,
                        fate.ready_at,
                        errors,
                        int(fate.counted),
                    )
                )
        resolved = len(tried) + len(later) + len(page.rejected)
        reason = None if resolved or page.cursor or work.run.resolved else "nobody qualifies"
        handed_over = () if work.letter else windows.told(page)
        return Progress(page.cursor, resolved, confirmed, 0, tuple(waiting), tuple(dead), reason, handed_over)

    def letter(self, work: Work, one: Tried, errors: Sequence[Attempt]) -> NewDeadLetter:
        """Return the dead letter of a message that failed for good, with all that its requeue will need."""
        target, message = work.definition.target, one.message
        return NewDeadLetter(
            identity=identity.delivery_identity(one.message_id, work.requeue),
            kind="message",
            reason=errors[-1].error if errors else "failed",
            task_id=work.task.id,
            task_name=work.task.name,
            task_version=work.run.task_version,
            run_id=work.run.id,
            run_uuid=work.run.uuid,
            message_id=one.message_id,
            key=one.entity.key,
            data=one.entity.data,
            requeue=work.requeue,
            attempts=tuple(errors),
            broker=target.broker if isinstance(target, BrokerTarget) else None,
            queue=target.queue if isinstance(target, BrokerTarget) else target.url,
            body=message.body if message else None,
            content_type=message.content_type if message else None,
            headers=message.headers if message else {},
            properties=message.properties if message else {},
        )

    def run_letter(self, work: Work, *, reason: str) -> NewDeadLetter:
        """Return the dead letter of a run whose entities could not be read: a requeue goes on at its cursor."""
        run = work.run
        return NewDeadLetter(
            identity=identity.run_identity(run.uuid),
            kind="run",
            reason=reason,
            task_id=work.task.id,
            task_name=work.task.name,
            task_version=run.task_version,
            run_id=run.id,
            run_uuid=run.uuid,
            attempts=(Attempt(self._now(), reason),),
            cursor=run.cursor,
        )

    def _rejected(self, work: Work, key: Key, reason: str, *, due: datetime | None) -> NewDeadLetter:
        entity = Entity(key, {"due_at": due.isoformat()} if due else {})
        tried = Tried(entity, self.ids(work, [entity])[key], None, Refused(reason, again=False))
        return self.letter(work, tried, (Attempt(self._now(), reason),))

    async def _read(self, work: Work, resolver: SqlResolver, cursor: str | None) -> Page:
        run, bound = work.run, windows.bound_of(work.run, work.definition)
        source = self._adapters.source(resolver.source)
        if run.event is not None and not _takes_all(work.definition, run):
            return Page(tuple(await source.ask(resolver.sql, bound, keys=[run.event.key])), None)
        target = work.definition.target
        limit = target.concurrency if isinstance(target, HttpTarget) else self._page
        if windows.is_window(work.definition, run):
            return await windows.read(self._store, source, resolver.sql, bound, run=run, cursor=cursor, limit=limit)
        return await source.page(resolver.sql, bound, cursor=cursor, limit=limit)

    async def _ask(self, work: Work, resolver: SqlResolver, keys: Sequence[Key]) -> list[Entity]:
        bound = windows.bound_of(work.run, work.definition)
        return await self._adapters.source(resolver.source).ask(resolver.sql, bound, keys=keys)

    async def _again(self, work: Work, letter: DeadLetter) -> list[Entity]:
        """Return the one entity of a dead letter, if it still qualifies or nobody is to be asked."""
        key = letter.what.key if letter.what.key is not None else ""
        resolver = work.definition.resolve
        if isinstance(resolver, SqlResolver) and work.asks:
            found = await self._timed(self._ask(work, resolver, [key]))
            return (
                windows.still_due(found, {key: letter.what.data or {}})
                if windows.is_of_window(work.task, letter)
                else found
            )
        data: Json = letter.what.data if letter.what.data is not None else {}
        if work.run.event is not None and isinstance(resolver, EventResolver):
            return [_of_event(work.run)]
        return [Entity(key, data)]

    async def _timed(self, asking: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._resolve_timeout.total_seconds()):
                return await asking
        except TimeoutError:
            limit = f"{self._resolve_timeout.total_seconds():g}s"
            raise ResolveError(
                f"the resolver did not answer within {limit}: raise [dispatcher] resolve_timeout."
            ) from None

    def _pack(self, work: Work, entity: Entity, *, message_id: UUID, attempt: int) -> Tried:
        run, letter, target = work.run, work.letter, work.definition.target
        address = Address(message_id, work.task.name, run.uuid, run.due_at, attempt, work.requeue)
        if letter is not None and letter.what.body is not None and not work.asks:
            return Tried(entity, message_id, _as_it_was(letter, address), Unreachable("not sent yet"))
        try:
            name = target.envelope if isinstance(target, BrokerTarget) else "json"
            message = self._adapters.envelope(name).pack(entity, address, target=target)
        except TargetError as error:
            return Tried(entity, message_id, None, Refused(str(error), again=False))
        return Tried(entity, message_id, message, Unreachable("not sent yet"))

    async def _publish(self, work: Work, messages: Sequence[Message]) -> list[Outcome]:
        target = work.definition.target
        try:
            if isinstance(target, BrokerTarget):
                return await self._adapters.broker(target.broker).publish(messages, target=target)
            return await self._adapters.receiver().send(messages, target=target)
        except AdapterError as error:  # this process cannot make the adapter; another, or this one mended, may
            return [Unreachable(str(error)) for _ in messages]


def _of_event(run: Run) -> Entity:
    event = run.event
    if event is None:
        return Entity("", {})
    return Entity(event.key, event.data if isinstance(event.data, dict) else {"data": event.data})


def _takes_all(definition: Definition, run: Run) -> bool:
    assert run.event is not None
    return any(one.all and one.do == "fire" and matching.fits(one, run.event) for one in definition.on)


def _as_it_was(letter: DeadLetter, address: Address) -> Message:
    """Return a dead message byte for byte. Its headers say that this is another requeue, or its next death is lost."""
    what = letter.what
    assert what.body is not None
    content_type = what.content_type or "application/json"
    headers, key = retrace(what.headers, address), what.key if what.key is not None else ""
    return Message(address.message_id, key, what.body, content_type, headers, what.properties, address.requeue)
