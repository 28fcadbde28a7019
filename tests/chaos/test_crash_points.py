"""Every place where a component may die is walked: it dies there, starts again, and no promise is broken."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest

import oncue
from oncue import crash
from oncue.testing.until import until
from tests.chaos import rabbit
from tests.chaos.conftest import MakeTeam
from tests.chaos.team import COMPONENTS, Team
from tests.processes import Process

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

KILLED = 137
PASSES = (1, 3)
DEATH = timedelta(seconds=30)


def points() -> list[str]:
    """Return all points that the package registers, wherever it does: a new one is walked from its first day."""
    for module in pkgutil.walk_packages(oncue.__path__, "oncue."):
        if not module.name.startswith(("oncue.testing", "oncue.cli", "oncue.__main__")):
            importlib.import_module(module.name)
    return sorted(set(crash.POINTS))


def test_each_point_belongs_to_a_component_that_is_walked() -> None:
    strangers = [point for point in points() if point.partition(".")[0] not in (*COMPONENTS, "api")]

    assert strangers == []
    assert len(points()) >= 14


@pytest.mark.parametrize("point", [point for point in points() if not point.startswith("failures.")])
async def test_a_component_that_dies_at_a_point_breaks_no_promise(
    point: str, store_url: str, make_team: MakeTeam
) -> None:
    team = await make_team(store_url)
    await team.apply(
        team.pages(query="refuse=e2:1,e5:99"), team.orders(query="refuse=o7:1"), team.reminders(query="refuse=c5:1")
    )
    victim = point.partition(".")[0]
    takes_events = ("ingest", "api")
    without = takes_events if victim in takes_events else (victim,)
    rest = await team.start(*(name for name in COMPONENTS if name not in without))

    async with team.shopping():
        for passes in PASSES:
            await die(await team.start(victim, crash=f"{point}:{passes}"))
        survivor = await team.start(victim)
        await team.caught_up()

    await end(team, rest, survivor)
    await team.check()


@pytest.mark.parametrize("point", [point for point in points() if point.startswith("failures.")])
async def test_a_failure_handler_that_dies_at_a_point_loses_no_dead_letter(
    point: str, store_url: str, make_team: MakeTeam, amqp_url: str, unique_name: Callable[[str], str]
) -> None:
    queue = unique_name("shipments")
    rabbit.declare(amqp_url, queue)
    team = await make_team(store_url, amqp=amqp_url, queue=queue)
    await team.apply(team.pages(query="refuse=e5:99"), team.shipments(queue))
    rest = await team.start("clock", "ingest", "dispatcher", "watch")

    with ExitStack() as stack:
        stack.callback(rabbit.delete, amqp_url, queue, f"{queue}.dead")
        worker = stack.enter_context(rabbit.working(amqp_url, queue, rejects=lambda key: key.endswith(("3", "6"))))
        async with team.shopping():
            rabbit.publish_strange(amqp_url, queue, 4)
            for passes in PASSES:
                dying = await team.start("failures", crash=f"{point}:{passes}")
                requeuing = asyncio.create_task(requeue_until_dead(team, dying))
                await die(dying)
                await requeuing
            survivor = await team.start("failures")

        await until(lambda: rabbit.depth(amqp_url, f"{queue}.dead") == 0, what="an empty dead-letter queue")
        await team.caught_up()
        await end(team, rest, survivor)
        facts = await team.check(worker.received)

    assert {letter["state"] for letter in facts.dead_letters} == {"recovered"}
    assert {body for body, accepted in worker.strange if accepted} == {b"strange %d" % number for number in range(4)}
    rejected = {one.message_id for one in worker.received if one.requeue == 0 and one.key.endswith(("3", "6"))}
    assert rejected <= {letter["message_id"] for letter in facts.dead_letters}


async def die(victim: Process) -> None:
    assert await victim.wait(within=DEATH) == KILLED, victim.output


async def requeue_until_dead(team: Team, dying: Process) -> None:
    while dying.exit_code is None:
        await team.requeue_all(rate=1)
        await asyncio.sleep(0.5)


async def end(team: Team, *processes: Process) -> None:
    """Stop what makes runs, let everything end, requeue what failed, let that end too, and ask all to leave."""
    await team.followed_up()
    await team.pause()
    await team.settled()
    for _ in range(3):
        if await team.requeue_all():
            await team.settled()
    for process in processes:
        process.terminate()
    for process in processes:
        assert await process.wait() == 0, process.output
