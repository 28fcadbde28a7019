"""The databases that resolvers read: a team's own, opened for reading only."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from oncue.adapters.resolvers import fit, window
from oncue.adapters.resolvers import sql as query
from oncue.adapters.resolvers.moments import read_moment, spelled_like
from oncue.errors import ResolveError, TargetError
from oncue.model import Entity, Key, Page

NO_KEY = re.compile(r'(no such column: |column )(q\.)?"?key"?( does not exist)?')
NO_DUE = re.compile(r"(no such column: |column )q\.due_at( does not exist)?")
TIMES = ("timestamptz", "timestamp", "date")
LOOK = 10_000  # steps of SQLite between two looks at whether anybody still waits


class SqliteSource:
    """Reads a SQLite file. Times are bound as text: `2026-03-28`, and `2026-03-28 07:00:00` in UTC."""

    def __init__(self, name: str, url: str, *, timeout: timedelta = timedelta(seconds=30)) -> None:
        self._name = name
        self._path = url.partition("://")[2].removeprefix("/")
        self._timeout = timeout.total_seconds()

    async def page(self, sql: str, parameters: Mapping[str, Any], *, cursor: str | None, limit: int) -> Page:
        body = query.body_of(sql, style="named")
        bound = {**parameters, "oncue_limit": limit} | _cursor(cursor)
        # A column may compare without regard to case: two keys that it holds for equal could part at a page's end.
        text = query.page_of(body, follows=cursor is not None, key="key collate binary")
        return query.read_page(await self._rows(text, bound), limit=limit)

    async def ask(self, sql: str, parameters: Mapping[str, Any], *, keys: Sequence[Key]) -> list[Entity]:
        body = query.body_of(sql, style="named")
        entities: list[Entity] = []
        for some in _batches(_either_type(keys)):
            rows = await self._rows(query.those_of(body, count=len(some)), {**parameters, **_keys(some)})
            entities += query.read_entities(rows)
        asked = {str(key) for key in keys}  # a column of numbers takes the text " 5" for 5 as well
        return [entity for entity in entities if str(entity.key) in asked]

    async def window(
        self,
        sql: str,
        parameters: Mapping[str, Any],
        *,
        after: datetime,
        until: datetime,
        cursor: str | None,
        limit: int,
    ) -> Page:
        body, inside = query.body_of(sql, style="named"), window.SQLITE_INSIDE
        text = window.page_of(
            body, follows=cursor is not None, inside=inside, due=window.SQLITE_DUE, key="q.key collate binary"
        )
        bound = {**parameters, **window.sqlite_bounds(after, until, cursor=cursor, limit=limit)}
        page = window.read_page(await self._rows(text, bound), limit=limit)
        if cursor is None and page.cursor is not None:  # the comparison with the last row passes over nulls
            query.read_entities(await self._rows(window.without_key_of(body, inside=inside), bound))
        return page

    async def first(self, sql: str, *, after: datetime) -> datetime | None:
        """Return the time that a query answers. It is asked again with `:after` spelled as the column is, where texts
        of two spellings did not compare as times do."""
        text = window.one_of(query.body_of(sql, style="named"))
        answer = window.read_one(await self._rows(text, {"after": after}))
        moment = self._moment(answer)
        if isinstance(answer, str) and moment is not None and moment <= after:
            answer = window.read_one(await self._rows(text, {"after": spelled_like(after, answer)}))
        return self._moment(answer)

    async def close(self) -> None:
        """Nothing is kept open between two reads."""

    def _moment(self, answer: Any) -> datetime | None:
        return _moment(self._name, answer)

    async def _rows(self, sql: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        statement = query.write(sql, style="named")
        values = dict(zip(statement.names, query.bind(statement, parameters), strict=True))
        bound = {name: self._bindable(name, value) for name, value in values.items()}
        is_over = threading.Event()
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.to_thread(self._read, statement.text, bound, is_over)
        except TimeoutError:
            limit = f"{self._timeout * 1000:,.0f} ms"
            raise ResolveError(f'source "{self._name}" ({self._path}): no answer within {limit}.') from None
        finally:
            is_over.set()

    def _bindable(self, name: str, value: Any) -> Any:
        try:
            return fit.for_sqlite(value)
        except ValueError as error:
            raise ResolveError(f'source "{self._name}": :{name} cannot be bound: {error}') from None

    def _read(self, text: str, values: dict[str, Any], is_over: threading.Event) -> list[dict[str, Any]]:
        place = Path(self._path).absolute().as_uri()
        try:
            connection = sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=self._timeout)
            try:
                connection.row_factory = sqlite3.Row
                connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
                connection.set_progress_handler(is_over.is_set, LOOK)
                connection.create_function("oncue_due", 1, window.sqlite_due, deterministic=True)
                return [dict(row) for row in connection.execute(text, values)]
            finally:
                connection.close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise ResolveError(f'source "{self._name}" ({self._path}): {_words(error)}') from error


class PostgresSource:
    """Reads a PostgreSQL database in transactions that are read-only. `?pooler=true` fits a transaction pooler."""

    def __init__(self, name: str, url: str, *, timeout: timedelta = timedelta(seconds=30)) -> None:
        try:
            import asyncpg
        except ImportError:
            raise TargetError("a PostgreSQL source needs its driver: pip install 'oncue[postgres]'.") from None
        self._driver = asyncpg
        self._name = name
        self._url, self._has_pooler = _without_pooler(url)
        self._timeout = timeout
        self._pool: Any = None
        self._opening = asyncio.Lock()

    async def page(self, sql: str, parameters: Mapping[str, Any], *, cursor: str | None, limit: int) -> Page:
        body = query.body_of(sql, style="numbered")
        bound = {**parameters, "oncue_limit": limit} | _cursor(cursor)
        rows = await self._rows(query.page_of(body, follows=cursor is not None), bound)
        page = query.read_page(rows, limit=limit)
        if cursor is None and page.cursor is not None:  # nulls come last, and `key > …` passes over them
            query.read_entities(await self._rows(query.without_key_of(body), parameters))
        return page

    async def ask(self, sql: str, parameters: Mapping[str, Any], *, keys: Sequence[Key]) -> list[Entity]:
        body = query.body_of(sql, style="numbered")
        entities: list[Entity] = []
        for some in _batches(keys):
            rows = await self._rows(query.those_of(body, count=len(some)), {**parameters, **_keys(some)})
            entities += query.read_entities(rows)
        return entities

    async def window(
        self,
        sql: str,
        parameters: Mapping[str, Any],
        *,
        after: datetime,
        until: datetime,
        cursor: str | None,
        limit: int,
    ) -> Page:
        body = query.body_of(sql, style="numbered")
        bound = {**parameters, **window.bounds(after, until, cursor=cursor, limit=limit)}
        page = window.read_page(await self._rows(window.page_of(body, follows=cursor is not None), bound), limit=limit)
        if cursor is None and page.cursor is not None:  # as above
            query.read_entities(await self._rows(window.without_key_of(body), bound))
        return page

    async def first(self, sql: str, *, after: datetime) -> datetime | None:
        text = window.one_of(query.body_of(sql, style="numbered"))
        return _moment(self._name, window.read_one(await self._rows(text, {"after": after})))

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None

    async def _rows(self, sql: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        statement = query.write(sql, style="numbered")
        values = query.bind(statement, parameters)
        driver = self._driver
        try:
            async with (await self._open()).acquire(timeout=10) as connection, connection.transaction(readonly=True):
                await connection.execute(f"set local statement_timeout = {self._timeout // timedelta(milliseconds=1)}")
                return await self._fetch(connection, statement, values)
        except (driver.DataError, ValueError, TypeError, OverflowError) as error:
            raise ResolveError(f'source "{self._name}": {_without_values(error, statement)}') from None
        except (driver.PostgresError, driver.InterfaceError, driver.InternalClientError, OSError) as error:
            raise ResolveError(f'source "{self._name}": {_words(error)}') from error

    async def _fetch(self, connection: Any, statement: query.Statement, values: list[Any]) -> list[dict[str, Any]]:
        prepared = await connection.prepare(statement.text, name="")  # a pooler could give its name to somebody else
        kinds = [parameter.name for parameter in prepared.get_parameters()]
        fitted = [
            self._fitted(name, value, kind) for name, value, kind in zip(statement.names, values, kinds, strict=True)
        ]
        documents = [one.name for one in prepared.get_attributes() if one.type.name in ("json", "jsonb")]
        rows = [dict(row) for row in await prepared.fetch(*fitted)]
        for row in rows:
            row |= {name: json.loads(row[name]) for name in documents if row[name] is not None}
        return rows

    def _fitted(self, name: str, value: Any, kind: str) -> Any:
        if name == "oncue_window_start" and kind not in TIMES:
            raise ResolveError(f'source "{self._name}": due_at is of type {kind}: cast it, as due_at::timestamptz.')
        try:
            return fit.for_postgres(value, kind)
        except (ValueError, TypeError, ArithmeticError):
            if name.startswith("oncue_key_"):
                return None  # no row of this type has such a key: nobody is found
            raise ResolveError(f'source "{self._name}": :{name} cannot be bound: it is no {kind}.') from None

    async def _open(self) -> Any:
        async with self._opening:
            if self._pool is None:
                options: dict[str, Any] = {"statement_cache_size": 0} if self._has_pooler else {}
                limit = self._timeout.total_seconds() + 5  # the server's own limit comes first
                self._pool = await self._driver.create_pool(
                    self._url, min_size=0, max_size=4, timeout=5, command_timeout=limit, **options
                )
            return self._pool


def _moment(source: str, answer: Any) -> datetime | None:
    try:
        return None if answer is None else read_moment(answer)
    except ValueError as error:
        raise ResolveError(f'source "{source}": {error}') from None


def _cursor(cursor: str | None) -> dict[str, Any]:
    return {} if cursor is None else {"oncue_after": json.loads(cursor)}


def _keys(keys: Sequence[Key]) -> dict[str, Key]:
    return {f"oncue_key_{place}": key for place, key in enumerate(keys)}


def _batches(keys: Sequence[Key], size: int = 500) -> list[list[Key]]:
    known = query.distinct(keys)
    return [known[start : start + size] for start in range(0, len(known), size)]


def _either_type(keys: Sequence[Key]) -> list[Key]:
    """SQLite compares by type: an event's subject "42" must also find the whole number 42."""
    numbers = [number for key in keys if isinstance(key, str) and (number := fit.whole(key)) is not None]
    return [key for key in (*keys, *numbers) if not isinstance(key, int) or fit.is_int8(key)]


def _without_pooler(url: str) -> tuple[str, bool]:
    """Return a URL without our own option, and whether it was there."""
    base, _, options = url.partition("?")
    kept = [option for option in options.split("&") if option and option != "pooler=true"]
    return base + ("?" + "&".join(kept) if kept else ""), "pooler=true" in options.split("&")


def _without_values(error: BaseException, statement: query.Statement) -> str:
    """Return what is wrong with a parameter; the driver's words hold its value, which is not ours to show."""
    if found := re.search(r"query argument \$(\d+)", str(error)):
        return f":{statement.names[int(found[1]) - 1]} cannot be bound: it is of another type than its column."
    if "query argument" in str(error) or not hasattr(error, "sqlstate"):
        return f"a parameter cannot be bound ({type(error).__name__})."
    return _words(error)


def _words(error: BaseException) -> str:
    """Return a database's own words in one line, and ours where they would not help."""
    words = " ".join(str(error).split())
    if isinstance(error, TimeoutError):
        return "no answer in time."
    if NO_KEY.fullmatch(words):
        return query.NO_KEY
    if NO_DUE.fullmatch(words):
        return window.NO_DUE
    if "unable to open database file" in words:
        return f"{words}. Give the path of a file that is there, as sqlite:///relative.db or sqlite:////absolute.db."
    return words or type(error).__name__
