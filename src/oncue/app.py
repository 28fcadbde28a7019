"""Oncue as users hold it in Python: one store, one configuration, and the verbs. Executables are made of it too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Literal, Self
from uuid import UUID, uuid4

from oncue import wall
from oncue.adapters.registry import Adapters
from oncue.config import Config
from oncue.definition import Calendar, Definition
from oncue.engine.clock import Clock
from oncue.engine.dispatcher import Dispatcher, Limits
from oncue.engine.failures import Failures
from oncue.engine.follow import Follow
from oncue.engine.handover import Handover, Preview
from oncue.engine.ingest import Ingest
from oncue.engine.loop import Component, Loop
from oncue.engine.watch import Watch, examine
from oncue.errors import ConfigError, Conflict
from oncue.model import Event, Requeue, RequeueState, Schedule, Task
from oncue.observe.log import tell_changes
from oncue.observe.metrics import Metrics
from oncue.rules import backfilling, states, times
from oncue.rules.health import Problem
from oncue.store import (
    backfills,
    calendars,
    catch_up,
    codec,
    failures,
    followed,
    overrides,
    runs,
    schedules,
    tasks,
    watch,
)
from oncue.store.backfills import Backfill, Planned
from oncue.store.base import Database, Store
from oncue.store.calendars import Stored
from oncue.store.catch_up import ToCatchUp
from oncue.store.events import Accepted
from oncue.store.tasks import Applied
from oncue.store.watch import Figures
from oncue.taskfile import check_references

RequeueVerb = Literal["pause", "resume", "cancel"]
ENGINE = ("clock", "ingest", "dispatcher", "failures", "watch")


class Oncue:
    """An Oncue over one store. `async with app:` opens the store and migrates it where that is safe."""

    def __init__(self, config: Config | str = "sqlite:///oncue.db") -> None:
        self.config = Config(store=config) if isinstance(config, str) else config
        self.store = Store(open_database(self.config.store))
        self.adapters = Adapters(self.config)
        self.loop = Loop(self.store)
        self.metrics = Metrics(now=self.loop.now)
        self.store.listeners += [tell_changes, self.metrics.count]
        dispatcher = self.config.dispatcher
        self._handover = Handover(
            self.store,
            self.adapters,
            now=self.loop.now,
            page=dispatcher.page,
            resolve_timeout=dispatcher.resolve_timeout,
        )
        self.follow = Follow(
            self.store, self._handover, self.adapters, now=self.loop.now, timeout=dispatcher.resolve_timeout
        )
        self.ingest = Ingest(
            self.store,
            self._handover,
            now=self.loop.now,
            lease=dispatcher.lease,
            in_flight=self.config.ingest.in_flight,
        )

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Check the schema; a SQLite store is brought up to date, a PostgreSQL store must be (`oncue migrate`)."""
        await self.store.database.migrate(only_check=self.store.database.has_own_clock)

    async def close(self) -> None:
        await self.adapters.close()
        await self.store.close()

    def component(self, name: str) -> Component:
        """Return one of the engine's components over this store."""
        config, store, now = self.config, self.store, self.loop.now
        match name:
            case "clock":
                return Clock(store, batch=config.clock.batch, ahead=config.clock.ahead, follow=self.follow)
            case "ingest":
                return self.ingest
            case "dispatcher":
                limits = Limits(config.dispatcher.lease, config.dispatcher.runs, config.dispatcher.deliveries)
                return Dispatcher(store, self._handover, now=now, limits=limits)
            case "failures":
                queues = [(name, queue) for name, broker in config.broker.items() for queue in broker.dead_letters]
                return Failures(store, self.adapters, now=now, queues=queues, lease=config.dispatcher.lease)
            case "watch":
                watch = config.watch
                return Watch(
                    store, every=watch.every, overdue=watch.overdue, retention=watch.retention, seen=self.metrics.see
                )
        raise ConfigError(f'no component "{name}". Known components: {", ".join(ENGINE)}.')

    async def run(self, names: Sequence[str] = ENGINE, *, beside: Sequence[Component] = ()) -> None:
        """Run components, and those `beside` them, until `loop.stop()` is called; then drain them."""
        components = [*beside, *(self.component(name) for name in names)]
        await self.loop.run(components, drain=self.config.dispatcher.drain)

    @asynccontextmanager
    async def running(self, names: Sequence[str] = ENGINE) -> AsyncIterator[Self]:
        """Run components beside the caller: `async with app.running(): ...`."""
        task = asyncio.create_task(self.run(names))
        try:
            yield self
        finally:
            self.loop.stop()
            await task

    async def now(self) -> datetime:
        """Return the store's time."""
        return await self.store.write(schedules.read_clock, wall.now())

    async def apply(
        self,
        definitions: Sequence[Definition],
        *,
        calendars: Sequence[Calendar] = (),
        prune: bool = False,
        actor: str = "python",
    ) -> list[Applied]:
        """Make the store's tasks and calendars as these say. Raises TaskFileError."""
        check_references(definitions, self.config)
        now = await self.now()
        return await self.store.write(tasks.apply, definitions, calendars=calendars, prune=prune, actor=actor, now=now)

    async def tasks(self) -> list[Task]:
        return await self.store.read(tasks.every)

    async def calendars(self) -> list[Calendar]:
        """Return all stored calendars, by name."""
        return list((await self.store.read(calendars.every)).values())

    async def put_calendar(self, calendar: Calendar, *, actor: str = "python") -> Stored:
        """Store a calendar, and reckon again the tasks that use it. Raises TaskFileError: it leaves one no time."""
        return await self.store.write(calendars.put, calendar, actor=actor, now=await self.now())

    async def preview_calendar(self, calendar: Calendar) -> Stored:
        """Return what `put_calendar` would come to; nothing is written. Raises TaskFileError."""
        return await self.store.read(calendars.preview, calendar, now=await self.now())

    async def remove_calendar(self, name: str, *, actor: str = "python") -> None:
        """Forget a calendar. Raises NotFound, and Conflict where a task uses it."""
        await self.store.write(calendars.remove, name, actor=actor, now=await self.now())

    async def fire(self, name: str, *, key: str | None = None, due_at: datetime | None = None) -> tuple[UUID, bool]:
        """Make a run now, besides the schedule. The same `key` again answers the same run, and False."""
        task = await self.store.read(tasks.read, name)
        now = await self.now()
        return await self.store.write(
            runs.fire, task.id, task.uuid, task.version, key=key or uuid4().hex, due_at=due_at or now, now=now
        )

    async def pause(self, name: str, *, reason: str, until: datetime | None = None, actor: str = "python") -> Task:
        """Stop a task's triggers until it is resumed, or until a moment. Raises NotFound, Conflict."""
        now = await self.now()
        return await self.store.write(tasks.pause, name, reason=reason, until=until, actor=actor, now=now)

    async def resume(self, name: str, *, actor: str = "python") -> Task:
        return await self.store.write(tasks.resume, name, actor=actor, now=await self.now())

    async def skip(self, name: str, due_at: datetime, *, reason: str, actor: str = "python") -> Schedule:
        """Leave out one due time to come. Raises NotFound, Conflict."""
        now = await self.now()
        return await self.store.write(overrides.skip, name, due_at, reason=reason, actor=actor, now=now)

    async def move(self, name: str, due_at: datetime, *, to: datetime, reason: str, actor: str = "python") -> Schedule:
        """Let one due time to come run at another moment instead. Raises NotFound, Conflict."""
        now = await self.now()
        return await self.store.write(overrides.move, name, due_at, to=to, reason=reason, actor=actor, now=now)

    async def restore(self, name: str, due_at: datetime, *, actor: str = "python") -> Schedule:
        """Take back that a due time was skipped or moved. Raises NotFound, Conflict."""
        return await self.store.write(overrides.restore, name, due_at, actor=actor, now=await self.now())

    async def plan_backfill(self, name: str, first: datetime, last: datetime) -> Planned:
        """Return what a backfill of the due times from `first` to `last` would make. Raises NotFound, Conflict."""
        task, schedule = await self.store.read(backfills.subject, name)
        trigger = codec.read_trigger(schedule.timing)
        # Ten thousand times can take a second to find: not on the loop.
        moments = await asyncio.to_thread(backfilling.due_times, trigger, first, last, name=name)
        ran, before = await self.store.read(backfills.look_back, task, moments)
        return Planned(task, schedule, moments, times.previous_before(trigger, moments[0]), ran, before)

    async def backfill(
        self,
        name: str,
        first: datetime,
        last: datetime,
        *,
        pace: timedelta | None = None,
        key: str | None = None,
        actor: str = "python",
    ) -> tuple[Backfill, bool]:
        """Make a run for each due time from `first` to `last`, one each `pace`. Raises NotFound, Conflict.

        The schedule stays where it is. The same `key` again answers the same backfill, and False.
        """
        if key is not None and (made := await self.backfill_by_key(name, key)):
            return made, False
        planned = await self.plan_backfill(name, first, last)
        backfilling.check_pace(len(planned.moments), pace)
        now = await self.now()
        return await self.store.write(backfills.make, planned, key=key or uuid4().hex, pace=pace, actor=actor, now=now)

    async def backfill_by_key(self, name: str, key: str) -> Backfill | None:
        """Return the backfill that a key made of a task before. Raises NotFound."""
        task = await self.store.read(tasks.read, name)
        return await self.store.read(backfills.known, task.uuid, key)

    async def backfills(self, *, before: int | None = None, limit: int = 50) -> list[Backfill]:
        """Return backfills with their progress, the latest first."""
        return await self.store.read(backfills.latest, before=before, limit=limit)

    async def cancel_backfill(self, backfill: UUID, *, reason: str, actor: str = "python") -> Backfill:
        """End what waits of a backfill; what runs goes on. Raises NotFound."""
        return await self.store.write(backfills.cancel, backfill, reason=reason, actor=actor, now=await self.now())

    async def to_catch_up(self, name: str | None = None) -> list[ToCatchUp]:
        """Return the missed runs that wait for a person, of one task or of all. Raises NotFound."""
        return await self.store.read(catch_up.plan, name, now=await self.now())

    async def catch_up(self, name: str | None = None, *, actor: str = "python") -> int:
        """Let the missed runs go that wait for a person, of one task or of all; answer how many. Raises NotFound."""
        ids = [one.held.task_id for one in await self.to_catch_up(name)]
        return await self.store.write(catch_up.release, ids, actor=actor, now=await self.now())

    async def drop_missed(self, name: str | None = None, *, reason: str, actor: str = "python") -> int:
        """Cancel the missed runs that wait for a person, of one task or of all; answer how many. Raises NotFound."""
        ids = [one.held.task_id for one in await self.to_catch_up(name)]
        return await self.store.write(catch_up.drop, ids, reason=reason, actor=actor, now=await self.now())

    async def preview(self, name: str, *, due_at: datetime | None = None, limit: int = 20) -> Preview:
        """Ask who would be resolved now, and what each would get; nothing is sent. Raises ResolveError."""
        task = await self.store.read(tasks.read, name)
        horizon = await self.store.read(followed.horizon_of, task.id)
        due_at = due_at or await self.now()
        return await self._handover.preview(task, due_at=due_at, previous_due_at=horizon, limit=limit)

    async def cancel(self, run: UUID, *, reason: str) -> str:
        """End a run, or ask its dispatcher to end it at its next page; answer which. Raises NotFound, Conflict."""
        return await self.store.write(runs.cancel, run, reason=reason, now=await self.now())

    async def move_requeue(self, requeue: UUID, verb: RequeueVerb) -> Requeue:
        """Pause, resume or cancel a requeue. Raises NotFound, Conflict."""
        made = await self.store.read(failures.read_requeue, requeue)
        to: RequeueState | None = states.move("requeue", made.state, verb)  # type: ignore[assignment]  # of the table
        if to is None:
            allowed = " or ".join(states.before("requeue", verb))
            raise Conflict(f"requeue {requeue} is {made.state}: {verb} needs one that is {allowed}.")
        now = await self.now()
        await self.store.write(failures.move_requeue, made, to, reason=f"asked to {verb}", ready_at=now, now=now)
        return await self.store.read(failures.read_requeue, requeue)

    async def examine(self) -> tuple[Figures, list[Problem]]:
        """Look over the whole store: figures, and what is wrong now."""
        now = self.loop.now()
        figures = await self.store.read(watch.figures, now=now)
        return figures, await examine(self.store, figures, now=now, overdue=self.config.watch.overdue)

    async def emit(self, event: Event) -> Accepted:
        """Take an event in; return when what it caused is durable. Raises InvalidEvent, Conflict, StoreUnavailable."""
        return await self.ingest.accept(event)


def open_database(url: str) -> Database:
    """Return the database that a store's URL names. Raises ConfigError."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        from oncue.store.sqlite import SqliteDatabase

        return SqliteDatabase(rest.removeprefix("/"))
    if scheme in ("postgresql", "postgres"):
        try:
            from oncue.store.postgres import PostgresDatabase
        except ImportError:
            raise ConfigError("a PostgreSQL store needs its driver: pip install 'oncue[postgres]'.") from None
        return PostgresDatabase(url)
    raise ConfigError(f'store "{scheme}://…" is not known. Give sqlite:///oncue.db or postgresql://user@host/name.')
