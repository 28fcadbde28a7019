"""Deliveries: messages that were not confirmed at once, each with its own attempts, until the last one ends the run."""

from __future__ import annotations

import asyncio

import pytest

from oncue.model import Attempt, DeliveryState
from oncue.store import deliveries, runs
from oncue.store.base import Store
from oncue.testing.factories import (
    at,
    claim_deliveries,
    commit,
    deliveries_of,
    letters,
    make_letter,
    make_settling,
    read,
    settled,
)


class DeliveryConformance:
    """Deliveries."""

    async def test_a_delivery_is_claimed_with_its_run_under_a_lease(self, store: Store) -> None:
        run = await make_settling(store, "k", now=at(0))

        ((delivery, its_run),) = await store.write(deliveries.claim, now=at(1), until=at(31), limit=10)

        assert (delivery.state, delivery.attempts, delivery.fence, delivery.ready_at) == ("sending", 2, 1, at(31))
        assert (delivery.key, delivery.errors) == ("k", (Attempt(at(0), "503"),))
        assert its_run == run
        assert await claim_deliveries(store, at(30)) == []

    async def test_two_at_once_claim_each_delivery_once(self, store: Store) -> None:
        await make_settling(store, *range(30))

        batches = await asyncio.gather(*(claim_deliveries(store, limit=10) for _ in range(5)))

        ids = [delivery.id for batch in batches for delivery in batch]
        rest = [delivery.id for delivery in await claim_deliveries(store, limit=100)]
        assert len(set(ids)) == len(ids)
        assert len(ids + rest) == 30

    async def test_a_delivery_is_held_longer_by_who_holds_it_and_by_nobody_else(self, store: Store) -> None:
        await make_settling(store, "k", now=at(0))
        (lost,) = [one for one, _ in await store.write(deliveries.claim, now=at(1), until=at(2), limit=10)]
        (held,) = [one for one, _ in await store.write(deliveries.claim, now=at(3), until=at(31), limit=10)]

        answers = [await store.write(deliveries.renew, [one], until=at(90)) for one in (lost, held)]

        assert answers == [0, 1]
        assert await claim_deliveries(store, at(89)) == []
        assert [one.id for one in await claim_deliveries(store, at(90))] == [held.id]

    @pytest.mark.parametrize(
        ("state", "end", "counts"),
        [
            ("delivered", "done", (1, 0, 0)),
            ("dead", "partial", (0, 1, 0)),
            ("expired", "done", (0, 0, 1)),
            ("unqualified", "done", (0, 0, 1)),
        ],
    )
    async def test_the_last_delivery_ends_the_run(
        self, store: Store, state: DeliveryState, end: str, counts: tuple[int, int, int]
    ) -> None:
        run = await make_settling(store)
        (delivery,) = await claim_deliveries(store)
        letter = make_letter(run) if state == "dead" else None

        held = await store.write(deliveries.settle, [settled(delivery, state, letter=letter)], now=at(5))

        after = await read(store, run)
        assert (held, after.state, after.ended_at, after.open) == (1, end, at(5), 0)
        assert (after.confirmed, after.dead, after.dropped) == counts
        assert len(await letters(store)) == counts[1]

    async def test_a_delivery_before_the_last_does_not_end_the_run(self, store: Store) -> None:
        run = await make_settling(store, 1, 2)
        first, _ = await claim_deliveries(store)

        await store.write(deliveries.settle, [settled(first)], now=at(5))

        after = await read(store, run)
        assert (after.state, after.open, after.confirmed) == ("settling", 1, 1)

    async def test_two_that_settle_the_last_ones_at_once_end_the_run_once(self, store: Store) -> None:
        run = await make_settling(store, 1, 2)
        ended: list[str] = []
        store.listeners.append(lambda change: ended.append(change.state) if change.noun == "run" else None)
        claimed = await claim_deliveries(store)

        await asyncio.gather(*(store.write(deliveries.settle, [settled(one)], now=at(5)) for one in claimed))

        assert ended == ["done"]
        assert (await read(store, run)).confirmed == 2

    @pytest.mark.parametrize(("counted", "attempts"), [(True, 2), (False, 1)])
    async def test_a_delivery_that_is_given_back_waits_with_its_errors(
        self, store: Store, counted: bool, attempts: int
    ) -> None:
        run = await make_settling(store)
        (delivery,) = await claim_deliveries(store)
        errors = (*delivery.errors, Attempt(at(5), "timeout"))
        back = settled(delivery, "waiting", ready_at=at(9), reason="timeout", counted=counted, attempts=errors)

        committed = await commit(store, deliveries.settle, [back], now=at(5))

        (after,) = await deliveries_of(store, run)
        assert [(wake.component, wake.at) for wake in committed.wakes] == [("dispatcher", at(9))]
        assert (after.state, after.ready_at, after.attempts, after.errors) == ("waiting", at(9), attempts, errors)
        assert (await claim_deliveries(store, at(8)), len(await claim_deliveries(store, at(9)))) == ([], 1)

    async def test_an_old_fence_settles_nothing(self, store: Store) -> None:
        run = await make_settling(store)
        (old,) = await claim_deliveries(store, at(0))
        (new,) = await claim_deliveries(store, at(30))

        held = await store.write(deliveries.settle, [settled(old, "dead", letter=make_letter(run))], now=at(31))

        assert (held, await deliveries_of(store, run)) == (0, [new])
        assert (await read(store, run), await letters(store)) == (run, [])

    async def test_the_same_answer_twice_counts_once(self, store: Store) -> None:
        """F22: the reply to a commit is lost, and the write is repeated."""
        run = await make_settling(store, 1, 2)
        first, _ = await claim_deliveries(store)

        held = [await store.write(deliveries.settle, [settled(first)], now=at(5)) for _ in range(2)]

        assert (held, (await read(store, run)).open) == ([1, 0], 1)

    async def test_a_delivery_that_was_cancelled_in_flight_is_lost_to_its_holder(self, store: Store) -> None:
        run = await make_settling(store)
        (delivery,) = await claim_deliveries(store)
        await store.write(runs.cancel, run.uuid, reason="not wanted", now=at(1))

        held = await store.write(deliveries.settle, [settled(delivery)], now=at(5))

        after = await read(store, run)
        assert (held, after.state, after.confirmed, after.dropped) == (0, "cancelled", 0, 1)

    async def test_only_the_latest_errors_are_kept(self, store: Store) -> None:
        run = await make_settling(store)
        (delivery,) = await claim_deliveries(store)
        errors = tuple(Attempt(at(number), f"error {number}") for number in range(50))

        await store.write(deliveries.settle, [settled(delivery, "waiting", attempts=errors)], now=at(60))

        (after,) = await deliveries_of(store, run)
        assert after.errors == errors[-20:]
