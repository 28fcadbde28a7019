"""The watch: looks for what is late, stuck, silent or growing, tells it once when it begins and ends, and sweeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from oncue.definition import Calendar
from oncue.observe.log import log
from oncue.rules import calendar_words, health
from oncue.store import calendars, catch_up, followed, watch
from oncue.store.base import Store
from oncue.store.watch import Figures

SILENT = timedelta(seconds=45)
SWEEP = timedelta(minutes=1)
SWEEP_ROWS = 1000
TOLD = health.NAMED + 1  # tasks that use a calendar


class Watch:
    """Looks every `every`; alerts on what is older than `overdue`; deletes what ended more than `retention` ago.

    `seen` is called with each look: metrics listen there.
    """

    name = "watch"

    def __init__(
        self,
        store: Store,
        *,
        every: timedelta = timedelta(seconds=10),
        overdue: timedelta = timedelta(seconds=30),
        retention: timedelta = timedelta(days=30),
        dedupe: timedelta = timedelta(days=7),
        seen: Callable[[Figures, list[health.Problem]], None] = lambda _figures, _problems: None,
    ) -> None:
        self._store = store
        self._every = every
        self._overdue = overdue
        self._retention = retention
        self._dedupe = dedupe
        self._seen = seen
        self._known: dict[tuple[str, str], health.Problem] = {}
        self._look_at: datetime | None = None
        self._sweep_at: datetime | None = None

    async def step(self, now: datetime) -> datetime | None:
        """Look, tell what changed, and sweep when it is time."""
        if self._look_at is None or now >= self._look_at:
            await self._look(now)
            self._look_at = now + self._every
        if self._sweep_at is None or now >= self._sweep_at:
            gone = await self._sweep(now)
            self._sweep_at = now if gone >= SWEEP_ROWS else now + SWEEP
        return min(self._look_at, self._sweep_at)

    async def drain(self) -> None:
        """Nothing is ever under way between two steps."""

    async def _look(self, now: datetime) -> None:
        figures = await self._store.read(watch.figures, now=now)
        found = await examine(self._store, figures, now=now, overdue=self._overdue)
        self._seen(figures, found)
        current = {(problem.code, problem.subject): problem for problem in found}
        for key, problem in current.items():
            if key not in self._known:
                log.warning("alert", code=problem.code, text=problem.text)
        for key, problem in self._known.items():
            if key not in current:
                log.info("alert over", code=problem.code, subject=problem.subject)
        self._known = current

    async def _sweep(self, now: datetime) -> int:
        return await self._store.write(
            watch.sweep,
            ended_before=now - self._retention,
            events_before=now - 2 * self._dedupe,
            silent_before=now - timedelta(days=1),
            limit=SWEEP_ROWS,
        )


async def examine(store: Store, figures: Figures, *, now: datetime, overdue: timedelta) -> list[health.Problem]:
    """Return what is wrong now; also for `oncue doctor` and `/readyz`."""
    components = await store.read(watch.components)
    held = await store.read(watch.held, now=now, before=now - overdue)
    to_catch_up = await store.read(catch_up.every) if figures.runs_held else []
    signs = health.Signs(
        oldest_schedule=figures.oldest_schedule,
        oldest_run=figures.oldest_run,
        stopped=figures.stopped,
        unanswered=await store.read(followed.unanswered),
        held=held,
        dead_letters=figures.dead_letters_open,
        schedules=figures.schedules.get("active", 0),
        seen=[(one.name, f"{one.host} (pid {one.pid})", one.seen_at) for one in components],
        to_catch_up=[(one.task_name, one.count) for one in to_catch_up],
        calendars=await _ending(store, now),
        editions=[
            (one.name, f"{one.host} (pid {one.pid})", one.zone_data)
            for one in components
            if one.zone_data and now - one.seen_at <= SILENT
        ],
    )
    return health.problems(signs, now=now, overdue=overdue, silent=SILENT)


async def _ending(store: Store, now: datetime) -> list[tuple[Calendar, list[str]]]:
    """Return the calendars that end soon or have ended, each with the tasks that use it."""
    found = []
    for calendar in (await store.read(calendars.every)).values():
        left = calendar_words.days_left(calendar, now.date())
        if left is not None and left <= calendar_words.ENDS_SOON:
            found.append((calendar, await store.read(calendars.users_to_come, calendar.name, limit=TOLD)))
    return found
