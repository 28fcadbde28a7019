"""Stores on empty databases, migrated or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from oncue.store.base import Store
from tests import services
from tests.store.opening import open_store


async def _migrate(url: str) -> None:
    store = open_store(url)
    await store.database.migrate()
    await store.close()


async def _loosen(url: str) -> None:
    """Let commits be fast: these tests do not pull the plug."""
    connection = await asyncpg.connect(url)
    await connection.execute(f'alter database "{urlsplit(url).path[1:]}" set synchronous_commit = off')
    await connection.close()


async def _empty(url: str) -> None:
    """Empty all tables but those of one row. Deleted, not truncated: that would sync some forty files."""
    connection = await asyncpg.connect(url)
    found = await connection.fetch("select tablename from pg_tables where schemaname = 'public'")
    tables = {row["tablename"] for row in found} - {"schema_versions", "task_changes"}
    await connection.execute("".join(f"delete from {table};" for table in sorted(tables)))
    await connection.close()


@pytest.fixture(scope="session")
def emptied_postgres_url(postgres_server: services.Postgres) -> Iterator[str]:
    """A database that is migrated, for all tests of this session: making one takes ten times as long as emptying it."""
    url = postgres_server.make_database()
    asyncio.run(_migrate(url))
    asyncio.run(_loosen(url))
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def migrated_postgres_url(emptied_postgres_url: str) -> str:
    asyncio.run(_empty(emptied_postgres_url))
    return emptied_postgres_url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("template") / "oncue.db"
    asyncio.run(_migrate(f"sqlite:///{path}"))
    return path.read_bytes()


@pytest.fixture
def migrated_sqlite_url(sqlite_template: bytes, tmp_path: Path) -> str:
    path = tmp_path / "oncue.db"
    path.write_bytes(sqlite_template)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgres"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """Each kind of store in turn, migrated."""
    url: str = request.getfixturevalue(f"migrated_{request.param}_url")
    return url


@pytest.fixture
async def store(migrated_url: str) -> AsyncIterator[Store]:
    opened = open_store(migrated_url)
    yield opened
    await opened.close()


@pytest.fixture
async def empty_store(store_url: str) -> AsyncIterator[Store]:
    opened = open_store(store_url)
    yield opened
    await opened.close()
