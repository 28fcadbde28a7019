"""What the clock asks of a store: what comes due, and the one write that makes runs and moves schedules together."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from oncue.definition import Misfire
from oncue.rules import firing
from oncue.store import schedules, tasks, watch
from oncue.store.base import Store
from oncue.testing.factories import (
    apply,
    at,
    commit,
    fire_due,
    latest,
    make_definition,
    schedule_of,
    upcoming,
)


class ScheduleConformance:
    """Schedules."""

    async def test_what_is_due_is_read_in_order_from_where_the_last_page_ended(self, store: Store) -> None:
        await apply(store, *(make_definition(name, schedule={"every": "1m"}) for name in "abcde"), now=at(0))

        first = await store.read(schedules.upcoming, after=(at(0), 0), until=at(minutes=1), limit=3)
        last = first[-1]
        assert last.next_at is not None
        rest = await store.read(schedules.upcoming, after=(last.next_at, last.task_id), until=at(minutes=1), limit=3)

        ids = [schedule.task_id for schedule in first + rest]
        assert ids == sorted(ids)
        assert (len(first), len(rest)) == (3, 2)

    async def test_nothing_that_is_due_later_is_read(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))

        assert await upcoming(store, at(59.999)) == []
        assert len(await upcoming(store, at(60))) == 1

    async def test_a_firing_makes_the_run_and_moves_the_schedule_together(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))

        (run,) = await fire_due(store, at(60.2))

        schedule = await schedule_of(store)
        assert (run.state, run.cause) == ("due", "schedule:2026-03-02T09:01:00Z")
        assert (run.due_at, run.ready_at, run.asked_at) == (at(60), at(60.2), at(60.2))
        assert (run.overlap, run.caught_up, run.previous_due_at) == ("skip", False, None)
        assert schedule is not None
        assert (schedule.next_at, schedule.last_due_at) == (at(minutes=2), at(minutes=1))

    async def test_a_run_knows_the_due_time_before_its_own(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))
        await fire_due(store, at(minutes=1))

        runs = await fire_due(store, at(minutes=2))

        assert [run.previous_due_at for run in runs] == [None, at(minutes=1)]

    async def test_of_two_clocks_that_hold_one_version_the_second_writes_nothing(self, store: Store) -> None:
        await apply(store, make_definition(misfire=Misfire(catch_up="none")), now=at(0))
        (held,) = await upcoming(store, at(minutes=1))
        early = schedules.decide(held, now=at(minutes=1))
        late = schedules.decide(held, now=at(minutes=9))
        assert late.ledger

        won = [await store.write(schedules.record_firings, [fired], now=at(minutes=9)) for fired in (early, late)]

        ledger = await store.read(watch.ledger, held.task_id, first=at(days=-1), last=at(days=1), limit=10)
        assert won == [{held.task_id}, set()]
        assert (len(await latest(store)), ledger) == (1, [])

    async def test_two_clocks_at_once_make_each_run_once(self, store: Store) -> None:
        await apply(store, *(make_definition(f"t{number}") for number in range(20)), now=at(0))
        held = await upcoming(store, at(minutes=1))
        firings = [schedules.decide(schedule, now=at(minutes=1)) for schedule in held]

        won = await asyncio.gather(
            store.write(schedules.record_firings, firings, now=at(minutes=1)),
            store.write(schedules.record_firings, firings[::-1], now=at(minutes=1)),
        )

        assert len(won[0]) + len(won[1]) == len(await latest(store)) == 20

    async def test_a_schedule_that_was_changed_leaves_its_neighbours_in_the_batch_alone(self, store: Store) -> None:
        await apply(store, make_definition("a"), make_definition("b"), now=at(0))
        held = await upcoming(store, at(minutes=1))
        await store.write(tasks.pause, "a", reason="test", actor="tester", now=at(1))

        firings = [schedules.decide(schedule, now=at(minutes=1)) for schedule in held]
        await store.write(schedules.record_firings, firings, now=at(minutes=1))

        assert [run.task_name for run in await latest(store)] == ["b"]

    async def test_an_outage_makes_one_run_and_one_ledger_row_by_default(self, store: Store) -> None:
        """B58, B70: the backlog neither vanishes nor runs all at once; how many were missed is written down."""
        await apply(store, make_definition(), now=at(0))
        (held,) = await upcoming(store, at(minutes=1))

        runs = await fire_due(store, at(minutes=10, seconds=30))

        (entry,) = await store.read(watch.ledger, held.task_id, first=at(0), last=at(days=1), limit=10)
        assert [(run.due_at, run.caught_up) for run in runs] == [(at(minutes=10), True)]
        assert (entry["verdict"], entry["count"]) == ("coalesced", 9)
        assert (entry["first_due_at"], entry["last_due_at"]) == (at(minutes=1), at(minutes=9))

    async def test_a_catch_up_of_all_goes_on_by_hundreds(self, store: Store) -> None:
        misfire = Misfire(catch_up="all", max_age=timedelta(days=9))
        await apply(store, make_definition(misfire=misfire), now=at(0))

        counts = [len(await fire_due(store, at(minutes=230))) for _ in range(4)]

        runs = await latest(store)
        assert counts == [100, 200, 230, 230]
        assert [run.due_at for run in runs] == [at(minutes=minute) for minute in range(1, 231)]
        assert [run.caught_up for run in runs].count(False) == 2

    async def test_a_run_wakes_the_dispatcher_at_once(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))
        (held,) = await upcoming(store, at(minutes=1))
        fired = schedules.decide(held, now=at(minutes=1))

        committed = await commit(store, schedules.record_firings, [fired], now=at(minutes=1))

        assert [(wake.component, wake.at) for wake in committed.wakes] == [("dispatcher", at(minutes=1))]

    async def test_a_schedule_that_cannot_be_followed_is_stopped_and_its_neighbours_fire(self, store: Store) -> None:
        await apply(store, make_definition("a"), make_definition("b"), now=at(0))
        bad, good = await upcoming(store, at(minutes=1))
        firings = [firing.stop(bad, "no such zone"), schedules.decide(good, now=at(minutes=1))]

        await store.write(schedules.record_firings, firings, now=at(minutes=1))

        schedule = await schedule_of(store, "a")
        figures = await store.read(watch.figures, now=at(minutes=1))
        assert schedule is not None
        assert (schedule.state, schedule.reason, schedule.next_at) == ("stopped", "no such zone", at(minutes=1))
        assert figures.stopped == (("a", "no such zone"),)
        assert [run.task_name for run in await latest(store)] == ["b"]

    async def test_the_last_time_finishes_a_schedule(self, store: Store) -> None:
        await apply(store, make_definition(schedule={"at": "2026-03-02T09:01:00Z"}), now=at(0))

        await fire_due(store, at(minutes=1))

        schedule = await schedule_of(store)
        assert schedule is not None
        assert (schedule.state, schedule.next_at) == ("finished", None)

    async def test_tasks_that_allow_overlap_make_runs_that_take_no_slot(self, store: Store) -> None:
        await apply(store, make_definition(overlap="allow"), now=at(0))

        (run,) = await fire_due(store, at(minutes=1))

        assert run.overlap is None
