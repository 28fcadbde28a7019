"""The first steps of tests on followed schedules."""

from __future__ import annotations

from datetime import datetime, timedelta

from oncue.definition import Misfire, SqlResolver
from oncue.model import Json, Key, Run
from oncue.store import followed, runs, schedules, tasks
from oncue.store.base import Store
from oncue.store.followed import Following
from oncue.testing.factories import (
    at,
    checkpoint,
    latest,
    make_task,
    upcoming,
)

RULE: Json = {"next": {"sql": "select min(due_at) from cue where due_at > :after", "source": "app"}}
RESOLVE = SqlResolver("select key, due_at from cue", "app")


async def follow(store: Store, *, next_at: datetime | None = None, misfire: Misfire | None = None) -> Following:
    """Make a task that follows data, and answer its first question."""
    await make_task(store, schedule=RULE, resolve=RESOLVE, misfire=misfire or Misfire())
    await answer(store, next_at, now=at())
    return await standing(store)


async def standing(store: Store) -> Following:
    task = await store.read(tasks.read, "welcome")
    found = await store.read(followed.of, task.id)
    assert found is not None
    return found


async def claim_ask(store: Store, now: datetime) -> list[Following]:
    return await store.write(followed.claim_asks, now=now, until=now + timedelta(seconds=5), limit=9)


async def claim_look(store: Store, now: datetime) -> list[Following]:
    return await store.write(followed.claim_looks, now=now, until=now + timedelta(seconds=5), limit=9)


async def answer(store: Store, moment: datetime | None, *, now: datetime) -> bool:
    (asked,) = await claim_ask(store, now)
    return await store.write(followed.answer, asked, moment, now=now)


async def fire(store: Store, now: datetime) -> list[Run]:
    firings = [schedules.decide(schedule, now=now) for schedule in await upcoming(store, now)]
    await store.write(schedules.record_firings, firings, now=now)
    return await latest(store)


async def hand_over(store: Store, run: Run, *pairs: tuple[Key, datetime], now: datetime) -> None:
    """Carry a claimed run out to its end, with one page."""
    done = runs.Progress(None, len(pairs), len(pairs), 0, handed_over=pairs)
    await checkpoint(store, run, done, now=now)
