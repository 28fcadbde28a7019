"""Followed schedules under random interleavings of clocks, touches, late rows and dispatchers, on each store.

The team's data is a dictionary, and whoever reads it holds what it was at that moment, however late he writes. Whatever
the order: each due time of each key is handed over once, none early, none lost.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from oncue.definition import Misfire, Overlap, SqlResolver
from oncue.model import Run, Schedule, TaskId
from oncue.rules.followed import free_spans
from oncue.store import followed, runs, schedules, tasks
from oncue.store.base import Store
from oncue.store.followed import Following
from oncue.store.runs import Progress
from oncue.testing.factories import accept, at, make_definition, make_event, make_incoming, make_task, upcoming

pytestmark = pytest.mark.anyio

LOOKBACK = timedelta(minutes=10)
RULE = {
    "next": {"sql": "select min(due_at) from cue where due_at > :after", "source": "app"},
    "recheck": "1m",
    "lookback": "10m",
}
LEASE = timedelta(seconds=30)
Row = tuple[str, datetime]


@dataclass
class World:
    """A store, the team's data, and what every clock and every dispatcher has under way."""

    store: Store
    task_id: TaskId
    dice: random.Random
    now: datetime = field(default_factory=at)
    data: dict[str, datetime] = field(default_factory=dict)
    fired: dict[int, list[Schedule]] = field(default_factory=dict)
    asks: list[tuple[Following, datetime | None]] = field(default_factory=list)
    looks: list[tuple[Following, list[Any], Any]] = field(default_factory=list)
    pages: list[tuple[Run, list[Row]]] = field(default_factory=list)
    sent: Counter[Row] = field(default_factory=Counter)
    keys: int = 0

    def rows(self, after: datetime, until: datetime) -> list[Row]:
        return sorted((key, due) for key, due in self.data.items() if after < due <= until)

    async def unhanded(self, after: datetime, until: datetime) -> list[Row]:
        rows = self.rows(after, until)
        known = await self.store.read(followed.handed_over, self.task_id, rows)
        return [row for row in rows if row not in known]

    # --- What may happen at any moment ------------------------------------------------------------------------------

    async def time_passes(self) -> None:
        self.now += timedelta(seconds=self.dice.choice([0.5, 3, 20, 45, 90]))

    async def a_row_appears(self) -> None:
        self.keys += 1
        self.data[f"k{self.keys}"] = self.now + timedelta(seconds=self.dice.uniform(0.001, 300))
        await self.perhaps_touch()

    async def a_late_row_appears(self) -> None:
        self.keys += 1
        late = max(self.now - timedelta(seconds=self.dice.uniform(0, 290)), at(0.001))
        self.data[f"k{self.keys}"] = late
        await self.perhaps_touch()

    async def a_row_moves(self) -> None:
        coming = [key for key, due in self.data.items() if due > self.now]
        if coming:
            self.data[self.dice.choice(coming)] = self.now + timedelta(seconds=self.dice.uniform(0.001, 300))
            await self.perhaps_touch()

    async def perhaps_touch(self) -> None:
        if self.dice.random() < 0.7:
            await self.store.write(followed.touch, {self.task_id}, now=self.now)

    async def a_clock_looks_ahead(self) -> None:
        self.fired[self.dice.randrange(2)] = await upcoming(self.store, self.now + timedelta(seconds=2))

    async def a_clock_fires(self) -> None:
        held = self.fired.pop(self.dice.randrange(2), [])
        due = [schedule for schedule in held if schedule.next_at is not None and schedule.next_at <= self.now]
        firings = [schedules.decide(schedule, now=self.now) for schedule in due]
        if firings:
            await self.store.write(schedules.record_firings, firings, now=self.now)

    async def somebody_asks(self) -> None:
        for one in await self.store.write(followed.claim_asks, now=self.now, until=self.now + LEASE, limit=9):
            answer = min((due for due in self.data.values() if due > one.horizon), default=None)
            self.asks.append((one, answer))

    async def an_answer_arrives(self) -> None:
        if self.asks:
            one, answer = self.asks.pop(self.dice.randrange(len(self.asks)))
            match self.dice.random():
                case luck if luck < 0.1:
                    return  # whoever asked has died
                case luck if luck < 0.2:
                    await self.store.write(followed.fail_ask, one, "down", now=self.now)
                case _:
                    await self.store.write(followed.answer, one, answer, now=self.now)

    async def somebody_looks_behind(self) -> None:
        until = self.now + LEASE
        for one in await self.store.write(followed.claim_looks, now=self.now, until=until, limit=9):
            barred, still_open = await self.store.read(followed.barred, one)
            spans = free_spans(one.reach, one.horizon, barred)
            late = [span for span in spans if await self.unhanded(*span)]
            self.looks.append((one, late, still_open))

    async def a_look_ends(self) -> None:
        if self.looks:
            one, late, still_open = self.looks.pop(self.dice.randrange(len(self.looks)))
            await self.store.write(followed.record_look, one, late, still_open=still_open, now=self.now)

    async def a_dispatcher_reads(self) -> None:
        for run in await self.store.write(runs.claim, now=self.now, until=self.now + LEASE, limit=1):
            assert run.previous_due_at is not None
            self.pages.append((run, await self.unhanded(run.previous_due_at, run.due_at)))

    async def a_dispatcher_ends(self) -> None:
        if not self.pages:
            return
        run, page = self.pages.pop(self.dice.randrange(len(self.pages)))
        if self.dice.random() < 0.1:
            return  # it died before its checkpoint: another reads the page again
        progress = Progress(None, len(page), len(page), 0, handed_over=tuple(page))
        done = await self.store.write(runs.checkpoint, run, progress, now=self.now, until=self.now + LEASE)
        if isinstance(done, str):
            assert all(due <= self.now for _, due in page)
            self.sent.update(page)

    # --- The end ----------------------------------------------------------------------------------------------------

    async def calm_down(self) -> None:
        """Let nothing new happen, and everything be done that is due, until no look is needed any more."""
        for _ in range(int(LOOKBACK / timedelta(minutes=1)) + 12):
            for _ in range(6):
                for deed in CALM:
                    await deed(self)
            self.now += timedelta(minutes=1)


CALM: tuple[Callable[[World], Awaitable[None]], ...] = (
    World.a_clock_looks_ahead,
    World.a_clock_looks_ahead,
    World.a_clock_fires,
    World.a_clock_fires,
    World.somebody_asks,
    World.an_answer_arrives,
    World.a_dispatcher_reads,
    World.a_dispatcher_ends,
    World.somebody_looks_behind,
    World.a_look_ends,
)
WILD: tuple[Callable[[World], Awaitable[None]], ...] = (
    *CALM,
    World.time_passes,
    World.time_passes,
    World.a_row_appears,
    World.a_row_appears,
    World.a_late_row_appears,
    World.a_row_moves,
)


async def make_world(store: Store, seed: int, *, overlap: Overlap) -> World:
    resolve = SqlResolver("select key, due_at from cue", "app")
    misfire = Misfire(grace=timedelta(seconds=30))
    task = await make_task(store, schedule=RULE, resolve=resolve, overlap=overlap, misfire=misfire)
    return World(store, task.id, random.Random(seed))


@pytest.mark.parametrize("overlap", ["allow", "skip", "queue", "replace"])
@pytest.mark.parametrize("seed", range(6))
async def test_each_due_time_of_each_key_is_handed_over_once_whatever_the_order(
    store: Store, seed: int, overlap: Overlap
) -> None:
    world = await make_world(store, seed, overlap=overlap)

    for _ in range(220):
        await world.dice.choice(WILD)(world)
    await world.calm_down()

    owed = {(key, due) for key, due in world.data.items() if due <= world.now - timedelta(minutes=2)}
    assert len(owed) > 10
    assert owed - set(world.sent) == set()
    assert {row: times for row, times in world.sent.items() if times > 1} == {}
    following = await store.read(followed.of, world.task_id)
    assert following is not None
    assert following.answered <= following.touched


@pytest.mark.parametrize(
    "order", ["fire, touch, answer", "touch, fire, answer", "touch, answer, fire", "answer, fire, touch"]
)
async def test_an_answer_that_was_read_before_the_horizon_moved_is_not_written(store: Store, order: str) -> None:
    world = await make_world(store, 1, overlap="allow")
    world.data = {"a": at(10), "b": at(20)}
    await settle(world)
    world.now = at(10)
    await store.write(followed.touch, {world.task_id}, now=world.now)
    await world.somebody_asks()
    ((asked, answer),) = world.asks

    for deed in order.split(", "):
        match deed:
            case "fire":
                (due,) = await upcoming(store, world.now)
                await store.write(schedules.record_firings, [schedules.decide(due, now=world.now)], now=world.now)
            case "touch":
                await store.write(followed.touch, {world.task_id}, now=world.now)
            case "answer":
                stood = await store.write(followed.answer, asked, answer, now=world.now)
    world.asks.clear()
    await settle(world)

    following = await store.read(followed.of, world.task_id)
    assert following is not None
    assert stood is (order.index("answer") < order.index("fire"))
    assert (following.horizon, following.schedule.next_at) == (at(10), at(20))
    assert following.answered == following.touched


async def test_a_touch_in_a_batch_of_events_counts_once_and_in_the_transaction_that_takes_them(store: Store) -> None:
    world = await make_world(store, 1, overlap="allow")
    await settle(world)
    before = await store.read(followed.of, world.task_id)
    incoming = [make_incoming(make_event(f"e{number}")) for number in range(5)]
    touching = [type(one)(one.event, one.digest, (), (world.task_id,)) for one in incoming]

    await accept(store, *touching, now=world.now)
    await accept(store, *touching, now=world.now)

    after = await store.read(followed.of, world.task_id)
    assert before is not None
    assert after is not None
    assert after.touched == before.touched + 1
    assert after.ready_at == world.now


async def test_of_two_that_ask_in_turn_the_one_that_knows_less_does_not_overwrite_the_other(store: Store) -> None:
    """The first to ask hangs beyond its lease; its answer, when it comes, is older than what stands."""
    world = await make_world(store, 1, overlap="allow")
    (slow,) = await store.write(followed.claim_asks, now=at(), until=at(5), limit=9)
    await store.write(followed.touch, {world.task_id}, now=at(1))
    (quick,) = await store.write(followed.claim_asks, now=at(6), until=at(11), limit=9)

    stood = [
        await store.write(followed.answer, quick, at(20), now=at(7)),
        await store.write(followed.answer, slow, at(50), now=at(8)),
    ]

    following = await store.read(followed.of, world.task_id)
    assert following is not None
    assert stood == [True, False]
    assert following.schedule.next_at == at(20)


async def test_neither_a_pause_nor_a_change_loses_who_was_due_around_it(store: Store) -> None:
    world = await make_world(store, 3, overlap="allow")
    for number in range(1, 40):
        world.data[f"k{number}"] = at(number * 15)
    await settle(world)

    for number in range(1, 40):
        world.now = at(number * 15)
        if number % 3 == 0:
            rule = RULE | {"recheck": f"{number}s"}
            definition = make_definition(schedule=rule, resolve=SqlResolver(f"select {number} as key", "app"))
            await store.write(tasks.apply, [definition], prune=False, actor="tester", now=world.now)
        await settle(world)
        await world.a_dispatcher_reads()
        await world.a_dispatcher_ends()
    await world.calm_down()

    assert set(world.sent) == set(world.data.items())
    assert set(world.sent.values()) == {1}


async def settle(world: World) -> None:
    """Let a clock fire and ask until nothing is due."""
    for _ in range(4):
        await world.a_clock_looks_ahead()
        for number in (0, 1):
            world.fired.setdefault(number, [])
        for held in list(world.fired.values()):
            due = [one for one in held if one.next_at is not None and one.next_at <= world.now]
            if due:
                firings = [schedules.decide(schedule, now=world.now) for schedule in due]
                await world.store.write(schedules.record_firings, firings, now=world.now)
        world.fired.clear()
        for one in await world.store.write(followed.claim_asks, now=world.now, until=world.now + LEASE, limit=9):
            answer = min((due for due in world.data.values() if due > one.horizon), default=None)
            await world.store.write(followed.answer, one, answer, now=world.now)
