"""Runs that a task's `hold` made wait for a person: made in an outage's place, let go or dropped once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from oncue.definition import Misfire
from oncue.errors import NotFound
from oncue.model import TaskId
from oncue.store import catch_up, tasks, watch
from oncue.store.base import Store
from oncue.testing.factories import (
    apply,
    at,
    checkpoint,
    claim,
    commit,
    fire_due,
    latest,
    make_definition,
    make_task,
    page,
)

HOLD = Misfire(catch_up="all", hold=True)


async def make_held(store: Store, name: str = "welcome", *, misfire: Misfire = HOLD) -> TaskId:
    """Return the id of a task, minutely, that was down for ten minutes and a half."""
    task = await make_task(store, name, misfire=misfire, now=at(0))
    await fire_due(store, at(30, minutes=10))
    return task.id


class HoldConformance:
    """Held runs."""

    async def test_what_would_be_caught_up_is_held_and_what_is_on_time_is_not(self, store: Store) -> None:
        await make_held(store)

        found = [(run.due_at, run.state, run.caught_up) for run in await latest(store)]

        assert found == [
            *((at(minutes=minute), "held", True) for minute in range(1, 10)),
            (at(minutes=10), "due", False),
        ]

    async def test_held_runs_are_not_claimed(self, store: Store) -> None:
        await make_held(store)

        claimed = await claim(store, at(hours=9), limit=100)

        assert [run.due_at for run in claimed] == [at(minutes=10)]

    async def test_what_waits_is_told_by_task_with_what_was_passed_over(self, store: Store) -> None:
        misfire = Misfire(catch_up="all", max=2, hold=True)
        await make_held(store, "b", misfire=misfire)
        await make_held(store, "a")

        planned = await store.read(catch_up.plan, now=at(hours=1))

        assert [(one.held.task_name, one.held.count, len(one.passed_over)) for one in planned] == [
            ("a", 9, 0),
            ("b", 2, 1),
        ]
        held = planned[1].held
        assert (held.first_due_at, held.last_due_at, held.since) == (at(minutes=8), at(minutes=9), at(30, minutes=10))
        assert planned[1].due_times == (at(minutes=8), at(minutes=9))
        (entry,) = planned[1].passed_over
        assert (entry["count"], entry["verdict"]) == (7, "missed")
        assert "only the latest 2" in entry["reason"]

    async def test_what_was_passed_over_in_an_earlier_outage_is_not_told_again(self, store: Store) -> None:
        task_id = await make_held(store, misfire=Misfire(hold=True))
        await store.write(catch_up.release, [task_id], actor="tester", now=at(minutes=11))

        await fire_due(store, at(30, minutes=20))

        (planned,) = await store.read(catch_up.plan, "welcome", now=at(minutes=21))
        assert planned.due_times == (at(minutes=19),)
        assert [(one["first_due_at"], one["count"]) for one in planned.passed_over] == [(at(minutes=11), 8)]

    async def test_only_the_first_due_times_are_shown(self, store: Store) -> None:
        await make_task(store, misfire=HOLD, now=at(0))
        await fire_due(store, at(30, hours=1))

        (planned,) = await store.read(catch_up.plan, now=at(hours=2))

        assert (planned.held.count, len(planned.due_times)) == (59, catch_up.SHOWN)
        assert planned.due_times[-1] == at(minutes=catch_up.SHOWN)

    async def test_nothing_held_is_an_answer_and_no_such_task_an_error(self, store: Store) -> None:
        await make_task(store, now=at(0))

        assert await store.read(catch_up.plan, "welcome", now=at(0)) == []
        assert await store.read(catch_up.plan, now=at(0)) == []
        with pytest.raises(NotFound):
            await store.read(catch_up.plan, "nobody", now=at(0))

    async def test_released_runs_go_one_after_another_in_the_order_of_their_due_times(self, store: Store) -> None:
        task_id = await make_held(store)
        (on_time,) = await claim(store, at(minutes=11))
        await checkpoint(store, on_time, page(confirmed=1), now=at(minutes=11))

        done = await commit(store, catch_up.release, [task_id], actor="tester", now=at(minutes=12))

        assert (done.answer, [wake.component for wake in done.wakes]) == (9, ["dispatcher"])
        order = []
        while claimed := await claim(store, at(minutes=12), limit=100):
            (run,) = claimed
            order.append(run.due_at)
            await checkpoint(store, run, page(confirmed=1), now=at(minutes=12))
        assert order == [at(minutes=minute) for minute in range(1, 10)]

    async def test_dropped_runs_end_as_cancelled_with_the_reason(self, store: Store) -> None:
        task_id = await make_held(store)

        done = await commit(store, catch_up.drop, [task_id], reason="too old", actor="tester", now=at(minutes=12))

        dropped = await latest(store, "cancelled")
        assert (done.answer, len(dropped), {run.reason for run in dropped}) == (9, 9, {"too old"})
        assert {run.ended_at for run in dropped} == {at(minutes=12)}
        assert [change.state for change in done.changes] == ["cancelled"] * 9

    async def test_each_held_run_is_released_or_dropped_once(self, store: Store) -> None:
        task_id = await make_held(store)

        counts = await asyncio.gather(
            store.write(catch_up.release, [task_id], actor="a", now=at(minutes=12)),
            store.write(catch_up.drop, [task_id], reason="no", actor="b", now=at(minutes=12)),
            store.write(catch_up.release, [task_id], actor="c", now=at(minutes=12)),
        )

        assert sum(counts) == 9
        states = [run.state for run in await latest(store)]
        assert (states.count("due"), states.count("cancelled")) == (counts[0] + counts[2] + 1, counts[1])

    async def test_only_the_tasks_that_are_named_are_decided_on(self, store: Store) -> None:
        await make_held(store, "a")
        task_id = await make_held(store, "b")

        await store.write(catch_up.release, [task_id], actor="tester", now=at(minutes=12))

        assert [one.task_name for one in await store.read(catch_up.every)] == ["a"]

    async def test_pausing_changing_and_removing_a_task_leave_its_held_runs(self, store: Store) -> None:
        task_id = await make_held(store)
        await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(minutes=11))
        await apply(store, make_definition(schedule={"every": "1h"}), now=at(minutes=12))
        await apply(store, prune=True, now=at(minutes=13))

        (planned,) = await store.read(catch_up.plan, "welcome", now=at(minutes=14))
        released = await store.write(catch_up.release, [task_id], actor="tester", now=at(minutes=15))

        assert (planned.held.task_name, planned.held.count, released) == ("welcome", 9, 9)

    async def test_figures_count_what_is_held(self, store: Store) -> None:
        await make_held(store)

        figures = await store.read(watch.figures, now=at(minutes=11))

        assert (figures.runs_held, figures.runs_due) == (9, 1)

    async def test_what_is_held_is_kept_however_old_it_is(self, store: Store) -> None:
        await make_held(store)

        before = at(days=99)
        await store.write(watch.sweep, ended_before=before, events_before=before, silent_before=before, limit=100)

        assert len(await latest(store, "held")) == 9

    async def test_the_expiry_of_the_version_that_was_missed_is_told(self, store: Store) -> None:
        await make_task(store, misfire=HOLD, expires=timedelta(hours=2), now=at(0))
        await fire_due(store, at(30, minutes=10))
        await apply(store, make_definition(misfire=HOLD, expires=timedelta(hours=9)), now=at(minutes=11))

        (planned,) = await store.read(catch_up.plan, now=at(minutes=12))

        assert planned.expires == timedelta(hours=2)
