"""The engine on a moved clock: what it would do with tasks over a span of time, outages and slow runs included.

Clock, claims, slots, misfires and ledger are the real ones, over a store that is thrown away. Only the hand-over is
stood in for: a claimed run takes its task's simulated duration, and is then done, with nobody resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from oncue.definition import Calendar, Definition
from oncue.engine.clock import EPOCH, Clock
from oncue.model import Change, Run, RunId, Task
from oncue.rules import binding, verdicts
from oncue.store import endings, runs, schedules, tasks, watch
from oncue.store.base import Steps, Store
from oncue.store.runs import Progress

BATCH = 500
LEASE = timedelta(seconds=30)
MOST = 2**31
NOBODY = Progress(None, 0, 0, 0)
INTERRUPTED = "interrupted by an outage"
NAMES = UUID("5f6f0e0a-0d1c-5d0e-9a55-6f6e63756521")
FOREVER = datetime.max.replace(tzinfo=UTC)

Span = tuple[datetime, datetime]
Tell = Callable[[datetime, int], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated: the tasks are applied at `start`, and all that is due in (start, end] is decided.

    In an outage [from, to) nothing is done. `slow` is how long a task's runs take. After `limit` runs it is cut.
    `uuids` are the ids of tasks that are known already: jitter is hashed from them.
    """

    start: datetime
    end: datetime
    outages: tuple[Span, ...] = ()
    slow: Mapping[str, timedelta] = field(default_factory=dict)
    limit: int = 10_000
    calendars: tuple[Calendar, ...] = ()
    uuids: Mapping[str, UUID] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fired:
    """What became of one due time, or of `count` of them that made no run."""

    task: str
    first_due_at: datetime
    due_at: datetime
    count: int
    verdict: str
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    lateness: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Simulated:
    """All firings by their due times, and where each schedule stands at the end: (state, reason, next time).

    `cut_at` is the moment up to which everything was decided, None where that is the whole span.
    """

    fired: tuple[Fired, ...]
    standing: Mapping[str, tuple[str, str | None, datetime | None]]
    cut_at: datetime | None


async def simulate(store: Store, definitions: Sequence[Definition], scenario: Scenario, *, tell: Tell) -> Simulated:
    """Play a scenario on an empty store. `tell` is called with each moment and the number of runs so far."""
    uuids = {one.name: scenario.uuids.get(one.name) or uuid5(NAMES, one.name) for one in definitions}
    await store.write(
        tasks.apply,
        definitions,
        calendars=scenario.calendars,
        uuids=uuids,
        prune=False,
        actor="simulation",
        now=scenario.start,
    )
    simulation = Simulation(store, await store.read(tasks.every), scenario)
    cut_at = await simulation.play(tell)
    return Simulated(await simulation.fired(), await simulation.standing(), cut_at)


class Simulation:
    """Goes from one moment at which something happens to the next."""

    def __init__(self, store: Store, known: Sequence[Task], scenario: Scenario) -> None:
        self._store = store
        self._tasks = {task.id: task for task in known}
        self._scenario = scenario
        self._clock = Clock(store)
        self._outages = _joined(scenario.outages)
        self._now = scenario.start
        self._under_way: dict[RunId, tuple[datetime, Run]] = {}
        self._made = 0
        store.listeners.append(self._count)

    async def play(self, tell: Tell) -> datetime | None:
        """Play to the end; answer where it was cut, None where it was not."""
        while (moment := await self._next()) is not None and moment <= self._scenario.end:
            if self._made >= self._scenario.limit:
                return self._now
            self._now = moment
            await self._step(moment)
            tell(moment, self._made)
        return None

    async def fired(self) -> tuple[Fired, ...]:
        """Return what became of each due time, as runs and ledger say it."""
        found: list[Fired] = []
        for task in self._tasks.values():
            for run in await self._store.read(watch.runs_between, task.id, first=EPOCH, last=FOREVER, limit=MOST):
                found.append(_of_run(run, grace=task.definition.misfire.grace))
            for entry in await self._store.read(watch.ledger, task.id, first=EPOCH, last=FOREVER, limit=MOST):
                first, last, count = entry["first_due_at"], entry["last_due_at"], entry["count"]
                verdict = verdicts.of_entry(entry["verdict"])
                found.append(Fired(task.name, first, last, count, verdict, entry["reason"]))
        return tuple(sorted(found, key=lambda one: (one.due_at, one.task)))

    async def standing(self) -> dict[str, tuple[str, str | None, datetime | None]]:
        """Return how each schedule stands now."""
        found = await self._store.read(tasks.schedules)
        return {self._tasks[id].name: (one.state, one.reason, one.next_at) for id, one in found.items()}

    def _count(self, change: Change) -> None:
        if change.noun == "run" and change.state == "due":
            self._made += int(change.facts["count"])

    async def _next(self) -> datetime | None:
        """Return the next moment at which something happens; outages that come first are gone through."""
        while True:
            earliest = await self._earliest()
            if earliest is None or not self._outages or earliest < self._outages[0][0]:
                return earliest
            begins, ends = self._outages.pop(0)
            for _, run in self._under_way.values():
                await self._store.write(runs.give_back, run, ready_at=begins, counted=False, reason=INTERRUPTED)
            self._under_way.clear()
            self._now = max(self._now, ends)

    async def _earliest(self) -> datetime | None:
        found = await self._store.read(_next_moment)
        moments = [ends_at for ends_at, _ in self._under_way.values()] + ([found] if found else [])
        return max(min(moments), self._now) if moments else None

    async def _step(self, now: datetime) -> None:
        """Do all that is to be done at one moment. What ends now makes room for what is due now."""
        ended = [run for ends_at, run in self._under_way.values() if ends_at <= now]
        if ended:
            await self._store.write(_finish, ended, now=now)
            self._forget(ended)
        next_at = await self._clock.step(now)
        while next_at is not None and next_at <= now:
            next_at = await self._clock.step(now)
        begun, replaced = await self._store.write(self._carry, now=now)
        self._under_way |= {run.id: (now + self._takes(run), run) for run in begun}
        self._forget(replaced)

    def _carry(self, *, now: datetime) -> Steps[tuple[list[Run], list[Run]]]:
        """Claim all that is ready and carry it out; return the slow runs that began, and those that were replaced."""
        under_way = dict(self._under_way)
        begun: list[Run] = []
        replaced: list[Run] = []
        while (ready_at := (yield from runs.next_ready())) is not None and ready_at <= now:
            for run in (yield from runs.claim(now=now, until=now + LEASE, limit=BATCH)):
                definition = self._tasks[run.task_id].definition
                if binding.is_expired(run, definition.expires, now=now):
                    reason = f"later than {definition.expires} after it was due"
                    yield from endings.end_run(run, "expired", reason=reason, now=now)
                elif self._takes(run):
                    under_way[run.id] = (now + self._takes(run), run)
                    yield from runs.renew(run, until=under_way[run.id][0] + LEASE)
                    begun.append(run)
                else:
                    yield from runs.checkpoint(run, NOBODY, now=now, until=now)
            for run in (yield from _replace(under_way.values(), now=now)):
                replaced.append(run)
                del under_way[run.id]
        return begun, replaced

    def _takes(self, run: Run) -> timedelta:
        return self._scenario.slow.get(run.task_name, timedelta())

    def _forget(self, ended: Sequence[Run]) -> None:
        for run in ended:
            self._under_way.pop(run.id, None)


def _next_moment() -> Steps[datetime | None]:
    """Return when a schedule is due next, or a run ready."""
    due = yield from schedules.upcoming(after=(EPOCH, 0), until=FOREVER, limit=1)
    ready_at = yield from runs.next_ready()
    return min((moment for moment in (due[0].next_at if due else None, ready_at) if moment is not None), default=None)


def _finish(ended: Sequence[Run], *, now: datetime) -> Steps[None]:
    for run in ended:
        yield from runs.checkpoint(run, NOBODY, now=now, until=now)


def _replace(under_way: Iterable[tuple[datetime, Run]], *, now: datetime) -> Steps[list[Run]]:
    """End the slow runs that a later one waits to replace: they count as many short pages."""
    replaced: list[Run] = []
    for ends_at, run in under_way:
        if run.overlap == "replace":
            asked = yield from runs.renew(run, until=ends_at + LEASE)
            if isinstance(asked, str):
                yield from endings.end_run(run, "cancelled", reason=asked, now=now)
                replaced.append(run)
    return replaced


def _of_run(run: Run, *, grace: timedelta) -> Fired:
    started_at, late, reason = run.started_at, binding.lateness(run), run.reason
    if run.state == "running":
        reason = "still under way at the end"
    elif run.state == "due":
        reason = reason or "not begun at the end"
    elif run.state == "expired" and started_at == run.ended_at:
        started_at = late = None  # it was claimed, and found too late: nothing began
    verdict = verdicts.of_run(run, grace=grace)
    return Fired(run.task_name, run.due_at, run.due_at, 1, verdict, reason, started_at, run.ended_at, late)


def _joined(outages: Iterable[Span]) -> list[Span]:
    """Return outages in order, those that touch as one."""
    found: list[Span] = []
    for begins, ends in sorted(outages):
        if found and begins <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ends))
        else:
            found.append((begins, ends))
    return found
