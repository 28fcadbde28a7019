"""What keeps a store going: its clock, its schema, who is alive, its figures, and what is past keeping."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from oncue import wall
from oncue.errors import SchemaError
from oncue.model import Change
from oncue.store import deliveries, endings, failures, runs, schedules, tasks, watch
from oncue.store.base import Steps, Store
from oncue.testing.factories import (
    accept,
    apply,
    at,
    checkpoint,
    claim,
    claim_deliveries,
    fire_due,
    latest,
    letters,
    make_dead,
    make_definition,
    make_delivery,
    make_event,
    make_incoming,
    make_running,
    make_settling,
    make_task,
    page,
    settled,
)
from oncue.zonedata import edition


async def _sweep(store: Store, now: datetime, *, limit: int = 1000) -> int:
    """Sweep with a retention of a day."""
    before = now - timedelta(days=1)
    return await store.write(watch.sweep, ended_before=before, events_before=before, silent_before=before, limit=limit)


class UpkeepConformance:
    """Upkeep."""

    async def test_an_empty_store_is_migrated_once(self, empty_store: Store) -> None:
        first = await empty_store.database.migrate()
        second = await empty_store.database.migrate()

        assert first[0] == "0001 first"
        assert second == []
        assert await empty_store.database.migrate(only_check=True) == []

    async def test_two_that_migrate_at_once_do_it_once(self, empty_store: Store) -> None:
        done = await asyncio.gather(*(empty_store.database.migrate() for _ in range(2)))

        assert sorted(map(len, done))[0] == 0
        assert len(done[0] + done[1]) == len(set(done[0] + done[1])) > 0

    async def test_a_check_of_a_store_without_schema_says_what_to_do_and_changes_nothing(
        self, empty_store: Store
    ) -> None:
        with pytest.raises(SchemaError, match="oncue migrate"):
            await empty_store.database.migrate(only_check=True)
        with pytest.raises(SchemaError, match="oncue migrate"):
            await empty_store.read(tasks.every)

    async def test_the_clock_gives_a_time_that_does_not_go_back(self, store: Store) -> None:
        host = wall.now()

        first = await store.write(schedules.read_clock, host)
        second = await store.write(schedules.read_clock, host - timedelta(days=1))

        assert second >= first
        assert abs(first - host) < timedelta(minutes=1)

    async def test_a_verb_that_raises_writes_nothing(self, store: Store) -> None:
        def fail() -> Steps[None]:
            yield from tasks.apply([make_definition()], prune=False, actor="tester", now=at(0))
            raise LookupError

        with pytest.raises(LookupError):
            await store.write(fail)

        assert await store.read(tasks.every) == []

    async def test_a_write_whose_caller_was_cancelled_is_ended_and_told(self, store: Store) -> None:
        told: list[Change] = []
        store.listeners.append(told.append)
        writing = asyncio.create_task(
            store.write(tasks.apply, [make_definition()], prune=False, actor="tester", now=at(0))
        )
        await asyncio.wait([writing], timeout=0)

        writing.cancel()
        await asyncio.wait([writing])
        await store.close()

        assert [change.noun for change in told] == ["task"]

    async def test_a_commit_rings_the_bell_of_who_has_something_to_do_at_its_moment(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))

        await store.bells["clock"].wait(0)
        assert store.bells["clock"].take() == at(minutes=1)

    async def test_a_component_is_listed_until_it_leaves(self, store: Store) -> None:
        for second in (0, 10):
            await store.write(watch.beat, "i1", "clock", host="h", pid=7, started_at=at(0), now=at(second))
        listed = await store.read(watch.components)
        await store.write(watch.leave, "i1")

        assert listed == [watch.Component("i1", "clock", "h", 7, at(0), at(10), edition())]
        assert await store.read(watch.components) == []

    async def test_figures_count_what_is_open_and_name_the_oldest(self, store: Store) -> None:
        await make_dead(store, now=at(0))
        await make_settling(store, now=at(0))
        await apply(store, *(make_definition(name) for name in "abcd"), now=at(0))
        await store.write(tasks.pause, "d", reason="test", actor="tester", now=at(0))
        await fire_due(store, at(60))
        await claim(store, at(61), limit=1, until=at(900))

        figures = await store.read(watch.figures, now=at(200))

        assert (figures.tasks, dict(figures.schedules)) == (5, {"active": 3, "paused": 1})
        assert (figures.runs_due, figures.runs_running, figures.runs_settling) == (2, 1, 1)
        assert (figures.deliveries_waiting, figures.dead_letters_open) == (1, 1)
        assert (figures.oldest_schedule, figures.oldest_run) == (at(120), at(60))

    async def test_the_ledger_is_read_latest_first_within_bounds(self, store: Store) -> None:
        task = await make_task(store, now=at(0))
        await fire_due(store, at(minutes=10, seconds=30))
        await fire_due(store, at(minutes=20, seconds=30))

        entries = await store.read(watch.ledger, task.id, first=at(minutes=5), last=at(minutes=12), limit=10)
        early = await store.read(watch.ledger, task.id, first=at(0), last=at(minutes=5), limit=10)
        found = await store.read(watch.runs_between, task.id, first=at(0), last=at(minutes=10), limit=10)

        assert [entry["count"] for entry in entries] == [9, 9]
        assert [entry["count"] for entry in early] == [9]
        assert [run.due_at for run in found] == [at(minutes=10)]

    async def test_what_ended_before_the_retention_goes_with_its_deliveries(self, store: Store) -> None:
        run = await make_settling(store, now=at(0))
        (delivery,) = await claim_deliveries(store, at(0))
        await store.write(deliveries.settle, [settled(delivery)], now=at(1))

        gone = [await _sweep(store, at(days=1)), await _sweep(store, at(2, days=1))]

        assert (gone[0], gone[1] > 0, await latest(store)) == (0, True, [])
        assert await store.read(runs.deliveries, run.id, limit=10) == []

    async def test_what_has_not_ended_stays_however_old(self, store: Store) -> None:
        running = await make_running(store, now=at(0))
        failed = await make_running(store, now=at(0))
        await checkpoint(store, failed, page("7", open=[make_delivery(failed)]))
        await store.write(endings.end_run, failed, "failed", reason="no", now=at(1))
        await make_dead(store, now=at(2))

        await _sweep(store, at(days=99))

        kept = {run.id for run in await latest(store)}
        assert {running.id, failed.id} <= kept
        assert [letter.state for letter in await letters(store)] == ["open"]

    async def test_an_event_stays_as_long_as_a_run_needs_it(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        await accept(store, make_incoming(make_event("e1"), task), make_incoming(make_event("e2")), now=at(0))

        await _sweep(store, at(days=9))

        (run,) = await claim(store, at(days=9))
        again = await accept(store, *(make_incoming(make_event(id)) for id in ("e1", "e2")), now=at(days=9))
        assert run.event == make_event("e1")
        assert [one.verdict for one in again] == ["duplicate", "accepted"]

    async def test_a_sweep_goes_on_by_batches(self, store: Store) -> None:
        for _ in range(3):
            await checkpoint(store, await make_running(store, now=at(0)), page(confirmed=1), now=at(1))
        await store.write(watch.beat, "i1", "clock", host="h", pid=7, started_at=at(0), now=at(0))
        await make_dead(store, now=at(1))
        await store.write(failures.discard, everything=True, reason="old", actor="tester", now=at(2))

        left = []
        while await _sweep(store, at(days=9), limit=1):
            left.append(len(await latest(store)))

        assert left[:4] == [3, 2, 1, 0]
        assert (await letters(store), await store.read(watch.components)) == ([], [])
