"""The sources of entities: SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from oncue.adapters.databases import PostgresSource, SqliteSource
from oncue.errors import ResolveError
from oncue.testing.conformance.sources import PARAMETERS, SourceConformance, SourceRig

pytestmark = pytest.mark.anyio

ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) as key from n"


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

    async def test_keys_that_differ_by_case_alone_are_both_found_on_two_pages(self, rig: SourceRig) -> None:
        await rig.run("create table member (name text collate nocase)")
        await rig.run("insert into member values ('Ann'), ('ann'), ('ANN')")
        query = "select name as key from member"

        first = await rig.source.page(query, PARAMETERS, cursor=None, limit=1)
        rest = await rig.source.page(query, PARAMETERS, cursor=first.cursor, limit=5)

        assert [entity.key for entity in (*first.entities, *rest.entities)] == ["ANN", "Ann", "ann"]

    async def test_names_in_backticks_and_brackets_are_no_parameters(self, rig: SourceRig) -> None:
        query = "select 1 as key, 2 as `a :b`, 3 as [c :d]"

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=1)

        assert page.entities[0].data == {"a :b": 2, "c :d": 3}

    async def test_text_that_is_no_utf8_spoils_no_page(self, rig: SourceRig) -> None:
        query = "select 1 as key, cast(x'61ff62' as text) as name"

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=1)

        assert page.entities[0].data == {"name": "a\ufffdb"}

    async def test_a_key_with_a_zero_byte_is_rejected(self, rig: SourceRig) -> None:
        page = await rig.source.page("select 'a' || char(0) || 'b' as key", PARAMETERS, cursor=None, limit=1)

        assert [key for key, _ in page.rejected] == ["a\ufffdb"]

    async def test_an_empty_key_is_refused(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match=r"row 1 of the page has an empty key"):
            await rig.source.page("select '' as key", PARAMETERS, cursor=None, limit=1)

    async def test_a_query_without_an_end_is_given_up_in_time(self, rig: SourceRig, tmp_path: Path) -> None:
        source = SqliteSource("app", f"sqlite:///{tmp_path / 'shop.db'}", timeout=timedelta(milliseconds=100))

        with pytest.raises(ResolveError, match=r'source "app".*100 ms'):
            await source.page(ENDLESS, PARAMETERS, cursor=None, limit=1)

    async def test_a_cancelled_query_ends_its_thread(self, rig: SourceRig) -> None:
        before = threading.active_count()
        asking = asyncio.create_task(rig.source.page(ENDLESS, PARAMETERS, cursor=None, limit=1))
        await asyncio.sleep(0)

        asking.cancel()

        await asyncio.gather(asking, return_exceptions=True)
        assert asking.cancelled()
        async with asyncio.timeout(10):
            await asyncio.get_running_loop().shutdown_default_executor()
        assert threading.active_count() <= before

    @pytest.mark.parametrize(
        "spelling",
        [
            "2026-03-28 12:00:30",
            "2026-03-28T12:00:30",
            "2026-03-28 12:00:30.000000",
            "2026-03-28T12:00:30Z",
            "2026-03-28T12:00:30.000Z",
            "2026-03-28T12:00:30+00:00",
            "2026-03-28 12:00:30.000000+00:00",
            "2026-03-28 14:00:30+02:00",
            "2026-03-28T06:30:30-05:30",
            "2026-03-28 12:00:30 UTC",
        ],
    )
    async def test_times_in_any_spelling_are_found_and_the_next_of_them_is(self, rig: SourceRig, spelling: str) -> None:
        await rig.run("create table visit (id integer primary key, starts_at text)")
        await rig.run(f"insert into visit values (1, '{spelling}'), (2, '{spelling.replace('-28', '-29')}')")
        due = datetime(2026, 3, 28, 12, 0, 30, tzinfo=UTC)

        page = await rig.source.window(
            "select id as key, starts_at as due_at from visit",
            {},
            after=due - timedelta(microseconds=1),
            until=due,
            cursor=None,
            limit=9,
        )
        following = "select min(starts_at) from visit where starts_at > :after"

        assert [entity.key for entity in page.entities] == [1]
        assert await rig.source.first(following, after=due) == due + timedelta(days=1)

    @pytest.mark.parametrize("kind", ["integer", "real"])
    async def test_numbers_are_seconds_since_1970(self, rig: SourceRig, kind: str) -> None:
        due = datetime(2026, 3, 28, 12, 0, 30, tzinfo=UTC)
        await rig.run(f"create table visit (id integer primary key, starts_at {kind})")
        await rig.run(f"insert into visit values (1, {due.timestamp():.0f}), (2, {due.timestamp() + 60:.0f})")

        page = await rig.source.window(
            "select id as key, starts_at as due_at from visit",
            {},
            after=due - timedelta(seconds=1),
            until=due,
            cursor=None,
            limit=9,
        )
        following = "select min(starts_at) from visit where starts_at > unixepoch(:after)"

        assert page.dues == {1: due}
        assert await rig.source.first(following, after=due) == due + timedelta(seconds=60)

    async def test_a_row_whose_due_time_is_none_is_rejected_in_each_window_and_its_neighbours_stay(
        self, rig: SourceRig
    ) -> None:
        due = datetime(2026, 3, 28, 12, tzinfo=UTC)
        await rig.run("create table visit (id integer primary key, starts_at)")
        bad = "(1, 'soon'), (2, x'00'), (3, '2026-13-45'), (4, ''), (5, 1e300)"
        await rig.run(f"insert into visit values {bad}, (6, '2026-03-28T12:00:00Z'), (7, null)")

        found, cursor = [], None
        while True:
            page = await rig.source.window(
                "select id as key, starts_at as due_at from visit",
                {},
                after=due - timedelta(seconds=1),
                until=due,
                cursor=cursor,
                limit=2,
            )
            found.append(page)
            cursor = page.cursor
            if cursor is None:
                break

        assert [entity.key for page in found for entity in page.entities] == [6]
        assert sorted(key for page in found for key, _ in page.rejected) == [1, 2, 3, 4]
        assert all(page.dues.get(1) is None for page in found)


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

    async def test_casts_dollar_quotes_escapes_and_nested_comments_hold_no_parameters(self, rig: SourceRig) -> None:
        query = r"""select 1::int as key, $q$it's :a; $q$ as a, E'it\'s :b' as b, $$:c$$ as c /* /* :d */ :e */"""

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=1)

        assert page.entities[0].data == {"a": "it's :a; ", "b": "it's :b", "c": ":c"}

    async def test_a_numbered_parameter_is_refused(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match=r"\$1.*:name"):
            await rig.source.page("select 1 as key where $1 = :due_at", PARAMETERS, cursor=None, limit=1)

    async def test_json_comes_as_what_it_holds(self, rig: SourceRig) -> None:
        query = """select 1 as key, '{"a": [1, null]}'::jsonb as b, '"x"'::json as j, null::json as n"""

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=1)

        assert page.entities[0].data == {"b": {"a": [1, None]}, "j": "x", "n": None}

    async def test_other_types_become_text_or_numbers(self, rig: SourceRig) -> None:
        query = """select 12::numeric as key, 1.50::numeric as price, '2026-03-28 09:00+02'::timestamptz as at,
            '\\x00ff'::bytea as raw, array[1, 2] as list, 'a'::"char" as letter"""

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=1)

        assert page.entities[0].key == 12
        assert page.entities[0].data == {
            "price": "1.50",
            "at": "2026-03-28T07:00:00+00:00",
            "raw": "AP8=",
            "list": [1, 2],
            "letter": page.entities[0].data["letter"],
        }

    @pytest.mark.parametrize("key", ["id", "id::bigint", "id::numeric", "id::text", "id::smallint"])
    async def test_keys_of_each_type_are_paged_and_asked_for(self, rig: SourceRig, key: str) -> None:
        query = f"select {key} as key from generate_series(1, 5) id"

        first = await rig.source.page(query, PARAMETERS, cursor=None, limit=3)
        rest = await rig.source.page(query, PARAMETERS, cursor=first.cursor, limit=3)
        asked = await rig.source.ask(query, PARAMETERS, keys=["4", "x"])

        assert [str(entity.key) for entity in (*first.entities, *rest.entities)] == ["1", "2", "3", "4", "5"]
        assert [str(entity.key) for entity in asked] == ["4"]

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("timestamptz", "2026-03-28T09:00:00+02:00"),
            ("timestamptz", "2026-03-28T07:00:00"),
            ("timestamp", "2026-03-28T07:00:00Z"),
            ("numeric", "12.50"),
            ("float8", "12.5"),
            ("uuid", "6f0f7a6e-0000-4000-8000-000000000001"),
            ("int8", "42"),
            ("int8", 42.0),
            ("text", 42),
        ],
    )
    async def test_an_events_values_are_bound_as_each_type(self, rig: SourceRig, kind: str, text: object) -> None:
        parameters = {**PARAMETERS, "event_value": text}

        page = await rig.source.page(
            f"select 1 as key where :event_value::{kind} is not null", parameters, cursor=None, limit=1
        )

        assert len(page.entities) == 1

    @pytest.mark.parametrize("kind", ["timestamptz", "date", "numeric", "uuid", "int4", "bool", "int4[]"])
    async def test_a_value_of_another_type_is_named_and_not_shown(self, rig: SourceRig, kind: str) -> None:
        query = f"select 1 as key where :event_value::{kind} is not null"

        with pytest.raises(ResolveError, match=":event_value") as raised:
            await rig.source.page(query, {**PARAMETERS, "event_value": "zoe@example"}, cursor=None, limit=1)

        assert "zoe@example" not in str(raised.value)

    async def test_a_query_that_is_too_slow_is_ended_by_the_server(self, rig: SourceRig, postgres_url: str) -> None:
        source = PostgresSource("app", postgres_url, timeout=timedelta(milliseconds=100))

        with pytest.raises(ResolveError, match=r'source "app".*statement timeout'):
            await source.page("select 1 as key from pg_sleep(60)", PARAMETERS, cursor=None, limit=1)

        await source.close()

    async def test_through_a_pooler_no_statement_has_a_name(self, rig: SourceRig, postgres_url: str) -> None:
        source = PostgresSource("app", f"{postgres_url}?pooler=true")
        query = "select row_number() over () as key, name from pg_prepared_statements where name <> ''"

        page = await source.page(query, PARAMETERS, cursor=None, limit=10)

        assert page.entities == ()
        await source.close()

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
