"""All that a run needs, real and driven by hand: a store, a shop's database, a worker that answers, and a time."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from oncue.adapters.registry import Adapters
from oncue.config import Config, SourceConfig
from oncue.definition import Definition, HttpTarget, SqlResolver
from oncue.engine.clock import Clock
from oncue.engine.dispatcher import Dispatcher, Limits
from oncue.engine.failures import Failures
from oncue.engine.follow import Follow
from oncue.engine.handover import Handover
from oncue.engine.ingest import Ingest
from oncue.engine.loop import Component
from oncue.model import DeadLetter, Delivery, Run, RunId
from oncue.store import failures, runs, tasks, watch
from oncue.store.base import Database, Store

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)
ALL = "select id as key, email from trial"


@dataclass(slots=True)
class Worker:
    """Takes webhooks and keeps what it took: (key, message id, body). `answer` gives the status for a key."""

    url: str = ""
    took: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: Callable[[str], int] = lambda _key: 200
    gate: asyncio.Event | None = None

    @property
    def keys(self) -> list[str]:
        return [key for key, _, _ in self.took]

    @property
    def ids(self) -> dict[str, set[str]]:
        return {key: {message for one, message, _ in self.took if one == key} for key in self.keys}

    async def take(self, request: web.Request) -> web.Response:
        key = request.headers["oncue-key"]
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.took.append((key, request.headers["oncue-message"], json.loads(await request.read())))
        if self.gate is not None:
            await self.gate.wait()
        return web.Response(status=self.answer(key))


class Stage:
    """A store and one of each component, over a time that only moves when a test moves it."""

    def __init__(self, database: Database, shop: Path, worker: Worker) -> None:
        self.now = NOON
        self.worker = worker
        self.shop = shop
        self.store = Store(database)
        self.config = Config(source={"app": SourceConfig(f"sqlite:///{shop}")})
        self.adapters = Adapters(self.config)
        self.handover = Handover(self.store, self.adapters, now=lambda: self.now, page=2)
        self.follow = self.another_follow()
        self.clock = Clock(self.store, follow=self.follow)
        self.dispatcher = self.another_dispatcher()
        self.ingest = Ingest(self.store, self.handover, now=lambda: self.now, lease=LEASE)
        self.failures = Failures(self.store, self.adapters, now=lambda: self.now)

    def another_dispatcher(self) -> Dispatcher:
        return Dispatcher(self.store, self.handover, now=lambda: self.now, limits=Limits(lease=LEASE))

    def another_follow(self) -> Follow:
        return Follow(self.store, self.handover, self.adapters, now=lambda: self.now)

    def definition(self, name: str = "greet", **changes: Any) -> Definition:
        """A task that posts each trial to the worker, each minute."""
        plain = Definition(
            name,
            HttpTarget(self.worker.url, concurrency=2),
            schedule={"cron": "* * * * *"},
            resolve=SqlResolver(ALL, "app"),
        )
        return replace(plain, **changes)

    async def apply(self, *definitions: Definition) -> None:
        await self.store.write(tasks.apply, definitions, prune=False, actor="test", now=self.now)

    def write(self, sql: str) -> None:
        """Change the shop's data, as the shop does."""
        connection = sqlite3.connect(self.shop)
        with connection:
            connection.executescript(sql)
        connection.close()

    def advance(self, **duration: float) -> datetime:
        self.now += timedelta(**duration)
        return self.now

    async def tick(self) -> None:
        """Let the clock fire all that is due."""
        while (next_at := await self.clock.step(self.now)) is not None and next_at <= self.now:
            pass

    async def dispatch(self, dispatcher: Dispatcher | None = None) -> None:
        """Let a dispatcher carry out all that is ready."""
        dispatcher = dispatcher or self.dispatcher
        for _ in range(50):
            next_at = await dispatcher.step(self.now)
            was_idle = not dispatcher._tasks
            await dispatcher.idle()
            if was_idle and (next_at is None or next_at > self.now):
                return
        raise AssertionError("the dispatcher finds no end")

    async def fire_next(self) -> None:
        """Go to the next minute, fire what is due, and carry it out."""
        self.now = self.now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        await self.tick()
        await self.dispatch()

    async def step(self, component: Component) -> None:
        await component.step(self.now)

    async def runs(self) -> list[Run]:
        """All runs, in the order in which they were made."""
        found = await self.store.read(runs.latest, task_id=None, state=None, before=None, limit=1000)
        return found[::-1]

    async def states(self) -> list[str]:
        return [run.state for run in await self.runs()]

    async def deliveries(self, run_id: RunId) -> list[Delivery]:
        return await self.store.read(runs.deliveries, run_id, limit=1000)

    async def letters(self) -> list[DeadLetter]:
        return await self.store.read(failures.latest, task=None, state=None, before=None, limit=1000)

    async def ledger(self) -> Counter[str]:
        totals: Counter[str] = Counter()
        for task in await self.store.read(tasks.every):
            entries = await self.store.read(
                watch.ledger, task.id, first=NOON - timedelta(days=999), last=self.now, limit=1000
            )
            for entry in entries:
                totals[entry["verdict"]] += entry["count"]
        return totals

    async def close(self) -> None:
        """End what is under way first: it would open adapters again."""
        if self.worker.gate is not None:
            self.worker.gate.set()
        await self.ingest.drain()
        await self.follow.drain()
        await self.dispatcher.drain()
        await self.failures.drain()
        await self.adapters.close()
        await self.store.close()


@asynccontextmanager
async def worker() -> AsyncIterator[Worker]:
    made = Worker()
    application = web.Application()
    application.router.add_post("/hook", made.take)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield made
    await runner.cleanup()
