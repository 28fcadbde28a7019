"""The store in PostgreSQL, through asyncpg: a pool for verbs, and one direct connection for notices.

Behind a transaction pooler add `?pooler=true` to the URL: no named prepared statements are used, and where notices do
not come back as an echo the components go by their look each second.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from oncue.errors import StoreUnavailable
from oncue.model import Change
from oncue.store import migrate, sql
from oncue.store.base import Committed, Query, Row, Steps, Wake

T = TypeVar("T")
CHANNEL = "oncue"
ECHO_SECONDS = 10.0
TRIES = 5
SETTINGS = {"timezone": "UTC", "application_name": "oncue", "default_transaction_isolation": "read committed"}
RETRIED = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.LockNotAvailableError,
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
        self._name = uuid4().hex

    async def write(self, steps: Callable[[], Steps[Any]]) -> Committed:
        for left in reversed(range(TRIES)):
            try:
                async with self._connection() as connection:
                    return await self._transact(connection, steps())
            except RETRIED as error:
                if not left:
                    raise StoreUnavailable(f"the store gave up on a transaction {TRIES} times: {error}") from error
        raise AssertionError("unreachable")

    async def read(self, steps: Callable[[], Steps[T]]) -> T:
        async with self._connection() as connection:
            answer: T = await self._run(connection, steps(), [], [])
            return answer

    async def migrate(self, only_check: bool = False) -> list[str]:
        async with self._connection() as connection:
            return await migrate.migrate_postgres(connection, only_check)

    async def announce(self, wakes: tuple[Wake, ...]) -> None:
        """Send notices on the direct connection; what piles up meanwhile goes out together."""
        idle = not self._unsaid
        for wake in wakes:
            self._unsaid[wake.component] = min(wake.at, self._unsaid.get(wake.component, wake.at))
        if idle and self._direct is not None:
            await asyncio.sleep(0)
            said, self._unsaid = self._unsaid, {}
            text = " ".join(f"{component}={at.isoformat()}" for component, at in said.items())
            with contextlib.suppress(*GONE):
                await self._notify(f"{self._name} {text}")

    async def listen(self, heard: Callable[[str, datetime | None], None]) -> None:
        while True:
            try:
                await self._listen_once(heard)
            except GONE:
                self._direct = None
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
            await connection.add_listener(CHANNEL, hear)
            self._direct = connection
            heard("*", None)
            while True:
                echoed.clear()
                await self._notify(f"{self._name} echo")
                await asyncio.wait_for(echoed.wait(), 5)
                await asyncio.sleep(ECHO_SECONDS)
        finally:
            self._direct = None
            connection.terminate()

    async def _notify(self, text: str) -> None:
        if self._direct is not None:
            await self._direct.execute("select pg_notify($1, $2)", CHANNEL, text)

    async def _transact(self, connection: Any, steps: Steps[Any]) -> Committed:
        changes: list[Change] = []
        wakes: list[Wake] = []
        async with connection.transaction():
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
        except GONE as error:
            raise StoreUnavailable(f"the store cannot be reached now: {_one_line(error)}") from error

    async def _open(self) -> asyncpg.Pool[asyncpg.Record]:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._url,
                    min_size=1,
                    max_size=self._connections,
                    timeout=5,
                    command_timeout=30,
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
    return text or type(error).__name__
