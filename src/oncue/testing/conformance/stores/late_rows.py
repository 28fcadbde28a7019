"""What every store keeps of those who were handed over, and of looking behind the horizon of followed schedules."""

from __future__ import annotations

from datetime import datetime

from oncue.definition import Misfire
from oncue.model import Key, Schedule
from oncue.rules.followed import free_spans
from oncue.store import followed, runs, schedules, watch
from oncue.store.base import Store
from oncue.testing.conformance.stores.following import (
    answer,
    claim_look,
    fire,
    follow,
    hand_over,
    standing,
)
from oncue.testing.factories import (
    at,
    checkpoint,
    claim,
    commit,
    latest,
    make_task,
    page,
    upcoming,
)


class LateRowsConformance:
    """Late rows."""

    async def test_whom_a_page_handed_over_is_kept_with_its_checkpoint(self, store: Store) -> None:
        following = await follow(store, next_at=at(50))
        await fire(store, at(50))
        (run,) = await claim(store, at(50))
        pairs: list[tuple[Key, datetime]] = [("a", at(49)), (7, at(50))]

        await hand_over(store, run, *pairs, now=at(51))
        await hand_over(store, run, ("lost", at(50)), now=at(51))

        asked = [*pairs, ("a", at(50)), ("lost", at(50))]
        known = await store.read(followed.handed_over, following.task_id, asked)
        assert known == {("a", at(49)), ("7", at(50))}

    async def test_the_same_pair_twice_is_kept_once(self, store: Store) -> None:
        following = await follow(store)

        for _ in range(2):
            await store.write(followed.note_handed_over, following.task_id, [("b", at(2)), ("a", at(1))])

        known = await store.read(followed.handed_over, following.task_id, [("a", at(1)), ("b", at(2))])
        assert len(known) == 2

    async def test_a_look_is_due_a_recheck_after_a_window_and_claimed_by_one(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        await fire(store, at(50))

        claims = [len(await claim_look(store, moment)) for moment in (at(109.9), at(110), at(114.9), at(115))]

        assert claims == [0, 1, 0, 1]

    async def test_no_look_enters_a_window_that_is_open_or_ended_without_handing_over(self, store: Store) -> None:
        await follow(store, next_at=at(10))
        for number in range(1, 6):
            await fire(store, at(number * 10))
            await answer(store, at(number * 10 + 10), now=at(number * 10))
        done, settled, failed, cancelled, _ = await latest(store)
        for run in await claim(store, at(60), limit=1):
            await hand_over(store, run, now=at(60))
        for run in (failed, cancelled):
            await store.write(runs.cancel, run.uuid, reason="test", now=at(60))

        (look,) = await claim_look(store, at(110))
        barred, still_open = await store.read(followed.barred, look)

        assert done.due_at == at(10)
        assert sorted(end for _, end in barred) == [at(20), at(30), at(40), at(50)]
        assert sorted(end for _, end in still_open) == [at(20), at(50)]
        assert free_spans(look.reach, look.horizon, barred) == [(at(), at(10))]
        assert settled.due_at == at(20)

    async def test_a_look_that_finds_somebody_makes_a_run_that_waits_its_turn(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        await fire(store, at(50))
        (run,) = await claim(store, at(50))
        await hand_over(store, run, now=at(51))
        (look,) = await claim_look(store, at(110))

        committed = await commit(
            store, followed.record_look, look, [(at(5), at(20)), (at(30), at(50))], still_open=[], now=at(111)
        )

        late = (await latest(store))[1:]
        assert committed.answer == 2
        assert ("dispatcher", at(111)) in [(wake.component, wake.at) for wake in committed.wakes]
        assert [(one.previous_due_at, one.due_at) for one in late] == [(at(5), at(20)), (at(30), at(50))]
        assert [one.cause for one in late] == [
            "schedule:2026-03-02T09:00:20Z:late:1",
            "schedule:2026-03-02T09:00:50Z:late:2",
        ]
        assert [(one.overlap, one.caught_up, one.state) for one in late] == [("skip", True, "due")] * 2
        assert (await standing(store)).look_at == at(171)

    async def test_looks_end_when_nobody_can_appear_in_time_any_more(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        await fire(store, at(50))
        (run,) = await claim(store, at(50))
        await hand_over(store, run, now=at(51))
        (early,) = await claim_look(store, at(110))
        await store.write(followed.record_look, early, [], still_open=[], now=at(110))
        between = await standing(store)
        (last,) = await claim_look(store, at(50, hours=1))

        await store.write(followed.record_look, last, [], still_open=[], now=at(50, hours=1))

        ended = await standing(store)
        assert (between.reach, between.look_at) == (at(), at(170))
        assert (ended.reach, ended.look_at) == (at(50), None)

    async def test_a_window_that_is_fired_during_a_look_is_looked_behind_too(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        await fire(store, at(50))
        await answer(store, at(50, hours=1), now=at(50))
        (look,) = await claim_look(store, at(50, hours=1))
        await fire(store, at(50, hours=1))

        await store.write(followed.record_look, look, [], still_open=[], now=at(51, hours=1))

        following = await standing(store)
        assert following.horizon == at(50, hours=1)
        assert (following.reach, following.look_at) == (at(50), at(111, hours=1))

    async def test_a_look_whose_claim_was_lost_writes_nothing(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        await fire(store, at(50))
        (slow,) = await claim_look(store, at(110))
        (quick,) = await claim_look(store, at(115))

        made = await store.write(followed.record_look, slow, [(at(5), at(20))], still_open=[], now=at(116))

        assert (made, len(await latest(store))) == (0, 1)
        assert await store.write(followed.renew_look, quick, until=at(200))
        assert not await store.write(followed.renew_look, slow, until=at(200))

    async def test_a_look_in_vain_is_made_again_at_the_next_recheck(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        await fire(store, at(50))
        (look,) = await claim_look(store, at(110))

        committed = await commit(store, followed.fail_look, look, "down", now=at(112))

        assert [(one.name, one.state, one.reason) for one in committed.changes] == [("welcome", "unseen", "down")]
        assert (await standing(store)).look_at == at(172)

    async def test_what_policy_leaves_out_no_look_brings_back(self, store: Store) -> None:
        await follow(store, next_at=at(50), misfire=Misfire(catch_up="none"))

        await fire(store, at(minutes=30))

        following = await standing(store)
        (entry,) = await store.read(watch.ledger, following.task_id, first=at(), last=at(minutes=30), limit=9)
        assert await latest(store) == []
        assert (following.horizon, following.reach) == (at(minutes=29), at(minutes=29))
        assert (entry["first_due_at"], entry["last_due_at"], entry["verdict"]) == (at(50), at(minutes=29), "missed")

    async def test_the_sweep_takes_what_no_look_can_reach_and_nothing_else(self, store: Store) -> None:
        following = await follow(store, next_at=at(50), misfire=Misfire(catch_up="none"))
        pairs: list[tuple[Key, datetime]] = [("a", at(10)), ("b", at(minutes=29)), ("c", at(minutes=29, seconds=1))]
        await store.write(followed.note_handed_over, following.task_id, pairs)
        kept = [await store.write(followed.sweep, limit=9)]
        await fire(store, at(minutes=30))  # which leaves out all up to a minute ago

        kept += [await store.write(followed.sweep, limit=1), await store.write(followed.sweep, limit=9)]

        known = await store.read(followed.handed_over, following.task_id, pairs)
        assert kept == [0, 1, 1]
        assert known == {("c", at(minutes=29, seconds=1))}

    async def test_a_run_by_hand_has_the_window_from_the_horizon(self, store: Store) -> None:
        following = await follow(store, next_at=at(50))
        task = following.schedule

        await store.write(
            runs.fire, task.task_id, task.task_uuid, task.task_version, key="x", due_at=at(70), now=at(60)
        )

        (run,) = await latest(store)
        assert (run.kind, run.previous_due_at, run.due_at) == ("manual", at(), at(70))

    async def test_one_whose_rule_cannot_be_read_is_stopped_and_asked_no_more(self, store: Store) -> None:
        await follow(store, next_at=at(50))
        (held,) = await upcoming(store, at(50))
        broken = held.timing.replace('"next"', '"zone":"Europe/Nowhere","next"')
        spoiled = Schedule(held.task_id, held.task_uuid, 1, held.version, held.next_at, None, broken, since=held.since)

        fired = schedules.decide(spoiled, now=at(50))
        await store.write(schedules.record_firings, [fired], now=at(50))

        stopped = await standing(store)
        assert (stopped.schedule.state, stopped.ready_at, stopped.look_at) == ("stopped", None, None)
        assert "Europe/Nowhere" in (stopped.schedule.reason or "")

    async def test_checkpoints_of_other_runs_keep_nobody(self, store: Store) -> None:
        task = await make_task(store, schedule={"every": "1m"})
        (due,) = await upcoming(store, at(60))
        await store.write(schedules.record_firings, [schedules.decide(due, now=at(60))], now=at(60))
        (run,) = await claim(store, at(60))

        await checkpoint(store, run, page(confirmed=3), now=at(61))

        assert await store.read(followed.of, task.id) is None
        assert await store.read(followed.next_ready) is None
