"""Every named statement is asked for with its parameters, prepares on each database, and says what serves it."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import asyncpg
import pytest

from oncue.store import migrate, sql
from oncue.store.postgres import PostgresDatabase

STORE = Path(str(resources.files("oncue.store")))
TEXTS = {
    name: text
    for file in ("queries.sql", "sqlite.sql", "postgres.sql")
    for name, text in re.findall(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", (STORE / file).read_text(), re.M | re.S)
}
MIGRATIONS = "\n".join(file.read_text() for file in sorted((STORE / "migrations").glob("*.sql")))
INDEXES = set(re.findall(r"create (?:unique )?index (\w+)", MIGRATIONS))
SERVED = re.compile(
    r"Served by|By the primary key|[Oo]ne row by primary key|Joined by primary key"
    r"|All (?:tasks|schedules|calendars|of them)"
    r"|As \w+, |The one statement|The host"
)


def _trees() -> Iterator[ast.AST]:
    for file in STORE.glob("*.py"):
        yield ast.parse(file.read_text())


def _asks() -> list[tuple[str, set[str] | None]]:
    """Return the name of each statement that is asked for by a literal, with the parameters that it is given."""
    found: list[tuple[str, set[str] | None]] = []
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ask":
                names = {keyword.arg for keyword in node.keywords}
                if isinstance(node.args[0], ast.Constant):
                    given = None if None in names else {name for name in names if name}
                    found.append((str(node.args[0].value), given))
    return found


def test_every_statement_is_used() -> None:
    words = {
        node.value
        for tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert sorted(set(TEXTS) - words) == []


def test_every_statement_that_is_asked_for_exists() -> None:
    assert sorted({name for name, _ in _asks()} - set(TEXTS)) == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_statement_is_given_its_parameters_and_no_others(dialect: sql.Dialect) -> None:
    statements = sql.load(dialect)
    wrong = {
        name: (given, statements[name].names)
        for name, given in _asks()
        if given is not None and given != set(statements[name].names) and name != "read_clock"
    }

    assert wrong == {}


def test_no_statement_names_a_state_by_itself() -> None:
    """States stand in SQL as words that the table of moves fills in."""
    literal = re.compile(r"\bstate\s*(?:=|<>|in)\s*\(?'")

    assert [name for name, text in TEXTS.items() if literal.search(text)] == []


def test_every_statement_that_reads_or_changes_rows_says_which_index_serves_it() -> None:
    silent = [
        name
        for name, text in TEXTS.items()
        if re.search(r"\bwhere (?!true)|^from \w", text, re.M) and not SERVED.search(text)
    ]

    assert silent == []


def test_every_index_that_a_comment_names_exists_and_every_index_is_named() -> None:
    tables = {index.rpartition("_")[0] for index in INDEXES}
    comments = "\n".join(line for text in TEXTS.values() for line in text.splitlines() if line.startswith("--"))
    named = {word for word in re.findall(r"\b[a-z]+_[a-z_]+\b", comments) if word.rpartition("_")[0] in tables}
    unique = {"tasks_uuid", "dead_letters_identity", "cues_key", "cues_due"}  # they hold rows apart

    assert named - INDEXES - set(TEXTS) == set()
    assert INDEXES - named == unique


def test_every_statement_prepares_on_sqlite() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate.migrate_sqlite(connection, only_check=False)

    for statement in sql.load("sqlite").values():
        connection.execute(f"explain {statement.text}", dict.fromkeys(statement.names))

    connection.close()


@pytest.mark.anyio
async def test_every_statement_prepares_on_postgres(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    await database.migrate()
    await database.close()
    connection = await asyncpg.connect(postgres_url)

    for statement in sql.load("postgres").values():
        await connection.prepare(statement.text)

    await connection.close()
