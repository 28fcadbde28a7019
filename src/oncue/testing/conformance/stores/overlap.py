"""Overlap: one slot for each task, decided when a run is claimed, and freed when its last page is out."""

from __future__ import annotations

from typing import Any

import pytest

from oncue.definition import Misfire, Overlap
from oncue.model import Run
from oncue.store import endings, runs
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
    make_delivery,
    make_task,
    page,
    read,
)


async def _busy(store: Store, overlap: Overlap, *, more: int = 1, **changes: Any) -> tuple[Run, list[Run]]:
    """Return the run of minute 1 that holds the slot, and those of the minutes after it, after a claim found them."""
    await apply(store, make_definition(overlap=overlap, **changes), now=at(0))
    await fire_due(store, at(minutes=1))
    (holder,) = await claim(store, at(minutes=1), until=at(hours=9))
    for minute in range(2, more + 2):
        await fire_due(store, at(minutes=minute))
        await claim(store, at(minutes=minute), until=at(hours=9))
    return holder, (await latest(store))[1:]


class OverlapConformance:
    """Overlap."""

    async def test_skip_ends_a_run_that_finds_the_slot_taken_with_its_reason(self, store: Store) -> None:
        _, (run,) = await _busy(store, "skip")

        assert (run.state, run.ended_at, run.attempts) == ("skipped", at(minutes=2), 0)
        assert run.reason == "an earlier run is still handing over"

    async def test_allow_lets_both_run(self, store: Store) -> None:
        _, (run,) = await _busy(store, "allow")

        assert run.state == "running"

    async def test_queue_lets_one_wait_and_skips_the_ones_after_it(self, store: Store) -> None:
        _, waiting = await _busy(store, "queue", more=3)

        assert [run.state for run in waiting] == ["queued", "skipped", "skipped"]

    async def test_the_end_of_a_run_wakes_the_one_that_waits_for_its_slot(self, store: Store) -> None:
        holder, (waiting,) = await _busy(store, "queue")

        committed = await commit(store, runs.checkpoint, holder, page(confirmed=1), now=at(150), until=at(180))

        (claimed,) = await claim(store, at(150))
        assert [(wake.component, wake.at) for wake in committed.wakes] == [("dispatcher", at(150))]
        assert (claimed.id, claimed.reason) == (waiting.id, None)

    async def test_the_slot_is_free_when_the_last_page_is_out_though_deliveries_are_open(self, store: Store) -> None:
        holder, _ = await _busy(store, "queue")

        state = await checkpoint(store, holder, page(open=[make_delivery(holder)]), now=at(150))

        assert state == "settling"
        assert len(await claim(store, at(150))) == 1

    @pytest.mark.parametrize("state", ["failed", "expired", "cancelled"])
    async def test_every_end_frees_the_slot(self, store: Store, state: Any) -> None:
        holder, (waiting,) = await _busy(store, "queue")

        await store.write(endings.end_run, holder, state, reason="test", now=at(150))

        assert (await read(store, waiting)).state == "due"

    async def test_a_holder_that_was_given_back_keeps_its_slot_and_passes_when_it_is_claimed_again(
        self, store: Store
    ) -> None:
        holder, (waiting,) = await _busy(store, "queue")
        await store.write(runs.give_back, holder, ready_at=at(150), counted=False, reason="drain")

        (claimed,) = await claim(store, at(150))

        assert claimed.id == holder.id
        assert (await read(store, waiting)).state == "queued"

    async def test_a_holder_that_is_cancelled_while_it_waits_frees_its_slot(self, store: Store) -> None:
        holder, (waiting,) = await _busy(store, "queue")
        await store.write(runs.give_back, holder, ready_at=at(hours=1), counted=False, reason="drain")

        await store.write(runs.cancel, holder.uuid, reason="not wanted", now=at(150))

        assert (await read(store, waiting)).state == "due"

    async def test_a_run_in_the_queue_that_is_cancelled_leaves_the_slot_as_it_is(self, store: Store) -> None:
        holder, (waiting,) = await _busy(store, "queue")

        await store.write(runs.cancel, waiting.uuid, reason="not wanted", now=at(150))
        await fire_due(store, at(minutes=3))
        await claim(store, at(minutes=3))

        assert [run.state for run in await latest(store)] == ["running", "cancelled", "queued"]
        assert await checkpoint(store, holder, page(confirmed=1), now=at(181)) == "done"
        assert (await latest(store))[-1].state == "due"

    async def test_a_takeover_keeps_the_slot(self, store: Store) -> None:
        holder, _ = await _busy(store, "skip")

        (taken,) = await claim(store, at(hours=9))

        assert (taken.id, taken.fence) == (holder.id, 2)

    async def test_replace_asks_the_running_one_to_end_at_its_next_page_and_then_runs(self, store: Store) -> None:
        holder, (waiting,) = await _busy(store, "replace")

        asked = await store.write(runs.renew, holder, until=at(180))
        state = await checkpoint(store, holder, page("7", confirmed=1), now=at(150))

        after = await read(store, holder)
        (claimed,) = await claim(store, at(150))
        assert waiting.state == "queued"
        assert (asked, state) == (runs.REPLACED, "cancelled")
        assert (after.state, after.reason) == ("cancelled", runs.REPLACED)
        assert claimed.id == waiting.id

    async def test_replace_comes_too_late_for_a_last_page(self, store: Store) -> None:
        holder, (waiting,) = await _busy(store, "replace")
        await store.write(runs.renew, holder, until=at(180))

        state = await checkpoint(store, holder, page(open=[make_delivery(holder)]), now=at(150))

        assert (state, (await read(store, waiting)).state) == ("settling", "due")

    async def test_of_two_that_wait_to_replace_the_later_replaces_the_earlier(self, store: Store) -> None:
        holder, (earlier, later) = await _busy(store, "replace", more=2)
        await checkpoint(store, holder, page(confirmed=1), now=at(190))

        (claimed,) = await claim(store, at(190))
        asked = await store.write(runs.renew, claimed, until=at(220))

        assert (claimed.id, asked) == (earlier.id, runs.REPLACED)
        assert (await read(store, later)).state == "queued"

    @pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
    async def test_runs_that_were_caught_up_go_one_after_another(self, store: Store, overlap: Overlap) -> None:
        misfire = Misfire(catch_up="all")
        await apply(store, make_definition(overlap=overlap, misfire=misfire), now=at(0))
        await fire_due(store, at(minutes=5, seconds=30))
        order, now = [], at(minutes=5, seconds=30)

        while claimed := await claim(store, now, until=at(hours=9)):
            assert len(claimed) == 1
            order.append(claimed[0].due_at)
            assert await store.write(runs.renew, claimed[0], until=at(hours=9)) is None
            await checkpoint(store, claimed[0], page(confirmed=1), now=now)

        assert order[:4] == [at(minutes=minute) for minute in (1, 2, 3, 4)]

    async def test_of_several_in_one_claim_the_earliest_gets_the_slot(self, store: Store) -> None:
        await apply(store, make_definition(overlap="queue"), now=at(0))
        for minute in (1, 2, 3):
            await fire_due(store, at(minutes=minute))

        claimed = await claim(store, at(minutes=3))

        assert [run.due_at for run in claimed] == [at(minutes=1)]
        assert [run.state for run in await latest(store)] == ["running", "queued", "skipped"]

    async def test_a_run_by_hand_takes_no_slot_and_is_never_skipped(self, store: Store) -> None:
        _, _ = await _busy(store, "skip")
        task = await make_task(store, overlap="skip")

        await store.write(runs.fire, task.id, task.uuid, 1, key="k", due_at=at(150), now=at(150))

        assert [run.kind for run in await claim(store, at(150))] == ["manual"]

    async def test_a_run_by_hand_is_not_replaced_by_a_scheduled_one(self, store: Store) -> None:
        _, (waiting,) = await _busy(store, "replace")
        task = await make_task(store, overlap="replace")
        await store.write(runs.fire, task.id, task.uuid, 1, key="k", due_at=at(150), now=at(150))

        (run,) = await claim(store, at(150))

        assert waiting.state == "queued"
        assert await store.write(runs.renew, run, until=at(180)) is None
