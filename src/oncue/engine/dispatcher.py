"""The dispatcher: claims runs and late deliveries under a lease, and carries each through, page by page."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from oncue import crash
from oncue.engine.handover import Handover, Tried, Work
from oncue.errors import AdapterError, StoreUnavailable
from oncue.model import (
    Attempt,
    Delivery,
    DeliveryState,
    Entity,
    Key,
    Lost,
    Refused,
    Run,
    RunId,
    RunState,
    Unreachable,
)
from oncue.observe.log import log
from oncue.rules import binding, outcome, retry
from oncue.store import deliveries, endings, runs
from oncue.store.base import Store
from oncue.store.deliveries import Settled
from oncue.store.runs import Progress

BREATH = timedelta(milliseconds=20)
INTERRUPTED = "interrupted by a drain"

AFTER_CLAIM = crash.point("dispatcher.after_claim")
BEFORE_SEND = crash.point("dispatcher.before_send")
BEFORE_CHECKPOINT = crash.point("dispatcher.before_checkpoint")
AFTER_CHECKPOINT = crash.point("dispatcher.after_checkpoint")
BEFORE_SETTLE = crash.point("dispatcher.before_settle")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one dispatcher holds at once, and for how long."""

    lease: timedelta = timedelta(seconds=30)
    runs: int = 16
    deliveries: int = 100


class Dispatcher:
    """Carries out runs. Its tasks are its own: `step` only claims and starts them."""

    name = "dispatcher"

    def __init__(
        self, store: Store, handover: Handover, *, now: Callable[[], datetime], limits: Limits | None = None
    ) -> None:
        self._store = store
        self._handover = handover
        self._now = now
        self._limits = limits or Limits()
        self._tasks: set[asyncio.Task[None]] = set()
        self._runs = 0
        self._sending = 0
        self._errors: list[BaseException] = []
        self._is_draining = False
        self._unreached: set[str] = set()

    async def step(self, now: datetime) -> datetime | None:
        """Claim what is ready and start on it; answer when more will be."""
        if self._errors:
            # One outage fails all that is under way at once: it is told once, or each would stop claiming in its turn.
            error = self._errors[0]
            self._errors.clear()
            raise error
        until = now + self._limits.lease
        claimed = 0
        if room := self._limits.runs - self._runs:
            for run in await self._store.write(runs.claim, now=now, until=until, limit=room):
                claimed += 1
                self._runs += 1
                self._start(self._run(run))
        if room := self._limits.deliveries - self._sending:
            late = await self._store.write(deliveries.claim, now=now, until=until, limit=room)
            claimed += len(late)
            self._sending += len(late)
            for group in _by_run(late).values():
                self._start(self._retry(group[0][1], [delivery for delivery, _ in group]))
        if claimed:
            AFTER_CLAIM()
            return now
        if self._runs >= self._limits.runs or self._sending >= self._limits.deliveries:
            return None
        next_ready = await self._store.read(runs.next_ready)
        return max(next_ready, now + BREATH) if next_ready else None

    async def drain(self) -> None:
        """Let the pages under way end; their runs are given back after them."""
        self._is_draining = True
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Return when nothing is under way: for tests and embedders who step by hand."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)
        self._store.bells[self.name].ring()

    async def _run(self, run: Run) -> None:
        keeper = asyncio.create_task(self._keep(lambda until: self._renew(run, until), asyncio.current_task()))
        try:
            await self._carry(run)
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(run, self._now(), counted=False, reason=INTERRUPTED))
            raise
        finally:
            self._runs -= 1
            keeper.cancel()

    async def _keep(self, renew: Callable[[datetime], Awaitable[bool]], holder: asyncio.Task[None] | None) -> None:
        """Renew a lease while what it holds is carried; stop its holder when somebody else has all of it."""
        while True:
            await asyncio.sleep(self._limits.lease.total_seconds() / 3)
            try:
                is_held = await renew(self._now() + self._limits.lease)
            except StoreUnavailable:
                continue
            if not is_held and holder is not None:
                holder.cancel()

    async def _renew(self, run: Run, until: datetime) -> bool:
        return not isinstance(await self._store.write(runs.renew, run, until=until), Lost)

    async def _carry(self, run: Run) -> None:
        """Carry a run through, one page after the other: resolve, hand over, checkpoint."""
        work = await self._prepare(run)
        while work is not None:
            try:
                page = await self._handover.resolve(work, cursor=work.run.cursor)
            except AdapterError as error:
                return await self._not_resolved(work, str(error))
            if not await self._may_send(work.run):
                return None
            BEFORE_SEND()
            entities, later = self._handover.spread(work, page.entities)
            tried = await self._handover.send(work, entities, ids=self._handover.ids(work, entities))
            if tried and all(isinstance(one.outcome, Unreachable) for one in tried):
                return await self._not_reached(work.run, tried)
            self._tell_reached(run)
            progress = self._handover.progress(work, page, tried, later)
            BEFORE_CHECKPOINT()
            now = self._now()
            state = await self._store.write(runs.checkpoint, run, progress, now=now, until=now + self._limits.lease)
            AFTER_CHECKPOINT()
            work = await self._next_page(work, progress) if state == "running" else None
        return None

    async def _prepare(self, run: Run) -> Work | None:
        """Return the work of a run, or None where it ends before it began."""
        work = await self._handover.work(run)
        policy = work.definition.retry
        if run.stop_reason:
            await self._end(run, "cancelled", run.stop_reason)
        elif run.attempts > policy.attempts:
            reason = f"tried {policy.attempts} times without an end: {run.reason or 'its dispatcher died each time'}"
            letter = self._handover.run_letter(work, reason=reason)
            await self._store.write(endings.end_run, run, "failed", reason=reason, now=self._now(), letter=letter)
        elif not await self._expire(work):
            return work
        return None

    async def _next_page(self, work: Work, done: Progress) -> Work | None:
        run = replace(work.run, cursor=done.cursor, attempts=1, resolved=work.run.resolved + done.resolved)
        if self._is_draining:
            await self._give_back(run, self._now(), counted=False, reason=INTERRUPTED)
            return None
        work = replace(work, run=run)
        return None if await self._expire(work) else work

    async def _expire(self, work: Work) -> bool:
        if not binding.is_expired(work.run, work.definition.expires, now=self._now()):
            return False
        await self._end(work.run, "expired", f"later than {work.definition.expires} after it was due")
        return True

    async def _may_send(self, run: Run) -> bool:
        """Renew before each hand-over: say whether the run is still held, and not asked to stop."""
        held = await self._store.write(runs.renew, run, until=self._now() + self._limits.lease)
        if isinstance(held, str):
            await self._end(run, "cancelled", held)
        return held is None

    async def _not_resolved(self, work: Work, reason: str) -> None:
        run, policy, now = work.run, work.definition.retry, self._now()
        if retry.is_exhausted(policy, run.attempts):
            letter = self._handover.run_letter(work, reason=reason)
            await self._store.write(endings.end_run, run, "failed", reason=reason, now=now, letter=letter)
            return
        ready_at = retry.retry_at(policy, run.attempts, now=now, seed=str(run.uuid))
        await self._give_back(run, ready_at, counted=True, reason=reason)

    async def _not_reached(self, run: Run, tried: Sequence[Tried]) -> None:
        """Hold the cursor: nobody was reached, so the same page is read again later, uncounted."""
        answer = tried[0].outcome
        reason = answer.reason if isinstance(answer, Unreachable) else ""
        now = self._now()
        ready_at = retry.retry_at(retry.GIVE_BACK, run.fence, now=now, seed=str(run.uuid))
        if run.task_name not in self._unreached:  # a line when it begins and one when it ends, not one a try
            self._unreached.add(run.task_name)
            log.warning("target unreachable", task=run.task_name, run=str(run.uuid), reason=reason)
        await self._give_back(run, ready_at, counted=False, reason=reason)

    def _tell_reached(self, run: Run) -> None:
        if run.task_name in self._unreached:
            self._unreached.discard(run.task_name)
            log.info("target reached again", task=run.task_name)

    async def _give_back(self, run: Run, ready_at: datetime, *, counted: bool, reason: str) -> None:
        await self._store.write(runs.give_back, run, ready_at=ready_at, counted=counted, reason=reason)

    async def _end(self, run: Run, state: RunState, reason: str) -> None:
        await self._store.write(endings.end_run, run, state, reason=reason, now=self._now())

    async def _retry(self, run: Run, late: list[Delivery]) -> None:
        """Try late deliveries of one run again: those only who still qualify."""
        keeper = asyncio.create_task(self._keep(lambda until: self._renew_late(late, until), asyncio.current_task()))
        try:
            settled = await self._settle(run, late)
            BEFORE_SETTLE()
            await self._store.write(deliveries.settle, settled, now=self._now())
        except asyncio.CancelledError:
            now = self._now()
            again = [Settled(one, "waiting", INTERRUPTED, now, False, one.errors) for one in late]
            await asyncio.shield(self._store.write(deliveries.settle, again, now=now))
            raise
        finally:
            self._sending -= len(late)
            keeper.cancel()

    async def _renew_late(self, late: Sequence[Delivery], until: datetime) -> bool:
        """Hold deliveries longer: a slow receiver may take its time for many of them, one after the other."""
        return await self._store.write(deliveries.renew, late, until=until) > 0

    async def _settle(self, run: Run, late: list[Delivery]) -> list[Settled]:
        work = await self._handover.work(run)
        if binding.is_expired(run, work.definition.expires, now=self._now()):
            return [self._closed(delivery, "expired", "too late by the task's own rule") for delivery in late]
        limit = work.definition.retry.attempts
        spent = [self._spent(work, delivery) for delivery in late if delivery.attempts > limit]
        late = [delivery for delivery in late if delivery.attempts <= limit]
        return [*spent, *(await self._send_again(work, late) if late else [])]

    async def _send_again(self, work: Work, late: list[Delivery]) -> list[Settled]:
        try:
            entities = await self._handover.qualifying(work, late)
        except AdapterError as error:
            return [self._tried_again(work, delivery, self._unasked(delivery, str(error))) for delivery in late]
        ids = {delivery.key: delivery.message_id for delivery in late}
        attempts = {delivery.key: delivery.attempts for delivery in late}
        tried = await self._handover.send(work, list(entities.values()), ids=ids, attempts=attempts)
        by_key = {one.entity.key: one for one in tried}
        return [
            self._tried_again(work, delivery, by_key[delivery.key])
            if delivery.key in by_key
            else self._closed(delivery, "unqualified", "no longer qualifies")
            for delivery in late
        ]

    def _spent(self, work: Work, delivery: Delivery) -> Settled:
        """Bury a delivery whose dispatchers died with it each time: it may be what kills them."""
        last = delivery.errors[-1].error if delivery.errors else "its dispatcher died each time"
        reason = f"tried {work.definition.retry.attempts} times without an end: {last}"
        errors = (*delivery.errors, Attempt(self._now(), reason))
        letter = self._handover.letter(work, self._unasked(delivery, reason), errors)
        return Settled(delivery, "dead", reason, self._now(), True, errors, letter)

    def _closed(self, delivery: Delivery, state: DeliveryState, reason: str) -> Settled:
        return Settled(delivery, state, reason, self._now(), True, delivery.errors)

    def _unasked(self, delivery: Delivery, reason: str) -> Tried:
        return Tried(Entity(delivery.key, delivery.data), delivery.message_id, None, Refused(reason))

    def _tried_again(self, work: Work, delivery: Delivery, one: Tried) -> Settled:
        now, policy = self._now(), work.definition.retry
        fate = outcome.decide(
            one.outcome,
            policy,
            attempts=delivery.attempts,
            tries=delivery.fence + 1,
            seed=str(delivery.message_id),
            now=now,
        )
        errors = (*delivery.errors, Attempt(now, fate.error)) if fate.error else delivery.errors
        if fate.state == "confirmed":
            return Settled(delivery, "delivered", None, now, True, errors)
        if fate.state == "dead":
            return Settled(delivery, "dead", fate.error, now, True, errors, self._handover.letter(work, one, errors))
        return Settled(delivery, "waiting", fate.error, fate.ready_at, fate.counted, errors)


def _by_run(late: Sequence[tuple[Delivery, Run]]) -> dict[tuple[RunId, int], list[tuple[Delivery, Run]]]:
    """Group deliveries by run. A key that is twice in a followed schedule's run, for two due times, has two groups."""
    groups: dict[tuple[RunId, int], list[tuple[Delivery, Run]]] = defaultdict(list)
    seen: Counter[tuple[RunId, Key]] = Counter()
    for delivery, run in late:
        groups[run.id, seen[run.id, delivery.key]].append((delivery, run))
        seen[run.id, delivery.key] += 1
    return groups
