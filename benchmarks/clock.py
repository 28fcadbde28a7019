"""The clock: fires a second in batches, and lateness from the due moment to the committed run.

Every database that is measured is made for it and dropped. PostgreSQL runs with its own settings, fsync on.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any
from uuid import uuid4

import asyncpg

from oncue.definition import Misfire
from oncue.engine.clock import Clock
from oncue.engine.loop import Loop
from oncue.model import Timing
from oncue.store import codec
from oncue.store.base import Store
from oncue.store.postgres import PostgresDatabase
from oncue.store.sqlite import SqliteDatabase, write_time
from oncue.zonedata import edition

ADMIN = os.environ.get("ONCUE_BENCH_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
COLUMNS = "task_id, task_uuid, task_version, version, state, next_at, last_due_at, timing, zone_data"
FAR = timedelta(days=365)


class Timed(Store):
    """A store that notes for each fired schedule how long after its due time its run was committed."""

    def __init__(self, database: Any) -> None:
        super().__init__(database)
        self.now = lambda: datetime.now(UTC)
        self.lateness: list[float] = []

    async def write(self, verb: Any, *args: Any, **kwargs: Any) -> Any:
        answer = await super().write(verb, *args, **kwargs)
        if verb.__name__ == "record_firings":
            now = self.now()
            self.lateness += [(now - firing.runs[0].due_at).total_seconds() for firing in args[0] if firing.runs]
        return answer


def timing(every: timedelta, anchor: datetime) -> str:
    schedule = {"every": f"{int(every.total_seconds())}s"}
    return codec.write_timing(Timing(schedule, anchor, Misfire(), "skip"))


async def seed(store: Store, dues: Sequence[datetime], *, every: timedelta, anchor: datetime) -> None:
    """Store one schedule for each due time."""
    text = timing(every, anchor)
    rows = [(number, uuid4(), 1, 1, "active", due, None, text, edition()) for number, due in enumerate(dues, 1)]
    if isinstance(store.database, SqliteDatabase):
        store.database._connect("writer")  # opened here, used by the writer thread alone from now on
        connection = store.database._connections["writer"]
        connection.execute("begin")
        marks = ", ".join("?" * 9)
        connection.executemany(
            f"insert into schedules ({COLUMNS}) values ({marks})",
            (
                (n, str(uuid), tv, v, state, write_time(due), last, text, data)
                for n, uuid, tv, v, state, due, last, text, data in rows
            ),
        )
        connection.execute("commit")
        connection.execute("analyze")
        return
    async with store.database._connection() as connection:
        await connection.copy_records_to_table("schedules", records=rows, columns=COLUMNS.split(", "))
        await connection.execute("analyze schedules", timeout=120)


@asynccontextmanager
async def fresh(kind: str) -> AsyncIterator[Timed]:
    """Yield a store of its own on PostgreSQL or SQLite."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            store = Timed(SqliteDatabase(f"{folder}/bench.db"))
            await store.database.migrate()
            yield store
            await store.close()
        return
    name = f"oncue_bench_{uuid4().hex[:8]}"
    admin = await asyncpg.connect(ADMIN)
    await admin.execute(f"create database {name}")
    store = Timed(PostgresDatabase(ADMIN.rpartition("/")[0] + f"/{name}"))
    try:
        await store.database.migrate()
        yield store
    finally:
        await store.close()
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()


async def rate(kind: str, stored: int, *, fires: int = 20_000) -> float:
    """Return fires a second in batches: `stored` schedules, a thousand of them due at each simulated second."""
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=12)
    every = timedelta(seconds=max(1, stored // 1000))
    async with fresh(kind) as store:
        dues = [start + timedelta(seconds=1 + number % int(every.total_seconds())) for number in range(stored)]
        await seed(store, dues, every=every, anchor=start)
        clock = Clock(store, ahead=timedelta(seconds=1))
        await clock.step(start)
        begun, second = monotonic(), 0
        while len(store.lateness) < fires:
            second += 1
            now = start + timedelta(seconds=second)
            wanted = len(store.lateness) + 1000
            while len(store.lateness) < wanted:
                await clock.step(now)
        return len(store.lateness) / (monotonic() - begun)


async def lateness(kind: str, dues_after: Sequence[float]) -> dict[str, float]:
    """Return p50, p99 and max lateness in milliseconds for schedules due so many seconds after the start."""
    async with fresh(kind) as store:
        loop = Loop(store)
        start = datetime.now(UTC) + timedelta(seconds=3 + len(dues_after) / 20_000)
        await seed(store, [start + timedelta(seconds=after) for after in dues_after], every=FAR, anchor=start)
        store.now = loop.now
        running = asyncio.create_task(loop.run([Clock(store)], drain=timedelta(seconds=1)))
        deadline = monotonic() + 60
        while len(store.lateness) < len(dues_after) and monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        loop.stop()
        await running
    ordered = sorted(store.lateness)
    assert len(ordered) == len(dues_after), f"{len(ordered)} of {len(dues_after)} fired"
    pick = lambda share: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 2)  # noqa: E731
    return {"p50_ms": pick(0.5), "p99_ms": pick(0.99), "max_ms": pick(1.0)}


def spread(rate: int, seconds: int) -> list[float]:
    return [number / rate for number in range(rate * seconds)]


async def measure(kinds: Sequence[str] = ("postgres", "sqlite"), *, million: bool = True) -> dict[str, Any]:
    """Return all figures of the clock."""
    figures: dict[str, Any] = {}
    for kind in kinds:
        found: dict[str, Any] = {"fires_per_second_1k_stored": round(await rate(kind, 1_000))}
        if million:
            found["fires_per_second_1m_stored"] = round(await rate(kind, 1_000_000))
            found["ratio_1m_to_1k"] = round(
                found["fires_per_second_1m_stored"] / found["fires_per_second_1k_stored"], 2
            )
        found["lateness_100_per_second"] = await lateness(kind, spread(100, 10))
        found["lateness_1000_per_second"] = await lateness(kind, spread(1000, 10))
        found["lateness_10000_at_one_instant"] = await lateness(kind, [0.0] * 10_000)
        figures[kind] = found
    return figures
