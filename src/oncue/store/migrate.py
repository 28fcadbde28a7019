"""Brings a store's schema up to date: numbered files, never edited, in one transaction, safe when two migrate at once.

A file whose first line is `-- breaking` ends older processes: they refuse a store that is ahead of them by one.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import Any

from oncue.errors import SchemaError
from oncue.store import sql

LOCK = 0x6F6E637565  # "oncue"
PATIENCE = 3600.0  # seconds
LEDGER = """
create table if not exists schema_versions (
    number integer primary key, name text not null, digest text, breaking integer not null
)
"""
SEEN = "select number, name, digest, breaking from schema_versions order by number"


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    @property
    def is_breaking(self) -> bool:
        return self.text.startswith("-- breaking")


def migrations() -> list[Migration]:
    """Return all migrations, in order."""
    folder = resources.files(__package__).joinpath("migrations")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [Migration(int(file.name[:4]), file.name[5:-4], file.read_text()) for file in files]


def outstanding(applied: list[tuple[int, str, str, int]]) -> list[Migration]:
    """Return what a store still lacks. Raises SchemaError: a file was edited, or the store is too far ahead."""
    known = {migration.number: migration for migration in migrations()}
    for number, name, digest, breaking in applied:
        if number not in known and breaking:
            raise SchemaError(f"the store has migration {number} ({name}), newer than this Oncue: upgrade Oncue.")
        if number in known and known[number].digest != digest:
            raise SchemaError(
                f"migration {number} ({name}) is not the one that this store was made with: reinstall Oncue."
            )
    done = {number for number, *_ in applied}
    return [migration for number, migration in known.items() if number not in done]


def migrate_sqlite(connection: sqlite3.Connection, only_check: bool) -> list[str]:
    """Apply what is outstanding on SQLite and return the names."""
    if only_check:
        tables = connection.execute("select 1 from sqlite_master where name = 'schema_versions'").fetchone()
        applied = [tuple(row) for row in connection.execute(SEEN)] if tables else []
        return _refuse(outstanding(applied))
    connection.execute("begin immediate")
    try:
        connection.execute(LEDGER)
        todo = outstanding([tuple(row) for row in connection.execute(SEEN)])
        for migration in todo:
            for statement in _statements(sql.write_words(migration.text, "sqlite")):
                connection.execute(statement)
            connection.execute("insert into schema_versions values (?, ?, ?, ?)", _row(migration))
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise
    return [f"{migration.number:04} {migration.name}" for migration in todo]


async def migrate_postgres(connection: Any, only_check: bool) -> list[str]:
    """Apply what is outstanding on PostgreSQL and return the names; a second migrator waits for the first."""
    if only_check:
        there = await connection.fetchval("select to_regclass('schema_versions') is not null")
        return _refuse(outstanding([tuple(row) for row in await connection.fetch(SEEN)] if there else []))
    async with connection.transaction():
        await connection.execute("set local lock_timeout = 0")
        await connection.execute("select pg_advisory_xact_lock($1)", LOCK, timeout=PATIENCE)
        await connection.execute("set local lock_timeout = '2s'")
        await connection.execute(LEDGER)
        todo = outstanding([tuple(row) for row in await connection.fetch(SEEN)])
        for migration in todo:
            await connection.execute(sql.write_words(migration.text, "postgres"), timeout=PATIENCE)
            await connection.execute("insert into schema_versions values ($1, $2, $3, $4)", *_row(migration))
    return [f"{migration.number:04} {migration.name}" for migration in todo]


def _refuse(todo: list[Migration]) -> list[str]:
    if todo:
        raise SchemaError(f"the store lacks {len(todo)} migration(s), up to {todo[-1].number:04}: run `oncue migrate`.")
    return []


def _row(migration: Migration) -> tuple[int, str, str, int]:
    return migration.number, migration.name, migration.digest, int(migration.is_breaking)


def _statements(text: str) -> list[str]:
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [statement for part in lines.split(";\n") if (statement := part.strip().rstrip(";"))]
