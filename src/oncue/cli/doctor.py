"""`oncue doctor`: looks at everything that must be well, says what is not, and what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated, Final, Literal

import typer

from oncue import wall
from oncue.api.shapes import Shape
from oncue.app import Oncue
from oncue.cli.output import AsJson, print_json, say, show_seconds
from oncue.cli.session import expect_store, read_config, run
from oncue.config import hidden
from oncue.definition import BrokerTarget
from oncue.errors import AdapterError, ConfigError, NotFound, SchemaError, StoreUnavailable
from oncue.observe.log import set_up_logging
from oncue.store import schedules

PATIENCE: Final = timedelta(seconds=5)
BEHIND: Final = timedelta(seconds=30)
MARKS: Final = {"well": "ok   ", "note": "note ", "wrong": "WRONG"}


class Check(Shape):
    """One thing that was looked at. `wrong` means that work is not being done now."""

    check: str
    status: Literal["well", "note", "wrong"]
    text: str


class DoctorShape(Shape):
    """Everything that was looked at."""

    well: bool
    checks: list[Check]


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(doctor)


def doctor(
    reset_clock: Annotated[
        bool, typer.Option("--reset-clock", help="Forget a time in the future that this SQLite store has seen.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong and what to do; exit 1 where something is."""

    async def work() -> list[Check]:
        set_up_logging("text", "error")
        oncue = Oncue(read_config())
        try:
            if reset_clock:
                expect_store(oncue.config)
                await oncue.store.write(schedules.reset_clock, wall.now())
                say("the store's clock is set to this host's.")
            return [check async for check in _look(oncue)]
        finally:
            await oncue.close()

    checks = run(work)
    is_well = all(check.status != "wrong" for check in checks)
    if as_json:
        print_json(DoctorShape(well=is_well, checks=checks))
    else:
        for check in checks:
            say(f"{MARKS[check.status]}  {check.check}: {check.text}")
    if not is_well:
        raise typer.Exit(1)


async def _look(oncue: Oncue) -> AsyncIterator[Check]:
    yield Check(check="configuration", status="well", text="it can be read")
    try:
        expect_store(oncue.config)
        await oncue.store.database.migrate(only_check=True)
    except (NotFound, StoreUnavailable, SchemaError) as error:
        yield Check(check="store", status="wrong", text=str(error))
        return
    yield Check(check="store", status="well", text=f"{hidden(oncue.config.store)} is reachable, its schema up to date")
    yield await _look_at_clock(oncue)
    _, problems = await oncue.examine()
    for problem in problems:
        yield Check(check=problem.code, status="wrong" if problem.urgent else "note", text=problem.text)
    if not problems:
        yield Check(check="work", status="well", text="nothing is late, stopped or silent")
    for name in oncue.config.source:
        yield await _look_at_source(oncue, name)
    async for check in _look_at_queues(oncue):
        yield check


async def _look_at_clock(oncue: Oncue) -> Check:
    host = wall.now()
    ahead = await oncue.store.write(schedules.read_clock, host) - host
    if abs(ahead) <= BEHIND:
        return Check(check="clock", status="well", text="this host and the store agree")
    by = show_seconds(abs(ahead).total_seconds())
    if oncue.store.database.has_own_clock:
        return Check(check="clock", status="note", text=f"this host is {by} off the database's clock, which decides.")
    text = (
        f"the store has seen a time {by} ahead of this host: nothing is claimed until it has come. "
        "If this host is right: `oncue doctor --reset-clock`."
    )
    return Check(check="clock", status="wrong", text=text)


async def _look_at_source(oncue: Oncue, name: str) -> Check:
    check = f"source {name}"
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            await oncue.adapters.source(name).page("select 1 as key", {}, cursor=None, limit=1)
    except TimeoutError:
        return Check(check=check, status="wrong", text="it does not answer")
    except (AdapterError, ConfigError) as error:
        return Check(check=check, status="wrong", text=str(error))
    return Check(check=check, status="well", text="it answers")


async def _look_at_queues(oncue: Oncue) -> AsyncIterator[Check]:
    """Look at each queue that tasks hand over to, and each that the failure handler drains."""
    wanted: dict[tuple[str, str], str] = {}
    for task in await oncue.tasks():
        target = task.definition.target
        if isinstance(target, BrokerTarget) and not target.exchange:
            wanted[target.broker, target.queue] = f'task "{task.name}" hands over to it'
    for name, broker in oncue.config.broker.items():
        wanted |= {(name, queue): "it is to be drained of dead letters" for queue in broker.dead_letters}
    for (name, queue), what_for in sorted(wanted.items()):
        yield await _look_at_queue(oncue, name, queue, what_for)


async def _look_at_queue(oncue: Oncue, broker: str, queue: str, what_for: str) -> Check:
    check = f"queue {queue} of {broker}"
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            depth = await oncue.adapters.broker(broker).depth(queue)
    except TimeoutError:
        return Check(check=check, status="wrong", text=f"the broker does not answer; {what_for}")
    except (AdapterError, ConfigError) as error:
        return Check(check=check, status="wrong", text=str(error))
    if depth is None:
        return Check(check=check, status="wrong", text=f"it does not exist, and {what_for}: declare it")
    return Check(check=check, status="well", text=f"{depth} message(s) stand in it")
