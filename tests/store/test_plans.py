"""What the planners make of each statement on a store of some size: the index that its comment names, and no scan."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import resources
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from oncue.store import migrate, sql
from oncue.store.sqlite import _bind
from tests import services
from tests.store import seed

NOW = seed.NOW
MIGRATIONS = (resources.files("oncue.store") / "migrations").iterdir()
INDEXES = {name for file in MIGRATIONS for name in re.findall(r"create (?:unique )?index (\w+)", file.read_text())}
TEXT = (resources.files("oncue.store") / "queries.sql").read_text()
BATCH = 500

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Served:
    """A statement with what its comment says: the indexes that serve it, each with those that would do as well."""

    name: str
    body: str
    indexes: tuple[frozenset[str], ...]

    def missing(self, used: Collection[str]) -> list[frozenset[str]]:
        return [choice for choice in self.indexes if not choice.intersection(used)]


def served() -> list[Served]:
    """Return the statements whose comment names what serves them."""
    found = []
    for name, text in re.findall(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", TEXT, re.M | re.S):
        comment = " ".join(line[3:] for line in text.splitlines() if line.startswith("--"))
        body = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        sentence = re.search(r"(?:Served|[Jj]oined) by ([^.;:]*)", comment)
        if sentence and not body.lstrip().startswith("insert"):
            choices = [_named(part) for part in re.split(r",| and ", sentence[1])]
            found.append(Served(name, body, tuple(choice for choice in choices if choice)))
    return found


def _named(text: str) -> frozenset[str]:
    return frozenset(INDEXES.intersection(re.findall(r"\w+", text)) | set(re.findall("primary key", text)))


def parameters(statement: sql.Statement, body: str, *, batch: int = BATCH) -> dict[str, Any]:
    """Return parameters such as a busy store gives."""
    made: dict[str, Any] = {name: _value(name, body) for name in statement.names}
    ids = list(range(1, batch + 1))
    if found := re.search(r"\{each:ids (\w+)\}", body):
        made["ids"] = [seed._uuid(4, number) for number in ids] if found[1] == "uuid" else ids
    if found := re.search(r"\{rows:([^}]+)\}", body):
        fields = [field.split() for field in found[1].split(",")]
        made["rows"] = [tuple(_field(name, kind, number) for name, kind in fields) for number in ids]
    return made


def _value(name: str, body: str) -> Any:
    if name == "before" and "id < :before" in body:
        return 2**62
    moments = {
        "now": 0,
        "until": 2,
        "after_at": -5,
        "first": -3600,
        "after": -3600,
        "held": 5,
        "look_at": 60,
        "last": 0,
        "before": -86_400,
        "ready_at": 0,
    }
    words = {
        "name": "task-77",
        "seen": "running",
        "reason": "test",
        "pattern": '%{"name":"holidays",%',
        "verb": "reckon",
    }
    numbers = {
        "id": 77,
        "task_id": 77,
        "backfill_id": 7,
        "run_id": 77,
        "after_id": 0,
        "fence": 1,
        "requeue_id": 5,
        "version": 1,
        "touched": 9,
    }
    if name == "limit":
        return 50 if "delete" in body else BATCH  # as a thousand is to a table of millions
    if name == "seen" and "sent = :seen" in body:
        return 3
    if name == "never":
        return seed.NEVER
    if name in moments:
        return NOW + timedelta(seconds=moments[name])
    if name in ("uuid", "message_id"):
        return seed._uuid(4, 77)
    return numbers.get(name, words.get(name))


def _field(name: str, kind: str, number: int) -> Any:
    match kind:
        case "time":
            return NOW
        case "uuid":
            return UUID(int=number)
        case "bool":
            return False
        case "text":
            return {"state": "active", "source": "shop"}.get(name, f"e{number}")
        case _:
            return number


# Where the table is small, or what is asked for is the greater part of it, a scan is right.
SCANS = {"backfills", "calendars", "components", "followed", "requeues", "clock_samples", "task_changes"}


@pytest.fixture(scope="module")
def seeded_postgres(postgres_server: services.Postgres) -> Iterator[str]:
    """A hundred thousand tasks, twice as many runs, analyzed."""
    url = postgres_server.make_database()
    asyncio.run(_seed_postgres(url))
    yield url
    postgres_server.drop_database(url)


async def _seed_postgres(url: str) -> None:
    connection = await asyncpg.connect(url, server_settings={"synchronous_commit": "off"})
    await migrate.migrate_postgres(connection, only_check=False)
    for table, (columns, rows) in seed.tables(1).items():
        await connection.copy_records_to_table(table, records=rows, columns=columns)
    await connection.execute("vacuum analyze")
    await connection.close()


@pytest.fixture(scope="module")
def seeded_sqlite() -> Iterator[sqlite3.Connection]:
    """Ten thousand tasks, twice as many runs; not analyzed, as SQLite stores are not."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate.migrate_sqlite(connection, only_check=False)
    for table, (columns, rows) in seed.tables(0.1).items():
        places = ", ".join(f":{column}" for column in columns)
        bound = [_bind(dict(zip(columns, row, strict=True))) for row in rows]
        connection.executemany(f"insert into {table} ({', '.join(columns)}) values ({places})", bound)
    yield connection
    connection.close()


async def _custom_plan(url: str, statement: sql.Statement, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(url)
    text = f"explain (format json) {statement.text}"
    plan = await connection.fetchval(text, *statement.arguments(given))
    await connection.close()
    return _nodes(json.loads(plan)[0]["Plan"])


async def _generic_plan(url: str, statement: sql.Statement) -> list[dict[str, Any]]:
    """Return the plan that serves after the first five times, whatever the parameters."""
    connection = await asyncpg.connect(url)
    await connection.execute("set plan_cache_mode = force_generic_plan")
    await connection.execute(f"prepare asked as {statement.text}")
    count = await connection.fetchval(
        "select cardinality(parameter_types) from pg_prepared_statements where name = 'asked'"
    )
    arguments = f"({', '.join(['null'] * count)})" if count else ""
    plan = await connection.fetchval(f"explain (format json) execute asked{arguments}")
    await connection.close()
    return _nodes(json.loads(plan)[0]["Plan"])


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", ()) for node in _nodes(child))]


def _scanned(nodes: list[dict[str, Any]]) -> set[str]:
    return {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"} - SCANS


def _used(nodes: list[dict[str, Any]]) -> set[str]:
    used = {node["Index Name"] for node in nodes if "Index Name" in node}
    return used | {"primary key" for index in used if index.endswith("_pkey")}


def planned() -> Iterator[tuple[str, Served]]:
    """Yield (kind of plan, statement). What is deleted a batch at a time keeps to custom plans, which are cheaper."""
    for one in served():
        yield "custom", one
        if not one.name.startswith("delete_"):
            yield "generic", one


@pytest.mark.parametrize(("kind", "one"), [pytest.param(*pair, id=f"{pair[1].name}-{pair[0]}") for pair in planned()])
async def test_postgres_uses_the_index_that_the_comment_names(seeded_postgres: str, kind: str, one: Served) -> None:
    statement = sql.load("postgres")[one.name]

    if kind == "custom":
        nodes = await _custom_plan(seeded_postgres, statement, parameters(statement, one.body))
    else:
        nodes = await _generic_plan(seeded_postgres, statement)

    assert _scanned(nodes) == set()
    if {node["Relation Name"] for node in nodes if "Relation Name" in node} - SCANS:
        assert one.missing(_used(nodes)) == []


@pytest.mark.parametrize("batch", [1, 100, BATCH])
async def test_schedules_are_advanced_by_primary_key_however_many_are_due_at_one_instant(
    seeded_postgres: str, batch: int
) -> None:
    """Joined through schedules_due, each of them would visit all that are due at that instant."""
    (one,) = (one for one in served() if one.name == "advance_schedules")
    statement = sql.load("postgres")["advance_schedules"]

    nodes = await _custom_plan(seeded_postgres, statement, parameters(statement, one.body, batch=batch))

    assert (_used(nodes), _scanned(nodes)) == ({"schedules_pkey", "primary key"}, set())


@pytest.mark.parametrize("one", served(), ids=lambda one: one.name)
def test_sqlite_uses_the_index_that_the_comment_names(seeded_sqlite: sqlite3.Connection, one: Served) -> None:
    statement = sql.load("sqlite")[one.name]

    bound = _bind(parameters(statement, one.body))
    plan = [row[3] for row in seeded_sqlite.execute(f"explain query plan {statement.text}", bound)]

    lines = " ".join(plan).replace("INTEGER PRIMARY KEY", "primary key").replace("sqlite_autoindex", "primary key")
    scans = [
        line
        for line in plan
        if re.match(r"SCAN (?!rows|json_each|picked|counted|\(|backfills|calendars|components|followed|requeues)", line)
    ]
    assert [line for line in scans if "USING" not in line and not line.startswith("SCAN CONSTANT")] == []
    used = {word for choice in one.indexes for word in choice if word in lines}
    assert one.missing(used) == []
