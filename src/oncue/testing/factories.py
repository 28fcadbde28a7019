"""Nouns for tests: each factory needs only what a test is about. And the first steps of most tests, on any store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec
from uuid import UUID, uuid4

from oncue.definition import Definition, HttpTarget
from oncue.model import (
    Attempt,
    DeadLetter,
    DeadLetterState,
    Delivery,
    DeliveryState,
    Event,
    Json,
    Key,
    NewDeadLetter,
    NewDelivery,
    Run,
    Schedule,
    Task,
)
from oncue.rules import identity
from oncue.store import deliveries, events, failures, runs, schedules, tasks
from oncue.store.base import Committed, Steps, Store
from oncue.store.deliveries import Settled
from oncue.store.events import Accepted, Incoming, Matched
from oncue.store.runs import Progress

P = ParamSpec("P")

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTELY: Json = {"every": "1m"}
LEASE = timedelta(seconds=30)


def at(seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
    """Return a moment after START, when most tests begin."""
    return START + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def make_definition(name: str = "welcome", *, schedule: Json | None = MINUTELY, **changes: Any) -> Definition:
    return Definition(name, HttpTarget("http://127.0.0.1:9/"), schedule=schedule, **changes)


def make_event(id: str = "e1", *, source: str = "shop", type: str = "order.paid", **changes: Any) -> Event:
    return Event(id, source, type, changes.pop("time", START), **changes)


def make_incoming(event: Event, *tasks: Task, digest: str = "same", at_once: bool = False) -> Incoming:
    """Return an event that matched tasks as they were known."""
    matched = tuple(Matched(task.id, task.uuid, task.version, task.state, at_once) for task in tasks)
    return Incoming(event, digest, matched)


def make_delivery(run: Run, key: Key = "k", *, ready_at: datetime = START, counted: int = 1) -> NewDelivery:
    return NewDelivery(identity.message_uuid(run.uuid, key), key, {}, 0, ready_at, (Attempt(START, "503"),), counted)


def make_letter(run: Run | None = None, key: Key = "k", *, kind: str = "message", **changes: Any) -> NewDeadLetter:
    """Return a dead letter of a run; without one, that of a stranger who left only his message."""
    if run is None:
        given: dict[str, Any] = {"identity": f"stranger:{uuid4()}", "kind": kind, "reason": "rejected", "body": b"{}"}
        return NewDeadLetter(**given | {"broker": "main", "queue": "dead", "origin": "mail"} | changes)
    message = identity.message_uuid(run.uuid, key)
    own = identity.run_identity(run.uuid) if kind == "run" else identity.delivery_identity(message, 0)
    given = {
        "identity": own,
        "kind": kind,
        "reason": "503",
        "task_id": run.task_id,
        "task_name": run.task_name,
        "task_version": run.task_version,
        "run_id": run.id,
        "run_uuid": run.uuid,
        "attempts": (Attempt(START, "503"),),
    }
    if kind == "message":
        given |= {"message_id": message, "key": key, "data": {}}
    return NewDeadLetter(**given | changes)


def settled(delivery: Delivery, state: DeliveryState = "delivered", **changes: Any) -> Settled:
    """Return what became of a claimed delivery."""
    given = {"reason": None, "ready_at": delivery.ready_at, "counted": True, "attempts": delivery.errors} | changes
    return Settled(delivery, state, **given)


def page(
    cursor: str | None = None,
    *,
    confirmed: int = 0,
    open: Sequence[NewDelivery] = (),
    dead: Sequence[NewDeadLetter] = (),
) -> Progress:
    """Return what one page came to; without a cursor it was the last."""
    resolved = confirmed + len(open) + len(dead)
    return Progress(cursor, resolved, confirmed, 0, tuple(open), tuple(dead))


async def commit(store: Store, verb: Callable[P, Steps[Any]], *args: P.args, **kwargs: P.kwargs) -> Committed:
    """Run a verb, and return its answer with the changes and the wakes that it yielded."""
    return await store.database.write(lambda: verb(*args, **kwargs))


async def apply(store: Store, *definitions: Definition, prune: bool = False, now: datetime = START) -> list[str]:
    """Apply definitions, and return the verdicts."""
    applied = await store.write(tasks.apply, definitions, prune=prune, actor="tester", now=now)
    return [one.verdict for one in applied]


async def make_task(store: Store, name: str = "welcome", *, now: datetime = START, **changes: Any) -> Task:
    """Apply one definition, and return its task."""
    await apply(store, make_definition(name, **changes), now=now)
    return await store.read(tasks.read, name)


async def schedule_of(store: Store, name: str = "welcome") -> Schedule | None:
    task = await store.read(tasks.read, name)
    return await store.read(tasks.schedule_of, task.id)


async def upcoming(store: Store, until: datetime) -> list[Schedule]:
    """Return the active schedules that are due by `until`."""
    return await store.read(schedules.upcoming, after=(START - timedelta(days=366), 0), until=until, limit=1000)


async def fire_due(store: Store, now: datetime) -> list[Run]:
    """Fire what is due, as the clock does, and return the latest runs, the earliest first."""
    firings = [schedules.decide(schedule, now=now) for schedule in await upcoming(store, now)]
    if firings:
        await store.write(schedules.record_firings, firings, now=now)
    return await latest(store)


async def latest(store: Store, state: str | None = None) -> list[Run]:
    """Return the runs of all tasks, the earliest first."""
    found = await store.read(runs.latest, task_id=None, state=state, before=None, limit=1000)
    return found[::-1]


async def read(store: Store, run: Run) -> Run:
    """Return a run as it is now."""
    return await store.read(runs.read, run.uuid)


async def claim(store: Store, now: datetime, *, limit: int = 10, until: datetime | None = None) -> list[Run]:
    return await store.write(runs.claim, now=now, until=until or now + LEASE, limit=limit)


async def make_running(store: Store, name: str = "welcome", *, now: datetime = START, **changes: Any) -> Run:
    """Make a run by hand of a task without a schedule, and claim it."""
    task = await make_task(store, name, now=now, **{"schedule": None} | changes)
    key = str(uuid4())
    uuid, _ = await store.write(runs.fire, task.id, task.uuid, task.version, key=key, due_at=now, now=now)
    return next(run for run in await claim(store, now) if run.uuid == uuid)


async def checkpoint(store: Store, run: Run, progress: Progress, *, now: datetime = START) -> object:
    return await store.write(runs.checkpoint, run, progress, now=now, until=now + LEASE)


async def make_settling(store: Store, *keys: Key, now: datetime = START) -> Run:
    """Return a run that is handed over but for one delivery for each key."""
    run = await make_running(store, now=now)
    await checkpoint(store, run, page(open=[make_delivery(run, key, ready_at=now) for key in keys or ("k",)]), now=now)
    return await read(store, run)


async def claim_deliveries(store: Store, now: datetime = START, *, limit: int = 10) -> list[Delivery]:
    claimed = await store.write(deliveries.claim, now=now, until=now + LEASE, limit=limit)
    return [delivery for delivery, _ in claimed]


async def deliveries_of(store: Store, run: Run) -> list[Delivery]:
    return await store.read(runs.deliveries, run.id, limit=1000)


async def make_dead(store: Store, *keys: Key, now: datetime = START) -> tuple[Run, list[DeadLetter]]:
    """Return a run that ended as partial, with a dead letter for each key."""
    run = await make_running(store, now=now)
    await checkpoint(store, run, page(dead=[make_letter(run, key) for key in keys or ("k",)]), now=now)
    return await read(store, run), await letters(store)


async def letters(store: Store, state: DeadLetterState | None = None) -> list[DeadLetter]:
    """Return all dead letters, the earliest first."""
    found = await store.read(failures.latest, task=None, state=state, before=None, limit=1000)
    return found[::-1]


async def letter_by(store: Store, uuid: UUID) -> DeadLetter:
    return await store.read(failures.read, uuid)


async def accept(store: Store, *incoming: Incoming, now: datetime = START) -> list[Accepted]:
    return await store.write(events.accept, incoming, now=now, until=now + LEASE)
