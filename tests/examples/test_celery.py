"""The contract: `examples/celery` exactly as it stands: a stock Celery worker, each component its own process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from oncue.testing.until import until
from tests.free_port import free_port
from tests.processes import Process, StartProcess
from tests.services import Postgres

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "celery"
COMPONENTS = ("clock", "ingest", "dispatcher", "failures", "watch", "api")
ONCUE = [sys.executable, "-m", "oncue"]
SOON = timedelta(seconds=60)


class Team:
    """The team's database, worker and log, and Oncue's commands beside them."""

    def __init__(self, env: Mapping[str, str], ran: Path) -> None:
        self.env = env
        self._ran = ran

    async def oncue(self, *arguments: str) -> str:
        """Run a command of Oncue's, and return what it printed."""
        done = await asyncio.to_thread(
            subprocess.run,
            [*ONCUE, *arguments],
            cwd=EXAMPLE,
            env=dict(self.env),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"oncue {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    async def json(self, *arguments: str) -> Any:
        return json.loads(await self.oncue(*arguments, "--json"))

    async def sql(self, statement: str) -> None:
        connection = await asyncpg.connect(self.env["APP_DATABASE_URL"])
        await connection.execute(statement)
        await connection.close()

    def ran(self) -> list[dict[str, str]]:
        """What the worker ran, by its own log."""
        if not self._ran.exists():
            return []
        return [json.loads(line) for line in self._ran.read_text().splitlines() if line.endswith("}")]

    def who(self) -> set[str]:
        return {line["key"] for line in self.ran()}


@pytest.fixture
async def team(postgres_server: Postgres, amqp_url: str, tmp_path: Path, start_process: StartProcess) -> Team:
    urls = {name: postgres_server.make_database() for name in ("APP_DATABASE_URL", "ONCUE_STORE")}
    env = {
        **os.environ,
        **urls,
        "APP_BROKER_URL": amqp_url,
        "APP_RAN_LOG": str(tmp_path / "ran.jsonl"),
        "ONCUE_API__LISTEN": f"127.0.0.1:{free_port()}",
        "ONCUE_INGEST__LISTEN": f"127.0.0.1:{free_port()}",
    }
    made = Team(env, tmp_path / "ran.jsonl")
    await made.sql((EXAMPLE / "app.sql").read_text())
    worker = [sys.executable, "-m", "celery", "-A", "worker", "worker", "--pool=solo", "--loglevel=INFO"]
    celery = start_process(*worker, env=env, cwd=EXAMPLE, name="celery")
    await celery.ready(r"celery@\S+ ready", within=SOON)
    await made.oncue("migrate")
    await made.oncue("apply", "tasks.toml", "--yes")
    return made


@pytest.fixture
async def components(team: Team, start_process: StartProcess) -> dict[str, Process]:
    return {name: start_process(*ONCUE, name, env=team.env, cwd=EXAMPLE, name=name) for name in COMPONENTS}


async def test_an_unchanged_celery_worker_runs_by_schedule_and_by_event_and_what_it_rejects_comes_back(
    team: Team, components: dict[str, Process]
) -> None:
    await until(lambda: {"t-1001", "t-1002"} <= team.who(), within=SOON, what="the scheduled run")
    assert team.who() == {"t-1001", "t-1002"}

    await team.sql("update trial set ends_on = (now() at time zone 'utc')::date + 3 where id = 't-1004'")
    shortened = ("emit", "trial.shortened", "--source", "/billing", "--subject", "t-1004", "--data")
    await team.oncue(*shortened, '{"days_left": 3}')
    await until(lambda: "t-1004" in team.who(), within=SOON, what="the run of the event")
    runs = await team.json("runs", "--task", "trial-ending")
    assert any(run["cause"].startswith("event:/billing:") for run in runs["items"])

    async def rejected() -> list[Any]:
        listed = await team.json("failures", "list")
        return [letter for letter in listed["items"] if letter["key"] == "t-1003"]

    (letter, *_) = await until(rejected, within=SOON, what="the dead letter of the rejected address")
    assert (letter["task"], letter["queue"]) == ("trial-ending", "celery.dead")

    await team.sql("update trial set email = 'kurt@example.org' where id = 't-1003'")
    await team.oncue("failures", "requeue", letter["id"])
    await until(lambda: letter["message_id"] in {line["id"] for line in team.ran()}, within=SOON, what="the requeue")
    (mended,) = [line for line in team.ran() if line["id"] == letter["message_id"]]
    assert (mended["key"], mended["email"]) == ("t-1003", "kurt@example.org")

    await team.oncue("doctor")
    for process in components.values():
        process.terminate()
    assert [await process.wait(within=SOON) for process in components.values()] == [0] * len(COMPONENTS)


async def test_someone_who_cancels_between_two_firings_is_left_out_of_the_second(
    team: Team, components: dict[str, Process]
) -> None:
    await until(lambda: {"t-1001", "t-1002"} <= team.who(), within=SOON, what="the first run")

    await team.sql("delete from trial where id = 't-1002'")
    before = len(team.ran())
    await until(lambda: len(team.ran()) > before + 1, within=SOON, what="two more runs")

    assert "t-1002" not in {line["key"] for line in team.ran()[before + 1 :]}
