"""The store in PostgreSQL, through asyncpg: a pool for verbs, and one direct connection for notices.

Behind a transaction pooler add `?pooler=true` to the URL: no named prepared statements are used, and where notices do
not come back as an echo the components go by their look each second.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from oncue.errors import SchemaError, StoreUnavailable
from oncue.model import Change
from oncue.store import migrate, sql
from oncue.store.base import Committed, Query, Row, Steps, Wake

T = TypeVar("T")
CHANNEL = "oncue"
ECHO_SECONDS = 10.0
TRIES = 5
# A process that freezes within a transaction must not keep its locks, and who waits for them must not wait for ever.
SETTINGS = {
    "timezone": "UTC",
    "application_name": "oncue",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "10s",
    "tcp_user_timeout": "15s",
}
# Two that make the same row at once: the one that lost begins again, and finds it made.
RETRIED = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.UniqueViolationError)
GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # its connection was cut in the middle of a statement
    asyncpg.CannotConnectNowError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DiskFullError,
    OSError,
    TimeoutError,
)


class PostgresDatabase:
    """Runs verbs on PostgreSQL. Connects on first use, and again after each loss."""

    has_own_clock = True

    def __init__(self, url: str, *, connections: int = 8) -> None:
        self._url, self._options = _read_url(url)
        self._connections = connections
        self._statements = sql.load("postgres")
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._opening = asyncio.Lock()
        self._direct: asyncpg.Connection[asyncpg.Record] | None = None
        self._unsaid: dict[str, datetime] = {}
        self._to_say = asyncio.Event()
        self._name = uuid4().hex

    async def write(self, steps: Callable[[], Steps[Any]]) -> Committed:
        for left in reversed(range(TRIES)):
            try:
                async with self._connection() as connection:
                    return await self._transact(connection, steps())
            except RETRIED as error:
                if not left:
                    raise StoreUnavailable(f"the store gave up on a transaction {TRIES} times: {error}") from error
                await asyncio.sleep(random.uniform(0, 0.05))
        raise AssertionError("unreachable")

    async def read(self, steps: Callable[[], Steps[T]]) -> T:
        async with self._connection() as connection:
            answer: T = await self._run(connection, steps(), [], [])
            return answer

    async def migrate(self, only_check: bool = False) -> list[str]:
        async with self._connection() as connection:
            return await migrate.migrate_postgres(connection, only_check)

    async def announce(self, wakes: tuple[Wake, ...]) -> None:
        """Leave notices to the direct connection, where what piles up goes out together; without one, send them now."""
        for wake in wakes:
            self._unsaid[wake.component] = min(wake.at, self._unsaid.get(wake.component, wake.at))
        if self._direct is not None:
            self._to_say.set()
            return
        with contextlib.suppress(StoreUnavailable):
            async with self._connection() as connection:
                await self._say(connection)

    async def listen(self, heard: Callable[[str, datetime | None], None]) -> None:
        while True:
            try:
                await self._listen_once(heard)
            except GONE:
                await asyncio.sleep(1)
            heard("*", None)

    async def close(self) -> None:
        for thing in (self._direct, self._pool):
            if thing is not None:
                thing.terminate()
        self._direct = self._pool = None

    async def _listen_once(self, heard: Callable[[str, datetime | None], None]) -> None:
        connection = await asyncpg.connect(self._url, timeout=5, command_timeout=5, **self._options)
        echoed = asyncio.Event()

        def hear(_connection: object, _pid: int, _channel: str, text: object) -> None:
            sender, _, notices = str(text).partition(" ")
            if notices == "echo":
                return echoed.set() if sender == self._name else None
            if sender == self._name:
                return None
            for notice in notices.split():
                component, _, at = notice.partition("=")
                heard(component, datetime.fromisoformat(at))
            return None

        try:
            connection.add_termination_listener(lambda _: self._to_say.set())
            await connection.add_listener(CHANNEL, hear)
            heard("*", None)
            while True:
                echoed.clear()
                await self._notify(connection, "echo")
                async with asyncio.timeout(5):
                    await echoed.wait()
                self._direct = connection
                await self._speak(connection)
        finally:
            self._direct = None
            connection.terminate()

    async def _speak(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        """Say what there is to say, until it is time for the next echo, or the connection is gone."""
        is_over = False

        def ring() -> None:
            nonlocal is_over
            is_over = True
            self._to_say.set()

        bell = asyncio.get_running_loop().call_later(ECHO_SECONDS, ring)
        try:
            while not is_over and not connection.is_closed():
                await self._to_say.wait()
                await self._say(connection)
        finally:
            bell.cancel()

    async def _say(self, connection: Any) -> None:
        said, self._unsaid = self._unsaid, {}
        self._to_say.clear()
        if said:
            await self._notify(connection, " ".join(f"{component}={at.isoformat()}" for component, at in said.items()))

    async def _notify(self, connection: Any, text: str) -> None:
        await connection.execute("select pg_notify($1, $2)", CHANNEL, f"{self._name} {text}")

    async def _transact(self, connection: Any, steps: Steps[Any]) -> Committed:
        changes: list[Change] = []
        wakes: list[Wake] = []
        async with connection.transaction(isolation="read_committed"):
            answer = await self._run(connection, steps, changes, wakes)
        return Committed(answer, tuple(changes), tuple(wakes))

    async def _run(self, connection: Any, steps: Steps[Any], changes: list[Change], wakes: list[Wake]) -> Any:
        rows: list[Row] | None = None
        while True:
            try:
                step = next(steps) if rows is None else steps.send(rows)
            except StopIteration as end:
                return end.value
            rows = []
            match step:
                case Query(name, parameters):
                    statement = self._statements[name]
                    rows = await connection.fetch(statement.text, *statement.arguments(parameters))
                case Change():
                    changes.append(step)
                case Wake():
                    wakes.append(step)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        try:
            async with (await self._open()).acquire(timeout=10) as connection:
                yield connection
        except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as error:
            raise SchemaError(f"the store lacks tables ({_one_line(error)}): run `oncue migrate`.") from error
        except GONE as error:
            raise StoreUnavailable(f"the store cannot be reached now: {_one_line(error)}") from error

    async def _open(self) -> asyncpg.Pool[asyncpg.Record]:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._url,
                    min_size=0,  # asyncpg keeps up a floor by itself, and logs each try with a traceback
                    max_size=self._connections,
                    timeout=5,
                    command_timeout=15,
                    max_inactive_connection_lifetime=300,
                    **self._options,
                )
            return self._pool


def _read_url(url: str) -> tuple[str, dict[str, Any]]:
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    options: dict[str, Any] = {"server_settings": SETTINGS}
    if query.pop("pooler", "false") == "true":
        options |= {"statement_cache_size": 0, "server_settings": {}}
    return urlunsplit(parts._replace(query=urlencode(query))), options


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, TimeoutError) and not text:
        return "it did not answer in time; it may be overloaded, or somebody may hold a lock on Oncue's tables"
    return text or type(error).__name__
