"""The sources of entities: SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from oncue.adapters.databases import PostgresSource, SqliteSource
from oncue.errors import ResolveError
from oncue.testing.conformance.sources import PARAMETERS, SourceConformance, SourceRig

pytestmark = pytest.mark.anyio


class TestSqliteSource(SourceConformance):
    @pytest.fixture
    async def rig(self, tmp_path: Path) -> AsyncIterator[SourceRig]:
        path = tmp_path / "shop.db"

        async def run(sql: str) -> None:
            await asyncio.to_thread(self._run, path, sql)

        await run("create table empty_one (x)")
        return SourceRig(SqliteSource("app", f"sqlite:///{path}"), run)

    @staticmethod
    def _run(path: Path, sql: str) -> None:
        connection = sqlite3.connect(path)
        with connection:
            connection.executescript(sql)
        connection.close()


class TestPostgresSource(SourceConformance):
    @pytest.fixture
    async def rig(self, postgres_url: str) -> AsyncIterator[SourceRig]:
        connection = await asyncpg.connect(postgres_url)
        source = PostgresSource("app", postgres_url)

        async def run(sql: str) -> None:
            await connection.execute(sql)

        yield SourceRig(source, run)
        await source.close()
        await connection.close()

    async def test_uuid_keys_are_paged_and_asked_for(self, rig: SourceRig) -> None:
        ids = sorted(uuid4() for _ in range(3))
        await rig.run("create table member (id uuid primary key)")
        await rig.run(f"insert into member values ('{ids[0]}'), ('{ids[1]}'), ('{ids[2]}')")
        query = "select id as key from member where '12:00'::time > '11:00'::time"

        first = await rig.source.page(query, PARAMETERS, cursor=None, limit=2)
        second = await rig.source.page(query, PARAMETERS, cursor=first.cursor, limit=2)
        asked = await rig.source.ask(query, PARAMETERS, keys=[str(ids[1])])

        assert [entity.key for entity in second.entities] == [str(ids[2])]
        assert [entity.key for entity in asked] == [str(ids[1])]

    async def test_times_are_bound_as_the_column_wants_them(self, rig: SourceRig) -> None:
        query = """select 1 as key where cast(:due_at as timestamptz) = '2026-03-28 07:00+00'
            and cast(:due_at as timestamp) = '2026-03-28 07:00' and cast(:due_date as text) = '2026-03-28'"""

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=2)

        assert len(page.entities) == 1


@pytest.mark.parametrize(
    "source",
    [
        SqliteSource("app", "sqlite:////nowhere/at/all.db"),
        PostgresSource("app", "postgresql://nobody:secret-word@127.0.0.1:1/app"),
    ],
)
async def test_a_source_that_is_down_is_named_without_its_password(source: SqliteSource | PostgresSource) -> None:
    with pytest.raises(ResolveError, match='source "app"') as raised:
        await source.page("select 1 as key", PARAMETERS, cursor=None, limit=1)

    assert "secret-word" not in str(raised.value)
