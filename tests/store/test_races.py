"""Races between real processes on one store: whoever wins, each due time, run and dead letter is had once."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from oncue.definition import Misfire
from oncue.errors import Conflict, NotFound
from oncue.model import Run
from oncue.store import tasks, watch
from oncue.store.base import Store
from oncue.testing.factories import (
    apply,
    at,
    fire_due,
    latest,
    letters,
    make_dead,
    make_definition,
)

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.anyio
MakeRacers = Callable[[int], list["Racer"]]


class Racer:
    """A process that waits to be told what to do."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.racer", url],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def tell(self, deed: str, **given: Any) -> None:
        assert self._process.stdin is not None
        plain = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items()}
        self._process.stdin.write(json.dumps({"deed": deed, **plain}) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@pytest.fixture
def racers(migrated_url: str) -> Iterator[MakeRacers]:
    """Return a function that starts processes on the test's store."""
    with contextlib.ExitStack() as stack:
        yield lambda count: [_enter(stack, migrated_url) for _ in range(count)]


def _enter(stack: contextlib.ExitStack, url: str) -> Racer:
    racer = Racer(url)
    stack.callback(racer.end)
    return racer


def _all(racers: list[Racer], deed: str, **given: Any) -> list[Any]:
    for racer in racers:
        racer.tell(deed, **given)
    return [racer.hear() for racer in racers]


async def test_two_clocks_that_race_make_each_run_once(store: Store, racers: MakeRacers) -> None:
    await apply(store, *(make_definition(f"t{number}") for number in range(10)), now=at(0))
    clocks = racers(2)

    for minute in range(1, 101):
        _all(clocks, "look", until=at(minutes=minute))
        won = _all(clocks, "fire", now=at(minutes=minute))
        assert sorted(won[0] + won[1]) == sorted({*won[0], *won[1]})
        assert len(won[0] + won[1]) == 10

    made = Counter((run.task_id, run.due_at) for run in await latest(store))
    assert len(made) == 1000
    assert set(made.values()) == {1}


async def test_several_dispatchers_claim_no_run_twice(store: Store, racers: MakeRacers) -> None:
    await apply(store, *(make_definition(f"t{number}", overlap="allow") for number in range(500)), now=at(0))
    await fire_due(store, at(minutes=1))

    claimed = Counter(run_id for ids in _all(racers(4), "claim_all", now=at(61)) for run_id in ids)

    assert len(claimed) == 500
    assert set(claimed.values()) == {1}


@pytest.mark.parametrize("overlap", ["queue", "skip", "replace"])
async def test_overlap_is_kept_by_four_that_claim(store: Store, racers: MakeRacers, overlap: Any) -> None:
    misfire = Misfire(catch_up="all")
    names = [f"t{number}" for number in range(5)]
    await apply(store, *(make_definition(name, overlap=overlap, misfire=misfire) for name in names), now=at(0))
    await fire_due(store, at(minutes=20, seconds=30))

    workers, most = racers(4), []
    while any(run.state in ("due", "queued") for run in await latest(store)):
        most += _all(workers, "work", now=at(minutes=21))

    ended = Counter(run.state for run in await latest(store))
    assert max(most) == 1
    assert sum(ended.values()) == 100
    assert ended["done"] >= 95
    assert set(ended) <= {"done", "skipped"}


@pytest.mark.parametrize("migrators", [2, 4])
async def test_several_that_migrate_at_once_do_it_once(store_url: str, migrators: int) -> None:
    with contextlib.ExitStack() as stack:
        started = [_enter(stack, store_url) for _ in range(migrators)]
        done = _all(started, "migrate")

    assert sorted(bool(names) for names in done) == [False] * (migrators - 1) + [True]


async def test_two_operators_requeue_each_dead_letter_once(store: Store, racers: MakeRacers) -> None:
    operators = racers(2)
    for round in range(20):
        await make_dead(store, *range(10), now=at(round))
        assert sum(_all(operators, "requeue", now=at(round))) == 10

    assert {letter.state for letter in await letters(store)} == {"requeuing"}


async def test_two_that_ask_for_a_backfill_with_one_key_make_it_once(store: Store, racers: MakeRacers) -> None:
    clients = racers(3)
    for round in range(10):
        name = f"t{round}"
        await apply(store, make_definition(name), now=at(0))
        answers = _all(clients, "backfill", now=at(hours=3), name=name)
        assert sorted(is_new for _, is_new in answers) == [False, False, True]
        assert len({made for made, _ in answers}) == 1

    assert {len(group) for group in _by_task(await latest(store)).values()} == {61}


async def test_a_backfill_that_is_cancelled_while_it_is_claimed_ends_each_run_once(
    store: Store, racers: MakeRacers
) -> None:
    dispatcher, operator = racers(2)
    for round in range(10):
        name = f"t{round}"
        await apply(store, make_definition(name), now=at(0))
        operator.tell("backfill", now=at(hours=3), name=name)
        operator.hear()
        first, second = (dispatcher, operator) if round % 2 else (operator, dispatcher)
        for racer in (first, second):
            racer.tell("claim_all" if racer is dispatcher else "cancel_backfills", now=at(hours=3))
        first.hear()
        second.hear()

    ended = Counter(run.state for run in await latest(store))
    assert set(ended) <= {"running", "cancelled"}
    assert ended.total() == 610


async def test_of_two_who_decide_on_missed_runs_each_run_obeys_one(store: Store, racers: MakeRacers) -> None:
    operators = racers(2)
    hold = Misfire(catch_up="all", hold=True)
    told: Counter[str] = Counter()
    for round in range(20):
        await apply(store, make_definition(f"t{round}", misfire=hold, overlap="allow"), now=at(hours=round))
        await fire_due(store, at(hours=round, minutes=20, seconds=30))
        missed = len(await latest(store, "held"))
        deeds = ("release", "drop") if round % 2 else ("drop", "release")
        for racer, deed in zip(operators, deeds, strict=True):
            racer.tell(deed, now=at(hours=round, minutes=30))
        counts = [racer.hear() for racer in operators]
        assert sum(counts) == missed >= 19, f"round {round}"
        told.update(dict(zip(deeds, counts, strict=True)))
        await apply(store, prune=True, now=at(hours=round, minutes=30))

    ended = Counter(run.state for run in await latest(store) if run.caught_up)
    assert (ended["due"], ended["cancelled"]) == (told["release"], told["drop"])


def _by_task(found: list[Run]) -> dict[int, list[Run]]:
    groups: dict[int, list[Run]] = {}
    for run in found:
        groups.setdefault(run.task_id, []).append(run)
    return groups


@pytest.mark.parametrize("deed", ["edit", "change", "pause", "resume", "remove"])
async def test_what_is_done_around_a_due_time_neither_loses_nor_doubles_it(
    store: Store, racers: MakeRacers, deed: str
) -> None:
    clock, operator = racers(2)
    due = at(minutes=1)
    for round in range(45):
        offset = round % 3 - 1
        name = f"t{round}"
        await apply(store, make_definition(name), now=at(0))
        task = await store.read(tasks.read, name)
        if deed == "resume":
            await store.write(tasks.pause, name, reason="race", actor="tester", now=at(30))
        clock.tell("look", until=due)
        clock.hear()

        first, second = (clock, operator) if round % 2 else (operator, clock)
        for racer in (first, second):
            if racer is clock:
                clock.tell("fire", now=due)
            else:
                operator.tell(deed, now=at(60 + offset), **({} if deed == "remove" else {"name": name}))
        first.hear()
        second.hear()
        with contextlib.suppress(Conflict, NotFound):
            await store.write(tasks.resume, name, actor="tester", now=at(90))
        await fire_due(store, at(90))

        assert await _accounts(store, task.id, due) in _right(deed, offset), f"round {round}"
        await apply(store, prune=True, now=at(90))


async def _accounts(store: Store, task_id: int, due: datetime) -> tuple[int, int]:
    """Return how many runs, and how many entries of the ledger, account for a due time."""
    made = await store.read(watch.runs_between, task_id, first=due, last=due, limit=9)
    noted = await store.read(watch.ledger, task_id, first=due, last=due + timedelta(0), limit=9)
    return len(made), len(noted)


def _right(deed: str, offset: int) -> set[tuple[int, int]]:
    ran, noted, not_due = (1, 0), (0, 1), (0, 0)
    match deed:
        case "edit":
            return {ran}
        case "resume":  # what is due before it is resumed fell into the pause
            return {ran} if offset < 0 else {noted}
        case "pause":  # what is due when it is paused is decided before
            return {ran, noted} if offset < 0 else {ran}
        case _:  # taken away before it was due, or by who comes first
            return {ran, not_due} if offset < 0 else {ran}
