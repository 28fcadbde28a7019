"""The clock: knows what is due in the next seconds, fires it at its moment, and moves the schedules on.

Timers are kept in memory from a prefetch; a notice that something is due earlier shrinks what counts as prefetched.
The version of a schedule settles who fires it: a clock that lost simply reads again.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta

from oncue import crash
from oncue.model import Firing, Schedule, TaskId
from oncue.store import schedules
from oncue.store.base import Store

BEFORE_COMMIT = crash.point("clock.before_commit")
AFTER_COMMIT = crash.point("clock.after_commit")

PREFETCH = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOOK = timedelta(seconds=1)


class Clock:
    """Fires due schedules, at most `batch` in a transaction; holds timers for what is due within `ahead`."""

    name = "clock"

    def __init__(self, store: Store, *, batch: int = 500, ahead: timedelta = timedelta(seconds=2)) -> None:
        self._store = store
        self._batch = batch
        self._ahead = ahead
        self._timers = Timers()
        self._read_to: tuple[datetime, int] = (EPOCH, 0)
        self._look_at = EPOCH

    async def step(self, now: datetime) -> datetime | None:
        """Fire what is due; answer when to be called again."""
        await self._prefetch(now)
        due = self._timers.take(now, limit=self._batch)
        if not due:
            return self._next(now)
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
        """Nothing is ever under way between two steps."""

    async def _prefetch(self, now: datetime) -> None:
        """Read on from where the last prefetch ended; from the start once a second, and from where a notice points."""
        earliest = self._store.bells[self.name].take()
        if earliest is not None and earliest <= self._read_to[0]:
            self._read_to = (earliest - timedelta(microseconds=1), 0)
        until = now + self._ahead
        if now >= self._look_at:
            await self._read((EPOCH, 0), now)
            self._look_at = now + LOOK
        if self._read_to[0] < now + self._ahead / 2:
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

    def _keep(self, firings: list[Firing], won: set[TaskId]) -> None:
        """Set the timers of what this clock moved; what another moved is found by the next look."""
        for fired in firings:
            if fired.schedule.task_id not in won or fired.state != "active" or fired.next_at is None:
                continue
            if (fired.next_at, fired.schedule.task_id) <= self._read_to:
                self._timers.put(_moved(fired))

    def _next(self, now: datetime) -> datetime:
        prefetch_at = max(self._read_to[0] - self._ahead / 2, now)
        return min(at for at in (self._timers.next_due(), self._look_at, prefetch_at) if at is not None)


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
    return Schedule(
        old.task_id, old.task_uuid, old.task_version, old.version + 1, fired.next_at, fired.last_due_at, old.timing
    )
