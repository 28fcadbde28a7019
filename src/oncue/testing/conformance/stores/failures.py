"""Dead letters and requeues: buried once, taken by one operator, and what becomes of each afterwards."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from oncue.errors import Conflict, NotFound
from oncue.model import Attempt, DeadLetter, Requeue, Run
from oncue.rules import identity
from oncue.store import deliveries, endings, failures, runs
from oncue.store.base import Store
from oncue.testing.factories import (
    START,
    accept,
    apply,
    at,
    checkpoint,
    claim,
    claim_deliveries,
    commit,
    letter_by,
    letters,
    make_dead,
    make_delivery,
    make_event,
    make_incoming,
    make_letter,
    make_running,
    make_settling,
    make_task,
    page,
    read,
    settled,
)


async def _requeue(store: Store, *, now: datetime = START, rate: float = 10, **which: Any) -> Requeue:
    which = which or {"everything": True}
    return await store.write(failures.requeue, rate=rate, ask_again=True, actor="tester", now=now, **which)


async def _send(store: Store, made: Requeue, *, count: int = 10) -> list[DeadLetter]:
    return await store.write(failures.send_requeued, made, count=count, state="running", ready_at=at(1), now=at(0))


async def _sent(store: Store, *keys: str) -> tuple[Run, DeadLetter, Run]:
    """Return a run, its dead letter, and the run that is claimed to recover it."""
    first, (letter, *_) = await make_dead(store, *keys)
    await _send(store, await _requeue(store))
    return first, letter, (await claim(store, at(1)))[0]


class FailureConformance:
    """Dead letters and requeues."""

    async def test_a_dead_letter_is_buried_once(self, store: Store) -> None:
        letter = make_letter(headers={"x": b"\xff", "n": 1}, body=b"\0\xff", attempts=(Attempt(at(0), "503"),))

        new = [await store.write(failures.record, [letter], now=at(number)) for number in (1, 2)]

        (buried,) = await letters(store)
        assert (new, buried.created_at, buried.state) == ([1, 0], at(1), "open")
        assert (buried.what.body, buried.what.attempts) == (letter.body, letter.attempts)
        assert await letter_by(store, buried.uuid) == buried

    async def test_a_message_from_a_broker_that_was_dead_before_opens_a_child(self, store: Store) -> None:
        _, (parent,) = await make_dead(store)
        child = make_letter(message_id=parent.what.message_id)

        await store.write(failures.record, [child], now=at(1))

        assert [letter.parent_id for letter in await letters(store)] == [None, parent.id]

    async def test_open_dead_letters_are_counted_by_their_cause(self, store: Store) -> None:
        await make_dead(store, 1, 2)
        await store.write(failures.record, [make_letter(), make_letter(task_name="welcome", reason="410")], now=at(0))

        groups = await store.read(failures.groups)

        assert groups[0] == ("welcome", None, "503", 2)
        assert sorted(count for *_, count in groups) == [1, 1, 2]

    async def test_a_requeue_takes_the_named_open_letters_and_begins_with_one(self, store: Store) -> None:
        _, found = await make_dead(store, 1, 2, 3)

        committed = await commit(
            store,
            failures.requeue,
            uuids=[found[0].uuid, found[2].uuid, uuid4()],
            rate=10,
            ask_again=True,
            actor="tester",
            now=at(0),
        )

        made = committed.answer
        assert (made.state, made.total, made.sent, made.ready_at) == ("canary", 2, 0, at(0))
        assert [letter.state for letter in await letters(store)] == ["requeuing", "open", "requeuing"]
        assert ("failures", at(0)) in [(wake.component, wake.at) for wake in committed.wakes]

    async def test_a_requeue_takes_all_of_a_task_or_all(self, store: Store) -> None:
        await make_dead(store, 1, 2)
        await store.write(failures.record, [make_letter()], now=at(0))

        of_task, rest = await _requeue(store, task="welcome"), await _requeue(store, everything=True)

        assert (of_task.total, rest.total) == (2, 1)

    async def test_a_requeue_must_say_which(self, store: Store) -> None:
        with pytest.raises(Conflict, match="say which"):
            await store.write(failures.requeue, rate=1, ask_again=True, actor="tester", now=at(0))

    async def test_two_operators_at_once_requeue_each_letter_once(self, store: Store) -> None:
        _, found = await make_dead(store, *range(20))
        uuids = [letter.uuid for letter in found]

        answers = await asyncio.gather(
            _requeue(store, uuids=uuids), _requeue(store, uuids=uuids[::-1]), return_exceptions=True
        )

        made = [answer for answer in answers if isinstance(answer, Requeue)]
        assert sum(one.total for one in made) == 20
        assert all(isinstance(answer, Requeue | Conflict) for answer in answers)

    async def test_nothing_open_is_a_conflict_and_leaves_no_requeue(self, store: Store) -> None:
        _, (letter,) = await make_dead(store)
        await _requeue(store)

        with pytest.raises(Conflict, match="none of these"):
            await _requeue(store, uuids=[letter.uuid])

        assert len(await store.read(failures.list_requeues, limit=10)) == 1

    async def test_a_letter_that_is_gone_does_not_stop_its_neighbours(self, store: Store) -> None:
        """B83: re-queueing 344 202 jobs stopped at the first one that had expired meanwhile."""
        _, found = await make_dead(store, *range(10))
        await store.write(failures.discard, uuids=[found[3].uuid], reason="old", actor="tester", now=at(0))

        made = await _requeue(store, uuids=[letter.uuid for letter in found])

        assert made.total == 9

    async def test_each_letter_sent_makes_one_run_that_names_it(self, store: Store) -> None:
        first, (letter,) = await make_dead(store)
        made = await _requeue(store)

        committed = await commit(
            store, failures.send_requeued, made, count=5, state="canary", ready_at=at(1), now=at(0)
        )

        (run,) = await claim(store, at(0))
        task = await make_task(store, schedule=None)
        assert run.uuid == identity.run_uuid(task.uuid, f"requeue:{made.uuid}:{letter.uuid}")
        assert (run.kind, run.dead_letter_id, run.task_version, run.due_at) == ("requeue", letter.id, 1, first.due_at)
        assert [(wake.component, wake.at) for wake in committed.wakes] == [("dispatcher", at(0))]

    async def test_of_two_that_send_the_same_part_one_gets_nothing(self, store: Store) -> None:
        await store.write(failures.record, [make_letter() for _ in range(4)], now=at(0))
        made = await _requeue(store)

        parts = await asyncio.gather(_send(store, made, count=2), _send(store, made, count=2))

        assert sorted(len(part) for part in parts) == [0, 2]

    async def test_a_requeued_run_goes_on_at_the_cursor_and_with_the_event_of_the_first(self, store: Store) -> None:
        task = await make_task(store, schedule=None)
        await accept(store, make_incoming(make_event("e1", subject="s1"), task))
        (run,) = await claim(store, at(0))
        letter = make_letter(run, kind="run", cursor="7")
        await store.write(endings.end_run, run, "failed", reason="no table", now=at(1), letter=letter)

        await _send(store, await _requeue(store))

        (again,) = await claim(store, at(2))
        assert (again.cursor, again.due_at) == ("7", run.due_at)
        assert again.event == run.event != None  # noqa: E711  both, and there is one

    async def test_a_letter_whose_run_is_confirmed_is_recovered(self, store: Store) -> None:
        first, letter, run = await _sent(store)

        committed = await commit(store, runs.checkpoint, run, page(confirmed=1), now=at(2), until=at(30))

        after = await letter_by(store, letter.uuid)
        (made,) = await store.read(failures.list_requeues, limit=10)
        assert (after.state, after.ended_at, after.what.requeue) == ("recovered", at(2), 1)
        assert (made.recovered, made.failed) == (1, 0)
        assert ("failures", at(2)) in [(wake.component, wake.at) for wake in committed.wakes]
        assert (await read(store, first)).state == "partial"

    async def test_a_letter_whose_entity_no_longer_qualifies_is_discarded_with_the_reason(self, store: Store) -> None:
        _, letter, run = await _sent(store)

        await checkpoint(store, run, page())

        after = await letter_by(store, letter.uuid)
        assert (after.state, after.ended_reason) == ("discarded", "no longer qualifies")

    async def test_a_letter_that_fails_again_is_open_again_with_all_its_tries(self, store: Store) -> None:
        _, letter, run = await _sent(store)
        again = make_letter(run, identity="again", reason="410", attempts=(Attempt(at(2), "410"),))

        await checkpoint(store, run, page(dead=[again]), now=at(2))

        (after,) = await letters(store)
        (made,) = await store.read(failures.list_requeues, limit=10)
        assert (after.id, after.state, after.ended_at, after.what.requeue) == (letter.id, "open", None, 1)
        assert (after.what.reason, [attempt.error for attempt in after.what.attempts]) == ("410", ["503", "410"])
        assert (made.recovered, made.failed) == (0, 1)

    async def test_a_letter_whose_last_delivery_is_confirmed_is_recovered(self, store: Store) -> None:
        _, letter, run = await _sent(store)
        await checkpoint(store, run, page(open=[make_delivery(run)]), now=at(2))
        (delivery,) = await claim_deliveries(store, at(2))

        await store.write(deliveries.settle, [settled(delivery)], now=at(3))

        assert (await letter_by(store, letter.uuid)).state == "recovered"

    async def test_a_delivery_of_a_requeue_that_dies_adds_its_tries_to_the_letter(self, store: Store) -> None:
        _, letter, run = await _sent(store)
        await checkpoint(store, run, page(open=[make_delivery(run)]), now=at(2))
        (delivery,) = await claim_deliveries(store, at(2))

        again = make_letter(run, identity="again", attempts=(Attempt(at(3), "410"),))
        await store.write(deliveries.settle, [settled(delivery, "dead", letter=again)], now=at(3))

        (after,) = await letters(store)
        assert (after.id, after.state, len(after.what.attempts)) == (letter.id, "open", 2)

    async def test_a_requeued_run_that_fails_again_is_open_again_at_the_cursor_that_it_reached(
        self, store: Store
    ) -> None:
        run = await make_running(store)
        letter = make_letter(run, kind="run", cursor="3")
        await store.write(endings.end_run, run, "failed", reason="no table", now=at(1), letter=letter)
        await _send(store, await _requeue(store))
        (again,) = await claim(store, at(2))
        await checkpoint(store, again, page("7", confirmed=1), now=at(3))

        worse = make_letter(again, kind="run", reason="no database", cursor="7")
        await store.write(endings.end_run, again, "failed", reason="no database", now=at(4), letter=worse)

        (after,) = await letters(store)
        assert (after.state, after.what.cursor, after.what.reason) == ("open", "7", "no database")
        assert len(after.what.attempts) == 2

    async def test_a_requeued_run_buries_its_messages_apart_and_has_recovered(self, store: Store) -> None:
        run = await make_running(store)
        letter = make_letter(run, kind="run")
        await store.write(endings.end_run, run, "failed", reason="no table", now=at(1), letter=letter)
        await _send(store, await _requeue(store))
        (again,) = await claim(store, at(2))

        await checkpoint(store, again, page(confirmed=5, dead=[make_letter(again, 8), make_letter(again, 9)]))

        parent, *children = await letters(store)
        assert parent.state == "recovered"
        assert [(child.what.key, child.state, child.parent_id) for child in children] == [
            (8, "open", parent.id),
            (9, "open", parent.id),
        ]

    async def test_a_stranger_is_given_out_to_be_published_and_settled(self, store: Store) -> None:
        await store.write(failures.record, [make_letter(), make_letter()], now=at(0))
        made = await _requeue(store)

        first, second = await _send(store, made)
        await store.write(failures.settle_stranger, first, error=None, now=at(2))
        await store.write(failures.settle_stranger, second, error="no queue", now=at(2))

        after = await store.read(failures.read_requeue, made.uuid)
        assert [letter.state for letter in await letters(store)] == ["recovered", "open"]
        assert (await letters(store))[1].what.reason == "no queue"
        assert (after.sent, after.recovered, after.failed) == (10, 1, 1)

    async def test_a_stranger_whose_publisher_died_is_given_out_again(self, store: Store) -> None:
        await store.write(failures.record, [make_letter()], now=at(0))
        (stranger,) = await _send(store, await _requeue(store))

        early = await store.write(failures.retake_strangers, before=at(0), now=at(30), limit=10)
        late = await store.write(failures.retake_strangers, before=at(30), now=at(60), limit=10)
        again = await store.write(failures.retake_strangers, before=at(60), now=at(60), limit=10)

        assert (early, [letter.id for letter in late], again) == ([], [stranger.id], [])

    async def test_an_answer_does_not_break_the_rate_of_what_is_sent(self, store: Store) -> None:
        await make_dead(store, 1, 2, 3)
        made = await _requeue(store)
        await store.write(failures.send_requeued, made, count=1, state="running", ready_at=at(9), now=at(0))
        (run,) = await claim(store, at(0))

        await checkpoint(store, run, page(confirmed=1), now=at(2))

        assert await store.read(failures.ready_requeues, now=at(8), limit=10) == []
        assert await store.read(failures.next_requeue) == at(9)

    async def test_the_answer_of_the_first_one_is_looked_at_at_once(self, store: Store) -> None:
        await make_dead(store, 1, 2)
        made = await _requeue(store)
        await store.write(failures.send_requeued, made, count=1, state="canary", ready_at=at(9), now=at(0))
        (run,) = await claim(store, at(0))

        await checkpoint(store, run, page(confirmed=1), now=at(2))

        (ready,) = await store.read(failures.ready_requeues, now=at(2), limit=10)
        assert (ready.id, ready.recovered) == (made.id, 1)

    async def test_a_requeue_that_ends_opens_what_it_has_not_sent(self, store: Store) -> None:
        await make_dead(store, 1, 2, 3)
        made = await _requeue(store)
        await _send(store, made, count=1)
        seen = await store.read(failures.read_requeue, made.uuid)

        moved = await store.write(failures.move_requeue, seen, "cancelled", reason="enough", ready_at=at(2), now=at(2))

        after = await store.read(failures.requeue_by_id, made.id)
        assert (moved, after.state, after.reason, after.ended_at) == (True, "cancelled", "enough", at(2))
        assert [letter.state for letter in await letters(store)] == ["requeuing", "open", "open"]

    async def test_a_requeue_that_moved_meanwhile_is_left_as_it_is(self, store: Store) -> None:
        await make_dead(store)
        made = await _requeue(store)
        await store.write(failures.move_requeue, made, "cancelled", reason="enough", ready_at=at(2), now=at(2))

        assert not await store.write(failures.move_requeue, made, "stopped", reason="no", ready_at=at(3), now=at(3))

    async def test_only_what_is_open_is_discarded(self, store: Store) -> None:
        _, found = await make_dead(store, 1, 2)
        await _requeue(store, uuids=[found[0].uuid])

        count = await store.write(failures.discard, everything=True, reason="old", actor="tester", now=at(1))

        assert count == 1
        assert [letter.state for letter in await letters(store)] == ["requeuing", "discarded"]

    async def test_a_task_that_was_removed_meanwhile_still_has_its_letters_requeued(self, store: Store) -> None:
        await make_dead(store)
        await apply(store, prune=True)

        await _send(store, await _requeue(store))

        assert len(await claim(store, at(1))) == 1

    async def test_a_delivery_that_is_dead_twice_is_buried_once(self, store: Store) -> None:
        run = await make_settling(store)
        (delivery,) = await claim_deliveries(store)

        for _ in range(2):
            await store.write(deliveries.settle, [settled(delivery, "dead", letter=make_letter(run))], now=at(1))

        assert len(await letters(store)) == 1

    async def test_a_letter_or_requeue_that_nobody_made_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await store.read(failures.read, uuid4())
        with pytest.raises(NotFound):
            await store.read(failures.read_requeue, uuid4())
