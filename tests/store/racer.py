"""One of several real processes that race on one store: does what its standard input says, a line at a time."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from oncue.errors import Conflict, NotFound
from oncue.store import backfills, catch_up, failures, runs, schedules, tasks
from oncue.store.base import Store
from oncue.testing.conformance.stores.backfills import plan
from oncue.testing.factories import LEASE, apply, checkpoint, claim, make_definition, page, upcoming
from tests.store.opening import open_store

HOURLY = {"cron": "0 * * * *"}
HOUR = timedelta(hours=1)


async def look(store: Store, until: datetime) -> list[int]:
    """Hold what is due, as a clock does whose moment has not come yet."""
    held[:] = await upcoming(store, until)
    return [schedule.task_id for schedule in held]


async def fire(store: Store, now: datetime) -> list[int]:
    """Fire what is held."""
    firings = [schedules.decide(schedule, now=now) for schedule in held]
    return sorted(await store.write(schedules.record_firings, firings, now=now))


async def claim_all(store: Store, now: datetime) -> list[int]:
    """Claim runs until there are none."""
    claimed: list[int] = []
    while found := await claim(store, now, limit=7):
        claimed += [run.id for run in found]
    return claimed


async def work(store: Store, now: datetime) -> int:
    """Claim runs and end them until there are none; return the most that were running of one task at once."""
    most = 0
    while found := await store.write(runs.claim, now=now, until=now + LEASE, limit=5):
        for run in found:
            beside = await store.read(runs.latest, task_id=run.task_id, state="running", before=None, limit=99)
            most = max(most, len(beside))
            await checkpoint(store, run, page(confirmed=1), now=now)
    return most


async def migrate(store: Store) -> list[str]:
    return await store.database.migrate()


async def requeue(store: Store, now: datetime) -> int:
    try:
        made = await store.write(failures.requeue, everything=True, rate=10, ask_again=True, actor="racer", now=now)
    except Conflict:
        return 0
    return made.total


async def change(store: Store, now: datetime, name: str) -> list[str]:
    return await apply(store, make_definition(name, schedule=HOURLY), now=now)


async def edit(store: Store, now: datetime, name: str) -> list[str]:
    return await apply(store, make_definition(name, description="edited"), now=now)


async def remove(store: Store, now: datetime) -> list[str]:
    return await apply(store, prune=True, now=now)


async def pause(store: Store, now: datetime, name: str) -> str:
    return (await store.write(tasks.pause, name, reason="race", actor="racer", now=now)).state


async def resume(store: Store, now: datetime, name: str) -> str:
    try:
        return (await store.write(tasks.resume, name, actor="racer", now=now)).state
    except (Conflict, NotFound) as error:
        return type(error).__name__


async def backfill(store: Store, now: datetime, name: str) -> list[Any]:
    """Ask for a backfill of an hour with one key, as a client does that asks twice."""
    planned = await plan(store, now - HOUR, now, name=name)
    made, is_new = await store.write(backfills.make, planned, key="race", pace=None, actor="racer", now=now)
    return [str(made.uuid), is_new]


async def cancel_backfills(store: Store, now: datetime) -> int:
    """Cancel all backfills; return how many runs are cancelled then."""
    found = await store.read(backfills.latest, limit=100)
    done = [await store.write(backfills.cancel, one.uuid, reason="race", actor="racer", now=now) for one in found]
    return sum(one.states.get("cancelled", 0) for one in done)


async def release(store: Store, now: datetime) -> int:
    ids = [one.task_id for one in await store.read(catch_up.every)]
    return await store.write(catch_up.release, ids, actor="racer", now=now)


async def drop(store: Store, now: datetime) -> int:
    ids = [one.task_id for one in await store.read(catch_up.every)]
    return await store.write(catch_up.drop, ids, reason="race", actor="racer", now=now)


held: list[Any] = []
DEEDS: dict[str, Callable[..., Awaitable[Any]]] = {
    deed.__name__: deed
    for deed in (
        *(look, fire, claim_all, work, migrate, requeue, change, edit, remove, pause, resume),
        *(backfill, cancel_backfills, release, drop),
    )
}


async def main(url: str) -> None:
    store = open_store(url)
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        given = {name: datetime.fromisoformat(asked[name]) for name in ("now", "until") if name in asked}
        given |= {"name": asked["name"]} if "name" in asked else {}
        print(json.dumps(await DEEDS[asked["deed"]](store, **given)), flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
