"""PostgreSQL: what only it has. Notices between processes, and locks that do not outlive their holder."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest

from oncue.store import tasks
from oncue.store.base import Store
from oncue.store.postgres import SETTINGS
from oncue.testing.factories import apply, at, make_definition
from oncue.testing.until import until
from tests.store.opening import open_store

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def listening(store: Store) -> AsyncIterator[None]:
    """Let a store listen, from when it has heard its own echo."""
    task = asyncio.create_task(store.listen())
    try:
        await until(lambda: store.database._direct is not None, what="a direct connection")  # type: ignore[attr-defined]
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _hears(store: Store, minute: int) -> Callable[[], bool]:
    return lambda: store.bells["clock"].earliest == at(minutes=minute)


@pytest.fixture
async def other(migrated_postgres_url: str) -> AsyncIterator[Store]:
    """Another process's store."""
    opened = open_store(migrated_postgres_url)
    yield opened
    await opened.close()


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[Store]:
    opened = open_store(migrated_postgres_url)
    yield opened
    await opened.close()


async def test_a_process_that_does_not_listen_is_heard_by_one_that_does(store: Store, other: Store) -> None:
    async with listening(other):
        await apply(store, make_definition(), now=at(0))

        await until(_hears(other, 1))


async def test_what_was_said_before_a_store_listened_does_not_silence_it(store: Store, other: Store) -> None:
    await apply(store, make_definition("a"), now=at(minutes=5))

    async with listening(other), listening(store):
        await apply(store, make_definition("b"), now=at(0))

        await until(_hears(other, 1))


async def test_a_listener_whose_connection_is_ended_listens_again(
    store: Store, other: Store, migrated_postgres_url: str
) -> None:
    """B119: after a restart of the database LISTEN was not renewed, and nobody saw."""
    async with listening(other):
        connection = await asyncpg.connect(migrated_postgres_url)
        ended = await connection.fetch(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and query like '%pg_notify%' and pid <> pg_backend_pid()"
        )
        await connection.close()
        assert ended
        lost = other.database._direct  # type: ignore[attr-defined]
        await until(lambda: other.database._direct not in (None, lost))  # type: ignore[attr-defined]

        await apply(store, make_definition(), now=at(0))

        await until(_hears(other, 1))


async def test_a_holder_that_freezes_within_a_transaction_loses_its_locks(
    store: Store, migrated_postgres_url: str
) -> None:
    await apply(store, make_definition(), now=at(0))
    frozen = await asyncpg.connect(
        migrated_postgres_url, server_settings=SETTINGS | {"idle_in_transaction_session_timeout": "100ms"}
    )
    await frozen.execute("begin; update task_changes set count = count + 1")

    task = await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(1))

    assert task.state == "paused"
    await until(frozen.is_closed)
