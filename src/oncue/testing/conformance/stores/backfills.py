"""Backfills: all runs or none, once for each key, beside the schedule; their progress, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from oncue.errors import Conflict, NotFound
from oncue.rules import backfilling, identity, times
from oncue.store import backfills, codec, runs, watch
from oncue.store.backfills import Backfill, Planned
from oncue.store.base import Steps, Store
from oncue.testing.factories import (
    apply,
    at,
    checkpoint,
    claim,
    commit,
    fire_due,
    latest,
    make_task,
    page,
    read,
    schedule_of,
)


async def plan(store: Store, first: datetime, last: datetime, *, name: str = "welcome") -> Planned:
    """Return what a backfill would make, as the app does."""
    task, schedule = await store.read(backfills.subject, name)
    trigger = codec.read_trigger(schedule.timing)
    moments = backfilling.due_times(trigger, first, last, name=name)
    ran, before = await store.read(backfills.look_back, task, moments)
    return Planned(task, schedule, moments, times.previous_before(trigger, moments[0]), ran, before)


async def backfill(
    store: Store,
    first: datetime,
    last: datetime,
    *,
    key: str | None = None,
    pace: timedelta | None = None,
    now: datetime,
) -> tuple[Backfill, bool]:
    planned = await plan(store, first, last)
    given = key or uuid4().hex
    return await store.write(backfills.make, planned, key=given, pace=pace, actor="tester", now=now)


def causes(made: Backfill, moments: Sequence[datetime]) -> list[str]:
    return [identity.backfill_cause(made.uuid, moment) for moment in moments]


class BackfillConformance:
    """Backfills."""

    async def test_a_backfill_makes_a_run_for_each_due_time_of_its_span_both_ends_inclusive(self, store: Store) -> None:
        await make_task(store, now=at(0))

        made, is_new = await backfill(store, at(60), at(minutes=3), now=at(days=9))

        found, moments = await latest(store), [at(60), at(120), at(180)]
        assert (is_new, made.total, made.first_due_at, made.last_due_at) == (True, 3, at(60), at(180))
        assert [(run.due_at, run.cause) for run in found] == list(zip(moments, causes(made, moments), strict=True))
        assert [run.previous_due_at for run in found] == [at(0), at(60), at(120)]
        assert {(run.kind, run.overlap, run.caught_up, run.starts_at) for run in found} == {
            ("backfill", None, False, None)
        }
        assert {(run.asked_at, run.ready_at, run.state) for run in found} == {(at(days=9), at(days=9), "due")}

    async def test_a_backfill_at_a_pace_gives_each_run_its_turn(self, store: Store) -> None:
        await make_task(store, now=at(0))

        await backfill(store, at(60), at(180), pace=timedelta(seconds=30), now=at(days=9))

        turns = [at(0, days=9), at(30, days=9), at(60, days=9)]
        assert [(run.ready_at, run.starts_at) for run in await latest(store)] == list(zip(turns, turns, strict=True))
        assert len(await claim(store, at(29, days=9))) == 1
        assert len(await claim(store, at(30, days=9))) == 1

    async def test_neither_a_backfill_nor_a_run_by_hand_moves_the_schedule(self, store: Store) -> None:
        task = await make_task(store, now=at(0))
        await fire_due(store, at(60))
        before = await schedule_of(store)

        await backfill(store, at(0), at(minutes=9), now=at(90))
        await store.write(runs.fire, task.id, task.uuid, 1, key="k", due_at=at(minutes=5), now=at(90))

        assert await schedule_of(store) == before
        assert before is not None
        assert (before.next_at, before.last_due_at) == (at(120), at(60))

    async def test_a_time_that_was_backfilled_ahead_is_still_fired_by_its_schedule(self, store: Store) -> None:
        await make_task(store, now=at(0))
        await backfill(store, at(60), at(120), now=at(1))

        await fire_due(store, at(60))
        await fire_due(store, at(120))

        kinds = [(run.kind, run.due_at) for run in await latest(store)]
        assert kinds == [("backfill", at(60)), ("backfill", at(120)), ("schedule", at(60)), ("schedule", at(120))]

    async def test_a_backfill_takes_no_slot_and_is_stopped_by_none(self, store: Store) -> None:
        await make_task(store, now=at(0))
        await fire_due(store, at(60))
        (scheduled,) = await claim(store, at(60))
        await backfill(store, at(-120), at(600), now=at(61))

        claimed = await claim(store, at(61), limit=100)

        assert scheduled.overlap == "skip"
        assert {run.kind for run in claimed} == {"backfill"}
        assert len(claimed) == len(await latest(store)) - 1

    async def test_the_same_key_again_answers_the_backfill_that_it_made(self, store: Store) -> None:
        await make_task(store, now=at(0))

        first = await backfill(store, at(60), at(180), key="k", now=at(days=1))
        again = await backfill(store, at(60), at(600), key="k", now=at(days=2))
        other = await backfill(store, at(60), at(180), key="other", now=at(days=2))

        assert (first[1], again, other[1]) == (True, (first[0], False), True)
        assert len(await latest(store)) == 6

    async def test_two_with_one_key_at_once_make_it_once(self, store: Store) -> None:
        await make_task(store, now=at(0))

        answers = await asyncio.gather(
            *(backfill(store, at(60), at(minutes=20), key="k", now=at(days=1)) for _ in range(4))
        )

        assert sorted(is_new for _, is_new in answers) == [False, False, False, True]
        assert len({made.uuid for made, _ in answers}) == 1
        assert len(await latest(store)) == 20

    @pytest.mark.parametrize("steps", [1, 2, 3])
    async def test_a_backfill_that_is_cut_short_makes_nothing(self, store: Store, steps: int) -> None:
        await make_task(store, now=at(0))
        planned = await plan(store, at(60), at(minutes=1500))

        def cut_short() -> Steps[None]:
            making = backfills.make(planned, key="k", pace=None, actor="tester", now=at(days=2))
            asked = next(making)
            for _ in range(steps):
                asked = making.send((yield asked))
            raise LookupError

        with pytest.raises(LookupError):
            await store.write(cut_short)

        assert (await store.read(backfills.latest, limit=9), await latest(store)) == ([], [])

    async def test_a_backfill_of_more_than_one_batch_is_whole(self, store: Store) -> None:
        await make_task(store, now=at(0))

        made, _ = await backfill(store, at(60), at(minutes=2500), now=at(days=2))

        assert (made.total, made.states) == (2500, {"due": 2500})

    async def test_a_backfill_wakes_the_dispatcher(self, store: Store) -> None:
        await make_task(store, now=at(0))
        planned = await plan(store, at(60), at(60))

        done = await commit(store, backfills.make, planned, key="k", pace=None, actor="tester", now=at(days=1))

        assert [(wake.component, wake.at) for wake in done.wakes] == [("dispatcher", at(days=1))]

    async def test_a_task_that_was_removed_meanwhile_is_not_backfilled(self, store: Store) -> None:
        await make_task(store, now=at(0))
        planned = await plan(store, at(60), at(180))
        await apply(store, prune=True, now=at(30))

        with pytest.raises(NotFound, match="was removed just now"):
            await store.write(backfills.make, planned, key="k", pace=None, actor="tester", now=at(days=1))

        assert await latest(store) == []

    async def test_a_task_without_due_times_of_its_own_cannot_be_backfilled(self, store: Store) -> None:
        await make_task(store, schedule=None)

        with pytest.raises(Conflict, match="has no schedule"):
            await store.read(backfills.subject, "welcome")
        with pytest.raises(NotFound):
            await store.read(backfills.subject, "nobody")

    async def test_a_plan_says_what_ran_of_its_span_before(self, store: Store) -> None:
        await make_task(store, overlap="allow", now=at(0))
        for minute in (1, 2, 3):
            await fire_due(store, at(minutes=minute))
        (first, *_) = await claim(store, at(180), limit=2)
        await checkpoint(store, first, page(confirmed=1), now=at(180))
        earlier, _ = await backfill(store, at(minutes=8), at(minutes=12), now=at(180))
        await backfill(store, at(minutes=14), at(minutes=15), now=at(180))

        planned = await plan(store, at(60), at(minutes=10))

        assert planned.ran == {"done": 1, "running": 1, "due": 1}
        assert planned.before == (earlier.uuid,)

    async def test_progress_counts_the_runs_of_each_backfill(self, store: Store) -> None:
        await make_task(store, now=at(0))
        first, _ = await backfill(store, at(60), at(240), now=at(days=1))
        second, _ = await backfill(store, at(60), at(60), now=at(days=2))
        done, running = await claim(store, at(days=1), limit=2)
        await checkpoint(store, done, page(confirmed=1), now=at(days=1))

        listed = await store.read(backfills.latest, limit=9)

        assert [one.uuid for one in listed] == [second.uuid, first.uuid]
        assert [one.states for one in listed] == [{"due": 1}, {"done": 1, "running": 1, "due": 2}]
        assert await store.read(backfills.latest, before=second.id, limit=9) == [listed[1]]
        assert await store.read(backfills.read, first.uuid) == listed[1]
        assert running.task_version == 1

    async def test_cancelling_ends_what_waits_and_lets_what_runs_go_on(self, store: Store) -> None:
        await make_task(store, now=at(0))
        made, _ = await backfill(store, at(60), at(300), now=at(days=1))
        other, _ = await backfill(store, at(60), at(60), now=at(days=1))
        (running,) = await claim(store, at(days=1), limit=1)

        cancelled = await store.write(backfills.cancel, made.uuid, reason="wrong", actor="tester", now=at(5, days=1))
        again = await store.write(backfills.cancel, made.uuid, reason="wrong", actor="tester", now=at(6, days=1))
        await checkpoint(store, running, page(confirmed=1), now=at(9, days=1))

        assert cancelled.states == again.states == {"running": 1, "cancelled": 4}
        assert (await read(store, running)).state == "done"
        ended = {(run.state, run.reason, run.ended_at) for run in await latest(store, "cancelled")}
        assert ended == {("cancelled", "wrong", at(5, days=1))}
        assert (await store.read(backfills.read, other.uuid)).states == {"due": 1}

    async def test_a_backfill_goes_with_the_last_of_its_runs(self, store: Store) -> None:
        await make_task(store, now=at(0))
        made, _ = await backfill(store, at(60), at(120), now=at(days=1))
        (first,) = await claim(store, at(days=1), limit=1)
        await checkpoint(store, first, page(confirmed=1), now=at(days=1))

        await _sweep(store, at(days=3))
        left = [one.states for one in await store.read(backfills.latest, limit=9)]
        await store.write(backfills.cancel, made.uuid, reason="old", actor="tester", now=at(days=3))
        await _sweep(store, at(days=5))

        assert left == [{"due": 1}]
        assert (await store.read(backfills.latest, limit=9), await latest(store)) == ([], [])

    async def test_a_key_is_known_as_long_as_ended_runs_are_kept(self, store: Store) -> None:
        await make_task(store, now=at(0))
        await backfill(store, at(60), at(60), key="k", now=at(days=4))
        (run,) = await claim(store, at(days=4))
        await checkpoint(store, run, page(confirmed=1), now=at(days=4))

        await _sweep(store, at(-1, days=5))

        assert (await backfill(store, at(60), at(60), key="k", now=at(days=5)))[1] is False


async def _sweep(store: Store, now: datetime) -> None:
    """Sweep with a retention of a day."""
    before = now - timedelta(days=1)
    await store.write(watch.sweep, ended_before=before, events_before=before, silent_before=before, limit=100)
