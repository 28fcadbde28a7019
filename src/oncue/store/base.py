"""The store's seam. A verb is a generator that yields statements and is given rows; a database runs it in one go.

Verbs stand once, beside this file, one module a noun: `tasks`, `schedules`, `events`, `runs`, `deliveries`,
`failures`, `watch`. They hold no connection, so the same verb runs on every database:
`await store.write(runs.claim, now=now, until=until, limit=10)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from oncue.model import Change

T = TypeVar("T")
P = ParamSpec("P")
COMPONENTS: Final = ("clock", "ingest", "dispatcher", "failures", "watch", "api")


class Row(Protocol):
    """One row of an answer, by column name."""

    def __getitem__(self, name: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement of `queries.sql` with its parameters."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wake:
    """After the commit, `component` has something to do at `at`: earlier perhaps than it knows."""

    component: str
    at: datetime


Step = Query | Change | Wake
Steps = Generator[Step, list[Row], T]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a transaction answered, and what is to be told now that it is durable."""

    answer: Any
    changes: tuple[Change, ...]
    wakes: tuple[Wake, ...]


class Database(Protocol):
    """One kind of database: runs verbs, and carries notices between processes.

    `has_own_clock` is False where the time is the host's.
    """

    has_own_clock: bool

    async def write(self, steps: Callable[[], Steps[Any]]) -> Committed:
        """Run a verb in one transaction, again from the start after a deadlock. Raises StoreUnavailable."""
        ...

    async def read(self, steps: Callable[[], Steps[T]]) -> T:
        """Run a verb that only reads. Raises StoreUnavailable."""
        ...

    async def migrate(self, only_check: bool = False) -> list[str]:
        """Bring the schema up to date and return what was done. Raises SchemaError."""
        ...

    async def announce(self, wakes: tuple[Wake, ...]) -> None:
        """Tell other processes. May lose a notice: everybody looks once a second anyway."""
        ...

    async def listen(self, heard: Callable[[str, datetime | None], None]) -> None:
        """Call `heard` with each notice of other processes, until cancelled; None for a time means: look now."""
        ...

    async def close(self) -> None: ...


class Bell:
    """Wakes one component of this process. Keeps the earliest moment that it was rung for."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self.earliest: datetime | None = None

    def ring(self, at: datetime | None = None) -> None:
        if at is not None and (self.earliest is None or at < self.earliest):
            self.earliest = at
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Return when rung, or after `seconds`."""
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._rung.wait()
        except TimeoutError:
            pass
        self._rung.clear()

    def take(self) -> datetime | None:
        """Return the earliest moment that was rung for, and forget it."""
        earliest, self.earliest = self.earliest, None
        return earliest


def ask(name: str, /, **parameters: Any) -> Query:
    """Return a named statement with its parameters."""
    return Query(name, parameters)


class Store:
    """Runs verbs on a database, and afterwards tells what changed: listeners, bells, other processes."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.bells = {component: Bell() for component in COMPONENTS}
        self.listeners: list[Callable[[Change], None]] = []
        self._under_way: set[asyncio.Task[Any]] = set()

    async def write(self, verb: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb in one transaction and return its answer. Raises StoreUnavailable.

        A caller that is cancelled does not stop it: what has begun is ended, and what it changed is told.
        """
        writing = asyncio.create_task(self._write(lambda: verb(*args, **kwargs)))
        self._under_way.add(writing)
        writing.add_done_callback(self._ended)
        answer: T = await asyncio.shield(writing)
        return answer

    async def read(self, verb: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb that only reads. Raises StoreUnavailable."""
        return await self.database.read(lambda: verb(*args, **kwargs))

    async def listen(self) -> None:
        """Ring this process's bells for the notices of others, until cancelled."""
        await self.database.listen(self._hear)

    async def close(self) -> None:
        """Let the writes that have begun end, and close."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self.database.close()

    def _ended(self, writing: asyncio.Task[Any]) -> None:
        """Forget a write; what went wrong with it is seen, for whoever asked for it may be gone."""
        self._under_way.discard(writing)
        if not writing.cancelled():
            writing.exception()

    async def _write(self, steps: Callable[[], Steps[Any]]) -> Any:
        committed = await self.database.write(steps)
        for wake in committed.wakes:
            self.bells[wake.component].ring(wake.at)
        if committed.wakes:
            await self.database.announce(committed.wakes)
        for change in committed.changes:  # last: whatever a listener raises, nobody misses what became due
            for listener in self.listeners:
                listener(change)
        return committed.answer

    def _hear(self, component: str, at: datetime | None) -> None:
        for name, bell in self.bells.items():
            if component in (name, "*"):
                bell.ring(at)
