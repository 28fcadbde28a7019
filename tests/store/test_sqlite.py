"""SQLite: what only it has. Several processes on one file, a file that is locked, and a store in memory."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from oncue.errors import StoreUnavailable
from oncue.store import tasks
from oncue.store.base import Store
from oncue.store.sqlite import MEMORY, SqliteDatabase
from oncue.testing.factories import apply, at, latest, make_definition, make_running
from oncue.testing.until import until
from tests.store.opening import open_store

pytestmark = pytest.mark.anyio


async def test_another_process_is_heard_by_what_it_wrote(migrated_sqlite_url: str) -> None:
    store, other = open_store(migrated_sqlite_url), open_store(migrated_sqlite_url)
    heard: list[str] = []
    listener = asyncio.create_task(other.database.listen(lambda component, _: heard.append(component)))
    await other.read(tasks.every)

    async def is_heard() -> bool:
        await apply(store, make_definition(description=str(len(heard))), now=at(0))
        return bool(heard)

    await until(is_heard)

    listener.cancel()
    await asyncio.wait([listener])
    await store.close()
    await other.close()
    assert set(heard) == {"*"}


async def test_a_file_that_is_locked_is_unavailable_until_it_is_free_again(migrated_sqlite_url: str) -> None:
    path = migrated_sqlite_url.removeprefix("sqlite:///")
    store = Store(SqliteDatabase(path, busy=0.05))
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("begin immediate")

    with pytest.raises(StoreUnavailable, match="locked"):
        await apply(store, make_definition())
    blocker.execute("rollback")

    assert await apply(store, make_definition()) == ["created"]
    blocker.close()
    await store.close()


async def test_a_store_in_memory_reads_what_it_wrote() -> None:
    store = Store(SqliteDatabase(MEMORY))
    await store.database.migrate()

    run = await make_running(store)

    assert await latest(store) == [run]
    await store.close()


async def test_a_store_that_was_never_used_closes(tmp_path: object) -> None:
    await Store(SqliteDatabase(f"{tmp_path}/none.db")).close()
