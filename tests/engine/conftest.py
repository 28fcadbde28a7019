"""A stage over each kind of store."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from oncue.app import open_database
from tests.engine.stage import Stage, worker


@pytest.fixture(params=["sqlite", "postgres"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    url: Any = request.getfixturevalue(f"{request.param}_url")
    shop = tmp_path / "shop.db"
    connection = sqlite3.connect(shop)
    with connection:
        connection.execute("create table trial (id integer primary key, email text)")
        connection.executemany("insert into trial values (?, ?)", [(n, f"a{n}@example.org") for n in range(1, 6)])
    connection.close()
    async with worker() as took:
        made = Stage(open_database(url), shop, took)
        await made.store.database.migrate()
        yield made
        await made.close()
