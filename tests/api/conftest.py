"""An Oncue over SQLite, and a client that comes in through the front door."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from oncue.api.app import create_app
from oncue.app import Oncue
from oncue.config import Config, SourceConfig
from oncue.model import NewDeadLetter
from oncue.store import failures
from oncue.store.base import Store

NOBODY = "http://127.0.0.1:9/"


@pytest.fixture
async def oncue(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Oncue]:
    shop = tmp_path / "shop.db"
    connection = sqlite3.connect(shop)
    with connection:
        connection.execute("create table trial (id text primary key, email text)")
        connection.executemany("insert into trial values (?, ?)", [("a", "a@example.org"), ("b", "b@example.org")])
    connection.close()
    async with Oncue(Config(store=sqlite_url, source={"shop": SourceConfig(f"sqlite:///{shop}")})) as made:
        yield made
        await made.ingest.drain()


@pytest.fixture
async def client(oncue: Oncue) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_app(oncue), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://oncue") as made:
        yield made


async def put(client: httpx2.AsyncClient, name: str = "remind", **changes: object) -> None:
    """Make a task that mails everyone on trial, daily."""
    definition: dict[str, object] = {
        "schedule": {"cron": "0 9 * * *"},
        "resolve": {"sql": "select id as key, email from trial", "source": "shop"},
        "target": {"http": NOBODY},
    }
    answer = await client.put(f"/v1/tasks/{name}", json=definition | changes)
    assert answer.status_code in (200, 201), answer.text


async def bury(oncue: Oncue, count: int = 1, *, task: str = "remind") -> None:
    """Make dead letters, as if a broker had given them."""
    store: Store = oncue.store
    letters = [
        NewDeadLetter(
            identity=f"{task}:{n}",
            kind="message",
            reason="HTTP 500",
            task_name=task,
            key=f"key-{n}",
            data={"n": n},
            queue="mail",
            body=b'{"n": 1}',
            content_type="application/json",
        )
        for n in range(count)
    ]
    await store.write(failures.record, letters, now=await oncue.now())
