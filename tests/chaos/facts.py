"""What a store holds, read by plain SQL that is not Oncue's own, with times, ids and JSON as Python has them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

Rows = list[dict[str, Any]]
TABLES = ("tasks", "schedules", "definitions", "runs", "deliveries", "dead_letters", "requeues", "ledger", "events")
TIMES = ("_at",)
JSON = {"key_json", "definition", "timing"}


@dataclass
class Facts:
    """All rows of a store at one moment, by table, and that moment by the store's clock."""

    now: datetime
    tasks: Rows
    schedules: Rows
    definitions: Rows
    runs: Rows
    deliveries: Rows
    dead_letters: Rows
    requeues: Rows
    ledger: Rows
    events: Rows

    def task_name(self, task_id: int) -> str:
        return next(str(task["name"]) for task in self.tasks if task["id"] == task_id)


async def read_facts(url: str) -> Facts:
    """Read everything in one transaction."""
    if url.startswith("sqlite"):
        return _read_sqlite(url.removeprefix("sqlite:///"))
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            tables = {table: await connection.fetch(f"select * from {table} order by 1") for table in TABLES}
            now = await connection.fetchval("select clock_timestamp()")
    finally:
        await connection.close()
    return Facts(now=now, **{table: [_plain(row) for row in rows] for table, rows in tables.items()})


def _read_sqlite(path: str) -> Facts:
    connection = sqlite3.connect(path, timeout=10, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("begin")
        tables = {table: connection.execute(f"select * from {table} order by 1").fetchall() for table in TABLES}
    finally:
        connection.close()
    now = datetime.now(UTC)
    return Facts(now=now, **{table: [_plain(dict(row)) for row in rows] for table, rows in tables.items()})


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str):
        return value
    if name.endswith(TIMES):
        return datetime.fromisoformat(value)
    return json.loads(value) if name in JSON else value
