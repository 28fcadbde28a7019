"""What every store keeps of followed schedules: asking, windows and touches."""

from __future__ import annotations

import asyncio

from oncue.model import Json
from oncue.store import followed, schedules, tasks, watch
from oncue.store.base import Store
from oncue.testing.conformance.stores.following import (
    RESOLVE,
    RULE,
    answer,
    claim_ask,
    fire,
    follow,
    hand_over,
    standing,
)
from oncue.testing.factories import accept as accept_events
from oncue.testing.factories import (
    apply,
    at,
    claim,
    commit,
    latest,
    make_definition,
    make_event,
    make_incoming,
    make_task,
    upcoming,
)


class FollowedConformance:
    """Followed schedules."""

    async def test_one_that_is_made_has_its_horizon_now_and_is_to_be_asked_at_once(self, store: Store) -> None:
        task = await make_task(store, schedule=RULE, resolve=RESOLVE)

        made = await standing(store)

        assert (made.horizon, made.reach, made.ready_at) == (at(), at(), at())
        assert (made.schedule.next_at, made.schedule.last_due_at, made.schedule.state) == (None, None, "active")
        assert made.answered < made.touched
        assert made.task_id == task.id

    async def test_one_clock_at_a_time_asks(self, store: Store) -> None:
        await make_task(store, schedule=RULE, resolve=RESOLVE)

        claims = await asyncio.gather(*(claim_ask(store, at()) for _ in range(4)))

        assert sorted(len(claimed) for claimed in claims) == [0, 0, 0, 1]
        assert [len(await claim_ask(store, at(4.9))), len(await claim_ask(store, at(5)))] == [0, 1]

    async def test_a_claim_that_is_renewed_is_held_longer(self, store: Store) -> None:
        await make_task(store, schedule=RULE, resolve=RESOLVE)
        (asked,) = await claim_ask(store, at())

        held = await store.write(followed.renew_ask, asked, until=at(9))

        assert held
        assert await claim_ask(store, at(8.9)) == []
        assert len(await claim_ask(store, at(9))) == 1
        assert not await store.write(followed.renew_ask, asked, until=at(20))

    async def test_an_answer_moves_the_schedule_and_wakes_the_clock_for_it(self, store: Store) -> None:
        await make_task(store, schedule=RULE, resolve=RESOLVE)
        (asked,) = await claim_ask(store, at())

        committed = await commit(store, followed.answer, asked, at(50), now=at(1))

        answered = await standing(store)
        assert committed.answer is True
        assert ("clock", at(50)) in [(wake.component, wake.at) for wake in committed.wakes]
        assert answered.schedule.next_at == at(50)
        assert answered.schedule.version == asked.schedule.version + 1
        assert (answered.asked_at, answered.answer_at, answered.ready_at) == (at(1), at(50), at(61))
        assert answered.answered == answered.touched

    async def test_the_same_answer_again_leaves_the_schedule_alone(self, store: Store) -> None:
        first = await follow(store, next_at=at(500))

        await answer(store, at(500), now=at(60))

        again = await standing(store)
        assert again.schedule.version == first.schedule.version
        assert again.asked_at == at(60)

    async def test_no_answer_takes_the_next_time_away(self, store: Store) -> None:
        await follow(store, next_at=at(500))

        await answer(store, None, now=at(60))

        assert (await standing(store)).schedule.next_at is None
        assert await upcoming(store, at(days=9)) == []

    async def test_a_firing_is_a_window_and_makes_the_next_time_uncertain_in_one_transaction(
        self, store: Store
    ) -> None:
        before = await follow(store, next_at=at(50))

        (run,) = await fire(store, at(50.1))

        after = await standing(store)
        assert (run.previous_due_at, run.due_at, run.cause) == (at(), at(50), "schedule:2026-03-02T09:00:50Z")
        assert (after.horizon, after.schedule.next_at, after.reach) == (at(50), None, at())
        assert (after.touched, after.ready_at, after.look_at) == (before.touched + 1, at(50.1), at(110.1))

    async def test_of_two_clocks_that_fire_one_window_the_second_changes_nothing(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        (held,) = await upcoming(store, at(50))
        firings = [schedules.decide(held, now=at(50 + late)) for late in (0, 0.2)]

        won = [await store.write(schedules.record_firings, [fired], now=at(51)) for fired in firings]

        assert won == [{held.task_id}, set()]
        assert len(await latest(store)) == 1
        assert (await standing(store)).touched == 2

    async def test_a_touch_leaves_the_next_time_standing_and_wakes_the_clock(self, store: Store) -> None:
        before = await follow(store, next_at=at(500))

        committed = await commit(store, followed.touch, {before.task_id}, now=at(3))

        touched = await standing(store)
        assert (touched.touched, touched.ready_at) == (before.touched + 1, at(3))
        assert touched.schedule == before.schedule
        assert [(wake.component, wake.at) for wake in committed.wakes] == [("clock", at(3))]

    async def test_a_touch_is_in_the_transaction_that_takes_its_event_in(self, store: Store) -> None:
        before = await follow(store)
        incoming = make_incoming(make_event())
        touching = type(incoming)(incoming.event, incoming.digest, (), (before.task_id,))

        answers = [await accept_events(store, touching, now=at(2)) for _ in range(2)]

        assert [one.verdict for (one,) in answers] == ["accepted", "duplicate"]
        assert (await standing(store)).touched == before.touched + 1

    async def test_a_touch_while_somebody_asks_waits_for_him_and_is_asked_for_at_once_then(self, store: Store) -> None:
        before = await follow(store)
        (asked,) = await claim_ask(store, at(60))
        await store.write(followed.touch, {before.task_id}, now=at(61))
        meanwhile = await claim_ask(store, at(61))

        await store.write(followed.answer, asked, at(99), now=at(62))

        after = await standing(store)
        assert meanwhile == []
        assert (after.ready_at, after.schedule.next_at) == (at(62), at(99))
        assert after.answered < after.touched

    async def test_a_touch_of_a_task_that_follows_nothing_is_nothing(self, store: Store) -> None:
        task = await make_task(store)

        committed = await commit(store, followed.touch, {task.id}, now=at(3))

        assert committed.wakes == ()

    async def test_an_ask_in_vain_is_noted_backs_off_and_moves_nothing(self, store: Store) -> None:
        before = await follow(store, next_at=at(500))
        (first,) = await claim_ask(store, at(60))
        told = await commit(store, followed.fail_ask, first, "no such table", now=at(61))
        (second,) = await claim_ask(store, at(62))
        again = await commit(store, followed.fail_ask, second, "still not", now=at(63))

        failing = await standing(store)
        named = await store.read(followed.unanswered)
        assert [(one.noun, one.name, one.state) for one in told.changes] == [("followed", "welcome", "unanswered")]
        assert again.changes == ()
        assert (failing.failures, failing.failing_since, failing.reason) == (2, at(61), "still not")
        assert (failing.ready_at, failing.schedule) == (at(65), before.schedule)
        assert named == [("welcome", "still not", at(61))]

    async def test_a_touch_does_not_shorten_the_pause_after_an_ask_in_vain(self, store: Store) -> None:
        before = await follow(store)
        (asked,) = await claim_ask(store, at(60))
        await store.write(followed.fail_ask, asked, "down", now=at(60))

        await store.write(followed.touch, {before.task_id}, now=at(60.2))

        assert (await standing(store)).ready_at == at(61)

    async def test_an_answer_after_failures_is_told_and_forgets_them(self, store: Store) -> None:
        await follow(store)
        (asked,) = await claim_ask(store, at(60))
        await store.write(followed.fail_ask, asked, "down", now=at(60))
        (asked,) = await claim_ask(store, at(61))

        committed = await commit(store, followed.answer, asked, at(99), now=at(61))

        assert [(one.name, one.state) for one in committed.changes] == [("welcome", "answered")]
        assert (await standing(store)).failing_since is None
        assert await store.read(followed.unanswered) == []

    async def test_an_answer_to_a_schedule_that_is_paused_is_lost(self, store: Store) -> None:
        await follow(store)
        (asked,) = await claim_ask(store, at(60))
        await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(61))

        assert not await store.write(followed.answer, asked, at(99), now=at(62))
        assert await claim_ask(store, at(days=1)) == []
        assert (await standing(store)).schedule.next_at is None

    async def test_a_pause_passes_over_and_the_horizon_moves_when_it_ends(self, store: Store) -> None:
        following = await follow(store, next_at=at(50))
        await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(10))

        await store.write(tasks.resume, "welcome", actor="tester", now=at(90))

        resumed = await standing(store)
        (entry,) = await store.read(watch.ledger, following.task_id, first=at(), last=at(999), limit=9)
        assert (resumed.horizon, resumed.reach, resumed.ready_at) == (at(90), at(90), at(90))
        assert (resumed.schedule.next_at, resumed.schedule.state) == (None, "active")
        assert (entry["first_due_at"], entry["last_due_at"], entry["verdict"]) == (at(50), at(90), "skipped")
        assert await latest(store) == []

    async def test_what_is_due_when_it_is_paused_has_its_window_first(self, store: Store) -> None:
        await follow(store, next_at=at(50))

        await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(50))

        assert [run.due_at for run in await latest(store)] == [at(50)]
        assert (await standing(store)).ready_at is None

    async def test_a_change_keeps_the_horizon_and_asks_again(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        await fire(store, at(50))
        await answer(store, at(500), now=at(50))
        other: Json = {"next": {"sql": "select 2 where :after is null", "source": "app"}}

        await apply(store, make_definition(schedule=other, resolve=RESOLVE), now=at(70))

        changed = await standing(store)
        assert (changed.horizon, changed.reach, changed.ready_at) == (at(50), at(), at(70))
        assert changed.schedule.next_at is None

    async def test_the_next_time_stands_where_a_change_asks_the_same(self, store: Store) -> None:
        await follow(store, next_at=at(500))

        await apply(store, make_definition(schedule=RULE | {"recheck": "5s"}, resolve=RESOLVE), now=at(70))

        assert (await standing(store)).schedule.next_at == at(500)

    async def test_one_that_is_followed_no_longer_is_not_asked_and_its_rows_are_swept(self, store: Store) -> None:
        following = await follow(store, next_at=at(50))
        await fire(store, at(50))
        (run,) = await claim(store, at(50))
        await hand_over(store, run, ("a", at(50)), now=at(51))

        await apply(store, make_definition(schedule={"every": "1m"}), now=at(70))
        swept = [await store.write(followed.sweep, limit=9) for _ in range(2)]

        assert await claim_ask(store, at(days=1)) == []
        assert await store.read(followed.of, following.task_id) is None
        assert swept == [2, 0]

    async def test_a_task_that_is_removed_leaves_nothing(self, store: Store) -> None:
        await follow(store, next_at=at(50))

        await apply(store, prune=True, now=at(10))
        await store.write(followed.sweep, limit=9)

        assert await claim_ask(store, at(days=1)) == []
        assert await store.read(followed.next_ready) is None
