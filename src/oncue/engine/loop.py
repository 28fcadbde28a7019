"""The one loop: asks each component to take a step, and sleeps until the moment that it answers, or until it is rung.

It carries the store's time, survives whatever a step raises, says that its components are alive, and drains them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import uuid4

from oncue import wall
from oncue.errors import StoreUnavailable
from oncue.observe.log import log
from oncue.store import schedules, watch
from oncue.store.base import Store

LOOK = timedelta(seconds=1)
SAMPLE = timedelta(seconds=10)
JUMP = timedelta(seconds=30)
DISTRUST = timedelta(seconds=60)
FAREWELL = timedelta(milliseconds=200)
GIVE_BACK = timedelta(seconds=1)
BACKOFF = (0.2, 0.5, 1.0, 2.0, 3.0)


class Component(Protocol):
    """One of the engine's parts. It takes a step when called, and answers when it wants to be called again."""

    name: str

    async def step(self, now: datetime) -> datetime | None:
        """Take, decide, do, write; return the next moment that is known, None for none."""
        ...

    async def drain(self) -> None:
        """Finish what is under way, or give it back; cancelled when the time for it is over."""
        ...


class Loop:
    """Runs components over one store until stopped."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._time = wall.Carried()
        self._distrusted_until = 0.0
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        self.ready = asyncio.Event()

    def now(self) -> datetime:
        """Return the store's time."""
        return self._time.now()

    def stop(self) -> None:
        """Ask for a drain: no new work, and an end when what is under way is done."""
        self._stopping.set()
        for bell in self.store.bells.values():
            bell.ring()

    def hurry(self) -> None:
        """Cut a drain short: what is under way is given back at once."""
        self._hurrying.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    async def run(self, components: Sequence[Component], *, drain: timedelta) -> None:
        """Run `components` until `stop` is called, and then for at most `drain` longer."""
        helpers = [
            asyncio.create_task(self._keep_up(name, helper))
            for name, helper in (("clock sample", self._sample), ("notices", self.store.listen))
        ]
        workers: list[asyncio.Task[None]] = []
        try:
            await self._first_sample()
            self.ready.set()
            told = asyncio.Event()
            helpers.append(asyncio.create_task(self._keep_up("heartbeat", lambda: self._beat(components, told))))
            await told.wait()  # or the watch beside them would miss them at its first look
            workers = [asyncio.create_task(self._work(component)) for component in components]
            await self._stopping.wait()
            await self._drain(workers, components, drain)
        finally:
            for task in (*helpers, *workers):
                task.cancel()
            await asyncio.gather(*helpers, *workers, return_exceptions=True)

    async def _work(self, component: Component) -> None:
        bell, failures = self.store.bells[component.name], 0
        while not self.is_stopping:
            try:
                next_at = await component.step(self.now()) if self._is_trusted() else None
                if failures:
                    log.info("component recovered", component=component.name)
                failures = 0
            except Exception as error:  # noqa: BLE001  the one place that survives whatever a step raises
                failures += 1
                self._tell(component.name, error, failures)
                await self._pause(BACKOFF[min(failures, len(BACKOFF)) - 1])
                continue
            await bell.wait(self._seconds_until(next_at))

    async def _keep_up(self, name: str, helper: Callable[[], Awaitable[None]]) -> None:
        """Run a helper for ever: one that ended by what it did not expect begins again, or nobody would notice."""
        failures = 0
        while True:
            try:
                await helper()
            except Exception as error:  # as above: a helper that is gone is silent
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                failures += 1
                self._tell(name, error, failures)
            await self._pause(BACKOFF[min(failures, len(BACKOFF)) - 1])

    def _seconds_until(self, next_at: datetime | None) -> float:
        wait = LOOK if next_at is None else min(LOOK, next_at - self.now())
        return wait.total_seconds()

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass

    def _tell(self, name: str, error: Exception, failures: int) -> None:
        """One line when it begins, and one in a hundred after: an outage is no storm of lines."""
        if failures % 100 != 1:
            return
        if isinstance(error, StoreUnavailable):
            log.warning("store unavailable", component=name, error=str(error))
        else:
            log.error("component failed", component=name, error=repr(error), exc_info=error)

    async def _first_sample(self) -> None:
        failures = 0
        while not self.is_stopping:
            try:
                return await self._take_sample()
            except StoreUnavailable as error:
                failures += 1
                self._tell("loop", error, failures)
                await self._pause(BACKOFF[min(failures, len(BACKOFF)) - 1])
        return None

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE.total_seconds())
            try:
                await self._take_sample()
            except StoreUnavailable:
                continue

    async def _take_sample(self) -> None:
        host = wall.now()
        sample = await self.store.write(schedules.read_clock, host)
        ahead = self._time.feed(sample)
        if sample - host > JUMP and not self.store.database.has_own_clock:
            self._distrust("this host's clock is behind the store's: see `oncue doctor`", ahead)
        elif abs(ahead) > JUMP:
            self._distrust("the store's clock jumped: nothing is claimed for a minute", ahead)

    def _distrust(self, why: str, ahead: timedelta) -> None:
        if self._is_trusted():
            log.error("clock distrusted", reason=why, ahead=f"{ahead.total_seconds():.1f}s")
        self._distrusted_until = wall.monotonic() + DISTRUST.total_seconds()

    def _is_trusted(self) -> bool:
        return wall.monotonic() >= self._distrusted_until

    async def _beat(self, components: Sequence[Component], told: asyncio.Event) -> None:
        host, pid, started_at = socket.gethostname(), os.getpid(), self.now()
        names = {uuid4().hex: component.name for component in components}
        try:
            while True:
                for instance, name in names.items():
                    try:
                        await self.store.write(
                            watch.beat, instance, name, host=host, pid=pid, started_at=started_at, now=self.now()
                        )
                    except StoreUnavailable:
                        break
                told.set()
                await asyncio.sleep(SAMPLE.total_seconds())
        finally:
            told.set()
            async with asyncio.timeout(1):
                for instance in names:
                    await self.store.write(watch.leave, instance)

    async def _drain(
        self, workers: Sequence[asyncio.Task[None]], components: Sequence[Component], limit: timedelta
    ) -> None:
        """Let the steps under way end, then what they started; each is cut when the time for all is over."""
        log.info("draining", limit=f"{limit.total_seconds():g}s")
        end = wall.monotonic() + limit.total_seconds()
        is_cut = await self._cut(asyncio.gather(*workers), limit)
        left = timedelta(seconds=end - wall.monotonic())
        drains = asyncio.gather(*(component.drain() for component in components), return_exceptions=True)
        if await self._cut(drains, FAREWELL if is_cut else max(left, FAREWELL)) or is_cut:
            log.warning("drain cut short", limit=f"{limit.total_seconds():g}s")

    async def _cut(self, work: asyncio.Future[Any], limit: timedelta) -> bool:
        """Await `work` for at most `limit`, or until told to hurry; say whether it was cut. What is cut gives back."""
        hurrying = asyncio.create_task(self._hurrying.wait())
        await asyncio.wait((work, hurrying), timeout=limit.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        if work.done():
            return False
        work.cancel()
        await asyncio.wait((work,), timeout=GIVE_BACK.total_seconds())
        if work.done() and not work.cancelled():
            work.exception()  # a gather that was cancelled keeps it as an exception, and complains if nobody looks
        return True
