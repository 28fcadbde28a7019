"""Any number of each component may run, and any may die, freeze or leave: no run twice, nobody lost, overlap kept."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import timedelta

import aiohttp
import pytest

from oncue.testing.until import until
from tests.chaos import rabbit
from tests.chaos.conftest import MakeTeam
from tests.chaos.team import COMPONENTS, Team
from tests.free_port import free_port
from tests.processes import Process

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

LEASE = timedelta(seconds=1.5)
KILLS = 8
SLOW = timedelta(seconds=30)


def received(team: Team) -> int:
    return len(team.log.read_text().splitlines()) if team.log.exists() else 0


async def leave(*processes: Process) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        assert await process.wait() == 0, process.output


async def test_two_of_each_some_killed_at_random_break_no_promise(
    make_team: MakeTeam, postgres_url: str, amqp_url: str, unique_name: Callable[[str], str]
) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    queue = unique_name("shipments")
    rabbit.declare(amqp_url, queue)
    team = await make_team(postgres_url, amqp=amqp_url, queue=queue)
    team.other_ports.append(free_port())
    await team.apply(
        team.pages(query="refuse=e2:1,e5:99"),
        team.pages("slow", query="delay=0.5"),
        team.orders(),
        team.shipments(queue),
    )
    places = [(name, port) for name in COMPONENTS for port in (team.port, team.other_ports[0])]
    running = dict(
        zip(places, await asyncio.gather(*(team.start(name, port=port) for name, port in places)), strict=True)
    )

    with rabbit.working(amqp_url, queue, rejects=lambda key: key.endswith("3")) as worker:
        async with team.shopping():
            for _ in range(KILLS):
                known = received(team)
                await until(lambda known=known: received(team) > known + 10, within=timedelta(seconds=30))
                name, port = chance.choice(places)
                running[name, port].kill9()
                running[name, port] = await team.start(name, port=port)
            await team.caught_up()
        await until(lambda: rabbit.depth(amqp_url, f"{queue}.dead") == 0, within=timedelta(seconds=20))
        await leave(*(process for (name, _), process in running.items() if name == "clock"))
        await team.settled()
        for _ in range(3):
            if await team.requeue_all():
                await team.settled()
        await leave(*(process for (name, _), process in running.items() if name != "clock"))
        facts = await team.check(worker.received)
        rabbit.delete(amqp_url, queue, f"{queue}.dead")

    skipped = [run for run in facts.runs if run["state"] == "skipped" and facts.task_name(run["task_id"]) == "slow"]
    assert skipped, "a task that takes longer than a second is skipped now and then"


async def test_a_dispatcher_that_was_frozen_for_three_leases_writes_nothing_late(
    make_team: MakeTeam, postgres_url: str
) -> None:
    team = await make_team(postgres_url)
    await team.apply(team.pages(query="delay=0.3"))
    frozen = await team.start("dispatcher")
    clock = await team.start("clock")

    async def is_frozen_with_a_run() -> int | None:
        frozen.stop()
        held = next((run["id"] for run in (await team.facts()).runs if run["state"] == "running"), None)
        if held is None:
            frozen.cont()
        return held

    held = await until(is_frozen_with_a_run)
    other = await team.start("dispatcher")

    async def ended_by_the_other() -> bool:
        facts = await team.facts()
        run = next(run for run in facts.runs if run["id"] == held)
        return run["state"] == "done" and facts.now > run["ready_at"] + 2 * LEASE

    await until(ended_by_the_other, within=timedelta(seconds=20))
    before = next(run for run in (await team.facts()).runs if run["id"] == held)
    frozen.cont()
    await leave(other)
    known = received(team)
    await until(lambda: received(team) > known + 7, within=timedelta(seconds=20))
    await team.caught_up()
    await leave(clock)
    await team.settled()
    await leave(frozen)
    facts = await team.check()

    assert next(run for run in facts.runs if run["id"] == held) == before
    assert before["fence"] == 2


async def test_each_component_drains_under_load_and_another_goes_on(make_team: MakeTeam, postgres_url: str) -> None:
    team = await make_team(postgres_url)
    await team.apply(team.pages(query="refuse=e2:1"), team.orders())
    running = {name: await team.start(name) for name in COMPONENTS}

    async with team.shopping():
        for name in COMPONENTS:
            known = received(team)
            await until(lambda known=known: received(team) > known + 20, within=timedelta(seconds=20))
            running[name].terminate()
            asked_at = time.monotonic()
            assert await running[name].wait() == 0, running[name].output
            assert time.monotonic() - asked_at < 11
            assert "drain cut short" not in running[name].output
            running[name] = await team.start(name)
        await team.caught_up()
    await leave(running["clock"])
    await team.settled()
    await leave(*(process for name, process in running.items() if name != "clock"))

    facts = await team.check()
    assert max(run["attempts"] for run in facts.runs) <= 1


@pytest.mark.parametrize("twice", [False, True], ids=["its limit", "a second SIGTERM"])
@pytest.mark.parametrize("component", ["dispatcher", "ingest"])
async def test_what_is_cut_short_is_given_back_uncounted(
    component: str, twice: bool, make_team: MakeTeam, postgres_url: str
) -> None:
    team = await make_team(postgres_url, drain="60s" if twice else "1s")
    slow = team.orders if component == "ingest" else team.pages
    await team.apply(slow(query="delay=20", timeout=SLOW))
    process = await team.start(component)
    clock = await team.start("clock")

    async def is_under_way() -> bool:
        if component == "ingest" and not team.expected.accepted:
            async with aiohttp.ClientSession() as session:
                await team.post(session, "one", key="o1")
        return any(run["state"] == "running" for run in (await team.facts()).runs)

    await until(is_under_way)
    process.terminate()
    asked_at = time.monotonic()
    if twice:
        await process.ready("draining")
        process.terminate()

    assert await process.wait() == 0, process.output
    assert time.monotonic() - asked_at < 3
    run = next(run for run in (await team.facts()).runs if run["started_at"])
    assert (run["state"], run["attempts"], run["reason"]) == ("due", 0, "interrupted by a drain")
    await leave(clock)
