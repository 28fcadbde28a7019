"""Runs under a lease: claim, renew, checkpoint, give back, end; and that an old fence writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from oncue.errors import Conflict, NotFound
from oncue.model import Lost, Run, RunState
from oncue.store import deliveries, endings, runs
from oncue.store.base import Store
from oncue.testing.factories import (
    at,
    checkpoint,
    claim,
    claim_deliveries,
    commit,
    deliveries_of,
    letters,
    make_delivery,
    make_letter,
    make_running,
    make_settling,
    make_task,
    page,
    read,
    settled,
)

Write = Callable[[Store, Run], Awaitable[object]]

CLOSING: dict[str, Write] = {
    "renew": lambda store, run: store.write(runs.renew, run, until=at(hours=1)),
    "checkpoint": lambda store, run: checkpoint(store, run, page("c", open=[make_delivery(run)])),
    "last checkpoint": lambda store, run: checkpoint(store, run, page(dead=[make_letter(run)])),
    "give back": lambda store, run: store.write(runs.give_back, run, ready_at=at(0), counted=True, reason="no"),
    "fail": lambda store, run: store.write(
        endings.end_run, run, "failed", reason="no", now=at(0), letter=make_letter(run, kind="run")
    ),
    "expire": lambda store, run: store.write(endings.end_run, run, "expired", reason="no", now=at(0)),
    "cancel": lambda store, run: store.write(endings.end_run, run, "cancelled", reason="no", now=at(0)),
}


class RunConformance:
    """Runs."""

    async def test_a_claim_counts_the_attempt_raises_the_fence_and_sets_the_lease(self, store: Store) -> None:
        run = await make_running(store, now=at(0))

        assert (run.state, run.attempts, run.fence) == ("running", 1, 1)
        assert (run.started_at, run.ready_at) == (at(0), at(30))

    async def test_a_run_is_claimed_once_until_its_lease_is_over_and_then_taken_over(self, store: Store) -> None:
        run = await make_running(store, now=at(0))

        before, (after,) = await claim(store, at(29.9)), await claim(store, at(30))

        assert before == []
        assert (after.id, after.attempts, after.fence, after.started_at) == (run.id, 2, 2, at(0))

    async def test_runs_are_claimed_in_the_order_in_which_they_became_ready(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        for second in (3, 1, 2):
            key, moment = f"k{second}", at(second)
            await store.write(runs.fire, task.id, task.uuid, 1, key=key, due_at=moment, now=moment)

        claimed = [(await claim(store, at(9), limit=1))[0].due_at for _ in range(3)]

        assert claimed == [at(1), at(2), at(3)]

    async def test_two_dispatchers_at_once_claim_each_run_once(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        for number in range(40):
            await store.write(runs.fire, task.id, task.uuid, 1, key=f"k{number}", due_at=at(0), now=at(0))

        batches = await asyncio.gather(*(claim(store, at(0), limit=10) for _ in range(6)))

        ids = [run.id for batch in batches for run in batch]
        rest = [run.id for run in await claim(store, at(0), limit=100)]
        assert len(ids) == len(set(ids))
        assert sorted(ids + rest) == sorted(set(ids) | set(rest))
        assert len(ids + rest) == 40

    @pytest.mark.parametrize("name", CLOSING)
    async def test_an_old_fence_is_lost_in_every_closing_write_and_changes_nothing(
        self, store: Store, name: str
    ) -> None:
        old = await make_running(store, now=at(0))
        (new,) = await claim(store, at(30))

        answer = await CLOSING[name](store, old)

        assert answer == Lost()
        assert await read(store, old) == new
        assert (await letters(store), await deliveries_of(store, old)) == ([], [])

    @pytest.mark.parametrize("name", CLOSING)
    async def test_a_run_that_was_given_back_is_lost_to_its_last_holder(self, store: Store, name: str) -> None:
        run = await make_running(store, now=at(0))
        await store.write(runs.give_back, run, ready_at=at(5), counted=False, reason="drain")
        before = await read(store, run)

        assert await CLOSING[name](store, run) == Lost()
        assert await read(store, run) == before

    async def test_a_renewal_moves_the_end_of_the_lease(self, store: Store) -> None:
        run = await make_running(store, now=at(0))

        answer = await store.write(runs.renew, run, until=at(60))

        assert answer is None
        assert await claim(store, at(59)) == []
        assert len(await claim(store, at(60))) == 1

    async def test_a_checkpoint_writes_cursor_and_counts_and_makes_the_next_page_a_first_attempt(
        self, store: Store
    ) -> None:
        run = await make_running(store, now=at(0))
        (run,) = await claim(store, at(30))

        open, dead = [make_delivery(run, 1), make_delivery(run, 2)], [make_letter(run, 3)]
        state = await checkpoint(store, run, page("7", confirmed=4, open=open, dead=dead), now=at(31))

        after = await read(store, run)
        assert (state, after.state, after.cursor, after.attempts) == ("running", "running", "7", 1)
        assert (after.resolved, after.confirmed, after.open, after.dead, after.dropped) == (7, 4, 2, 1, 0)
        assert [delivery.key for delivery in await deliveries_of(store, run)] == [1, 2]
        assert [letter.what.key for letter in await letters(store)] == [3]

    async def test_counts_add_up_over_the_pages(self, store: Store) -> None:
        run = await make_running(store)

        for cursor in ("1", "2", None):
            await checkpoint(store, run, page(cursor, confirmed=2))

        after = await read(store, run)
        assert (after.resolved, after.confirmed, after.state) == (6, 6, "done")

    @pytest.mark.parametrize(
        ("open", "dead", "state"), [(0, 0, "done"), (0, 1, "partial"), (1, 0, "settling"), (1, 1, "settling")]
    )
    async def test_the_last_page_ends_the_run_or_leaves_it_settling(
        self, store: Store, open: int, dead: int, state: str
    ) -> None:
        run = await make_running(store)
        left = page(confirmed=1, open=[make_delivery(run, "o")] * open, dead=[make_letter(run, "d")] * dead)

        answer = await checkpoint(store, run, left, now=at(1))

        after = await read(store, run)
        assert (answer, after.state) == (state, state)
        assert after.ended_at == (None if state == "settling" else at(1))

    async def test_a_run_that_was_given_back_waits_and_keeps_its_cursor(self, store: Store) -> None:
        run = await make_running(store, now=at(0))
        await checkpoint(store, run, page("7", confirmed=1), now=at(1))

        await store.write(runs.give_back, run, ready_at=at(9), counted=False, reason="unreachable")

        after = await read(store, run)
        assert (after.state, after.reason, after.cursor, after.attempts) == ("due", "unreachable", "7", 0)
        assert await claim(store, at(8)) == []
        assert [claimed.cursor for claimed in await claim(store, at(9))] == ["7"]

    @pytest.mark.parametrize(("counted", "attempts"), [(True, 1), (False, 0)])
    async def test_an_attempt_that_was_not_the_fault_of_the_run_is_given_back(
        self, store: Store, counted: bool, attempts: int
    ) -> None:
        """B86: a deployment during the last attempt used it up."""
        run = await make_running(store)

        await store.write(runs.give_back, run, ready_at=at(0), counted=counted, reason="drain")

        assert (await read(store, run)).attempts == attempts

    async def test_a_holder_that_dies_each_time_uses_up_attempts(self, store: Store) -> None:
        """B85: a job that killed its runtime was tried without an end, since only clean failures counted."""
        await make_running(store, now=at(0))

        attempts = [(await claim(store, at(30 * number)))[0].attempts for number in (1, 2, 3)]

        assert attempts == [2, 3, 4]

    async def test_a_run_that_fails_has_its_reason_and_its_dead_letter(self, store: Store) -> None:
        run = await make_running(store)
        await checkpoint(store, run, page("7", confirmed=1))

        letter = make_letter(run, kind="run", reason="no table", cursor="7")
        await store.write(endings.end_run, run, "failed", reason="no table", now=at(2), letter=letter)

        after = await read(store, run)
        (buried,) = await letters(store)
        assert (after.state, after.reason, after.ended_at) == ("failed", "no table", at(2))
        assert (buried.what.kind, buried.what.reason, buried.what.cursor) == ("run", "no table", "7")

    @pytest.mark.parametrize("state", ["failed", "expired"])
    async def test_what_was_resolved_before_a_run_failed_is_still_delivered(self, store: Store, state: str) -> None:
        run = await make_running(store)
        await checkpoint(store, run, page("7", open=[make_delivery(run)]))
        ended: RunState = "failed" if state == "failed" else "expired"
        await store.write(endings.end_run, run, ended, reason="no table", now=at(1))

        (delivery,) = await claim_deliveries(store, at(2))
        await store.write(deliveries.settle, [settled(delivery)], now=at(2))

        after = await read(store, run)
        assert (after.state, after.open, after.confirmed, after.ended_at) == (state, 0, 1, at(1))

    async def test_a_cancelled_run_takes_its_open_deliveries_with_it(self, store: Store) -> None:
        run = await make_running(store)
        await checkpoint(store, run, page("7", open=[make_delivery(run)]))

        await store.write(endings.end_run, run, "cancelled", reason="not wanted", now=at(1))

        after = await read(store, run)
        (delivery,) = await deliveries_of(store, run)
        assert (after.state, after.open, after.dropped) == ("cancelled", 0, 1)
        assert (delivery.state, delivery.reason, delivery.ended_at) == ("cancelled", "not wanted", at(1))

    async def test_a_run_does_not_end_in_a_state_that_the_table_does_not_give_it(self, store: Store) -> None:
        run = await make_running(store)

        with pytest.raises(AssertionError, match="does not become skipped"):
            await store.write(endings.end_run, run, "skipped", reason=None, now=at(0))

    async def test_the_same_key_makes_one_run_by_hand(self, store: Store) -> None:
        task = await make_task(store, schedule=None)

        answers = [
            await store.write(runs.fire, task.id, task.uuid, 1, key="k", due_at=at(0), now=at(0)) for _ in range(2)
        ]

        assert answers == [(answers[0][0], True), (answers[0][0], False)]

    async def test_a_run_that_waits_is_cancelled_at_once(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        uuid, _ = await store.write(runs.fire, task.id, task.uuid, 1, key="k", due_at=at(0), now=at(0))

        answer = await store.write(runs.cancel, uuid, reason="not wanted", now=at(1))

        after = await store.read(runs.read, uuid)
        assert (answer, after.state, after.reason, after.ended_at) == ("cancelled", "cancelled", "not wanted", at(1))
        assert await claim(store, at(2)) == []

    async def test_a_run_that_runs_is_asked_to_end_at_its_next_page(self, store: Store) -> None:
        run = await make_running(store)

        answer = await store.write(runs.cancel, run.uuid, reason="not wanted", now=at(1))

        assert answer == "ends at its next page"
        assert await store.write(runs.renew, run, until=at(60)) == "not wanted"
        assert await checkpoint(store, run, page("7", confirmed=1)) == "cancelled"

    async def test_a_cancel_that_comes_after_the_last_page_changes_nothing(self, store: Store) -> None:
        run = await make_running(store)
        await store.write(runs.cancel, run.uuid, reason="not wanted", now=at(1))

        assert await checkpoint(store, run, page(confirmed=1)) == "done"

    async def test_a_run_that_settles_is_cancelled_with_its_deliveries(self, store: Store) -> None:
        run = await make_settling(store, 1, 2)

        await store.write(runs.cancel, run.uuid, reason="not wanted", now=at(1))

        after = await read(store, run)
        assert (after.state, after.open, after.dropped, after.ended_at) == ("cancelled", 0, 2, at(1))
        assert {delivery.state for delivery in await deliveries_of(store, run)} == {"cancelled"}

    async def test_a_run_that_has_ended_is_not_cancelled(self, store: Store) -> None:
        run = await make_running(store)
        await checkpoint(store, run, page(confirmed=1))

        with pytest.raises(Conflict, match="is done"):
            await store.write(runs.cancel, run.uuid, reason="not wanted", now=at(1))

    async def test_a_run_that_nobody_made_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await store.read(runs.read, uuid4())

    async def test_the_next_moment_is_that_of_the_first_run_or_delivery(self, store: Store) -> None:
        nothing = await store.read(runs.next_ready)
        run = await make_running(store, now=at(0))
        lease = await store.read(runs.next_ready)
        await checkpoint(store, run, page(open=[make_delivery(run, ready_at=at(7))]))

        assert (nothing, lease, await store.read(runs.next_ready)) == (None, at(30), at(7))

    async def test_what_may_be_done_earlier_wakes_the_dispatcher(self, store: Store) -> None:
        run = await make_running(store, now=at(0))
        open = [make_delivery(run, 1, ready_at=at(8)), make_delivery(run, 2, ready_at=at(7))]

        paged = await commit(store, runs.checkpoint, run, page("1", open=open), now=at(1), until=at(30))
        given = await commit(store, runs.give_back, run, ready_at=at(5), counted=True, reason="no")

        assert [(wake.component, wake.at) for wake in (*paged.wakes, *given.wakes)] == [
            ("dispatcher", at(7)),
            ("dispatcher", at(5)),
        ]

    async def test_runs_are_listed_by_pages_latest_first(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        for number in range(5):
            await store.write(runs.fire, task.id, task.uuid, 1, key=f"{number}", due_at=at(number), now=at(0))

        first = await store.read(runs.latest, task_id=task.id, state="due", before=None, limit=3)
        rest = await store.read(runs.latest, task_id=None, state=None, before=first[-1].id, limit=3)
        none = await store.read(runs.latest, task_id=task.id, state="done", before=None, limit=3)

        assert [run.due_at for run in first + rest] == [at(number) for number in (4, 3, 2, 1, 0)]
        assert none == []

    async def test_what_others_say_of_a_failure_is_stored_whatever_it_is(self, store: Store) -> None:
        run = await make_running(store)

        await store.write(runs.give_back, run, ready_at=at(0), counted=True, reason="a\0b\ud800" + "x" * 9000)

        assert ((await read(store, run)).reason or "").startswith("a\ufffdb?xxx")
