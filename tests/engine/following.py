"""A followed task on the stage: a shop's appointments, and a clock that goes on until nothing is due."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from typing import Any

from oncue.definition import Definition, HttpTarget, SqlResolver, Subscription
from oncue.model import Event, Json, Schedule
from oncue.store import followed, tasks
from oncue.store.followed import Following
from tests.engine.stage import NOON, Stage

NEXT = "select min(starts_at) from appointment where starts_at > :after"
DUE = "select id as key, starts_at as due_at, email from appointment"
BY_QUERY: Json = {"next": {"sql": NEXT, "source": "app"}}


def after_noon(seconds: float = 0, *, minutes: float = 0, hours: float = 0) -> datetime:
    return NOON + timedelta(seconds=seconds, minutes=minutes, hours=hours)


def text(moment: datetime) -> str:
    """A time as many apps store it in SQLite."""
    return moment.isoformat()


def remind(stage: Stage, name: str = "remind", *, schedule: Json | None = None, **changes: Any) -> Definition:
    """A task that posts each appointment to the worker at the time it starts."""
    given: dict[str, Any] = {
        "schedule": schedule or BY_QUERY,
        "resolve": SqlResolver(DUE, "app"),
        "on": (Subscription("appointment.moved", do="touch"),),
    }
    return Definition(name, HttpTarget(stage.worker.url, concurrency=2), **given | changes)


def open_book(stage: Stage) -> None:
    """Make the shop's table of appointments."""
    stage.write("create table if not exists appointment (id text primary key, starts_at text, email text)")


def book(stage: Stage, key: str, starts_at: datetime | str | None) -> None:
    """Write an appointment, or move it."""
    value = text(starts_at) if isinstance(starts_at, datetime) else starts_at
    connection = sqlite3.connect(stage.shop)
    with connection:
        connection.execute("insert or replace into appointment values (?, ?, ?)", (key, value, f"{key}@example.org"))
    connection.close()


async def turn(stage: Stage) -> None:
    """Let the clock fire, ask and look until nothing is due any more."""
    for _ in range(50):
        await stage.tick()
        await stage.follow.idle()
        ready = await stage.store.read(followed.next_ready)
        due = [one.next_at for one in (await schedules(stage)) if one.next_at and one.state == "active"]
        if all(at > stage.now for at in [*due, *([ready] if ready else [])]):
            return
    raise AssertionError("the clock finds no end")


async def go_to(stage: Stage, moment: datetime) -> None:
    """Go to a moment, let the clock do all that is due until then, and hand over."""
    stage.now = moment
    await turn(stage)
    await stage.dispatch()


async def schedules(stage: Stage) -> list[Schedule]:
    return list((await stage.store.read(tasks.schedules)).values())


async def where(stage: Stage, name: str = "remind") -> Following:
    """Return where the followed schedule of a task stands."""
    task = await stage.store.read(tasks.read, name)
    found = await stage.store.read(followed.of, task.id)
    assert found is not None
    return found


async def tell(stage: Stage, id: str, type: str = "appointment.moved") -> None:
    """Take in an event of the shop."""
    await stage.ingest.step(stage.now)
    await stage.ingest.accept(Event(id, "shop", type, stage.now, subject="a"))
