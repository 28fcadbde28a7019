"""The databases that resolvers read: a team's own, opened for reading only."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from oncue.adapters.resolvers import sql as query
from oncue.errors import ResolveError, TargetError
from oncue.model import Entity, Key, Page


class SqliteSource:
    """Reads a SQLite file. Times are bound as text: `2026-03-28`, and `2026-03-28 07:00:00` in UTC."""

    def __init__(self, name: str, url: str, *, timeout: timedelta = timedelta(seconds=30)) -> None:
        self._name = name
        self._path = url.partition("://")[2].removeprefix("/")
        self._timeout = timeout.total_seconds()

    async def page(self, sql: str, parameters: Mapping[str, Any], *, cursor: str | None, limit: int) -> Page:
        bound = {**parameters, "oncue_limit": limit} | _cursor(cursor)
        rows = await self._rows(query.page_of(sql, follows=cursor is not None), bound)
        return query.read_page(rows, limit=limit)

    async def ask(self, sql: str, parameters: Mapping[str, Any], *, keys: Sequence[Key]) -> list[Entity]:
        entities: list[Entity] = []
        for some in _batches(keys):
            bound = {**parameters, **_keys(_either_type(some))}
            rows = await self._rows(query.those_of(sql, count=len(bound) - len(parameters)), bound)
            entities += query.read_page(rows, limit=len(rows) + 1).entities
        return entities

    async def close(self) -> None:
        """Nothing is kept open between two reads."""

    async def _rows(self, sql: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        statement = query.write(sql, style="named")
        values = dict(zip(statement.names, map(_as_text, query.bind(statement, parameters)), strict=True))
        return await asyncio.to_thread(self._read, statement.text, values)

    def _read(self, text: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        place = Path(self._path).absolute().as_uri()
        try:
            connection = sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=self._timeout)
            try:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(text, values)]
            finally:
                connection.close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise ResolveError(f'source "{self._name}" ({self._path}): {error}') from error


class PostgresSource:
    """Reads a PostgreSQL database in transactions that are read-only. `?pooler=true` fits a transaction pooler."""

    def __init__(self, name: str, url: str, *, timeout: timedelta = timedelta(seconds=30)) -> None:
        try:
            import asyncpg
        except ImportError:
            raise TargetError("a PostgreSQL source needs its driver: pip install 'oncue[postgres]'.") from None
        self._driver = asyncpg
        self._name = name
        self._url = url.replace("?pooler=true", "").replace("&pooler=true", "")
        self._has_pooler = self._url != url
        self._timeout = timeout.total_seconds()
        self._pool: Any = None
        self._opening = asyncio.Lock()

    async def page(self, sql: str, parameters: Mapping[str, Any], *, cursor: str | None, limit: int) -> Page:
        bound = {**parameters, "oncue_limit": limit} | _cursor(cursor)
        rows = await self._rows(query.page_of(sql, follows=cursor is not None), bound)
        return query.read_page(rows, limit=limit)

    async def ask(self, sql: str, parameters: Mapping[str, Any], *, keys: Sequence[Key]) -> list[Entity]:
        entities: list[Entity] = []
        for some in _batches(keys):
            bound = {**parameters, **_keys(some)}
            rows = await self._rows(query.those_of(sql, count=len(some)), bound)
            entities += query.read_page(rows, limit=len(rows) + 1).entities
        return entities

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None

    async def _rows(self, sql: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        statement = query.write(sql, style="numbered")
        values = query.bind(statement, parameters)
        try:
            async with (await self._open()).acquire(timeout=10) as connection, connection.transaction(readonly=True):
                prepared = await connection.prepare(statement.text)
                kinds = [parameter.name for parameter in prepared.get_parameters()]
                fitted = [_fit(value, kind) for value, kind in zip(values, kinds, strict=True)]
                return [dict(row) for row in await prepared.fetch(*fitted)]
        except (self._driver.PostgresError, self._driver.InterfaceError, OSError, TimeoutError) as error:
            raise ResolveError(f'source "{self._name}": {_one_line(error)}') from error
        except (self._driver.DataError, ValueError, TypeError) as error:
            raise ResolveError(f'source "{self._name}": a parameter does not fit: {_one_line(error)}') from error

    async def _open(self) -> Any:
        async with self._opening:
            if self._pool is None:
                options: dict[str, Any] = {"statement_cache_size": 0} if self._has_pooler else {}
                self._pool = await self._driver.create_pool(
                    self._url, min_size=0, max_size=4, timeout=5, command_timeout=self._timeout, **options
                )
            return self._pool


def _cursor(cursor: str | None) -> dict[str, Any]:
    return {} if cursor is None else {"oncue_after": json.loads(cursor)}


def _keys(keys: Sequence[Key]) -> dict[str, Key]:
    return {f"oncue_key_{place}": key for place, key in enumerate(keys)}


def _batches(keys: Sequence[Key], size: int = 500) -> list[list[Key]]:
    known = query.distinct(keys)
    return [known[start : start + size] for start in range(0, len(known), size)]


def _either_type(keys: Sequence[Key]) -> list[Key]:
    """SQLite compares by type: an event's subject "42" must also find the whole number 42."""
    numbers = [int(key) for key in keys if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 19]
    return query.distinct([*keys, *numbers])


def _as_text(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        case date():
            return value.isoformat()
        case _:
            return value


def _fit(value: Any, kind: str) -> Any:
    """Return a value as the parameter's type wants it: keys and event data come as text or numbers."""
    if kind in ("text", "varchar", "bpchar", "name") and not isinstance(value, str) and value is not None:
        return value.isoformat() if isinstance(value, date) else str(value)
    if kind in ("int2", "int4", "int8") and isinstance(value, str):
        return int(value)
    if kind == "uuid" and isinstance(value, str):
        return UUID(value)
    if kind == "date" and isinstance(value, datetime):
        return value.astimezone(UTC).date()
    if kind == "timestamp" and isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
