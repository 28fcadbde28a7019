"""Deliveries, dead letters and requeues, brought to each of their states."""

from __future__ import annotations

from dataclasses import replace

from oncue.model import DeadLetter, Delivery, DeliveryState, Requeue, RequeueState, Run
from oncue.store import deliveries, endings, failures, runs
from oncue.store.base import Store
from oncue.testing.factories import (
    at,
    claim_deliveries,
    deliveries_of,
    letters,
    make_letter,
    make_settling,
    settled,
)

SETTLED: dict[str, DeliveryState] = {
    "give_back": "waiting",
    "confirm": "delivered",
    "bury": "dead",
    "expire": "expired",
    "drop": "unqualified",
}
REQUEUES: dict[str, RequeueState] = {
    "pass": "running",
    "resume": "running",
    "pause": "paused",
    "finish": "done",
    "stop": "stopped",
    "cancel": "cancelled",
}


class DeliverySubject:
    """The last delivery of a run."""

    def __init__(self, store: Store, move: str) -> None:
        self._store, self._move = store, move
        self._run: Run | None = None
        self._held: Delivery | None = None

    async def bring_to(self, state: str) -> None:
        self._run = await make_settling(self._store, now=at(0))
        (self._held,) = await deliveries_of(self._store, self._run)
        if state == "waiting":
            return
        (self._held,) = await claim_deliveries(self._store, at(0))
        for move, end in (*SETTLED.items(), ("cancel", "cancelled")):
            if state == end:
                await self.attempt(move)

    async def attempt(self, move: str) -> None:
        assert self._run is not None
        assert self._held is not None
        if move == "claim":
            await claim_deliveries(self._store, at(60))
        elif move == "cancel":
            await self._store.write(runs.cancel, self._run.uuid, reason="test", now=at(1))
        else:
            await self._store.write(deliveries.settle, [settled(self._held, SETTLED[move])], now=at(1))

    async def state(self) -> str:
        assert self._run is not None
        return (await deliveries_of(self._store, self._run))[0].state


class DeadLetterSubject:
    """A stranger, whom the failure handler settles by itself."""

    def __init__(self, store: Store, move: str) -> None:
        self._store, self._move = store, move
        self._letter: DeadLetter | None = None

    async def bring_to(self, state: str) -> None:
        await self._store.write(failures.record, [make_letter()], now=at(0))
        (self._letter,) = await letters(self._store)
        if state in ("requeuing", "recovered"):
            await self.attempt("requeue")
        if state == "recovered":
            await self.attempt("confirm")
        if state == "discarded":
            await self.attempt("discard")

    async def attempt(self, move: str) -> None:
        assert self._letter is not None
        letter = (await letters(self._store))[0]
        match move:
            case "requeue":
                await self._store.write(
                    failures.requeue, uuids=[letter.uuid], rate=1, ask_again=True, actor="tester", now=at(1)
                )
            case "discard" if letter.state == "requeuing":
                await self._store.write(endings.settle_letter, letter.id, "discarded", reason="test", now=at(1))
            case "discard":
                await self._store.write(failures.discard, uuids=[letter.uuid], reason="test", actor="tester", now=at(1))
            case "confirm" | "reopen":
                error = "test" if move == "reopen" else None
                await self._store.write(failures.settle_stranger, letter, error=error, now=at(2))

    async def state(self) -> str:
        return (await letters(self._store))[0].state


class RequeueSubject:
    """A requeue of one letter."""

    def __init__(self, store: Store, move: str) -> None:
        self._store, self._move = store, move
        self._made: Requeue | None = None

    async def bring_to(self, state: str) -> None:
        await self._store.write(failures.record, [make_letter()], now=at(0))
        self._made = await self._store.write(
            failures.requeue, everything=True, rate=1, ask_again=True, actor="tester", now=at(0)
        )
        if state in ("running", "paused"):
            await self.attempt("pass")
        if state not in ("canary", "running"):
            await self.attempt(next(move for move, end in REQUEUES.items() if end == state))

    async def attempt(self, move: str) -> None:
        made = await self._now()
        if move in ("pass", "resume"):  # they lead to the same state: who makes them says from where
            made = replace(made, state="canary" if move == "pass" else "paused")
        await self._store.write(failures.move_requeue, made, REQUEUES[move], reason="test", ready_at=at(1), now=at(1))

    async def state(self) -> str:
        return (await self._now()).state

    async def _now(self) -> Requeue:
        assert self._made is not None
        return await self._store.read(failures.read_requeue, self._made.uuid)
