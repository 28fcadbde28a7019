"""The clock: knows what is due in the next seconds, fires it at its moment, and moves the schedules on.

Timers are kept in memory from a prefetch; a notice that something is due earlier shrinks what counts as prefetched.
The version of a schedule settles who fires it: a clock that lost simply reads again.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from oncue import crash
from oncue.engine.follow import Follow
from oncue.model import Schedule, TaskId
from oncue.observe.log import log
from oncue.rules.firing import Firing
from oncue.store import changing, reckoning, schedules
from oncue.store.base import Store
from oncue.zonedata import UNKNOWN, edition

BEFORE_COMMIT = crash.point("clock.before_commit")
AFTER_COMMIT = crash.point("clock.after_commit")

PREFETCH = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOOK = timedelta(seconds=1)


class Clock:
    """Fires due schedules, at most `batch` in a transaction; holds timers for what is due within `ahead`."""

    name = "clock"

    def __init__(
        self,
        store: Store,
        *,
        batch: int = 500,
        ahead: timedelta = timedelta(seconds=2),
        follow: Follow | None = None,
    ) -> None:
        self._store = store
        self._follow = follow
        self._is_told = False
        self._batch = batch
        self._ahead = ahead
        self._timers = Timers()
        self._read_to: tuple[datetime, int] = (EPOCH, 0)
        self._look_at = EPOCH
        self._pause_ends_at: datetime | None = None
        self._reckoned_to: int | None = 0 if edition() != UNKNOWN else None

    async def step(self, now: datetime) -> datetime | None:
        """Fire what is due, and let followed schedules be asked for; answer when to be called again."""
        next_at = await self._fire(now)
        if self._follow is None:
            return next_at
        told, self._is_told = self._is_told, False
        follow_at = await self._follow.step(now, is_told=told)
        return next_at if follow_at is None else min(next_at, follow_at)

    async def _fire(self, now: datetime) -> datetime:
        await self._end_pauses(now)
        await self._prefetch(now)
        due = self._timers.take(now, limit=self._batch)
        if not due:
            return await self._reckon_again(now) or self._next(now)
        firings = [schedules.decide(schedule, now=now) for schedule in due]
        BEFORE_COMMIT()
        try:
            won = await self._store.write(schedules.record_firings, firings, now=now)
        except BaseException:
            self._read_to = (EPOCH, 0)
            raise
        AFTER_COMMIT()
        self._keep(firings, won)
        return self._next(now)

    async def drain(self) -> None:
        """Let what is asked for be answered; of the clock itself nothing is under way between two steps."""
        if self._follow is not None:
            await self._follow.drain()

    async def _prefetch(self, now: datetime) -> None:
        """Read on from where the last prefetch ended; from the start once a second, and from where a notice points."""
        earliest = self._store.bells[self.name].take()
        self._is_told = self._is_told or earliest is not None
        if earliest is not None and earliest <= self._read_to[0]:
            self._read_to = (earliest - timedelta(microseconds=1), 0)
        until = now + self._ahead
        if now >= self._look_at:
            await self._read((EPOCH, 0), now)
            self._pause_ends_at = await self._store.read(changing.next_end, until=now + LOOK)
            self._look_at = now + LOOK
        if self._read_to[0] <= now + self._ahead / 2:
            self._read_to = await self._read(self._read_to, until)

    async def _read(self, after: tuple[datetime, int], until: datetime) -> tuple[datetime, int]:
        found = await self._store.read(schedules.upcoming, after=after, until=until, limit=PREFETCH)
        for schedule in found:
            self._timers.put(schedule)
        if len(found) < PREFETCH:
            return max(after[0], until), 0
        last = found[-1]
        assert last.next_at is not None
        return last.next_at, last.task_id

    async def _end_pauses(self, now: datetime) -> None:
        """Resume the tasks whose pause is over, before what has been due since then is read."""
        if self._pause_ends_at is not None and self._pause_ends_at <= now:
            self._pause_ends_at = None
            await self._store.write(changing.begin, now=now)

    async def _reckon_again(self, now: datetime) -> datetime | None:
        """Once in its life, reckon what older zone data had reckoned; a range at a time, while nothing is due."""
        if self._reckoned_to is None:
            return None
        old, following = await self._store.read(reckoning.by_older_zone_data, now=now, after=self._reckoned_to)
        if old:
            moved = await self._store.write(reckoning.reckon_again, old, now=now)
            log.info("zone data changed", edition=edition(), reckoned=len(old), moved=len(moved))
            self._read_to = (EPOCH, 0)
        self._reckoned_to = following
        return now if old or following is not None else None

    def _keep(self, firings: list[Firing], won: set[TaskId]) -> None:
        """Set the timers of what this clock moved; what another moved is found by the next look."""
        for fired in firings:
            if fired.schedule.task_id not in won or fired.state != "active" or fired.next_at is None:
                continue
            if (fired.next_at, fired.schedule.task_id) <= self._read_to:
                self._timers.put(_moved(fired))

    def _next(self, now: datetime) -> datetime:
        prefetch_at = max(self._read_to[0] - self._ahead / 2, now)
        ahead = (self._timers.next_due(), self._look_at, prefetch_at, self._pause_ends_at)
        return min(at for at in ahead if at is not None)


class Timers:
    """Schedules by their next times, in memory; of two versions of one schedule the later counts."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, int]] = []
        self._known: dict[int, Schedule] = {}

    def put(self, schedule: Schedule) -> None:
        known = self._known.get(schedule.task_id)
        if schedule.next_at is None or (known and known.version >= schedule.version):
            return
        self._known[schedule.task_id] = schedule
        heapq.heappush(self._heap, (schedule.next_at, schedule.task_id, schedule.version))

    def take(self, now: datetime, *, limit: int) -> list[Schedule]:
        """Take what is due, earliest first."""
        taken: list[Schedule] = []
        while self._heap and len(taken) < limit and self._heap[0][0] <= now:
            _, task_id, version = heapq.heappop(self._heap)
            known = self._known.get(task_id)
            if known is not None and known.version == version:
                taken.append(self._known.pop(task_id))
        return taken

    def next_due(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None


def _moved(fired: Firing) -> Schedule:
    old = fired.schedule
    return replace(
        old,
        version=old.version + 1,
        next_at=fired.next_at,
        last_due_at=fired.last_due_at,
        runs_left=fired.runs_left,
    )
