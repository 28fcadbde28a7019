"""The store in one SQLite file: one writer thread, one reader thread, WAL, and full sync at each commit.

Several processes on one host may share the file: they notice each other's writes by `PRAGMA data_version`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from oncue.errors import ConfigError, SchemaError, StoreUnavailable
from oncue.model import Change
from oncue.store import migrate, sql
from oncue.store.base import Committed, Query, Row, Steps, Wake

T = TypeVar("T")
NOTICE_SECONDS = 0.05
MEMORY = ":memory:"


class SqliteDatabase:
    """Runs verbs on a SQLite file. `busy` is how long a write waits for another process, in seconds.

    `:memory:` is a store for tests: it has one connection, and so does without a reader.
    """

    has_own_clock = False

    def __init__(self, path: str, *, busy: float = 5.0) -> None:
        self._path = path
        self._busy = busy
        self._statements = sql.load("sqlite")
        self._writer = ThreadPoolExecutor(1, "oncue-writer")
        self._reader = self._writer if path == MEMORY else ThreadPoolExecutor(1, "oncue-reader")
        self._connections: dict[str, sqlite3.Connection] = {}

    async def write(self, steps: Callable[[], Steps[Any]]) -> Committed:
        return await self._in(self._writer, lambda: self._transact(steps))

    async def read(self, steps: Callable[[], Steps[T]]) -> T:
        return await self._in(self._reader, lambda: self._look(steps))

    async def migrate(self, only_check: bool = False) -> list[str]:
        return await self._in(self._writer, lambda: migrate.migrate_sqlite(self._connect("writer"), only_check))

    async def announce(self, wakes: tuple[Wake, ...]) -> None:
        """Nothing to do: other processes see the write itself."""

    async def listen(self, heard: Callable[[str, datetime | None], None]) -> None:
        seen = None
        while True:
            # A file that is locked or full for a moment must not end the listening for good.
            with contextlib.suppress(StoreUnavailable):
                version = await self._in(self._writer, self._data_version)
                if seen is not None and version != seen:
                    heard("*", None)
                seen = version
            await asyncio.sleep(NOTICE_SECONDS)

    async def close(self) -> None:
        """Close after what is under way; the threads end with it."""
        for name, executor in (("reader", self._reader), ("writer", self._writer)):
            if name in self._connections:
                await asyncio.get_running_loop().run_in_executor(executor, self._disconnect, name)
        for executor in (self._reader, self._writer):
            executor.shutdown(wait=False)

    async def _in(self, executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, work)
        except sqlite3.OperationalError as error:
            if str(error).startswith("no such"):
                raise SchemaError(f"the store {self._path} lacks tables ({error}): run `oncue migrate`.") from error
            raise StoreUnavailable(f"the store {self._path} cannot be used now: {error}{_remedy(error)}") from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # a mistake of ours, such as a constraint that is broken
                raise
            text = f"the store {self._path} cannot be used: {error}. Name another store, or put a backup in its place."
            raise StoreUnavailable(text) from error

    def _transact(self, steps: Callable[[], Steps[Any]]) -> Committed:
        connection = self._connect("writer")
        changes: list[Change] = []
        wakes: list[Wake] = []
        connection.execute("begin immediate")
        try:
            answer = self._run(connection, steps(), changes, wakes)
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
        return Committed(answer, tuple(changes), tuple(wakes))

    def _look(self, steps: Callable[[], Steps[T]]) -> T:
        answer: T = self._run(self._connect("writer" if self._path == MEMORY else "reader"), steps(), [], [])
        return answer

    def _run(self, connection: sqlite3.Connection, steps: Steps[Any], changes: list[Change], wakes: list[Wake]) -> Any:
        rows: list[Row] = []
        started = False
        while True:
            try:
                step = steps.send(rows) if started else next(steps)
                started = True
            except StopIteration as end:
                return end.value
            rows = []
            match step:
                case Query(name, parameters):
                    rows = connection.execute(self._statements[name].text, _bind(parameters)).fetchall()
                case Change():
                    changes.append(step)
                case Wake():
                    wakes.append(step)

    def _data_version(self) -> int:
        version: int = self._connect("writer").execute("pragma data_version").fetchone()[0]
        return version

    def _connect(self, name: str) -> sqlite3.Connection:
        if name not in self._connections:
            self._connections[name] = self._open(name)
        return self._connections[name]

    def _open(self, name: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=self._busy, cached_statements=256
        )
        connection.row_factory = sqlite3.Row
        mode = self._begin_log(connection)
        if mode != "wal" and self._path != MEMORY:
            raise ConfigError(f"store {self._path}: this file system cannot hold a SQLite write-ahead log; move it.")
        connection.execute("pragma synchronous = full")
        if name == "reader":
            connection.execute("pragma query_only = on")
        return connection

    def _begin_log(self, connection: sqlite3.Connection) -> str:
        try:
            mode: str = connection.execute("pragma journal_mode = wal").fetchone()[0]
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"store {self._path}: {error}. Name another file, or restore it from a copy.") from error
        return mode

    def _disconnect(self, name: str) -> None:
        self._connections.pop(name).close()


def _remedy(error: sqlite3.OperationalError) -> str:
    words = str(error)
    if words.startswith("unable to open"):
        return ". Its folder must be there, and this user must be allowed to write in it."
    if words.endswith("already exists"):
        return ". It holds the tables of another program: name another store."
    return ""


def _bind(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _adapt(value) for name, value in parameters.items()}


def _adapt(value: Any) -> Any:
    match value:
        case datetime():
            return write_time(value)
        case UUID():
            return str(value)
        case list() | tuple():
            return json.dumps(value, default=_adapt)
        case _:
            return value


def write_time(moment: datetime) -> str:
    """Return a time as text of fixed width in UTC, so that texts sort as times do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
