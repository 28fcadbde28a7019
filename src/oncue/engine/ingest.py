"""The ingest: takes events in, drops duplicates, and starts what they match, in one transaction.

What arrives while a commit is under way goes into the next one. An event whose entity is in the event goes to the
broker from here, its run made as already claimed: the short path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from pydantic_core import to_json

from oncue import crash
from oncue.definition import EventResolver
from oncue.engine.handover import Handover, Work
from oncue.errors import Conflict, InvalidEvent, StoreUnavailable
from oncue.model import Confirmed, Event, Run, Task, Unreachable
from oncue.rules import identity, matching
from oncue.store import events, runs, tasks
from oncue.store.base import Store
from oncue.store.events import Accepted, Incoming, Matched

BEFORE_COMMIT = crash.point("ingest.before_commit")
AFTER_COMMIT = crash.point("ingest.after_commit")
BEFORE_CHECKPOINT = crash.point("ingest.before_checkpoint")

BATCH = 200
TRIES = 5
FENCE = 1  # of a run that was made as claimed


@dataclass(frozen=True, slots=True)
class Pending:
    """An event that waits for the next commit, and who waits for its answer."""

    event: Event
    digest: str
    answer: asyncio.Future[Accepted]


class Ingest:
    """Takes events in. Above `in_flight` runs of the short path, further ones are left to the dispatchers."""

    name = "ingest"

    def __init__(
        self,
        store: Store,
        handover: Handover,
        *,
        now: Callable[[], datetime],
        lease: timedelta = timedelta(seconds=30),
        in_flight: int = 1000,
        dedupe: timedelta = timedelta(days=7),
    ) -> None:
        self._store = store
        self._handover = handover
        self._now = now
        self._lease = lease
        self._limit = in_flight
        self._dedupe = dedupe
        self._subscribers: dict[str, list[Task]] = {}
        self._tasks_seen: int | None = None
        self._pending: list[Pending] = []
        self._flusher: asyncio.Task[None] | None = None
        self._in_flight: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    async def step(self, now: datetime) -> datetime | None:
        """Read the subscriptions again if a task changed."""
        if self._errors:
            error = self._errors[0]  # the others are of the same outage: see the dispatcher
            self._errors.clear()
            raise error
        seen = await self._store.read(tasks.fingerprint)
        if seen != self._tasks_seen:
            await self._read_subscriptions()
            self._tasks_seen = seen
        return None

    async def drain(self) -> None:
        """Commit what waits, and let what is in flight end."""
        while self._flusher is not None or self._in_flight:
            waiting = [*self._in_flight, *([self._flusher] if self._flusher else [])]
            await asyncio.gather(*waiting, return_exceptions=True)

    async def accept(self, event: Event) -> Accepted:
        """Take one event in; return when what it caused is durable.

        Raises InvalidEvent: it is older than the time that ids are remembered. Raises Conflict: the id was used for
        another content. Raises StoreUnavailable: nothing is stored, send it again.
        """
        if event.time < self._now() - self._dedupe:
            days = self._dedupe.days
            raise InvalidEvent(
                f"event {event.id}: its time is more than {days} days ago, and duplicates of it are forgotten."
            )
        pending = Pending(event, _digest(event), asyncio.get_running_loop().create_future())
        self._pending.append(pending)
        self._flush_soon()
        accepted = await pending.answer
        if accepted.verdict == "conflict":
            raise Conflict(
                f'event "{event.id}" of "{event.source}" was taken in before with another content: give it a new id.'
            )
        return accepted

    def _flush_soon(self) -> None:
        if self._flusher is None and self._pending:
            self._flusher = asyncio.create_task(self._flush())
            self._flusher.add_done_callback(self._flushed)

    async def _flush(self) -> None:
        """Commit batches until nothing waits."""
        while self._pending:
            batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
            await self._commit(batch)

    def _flushed(self, task: asyncio.Task[None]) -> None:
        """Go on with what still waits after a batch that failed; nobody is left without an answer."""
        self._flusher = None
        if task.cancelled():
            for pending in self._pending:
                pending.answer.set_exception(StoreUnavailable("this process is ending: send the event again."))
            self._pending.clear()
        elif (error := task.exception()) is not None:
            self._errors.append(error)
        self._flush_soon()

    async def _commit(self, batch: list[Pending]) -> None:
        try:
            BEFORE_COMMIT()
            answers = await self._write(batch)
            AFTER_COMMIT()
        except BaseException as error:
            for pending in batch:
                if not pending.answer.done():
                    pending.answer.set_exception(_passed_on(error))
            if not isinstance(error, StoreUnavailable):
                raise
            return
        for pending, accepted in zip(batch, answers, strict=True):
            if not pending.answer.done():
                pending.answer.set_result(accepted)
            for made in accepted.runs:
                if made.at_once:
                    self._start(pending.event, made.uuid)

    async def _write(self, batch: Sequence[Pending]) -> list[Accepted]:
        if self._tasks_seen is None:
            await self.step(self._now())
        for left in reversed(range(TRIES)):
            now = self._now()
            at_once = len(self._in_flight) < self._limit
            incoming = [
                Incoming(
                    pending.event,
                    pending.digest,
                    self._match(pending.event, at_once=at_once),
                    tuple(task.id for task in self._concerned(pending.event, "touch")),
                )
                for pending in batch
            ]
            try:
                return await self._store.write(events.accept, incoming, now=now, until=now + self._lease)
            except events.Stale:
                if not left:
                    raise StoreUnavailable(
                        "the tasks change faster than they can be read: send the event again."
                    ) from None
                await self._read_subscriptions()
        raise AssertionError("unreachable")

    def _match(self, event: Event, *, at_once: bool) -> tuple[Matched, ...]:
        return tuple(
            Matched(
                task.id,
                task.uuid,
                task.version,
                task.state,
                at_once and isinstance(task.definition.resolve, EventResolver),
            )
            for task in self._concerned(event, "fire")
        )

    def _concerned(self, event: Event, do: str) -> Iterator[Task]:
        for task in self._subscribers.get(event.type, ()):
            if any(one.do == do and matching.fits(one, event) for one in task.definition.on):
                yield task

    async def _read_subscriptions(self) -> None:
        subscribers: dict[str, list[Task]] = {}
        for task in await self._store.read(tasks.every):
            for event_type in {one.event for one in task.definition.on}:
                subscribers.setdefault(event_type, []).append(task)
        self._subscribers = subscribers

    def _start(self, event: Event, uuid: UUID) -> None:
        task = asyncio.create_task(self._carry(event, uuid))
        self._in_flight.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)

    async def _carry(self, event: Event, uuid: UUID) -> None:
        """The short path: one attempt; anything but confirmed gives the run back to the dispatchers."""
        try:
            run = replace(await self._store.read(runs.read, uuid), event=event)
            if run.fence != FENCE or run.ready_at <= self._now():
                return  # It was frozen for longer than its lease: somebody else has the run, or will.
            work = await self._handover.work(run)
            await self._hand_over(run, work)
        except StoreUnavailable:
            return  # The run is left to its lease: a dispatcher takes it over.
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(uuid))
            raise

    async def _give_back(self, uuid: UUID) -> None:
        """Leave a run to the dispatchers at once, uncounted: this process ends before the receiver answered."""
        run = replace(await self._store.read(runs.read, uuid), fence=FENCE)
        reason = "interrupted by a drain"
        await self._store.write(runs.give_back, run, ready_at=self._now(), counted=False, reason=reason)

    async def _hand_over(self, run: Run, work: Work) -> None:
        page = await self._handover.resolve(work, cursor=None)
        ids = self._handover.ids(work, page.entities)
        tried = await self._handover.send(work, page.entities, ids=ids)
        BEFORE_CHECKPOINT()
        now = self._now()
        if all(isinstance(one.outcome, Confirmed) for one in tried):
            progress = self._handover.progress(work, page, tried)
            await self._store.write(runs.checkpoint, run, progress, now=now, until=now)
            return
        outcome = tried[0].outcome
        reason = "" if isinstance(outcome, Confirmed) else outcome.reason
        counted = not isinstance(outcome, Unreachable)
        await self._store.write(runs.give_back, run, ready_at=now, counted=counted, reason=reason)


def _digest(event: Event) -> str:
    return identity.event_digest(to_json([event.type, event.subject, event.data], inf_nan_mode="constants"))


def _passed_on(error: BaseException) -> BaseException:
    if isinstance(error, StoreUnavailable):
        return error
    return StoreUnavailable(f"the event was not stored: {error!r}")
