"""What Oncue stands on goes away under load and comes back: all recovers alone, and nothing is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta

import asyncpg
import pytest

from oncue.definition import Retry
from oncue.testing.until import until
from tests.chaos import rabbit
from tests.chaos.conftest import MakeTeam
from tests.chaos.team import COMPONENTS, RETRY, Team
from tests.faults.private_postgres import PrivatePostgres
from tests.faults.private_rabbitmq import PrivateRabbitmq
from tests.processes import Process

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

BACK = timedelta(seconds=5)
LINES = 40  # that a process may write about one outage: it tells a change, not each try
PATIENT = Retry(attempts=50, first=RETRY.first, cap=RETRY.cap)


async def lives(team: Team, *, more: Callable[[], int], within: timedelta, what: str) -> None:
    """Wait until what `more` counts grows: it works again."""
    before = more()
    await until(lambda: more() > before, within=within, what=what)


def received(team: Team) -> int:
    return len(team.log.read_text().splitlines()) if team.log.exists() else 0


async def end(team: Team, processes: list[Process]) -> None:
    """Stop the clock first, let the rest carry on until nothing is open, and stop it too."""
    await team.caught_up()
    clock, *others = processes
    clock.terminate()
    assert await clock.wait() == 0, clock.output
    await team.settled()
    for process in others:
        process.terminate()
    for process in others:
        assert await process.wait() == 0, process.output


async def test_rabbitmq_that_is_down_for_half_a_minute_loses_nothing(
    make_team: MakeTeam, postgres_url: str, private_rabbitmq: PrivateRabbitmq
) -> None:
    queue = "shipments"
    rabbit.declare(private_rabbitmq.url, queue)
    private_rabbitmq.sync()
    team = await make_team(postgres_url, amqp=private_rabbitmq.url, queue=queue)
    await team.apply(team.pages(), team.shipments(queue))
    processes = [await team.start(name) for name in ("clock", "ingest", "dispatcher", "failures", "watch")]

    with rabbit.working(private_rabbitmq.url, queue, rejects=lambda _key: False) as worker:
        async with team.shopping():
            await until(lambda: len(worker.received) > 5)
            down_at, known = time.monotonic(), received(team)
            await asyncio.to_thread(private_rabbitmq.stop_app)
            await until(lambda: time.monotonic() - down_at > 30, within=timedelta(seconds=35))
            assert received(team) - known > 7 * 20, "the schedule's task does not need that broker"
            await asyncio.to_thread(private_rabbitmq.start_app)
            # The backoff of what was given back ends at 15 s.
            await lives(team, more=lambda: len(worker.received), within=timedelta(seconds=20), what="messages again")

        await end(team, processes)
        facts = await team.check(worker.received)

    assert {run["state"] for run in facts.runs} <= {"done", "skipped"}
    assert facts.dead_letters == []
    assert [process.output.count("Traceback") for process in processes] == [0] * len(processes)
    events = [run for run in facts.runs if run["cause"].startswith("event:")]
    assert max(run["attempts"] for run in events) <= 1 + 1, "nobody was reached, so nothing counts"


async def test_postgresql_that_crashes_under_load_is_back_within_seconds(
    make_team: MakeTeam, private_postgres: PrivatePostgres
) -> None:
    team = await make_team(private_postgres.url)
    await team.apply(team.pages(query="refuse=e2:1"), team.orders())
    processes = [await team.start(name) for name in ("clock", "ingest", "dispatcher", "failures", "watch")]

    async with team.shopping():
        await until(lambda: received(team) > 20)
        lines = [process.output.count("\n") for process in processes]
        await asyncio.to_thread(private_postgres.stop, "immediate")
        down_at = time.monotonic()
        await until(lambda: time.monotonic() - down_at > 6)
        assert [process.exit_code for process in processes] == [None] * len(processes)
        outage = [process.output.count("\n") - before for process, before in zip(processes, lines, strict=True)]
        await asyncio.to_thread(private_postgres.start)
        accepted = len(team.expected.accepted)
        await lives(team, more=lambda: received(team), within=BACK, what="work again")
        await until(lambda: len(team.expected.accepted) > accepted, within=BACK, what="events again")
        await until_scheduled_again(team)

    await end(team, processes)
    facts = await team.check()

    assert {run["state"] for run in facts.runs} <= {"done", "skipped"}
    assert max(outage) < LINES, [process.output for process in processes]


async def until_scheduled_again(team: Team) -> None:
    """Wait until a run that is due after this moment is done: clock and dispatcher are both back."""
    now = (await team.facts()).now

    async def is_done() -> bool:
        runs = (await team.facts()).runs
        return any(run["due_at"] > now and run["state"] == "done" and run["overlap"] for run in runs)

    await until(is_done, within=BACK, what="a run that became due after the outage")


async def test_a_listener_that_is_killed_costs_a_look_and_listens_again(make_team: MakeTeam, postgres_url: str) -> None:
    team = await make_team(postgres_url)
    await team.apply(team.pages())
    processes = [await team.start("clock"), await team.start(*(name for name in COMPONENTS if name != "clock"))]
    connection = await asyncpg.connect(postgres_url)
    listeners = "select pid from pg_stat_activity where query like 'LISTEN%' or query like 'select pg_notify%'"

    async def heard() -> set[int]:
        return {row["pid"] for row in await connection.fetch(f"{listeners} and datname = current_database()")}

    await until(lambda: received(team) > 10)
    killed = await until(heard)
    for pid in killed:
        await connection.execute("select pg_terminate_backend($1)", pid)
    killed_at = await connection.fetchval("select clock_timestamp()")

    async def listen_again() -> bool:
        return len(await heard() - killed) >= 2

    await until(listen_again, within=timedelta(seconds=10))
    await until_scheduled_again(team)
    await connection.close()
    await end(team, processes)
    facts = await team.check()

    late = [run["started_at"] - run["due_at"] for run in facts.runs if run["due_at"] > killed_at and run["started_at"]]
    assert max(late) < timedelta(seconds=1.5)
