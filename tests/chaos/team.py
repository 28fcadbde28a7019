"""A team that uses Oncue: a shop's database, tasks, workers with logs of their own, and components as processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import aiohttp

from oncue.app import Oncue
from oncue.config import load_config
from oncue.definition import (
    BrokerTarget,
    Definition,
    EventResolver,
    HttpTarget,
    Misfire,
    Overlap,
    Retry,
    SqlResolver,
    Subscription,
)
from oncue.errors import Conflict
from oncue.store import failures
from oncue.testing.until import until
from tests.chaos.checker import OPEN_DELIVERIES, OPEN_RUNS, Accepted, Expected, Received, violations
from tests.chaos.facts import Facts, read_facts
from tests.free_port import free_port
from tests.processes import Process, StartProcess

COMPONENTS = ("clock", "ingest", "dispatcher", "failures", "watch")
EVERY_SECOND = {"cron": "* * * * * *"}
KEYS = tuple(f"e{number}" for number in range(1, 8))
TIMEOUT = timedelta(seconds=3)
RETRY = Retry(attempts=3, first=timedelta(seconds=0.3), cap=timedelta(seconds=1))
SETTINGS = """\
store = "{store}"

[source.shop]
url = "sqlite:///{shop}"

[dispatcher]
page = 3
lease = "1500ms"
drain = "{drain}"

[watch]
every = "1s"
"""
BROKER = """
[broker.main]
url = "{url}"
dead_letters = ["{queue}.dead"]
"""


@dataclass
class Team:
    """One store with its configuration file, and what was started over it."""

    store: str
    folder: Path
    start_process: StartProcess
    config: Path
    worker: str
    log: Path
    port: int = field(default_factory=free_port)
    other_ports: list[int] = field(default_factory=list)
    expected: Expected = field(default_factory=Expected)
    received: list[Received] = field(default_factory=list)

    @classmethod
    async def open(
        cls,
        store: str,
        folder: Path,
        start_process: StartProcess,
        *,
        amqp: str | None = None,
        queue: str = "",
        drain: str = "10s",
    ) -> Self:
        """Make the shop's database, the configuration, an HTTP worker, and the store's tables."""
        shop = folder / "shop.db"
        with contextlib.closing(sqlite3.connect(shop)) as connection, connection:
            connection.execute("create table customer (id text primary key)")
            connection.executemany("insert into customer values (?)", [(key,) for key in KEYS])
            connection.execute("create table cue (key text primary key, due_at text)")
        config = folder / "oncue.toml"
        text = SETTINGS.format(store=store, shop=shop, drain=drain)
        config.write_text(text + (BROKER.format(url=amqp, queue=queue) if amqp else ""))
        port = free_port()
        worker = start_process(
            sys.executable, "-m", "tests.chaos.worker", str(port), folder, name="worker", cwd=Path.cwd()
        )
        await worker.ready("^listening")
        log = folder / "work.jsonl"
        team = cls(store, folder, start_process, config, f"http://127.0.0.1:{port}/work", log)
        async with team.app() as app:
            await app.store.database.migrate()
        return team

    @contextlib.asynccontextmanager
    async def app(self) -> AsyncIterator[Oncue]:
        """Oncue in this process, as the command line uses it."""
        app = Oncue(load_config(self.config))
        try:
            yield app
        finally:
            await app.close()

    async def apply(self, *definitions: Definition) -> None:
        async with self.app() as app:
            await app.apply(definitions)

    def pages(
        self,
        name: str = "pages",
        *,
        query: str = "",
        overlap: Overlap = "skip",
        timeout: timedelta = TIMEOUT,
        **more: Any,
    ) -> Definition:
        """A task that is due each second and concerns everybody, in several pages."""
        self.expected.entities[name] = frozenset(KEYS)
        if overlap != "allow":
            self.expected.one_at_a_time += (name,)
        return Definition(
            name,
            HttpTarget(f"{self.worker}?{query}", concurrency=3, timeout=timeout),
            schedule=more.pop("schedule", EVERY_SECOND),
            resolve=more.pop("resolve", SqlResolver("select id as key from customer", "shop")),
            overlap=overlap,
            retry=RETRY,
            misfire=more.pop("misfire", Misfire(grace=timedelta(seconds=5), catch_up="all")),
            **more,
        )

    def orders(
        self, name: str = "orders", *, event: str = "order.paid", query: str = "", timeout: timedelta = TIMEOUT
    ) -> Definition:
        """A task that an event starts, for the entity in the event."""
        self.expected.subscribers[event] = (*self.expected.subscribers.get(event, ()), name)
        target = HttpTarget(f"{self.worker}?{query}", timeout=timeout)
        return Definition(name, target, on=(Subscription(event),), resolve=EventResolver(), retry=RETRY)

    def shipments(self, queue: str, name: str = "shipments", *, event: str = "order.paid") -> Definition:
        """A task that an event starts, for a queue."""
        self.expected.subscribers[event] = (*self.expected.subscribers.get(event, ()), name)
        target = BrokerTarget("main", queue)
        return Definition(name, target, on=(Subscription(event),), resolve=EventResolver(), retry=RETRY)

    def reminders(self, name: str = "reminders", *, event: str = "cue.put", query: str = "") -> Definition:
        """A task that follows the shop's cues, which `shopping` puts: ahead, and some of them late."""
        self.expected.followed[name] = {}
        return Definition(
            name,
            HttpTarget(f"{self.worker}?{query}", concurrency=3, timeout=TIMEOUT),
            schedule={
                "next": {"sql": "select min(due_at) from cue where due_at > :after", "source": "shop"},
                "recheck": "1s",
                "lookback": "1m",
            },
            resolve=SqlResolver("select key, due_at from cue", "shop"),
            on=(Subscription(event, do="touch"),),
            retry=RETRY,
        )

    def put_cue(self, key: str, due_at: datetime) -> None:
        with contextlib.closing(sqlite3.connect(self.folder / "shop.db", timeout=10)) as connection, connection:
            connection.execute("insert into cue values (?, ?)", (key, f"{due_at:%Y-%m-%d %H:%M:%S.%f}"))
        for dues in self.expected.followed.values():
            dues[key] = due_at

    async def start(self, *components: str, crash: str | None = None, port: int | None = None) -> Process:
        """Start one component's executable, or several in one process; one that is to die at `crash` is not awaited."""
        takes_events = {"ingest", "api"} & set(components)
        listen = ["--listen", f"127.0.0.1:{port or self.port}"] if takes_events else []
        program = (
            ["oncue", "--config", self.config] if len(components) == 1 else ["tests.chaos.components", self.config]
        )
        process = self.start_process(
            sys.executable,
            "-m",
            *program,
            *components,
            *listen,
            env={"ONCUE_CRASH": crash} if crash else None,
            name="-".join(components),
            cwd=Path.cwd(),
        )
        if crash is None:
            await process.ready("^oncue runs")
        return process

    async def post(self, session: aiohttp.ClientSession, event_id: str, *, type: str = "order.paid", key: str) -> None:
        """Send one event, the same again until it is answered with success."""
        body = {
            "specversion": "1.0",
            "id": event_id,
            "source": "shop",
            "type": type,
            "subject": key,
            "time": datetime.now(UTC).isoformat(),
            "data": {"total": 1},
        }
        for port in cycle([self.port, *self.other_ports]):
            try:
                async with session.post(
                    f"http://127.0.0.1:{port}/v1/events",
                    json=body,
                    headers={"Content-Type": "application/cloudevents+json"},
                    timeout=aiohttp.ClientTimeout(total=5),
                ) as answer:
                    if answer.status == 202:
                        self.expected.accepted.append(Accepted("shop", event_id, type, key))
                        return
                    assert answer.status in (429, 503), await answer.text()
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass
            await asyncio.sleep(0.05)

    @contextlib.asynccontextmanager
    async def shopping(self, *, pause: float = 0.1) -> AsyncIterator[None]:
        """Post orders, one after the other, until the block ends; each keeps its id until it is taken."""
        over = asyncio.Event()

        async def shop() -> None:
            async with aiohttp.ClientSession() as session:
                number = 0
                while not over.is_set():
                    number += 1
                    await self.post(session, uuid4().hex, key=f"o{number}")
                    if self.expected.followed:
                        ahead = (0.2, 1.5, -0.5, 0.01)[number % 4]  # seconds
                        self.put_cue(f"c{number}", datetime.now(UTC) + timedelta(seconds=ahead))
                        if number % 3:
                            await self.post(session, uuid4().hex, type="cue.put", key=f"c{number}")
                    await asyncio.sleep(pause)

        task = asyncio.create_task(shop())
        try:
            yield
        finally:
            over.set()
            async with asyncio.timeout(15):
                await task

    async def pause(self) -> None:
        """Pause whatever has a schedule, so that no more becomes due."""
        async with self.app() as app:
            for name in (*self.expected.entities, *self.expected.followed):
                await app.pause(name, reason="the load is over")

    async def facts(self) -> Facts:
        return await read_facts(self.store)

    async def requeue_all(self, *, rate: float = 100) -> bool:
        """Requeue every open dead letter; answer whether there was one."""
        async with self.app() as app:
            try:
                await app.store.write(
                    failures.requeue, everything=True, rate=rate, ask_again=False, actor="test", now=await app.now()
                )
            except Conflict:
                return False
        return True

    async def caught_up(self, *, within: timedelta = timedelta(seconds=20)) -> None:
        """Wait until no schedule is overdue."""

        async def is_on_time() -> bool:
            facts = await self.facts()
            known = [one["next_at"] for one in facts.schedules if one["state"] == "active" and one["next_at"]]
            return all(moment > facts.now for moment in known)

        await until(is_on_time, within=within, what="schedules on time")

    async def followed_up(self, *, within: timedelta = timedelta(seconds=30)) -> None:
        """Wait until everybody in the data of the followed tasks has been tried."""
        wanted = {(name, key) for name, dues in self.expected.followed.items() for key in dues}

        async def is_done() -> bool:
            return wanted <= {(one.task, one.key) for one in read_log(self.log)}

        await until(is_done, within=within, what="everybody who is followed")

    async def settled(self, *, within: timedelta = timedelta(seconds=30)) -> None:
        """Wait until nothing is open, once the clocks are stopped."""

        async def open_things() -> str:
            facts = await self.facts()
            runs = [(run["id"], run["state"]) for run in facts.runs if run["state"] in OPEN_RUNS]
            late = [one["id"] for one in facts.deliveries if one["state"] in OPEN_DELIVERIES]
            requeues = [one["state"] for one in facts.requeues if one["state"] in ("canary", "running")]
            return f"runs {runs}, deliveries {late}, requeues {requeues}" if runs or late or requeues else ""

        seen = ""

        async def is_settled() -> bool:
            nonlocal seen
            seen = await open_things()
            return not seen

        try:
            await until(is_settled, within=within, what="an end of all that is open")
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen}") from None

    async def check(self, more: Sequence[Received] = ()) -> Facts:
        """Check all promises."""
        facts = await self.facts()
        broken = violations(facts, [*read_log(self.log), *more], self.expected)
        assert not broken, "\n".join(broken)
        return facts


def read_log(path: Path) -> Iterator[Received]:
    """What the HTTP worker logged."""
    for line in path.read_text().splitlines() if path.exists() else []:
        entry = json.loads(line)
        entry["at"], entry["due"] = datetime.fromisoformat(entry["at"]), datetime.fromisoformat(entry["due"])
        yield Received(**entry)
