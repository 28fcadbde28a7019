"""Asks the user's data when followed schedules are due next, and looks behind their horizons, off the clock's own step.

The clock calls `step`, which claims and starts; a query that takes its time delays no firing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from oncue import crash
from oncue.adapters.registry import Adapters
from oncue.definition import SqlResolver
from oncue.engine import windows
from oncue.engine.handover import Handover
from oncue.errors import AdapterError, ResolveError, StoreUnavailable
from oncue.rules.followed import PythonNext, Span, SqlNext, free_spans
from oncue.store import followed
from oncue.store.base import Store
from oncue.store.followed import Following

T = TypeVar("T")
BEFORE_ANSWER = crash.point("clock.before_answer")
AFTER_ANSWER = crash.point("clock.after_answer")
BEFORE_LOOK = crash.point("clock.before_look")

LOOK = timedelta(seconds=1)
BREATH = timedelta(milliseconds=20)
PAGE = 1000
TICK = timedelta(microseconds=1)


class Follow:
    """Asks and looks, at most `asks` and `looks` at once. Each holds its claim for `lease`, and renews it."""

    def __init__(
        self,
        store: Store,
        handover: Handover,
        adapters: Adapters,
        *,
        now: Callable[[], datetime],
        lease: timedelta = timedelta(seconds=5),
        timeout: timedelta = timedelta(seconds=30),
        asks: int = 16,
        looks: int = 2,
    ) -> None:
        self._store = store
        self._handover = handover
        self._adapters = adapters
        self._now = now
        self._lease = lease
        self._timeout = timeout
        self._most_asks = asks
        self._most_looks = looks
        self._asks: set[asyncio.Task[None]] = set()
        self._looks: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []
        self._look_at: datetime | None = None
        self._has_some = False

    async def step(self, now: datetime, *, is_told: bool = False) -> datetime | None:
        """Claim what is to be asked and looked for, and start on it; answer when more will be.

        A store without followed schedules is looked at once a second, and when something `is_told`.
        """
        if self._errors:
            error = self._errors[0]
            self._errors.clear()
            raise error
        if not (self._has_some or is_told or self._look_at is None or now >= self._look_at):
            return None
        next_at = await self._store.read(followed.next_ready)
        self._has_some, self._look_at = next_at is not None, now + LOOK
        if next_at is None or next_at > now:
            return next_at
        return now + BREATH if await self._claim(now) else None

    async def drain(self) -> None:
        """Let what is under way end; its claims are given back where it is cut short."""
        await self.idle()

    async def idle(self) -> None:
        """Return when nothing is under way."""
        while self._asks or self._looks:
            await asyncio.gather(*self._asks, *self._looks, return_exceptions=True)

    async def ask(self, following: Following) -> datetime | None:
        """Return what the data answers now for the first time after the horizon. Raises ResolveError, TargetError."""
        rule, after = following.rule, following.horizon
        match rule.next:
            case SqlNext(sql, source):
                answer = await self._timed(self._adapters.source(source).first(sql, after=after))
            case PythonNext(place):
                answer = await self._timed(self._adapters.python(place).first(after=after))
        if answer is not None and answer <= after:
            raise ResolveError(
                f"next answers {answer.astimezone(UTC).isoformat()}, which is not later than :after, "
                f"{after.isoformat()}: write … > :after."
            )
        return answer and answer.astimezone(UTC)

    async def _claim(self, now: datetime) -> bool:
        """Start what there is room for; say whether there may be more of it."""
        until = now + self._lease
        asks, looks = self._most_asks - len(self._asks), self._most_looks - len(self._looks)
        if asks:
            for one in await self._store.write(followed.claim_asks, now=now, until=until, limit=asks):
                self._start(self._asks, self._ask(one))
        if looks:
            for one in await self._store.write(followed.claim_looks, now=now, until=until, limit=looks):
                self._start(self._looks, self._look(one))
        return len(self._asks) < self._most_asks and len(self._looks) < self._most_looks

    def _start(self, group: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        group.add(task)
        task.add_done_callback(lambda ended: self._ended(group, ended))

    def _ended(self, group: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        group.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, StoreUnavailable):  # then its claim is left to its lease
            self._errors.append(error)
        self._store.bells["clock"].ring()

    async def _ask(self, following: Following) -> None:
        async def renew() -> bool:
            return await self._store.write(followed.renew_ask, following, until=self._now() + self._lease)

        keeper = asyncio.create_task(self._keep(renew))
        try:
            answer = await self.ask(following)
        except AdapterError as error:
            await self._store.write(followed.fail_ask, following, str(error), now=self._now())
        except asyncio.CancelledError:
            await asyncio.shield(self._store.write(followed.release, following, now=self._now()))
            raise
        else:
            BEFORE_ANSWER()
            await self._store.write(followed.answer, following, answer, now=self._now())
            AFTER_ANSWER()
        finally:
            keeper.cancel()

    async def _look(self, following: Following) -> None:
        """Look for rows behind the horizon that nobody was handed over for, between the windows that are barred."""
        held = [following]

        async def renew() -> bool:
            until = self._now() + self._lease
            is_held = await self._store.write(followed.renew_look, held[0], until=until)
            held[0] = replace(held[0], look_at=until)
            return is_held

        keeper = asyncio.create_task(self._keep(renew))
        try:
            barred, still_open = await self._store.read(followed.barred, following)
            spans = free_spans(following.reach, following.horizon, barred)
            late = [found for span in spans if (found := await self._find(following, span))]
        except AdapterError as error:
            await _stop(keeper)
            await self._store.write(followed.fail_look, held[0], str(error), now=self._now())
        else:
            await _stop(keeper)
            BEFORE_LOOK()
            await self._store.write(followed.record_look, held[0], late, still_open=still_open, now=self._now())
        finally:
            keeper.cancel()

    async def _find(self, following: Following, span: Span) -> Span | None:
        """Return the part of a span from the first on who was not handed over; None where there is nobody."""
        schedule = following.schedule
        task = await self._handover.task(schedule.task_id, schedule.task_version)
        resolver = task.definition.resolve
        if not isinstance(resolver, SqlResolver):
            return None
        run = windows.hypothetical(task, span[1], previous_due_at=span[0], now=self._now())
        bound, source = windows.bound_of(run, task.definition), self._adapters.source(resolver.source)
        cursor = None
        while True:
            reading = windows.unhanded(
                self._store,
                source,
                resolver.sql,
                bound,
                task_id=schedule.task_id,
                span=span,
                cursor=cursor,
                limit=PAGE,
            )
            page = await self._timed(reading)
            if found := windows.told(page):
                first = min(due for _, due in found) - TICK
                return min(max(span[0], first), span[1] - TICK), span[1]
            if page.cursor is None:
                return None
            cursor = page.cursor

    async def _keep(self, renew: Callable[[], Awaitable[bool]]) -> None:
        """Renew a claim while it is used; one that was lost is answered in vain."""
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            try:
                if not await renew():
                    return
            except StoreUnavailable:
                continue

    async def _timed(self, asking: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                return await asking
        except TimeoutError:
            raise ResolveError(f"no answer within {self._timeout.total_seconds():g}s.") from None


async def _stop(keeper: asyncio.Task[None]) -> None:
    """Let no renewal be under way while its claim is ended."""
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)
