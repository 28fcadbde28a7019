"""Events: taken in once, with the runs that they cause, and by the version of the task that the ingest knew."""

from __future__ import annotations

import asyncio

import pytest

from oncue.model import Event
from oncue.rules import identity
from oncue.store import events, runs, tasks, watch
from oncue.store.base import Store
from oncue.testing.factories import (
    accept,
    apply,
    at,
    claim,
    commit,
    latest,
    make_definition,
    make_event,
    make_incoming,
    make_task,
)


class EventConformance:
    """Events."""

    async def test_an_event_makes_one_due_run_for_each_task_that_it_matches(self, store: Store) -> None:
        one, two = await make_task(store, "one", schedule=None), await make_task(store, "two", schedule=None)

        (accepted,) = await accept(store, make_incoming(make_event(), one, two), now=at(5))

        found = await latest(store)
        assert (accepted.verdict, {made.uuid for made in accepted.runs}) == ("accepted", {run.uuid for run in found})
        assert {run.uuid for run in found} == {identity.run_uuid(task.uuid, "event:shop:e1") for task in (one, two)}
        assert {(run.state, run.due_at, run.ready_at, run.overlap) for run in found} == {("due", at(5), at(5), None)}

    async def test_a_run_carries_its_event(self, store: Store) -> None:
        event = Event("e1", "shop", "order.paid", at(-1), subject="o7", data={"total": 1.5, "word": "Ω\0"})

        await accept(store, make_incoming(event, await make_task(store, schedule=None)))

        assert [run.event for run in await claim(store, at(0))] == [event]

    async def test_an_event_that_matches_nothing_is_kept_all_the_same(self, store: Store) -> None:
        first, second = [await accept(store, make_incoming(make_event())) for _ in range(2)]

        assert (first[0].verdict, second[0].verdict) == ("accepted", "duplicate")

    async def test_a_duplicate_makes_no_run(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        await accept(store, make_incoming(make_event(), task))

        (again,) = await accept(store, make_incoming(make_event(), task))

        assert (again.verdict, again.runs, len(await latest(store))) == ("duplicate", (), 1)

    async def test_the_same_id_with_another_content_is_a_conflict(self, store: Store) -> None:
        await accept(store, make_incoming(make_event()))

        (other,) = await accept(store, make_incoming(make_event(), digest="other"))

        assert other.verdict == "conflict"

    async def test_the_same_id_of_another_source_is_another_event(self, store: Store) -> None:
        await accept(store, make_incoming(make_event()))

        (other,) = await accept(store, make_incoming(make_event(source="billing")))

        assert other.verdict == "accepted"

    async def test_duplicates_within_a_batch_are_answered_as_such(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        batch = [make_incoming(make_event(), task), make_incoming(make_event(), task)]

        answers = await accept(store, *batch, make_incoming(make_event(), task, digest="other"))

        assert [answer.verdict for answer in answers] == ["accepted", "duplicate", "conflict"]
        assert len(await latest(store)) == 1

    async def test_batches_with_the_same_events_at_once_accept_each_once(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        batch = [make_incoming(make_event(f"e{number}"), task) for number in range(20)]

        answers = await asyncio.gather(accept(store, *batch), accept(store, *batch[::-1]))

        verdicts = [answer.verdict for answered in answers for answer in answered]
        assert (verdicts.count("accepted"), verdicts.count("duplicate")) == (20, 20)
        assert len(await latest(store)) == 20

    async def test_a_task_that_matches_twice_makes_one_run(self, store: Store) -> None:
        task = await make_task(store, schedule=None)

        (accepted,) = await accept(store, make_incoming(make_event(), task, task))

        assert len(accepted.runs) == len(await latest(store)) == 1

    async def test_on_the_short_path_the_run_is_claimed_by_who_takes_the_event_in(self, store: Store) -> None:
        task = await make_task(store, schedule=None)

        (accepted,) = await accept(store, make_incoming(make_event(), task, at_once=True), now=at(0))

        (made,) = accepted.runs
        run = await store.read(runs.read, made.uuid)
        assert made.at_once
        assert (run.state, run.attempts, run.fence, run.started_at, run.ready_at) == ("running", 1, 1, at(0), at(30))
        assert (await claim(store, at(29)), len(await claim(store, at(30)))) == ([], 1)

    async def test_a_due_run_wakes_the_dispatcher_and_one_of_the_short_path_does_not(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        slow, fast = make_incoming(make_event("e1"), task), make_incoming(make_event("e2"), task, at_once=True)

        wakes = [
            [wake.component for wake in (await commit(store, events.accept, [one], now=at(0), until=at(9))).wakes]
            for one in (slow, fast)
        ]

        assert wakes == [["dispatcher"], []]

    @pytest.mark.parametrize("change", ["change", "pause", "remove"])
    @pytest.mark.parametrize("at_once", [False, True])
    async def test_a_task_that_changed_since_the_ingest_looked_is_stale_and_nothing_is_written(
        self, store: Store, change: str, at_once: bool
    ) -> None:
        task, other = await make_task(store, schedule=None), await make_task(store, "other", schedule=None)
        match change:
            case "change":
                await apply(store, make_definition(schedule=None, description="new"))
            case "pause":
                await store.write(tasks.pause, task.name, reason="test", actor="tester", now=at(0))
            case _:
                await apply(store, make_definition("other", schedule=None), prune=True)

        with pytest.raises(events.Stale):
            await accept(store, make_incoming(make_event("e1"), other, task, at_once=at_once))

        (again,) = await accept(store, make_incoming(make_event("e1")))
        assert (again.verdict, await latest(store)) == ("accepted", [])

    async def test_an_event_of_a_paused_task_is_noted_in_the_ledger(self, store: Store) -> None:
        await make_task(store, schedule=None)
        paused = await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(0))

        (accepted,) = await accept(store, make_incoming(make_event(), paused), now=at(5))

        (entry,) = await store.read(watch.ledger, paused.id, first=at(0), last=at(9), limit=10)
        assert (accepted.verdict, accepted.runs, await latest(store)) == ("accepted", (), [])
        assert (entry["verdict"], entry["count"], entry["first_due_at"]) == ("skipped", 1, at(5))

    async def test_an_event_of_a_task_that_was_resumed_meanwhile_is_stale(self, store: Store) -> None:
        await make_task(store, schedule=None)
        paused = await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(0))
        await store.write(tasks.resume, "welcome", actor="tester", now=at(0))

        with pytest.raises(events.Stale):
            await accept(store, make_incoming(make_event(), paused))
