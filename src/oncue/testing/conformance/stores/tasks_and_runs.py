"""Tasks, schedules and runs, brought to each of their states."""

from __future__ import annotations

from functools import partial

from oncue.definition import Misfire
from oncue.model import Json, Run, RunState, Schedule
from oncue.rules import firing
from oncue.rules.firing import Firing
from oncue.store import catch_up, deliveries, endings, reckoning, runs, schedules, tasks
from oncue.store.base import Steps, Store, ask
from oncue.testing.factories import (
    apply,
    at,
    checkpoint,
    claim,
    claim_deliveries,
    fire_due,
    make_definition,
    make_delivery,
    make_letter,
    page,
    read,
    schedule_of,
    upcoming,
)

ONCE: Json = {"at": "2026-03-02T09:01:00Z"}
HOURLY: Json = {"cron": "0 * * * *"}


class TaskSubject:
    """A task."""

    def __init__(self, store: Store, move: str) -> None:
        self._store, self._move = store, move
        self._id = 0

    async def bring_to(self, state: str) -> None:
        await apply(self._store, make_definition())
        self._id = (await self._store.read(tasks.read, "welcome")).id
        if state != "active":
            await self.attempt("pause" if state == "paused" else "remove")

    async def attempt(self, move: str) -> None:
        match move:
            case "pause" | "extend":
                until = at(days=9) if move == "extend" else None
                pausing = partial(tasks.pause, "welcome", reason="test", until=until, actor="tester", now=at(1))
                if move == "pause" or (await self.state()) == "paused":
                    await self._store.write(pausing)
            case "resume":
                await self._store.write(tasks.resume, "welcome", actor="tester", now=at(2))
            case "remove":
                await apply(self._store, prune=True, now=at(3))

    async def state(self) -> str:
        return (await self._store.read(tasks.at_version, self._id, 1)).state


class ScheduleSubject:
    """A schedule. One that is to finish has one time, the others go on."""

    def __init__(self, store: Store, move: str) -> None:
        self._store, self._move = store, move
        self._held: Schedule | None = None

    async def bring_to(self, state: str) -> None:
        once = state == "finished" or self._move == "finish"
        counted = self._move == "revive" and state == "finished"
        counts: Json = {"max_runs": 1} if counted else {}
        await apply(self._store, make_definition(schedule=ONCE if once and not counted else {"every": "1m"} | counts))
        (self._held,) = await upcoming(self._store, at(60))
        match state:
            case "paused":
                await self.attempt("pause")
            case "stopped":
                await self.attempt("stop")
            case "finished" if self._move == "revive":
                await fire_due(self._store, at(60))
            case "finished":
                await self.attempt("finish")
        self._held = await schedule_of(self._store)

    async def attempt(self, move: str) -> None:
        assert self._held is not None
        match move:
            case "fire":
                fired = Firing(self._held, (), (), at(120), at(60), "active")
                await self._store.write(schedules.record_firings, [fired], now=at(61))
            case "stop":
                await self._store.write(schedules.record_firings, [firing.stop(self._held, "test")], now=at(61))
            case "finish" if self._held.state == "paused":
                await self._store.write(tasks.resume, "welcome", actor="tester", now=at(61))
            case "finish":
                fired = Firing(self._held, (), (), None, at(60), "finished")
                await self._store.write(schedules.record_firings, [fired], now=at(61))
            case "pause":
                await self._store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(2))
            case "resume":
                await self._store.write(tasks.resume, "welcome", actor="tester", now=at(3))
            case "revive":
                await self._store.write(reckoning.revive, [(self._held.task_id, self._held.task_version)], now=at(61))
            case "change":
                await apply(self._store, make_definition(schedule=HOURLY), now=at(62))

    async def state(self) -> str:
        schedule = await schedule_of(self._store)
        assert schedule is not None
        return schedule.state


class RunSubject:
    """A scheduled run of minute 2. For moves that a taken slot brings about, the run of minute 1 holds it."""

    def __init__(self, store: Store, move: str) -> None:
        self._store, self._move = store, move
        self._holder: Run | None = None
        self._run: Run | None = None

    async def bring_to(self, state: str) -> None:
        if state == "held":
            await apply(self._store, make_definition(misfire=Misfire(hold=True)), now=at(0))
            self._run = (await fire_due(self._store, at(170)))[0]
            return
        overlap = "skip" if state == "skipped" or self._move == "skip" else "queue"
        await apply(self._store, make_definition(overlap=overlap), now=at(0))
        await fire_due(self._store, at(60))
        (self._holder,) = await claim(self._store, at(60), until=at(hours=9))
        if state not in ("due", "queued", "skipped") or (state, self._move) == ("due", "claim"):
            await checkpoint(self._store, self._holder, page(confirmed=1), now=at(61))
        self._run = (await fire_due(self._store, at(120)))[-1]
        await self._bring(state)
        self._run = await read(self._store, self._run)

    async def _bring(self, state: RunState | str) -> None:
        match state:
            case "due":
                return
            case "queued":
                await self._store.write(_queue, self._known)
            case "skipped":
                await claim(self._store, at(120))
            case _:
                (self._run,) = await claim(self._store, at(120))
        match state:
            case "settling":
                await self.attempt("settle")
            case "done":
                await self.attempt("finish")
            case "partial":
                await self.attempt("part")
            case "failed" | "expired" | "cancelled":
                await self._end(state)

    async def attempt(self, move: str) -> None:
        run = self._known
        match move:
            case "claim" | "queue" | "skip":
                await claim(self._store, at(hours=1))
            case "wake" if self._holder is not None:
                await checkpoint(self._store, self._holder, page(confirmed=1), now=at(130))
            case "give_back":
                await self._store.write(runs.give_back, run, ready_at=at(130), counted=True, reason="test")
            case "release":
                await self._store.write(catch_up.release, [run.task_id], actor="tester", now=at(200))
            case "settle":
                await checkpoint(self._store, run, page(open=[make_delivery(run, ready_at=at(121))]), now=at(121))
            case "finish" | "part":
                await self._close(run, is_dead=move == "part")
            case "fail" | "expire":
                await self._end("failed" if move == "fail" else "expired")
            case "cancel":
                await self._store.write(runs.cancel, run.uuid, reason="test", now=at(130))
                if run.state == "running":
                    await self._end("cancelled")

    async def state(self) -> str:
        return (await read(self._store, self._known)).state

    @property
    def _known(self) -> Run:
        assert self._run is not None
        return self._run

    async def _end(self, state: RunState) -> None:
        await self._store.write(endings.end_run, self._known, state, reason="test", now=at(130))

    async def _close(self, run: Run, *, is_dead: bool) -> None:
        """End a run by its last page, or by its last delivery."""
        letter = make_letter(run)
        if run.state != "settling":
            await checkpoint(self._store, run, page(dead=[letter] if is_dead else []), now=at(130))
            return
        (delivery,) = await claim_deliveries(self._store, at(130))
        state = deliveries.Settled(
            delivery, "dead" if is_dead else "delivered", None, at(130), True, (), letter if is_dead else None
        )
        await self._store.write(deliveries.settle, [state], now=at(130))


def _queue(run: Run) -> Steps[None]:
    """Let a run wait for its slot whatever its task's policy, as one that was caught up does."""
    yield ask("move_waiting", rows=[(run.id, "queued", "test", None)])
