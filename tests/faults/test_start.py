"""A component that is started before its store waits for it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from oncue.store.postgres import PostgresDatabase
from tests.faults.private_postgres import PrivatePostgres
from tests.processes import StartProcess

pytestmark = pytest.mark.anyio


async def test_a_component_started_before_its_store_runs_when_that_is_there(
    private_postgres: PrivatePostgres, start_process: StartProcess, tmp_path: Path
) -> None:
    database = PostgresDatabase(private_postgres.url)
    await database.migrate()
    await database.close()
    await asyncio.to_thread(private_postgres.stop, "immediate")

    clock = start_process(
        sys.executable, "-m", "oncue", "clock", env={"ONCUE_STORE": private_postgres.url}, cwd=tmp_path, name="clock"
    )
    await clock.ready("store unavailable")
    await asyncio.to_thread(private_postgres.start)

    await clock.ready("oncue runs clock")
    clock.terminate()
    assert await clock.wait() == 0
