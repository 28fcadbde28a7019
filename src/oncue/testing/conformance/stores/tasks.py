"""Tasks: apply, pause, resume, and what becomes of due times around each of them."""

from __future__ import annotations

import asyncio

import pytest

from oncue.definition import Misfire
from oncue.errors import Conflict, NotFound
from oncue.rules import firing
from oncue.store import runs, schedules, tasks, watch
from oncue.store.base import Store
from oncue.testing.factories import (
    apply,
    at,
    commit,
    fire_due,
    latest,
    make_definition,
    make_task,
    schedule_of,
    upcoming,
)

HOURLY = {"cron": "0 * * * *"}


async def _ledger(store: Store, name: str = "welcome") -> list[tuple[str, int]]:
    task = await store.read(tasks.read, name)
    entries = await store.read(watch.ledger, task.id, first=at(days=-9), last=at(days=9), limit=100)
    return [(entry["verdict"], entry["count"]) for entry in reversed(entries)]


class TaskConformance:
    """Tasks."""

    async def test_a_task_that_is_new_is_created_and_first_fires_after_now(self, store: Store) -> None:
        verdicts = await apply(store, make_definition(), now=at(0))

        schedule = await schedule_of(store)
        assert verdicts == ["created"]
        assert schedule is not None
        assert (schedule.state, schedule.next_at, schedule.last_due_at) == ("active", at(minutes=1), None)

    async def test_the_same_definition_again_changes_nothing_and_keeps_next_time_and_anchor(self, store: Store) -> None:
        definition = make_definition(schedule={"every": "3d"})
        await apply(store, definition, now=at(0))
        before = await schedule_of(store)

        verdicts = [(await apply(store, definition, now=at(days=day)))[0] for day in (1, 2)]

        assert verdicts == ["unchanged", "unchanged"]
        assert await schedule_of(store) == before

    async def test_a_change_beside_the_trigger_keeps_next_time_and_anchor(self, store: Store) -> None:
        """B95: a three-day interval with daily edits never ran."""
        await apply(store, make_definition(schedule={"every": "3d"}), now=at(0))

        for day in (1, 2):
            await apply(store, make_definition(schedule={"every": "3d"}, description=f"day {day}"), now=at(days=day))

        schedule = await schedule_of(store)
        assert schedule is not None
        assert (schedule.next_at, schedule.task_version) == (at(days=3), 3)

    async def test_a_change_decides_by_the_old_version_what_is_due_already(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))

        verdicts = await apply(store, make_definition(schedule=HOURLY), now=at(minutes=1, seconds=1))

        (run,) = await latest(store)
        schedule = await schedule_of(store)
        assert verdicts == ["changed"]
        assert (run.due_at, run.task_version) == (at(minutes=1), 1)
        assert schedule is not None
        assert (schedule.next_at, schedule.last_due_at) == (at(hours=1), at(minutes=1))

    async def test_a_change_before_the_due_time_makes_no_run(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))

        await apply(store, make_definition(schedule=HOURLY), now=at(59))

        assert await latest(store) == []

    async def test_a_rule_that_cannot_be_followed_any_more_does_not_stand_in_the_way_of_its_change(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await apply(store, make_definition(), now=at(0))
        with monkeypatch.context() as patch:
            patch.setattr("oncue.store.codec.read_trigger", _no_rule)
            await fire_due(store, at(minutes=1))
        stopped = await schedule_of(store)

        await apply(store, make_definition(schedule=HOURLY), now=at(minutes=2))

        schedule = await schedule_of(store)
        assert stopped is not None
        assert (stopped.state, stopped.next_at) == ("stopped", at(minutes=1))
        assert schedule is not None
        assert (schedule.state, schedule.reason, schedule.next_at) == ("active", None, at(hours=1))
        assert await _ledger(store) == [("stopped", 1)]

    async def test_a_stopped_schedule_is_tried_again_when_something_else_of_its_task_changes(
        self, store: Store
    ) -> None:
        await apply(store, make_definition(), now=at(0))
        (due,) = await upcoming(store, at(minutes=1))
        await store.write(schedules.record_firings, [firing.stop(due, "no such zone")], now=at(minutes=1))

        committed = await commit(
            store,
            tasks.apply,
            [make_definition(description="mended")],
            prune=False,
            actor="tester",
            now=at(minutes=1, seconds=2),
        )

        assert ("clock", at(minutes=1)) in [(wake.component, wake.at) for wake in committed.wakes]
        assert len(await fire_due(store, at(minutes=1, seconds=3))) == 1

    async def test_a_rename_keeps_the_task_its_schedule_and_its_runs(self, store: Store) -> None:
        before = await make_task(store)
        schedule = await schedule_of(store)
        await fire_due(store, at(minutes=1))

        verdicts = await apply(store, make_definition("hello", renamed_from="welcome"), prune=True, now=at(minutes=1))
        again = await apply(store, make_definition("hello", renamed_from="welcome"), prune=True, now=at(minutes=1))

        task = await store.read(tasks.read, "hello")
        after = await schedule_of(store, "hello")
        assert (verdicts, again) == (["changed"], ["unchanged"])
        assert (task.id, task.uuid, task.version) == (before.id, before.uuid, 2)
        assert schedule is not None
        assert after is not None
        assert after.timing == schedule.timing
        assert [run.task_name for run in await latest(store)] == ["hello"]

    async def test_prune_removes_what_is_not_defined_and_leaves_its_runs(self, store: Store) -> None:
        await apply(store, make_definition("one"), make_definition("two"), now=at(0))

        verdicts = await apply(store, make_definition("one"), prune=True, now=at(minutes=1, seconds=1))

        assert verdicts == ["unchanged", "removed"]
        assert [task.name for task in await store.read(tasks.every)] == ["one"]
        assert [run.task_name for run in await latest(store)] == ["two"]
        with pytest.raises(NotFound, match="Known tasks: one"):
            await store.read(tasks.read, "two")

    async def test_without_prune_nothing_is_removed(self, store: Store) -> None:
        await apply(store, make_definition("one"), make_definition("two"))

        await apply(store, make_definition("one"))

        assert [task.name for task in await store.read(tasks.every)] == ["one", "two"]

    async def test_a_task_that_is_removed_and_made_again_is_another_one(self, store: Store) -> None:
        """B61: the new schedule found an old run with the same due time, and made none."""
        old = await make_task(store)
        await fire_due(store, at(minutes=1))
        await apply(store, prune=True, now=at(minutes=1))

        new = await make_task(store, now=at(minutes=1))
        await fire_due(store, at(minutes=2))

        assert new.uuid != old.uuid
        assert [run.due_at for run in await latest(store)] == [at(minutes=1), at(minutes=2)]

    async def test_a_version_is_kept_for_its_runs_after_the_task_was_changed_and_removed(self, store: Store) -> None:
        task = await make_task(store, description="first")
        await apply(store, make_definition(description="second"))
        await apply(store, prune=True)

        first = await store.read(tasks.at_version, task.id, 1)

        assert (first.version, first.state, first.definition.description) == (1, "removed", "first")

    async def test_a_schedule_that_is_taken_away_and_comes_again_is_not_moved_by_who_holds_the_old_one(
        self, store: Store
    ) -> None:
        await apply(store, make_definition(), now=at(0))
        held = await upcoming(store, at(minutes=1))
        await apply(store, make_definition(schedule=None), now=at(1))
        await apply(store, make_definition(), now=at(2))

        firings = [schedules.decide(schedule, now=at(minutes=1)) for schedule in held]
        won = await store.write(schedules.record_firings, firings, now=at(minutes=1))

        new = await schedule_of(store)
        assert (won, await latest(store)) == (set(), [])
        assert new is not None
        assert (new.next_at, new.version > held[0].version) == (at(minutes=1, seconds=2), True)

    async def test_two_that_apply_the_same_at_once_make_each_task_once(self, store: Store) -> None:
        definitions = [make_definition(name) for name in "abc"]

        verdicts = await asyncio.gather(apply(store, *definitions), apply(store, *definitions[::-1]))

        assert sorted(verdicts) == [["created"] * 3, ["unchanged"] * 3]

    async def test_a_change_and_a_pause_at_once_leave_nothing_that_fires(self, store: Store) -> None:
        for number in range(10):
            await apply(store, make_definition(str(number)), now=at(0))

            await asyncio.gather(
                apply(store, make_definition(str(number), schedule=HOURLY), now=at(1)),
                store.write(tasks.pause, str(number), reason="test", actor="tester", now=at(1)),
            )

        assert await upcoming(store, at(days=1)) == []

    async def test_one_name_twice_is_refused_and_nothing_is_written(self, store: Store) -> None:
        with pytest.raises(Conflict, match="defined 2 times"):
            await apply(store, make_definition("one"), make_definition("two"), make_definition("two"))

        assert await store.read(tasks.every) == []

    async def test_a_schedule_without_further_times_is_finished_at_once(self, store: Store) -> None:
        await apply(store, make_definition(schedule={"at": "2026-03-01T09:00:00Z"}), now=at(0))

        schedule = await schedule_of(store)
        assert schedule is not None
        assert (schedule.state, schedule.reason, schedule.next_at) == ("finished", "no further times", None)

    async def test_a_new_trigger_wakes_the_clock_at_its_first_time_and_the_ingest_at_once(self, store: Store) -> None:
        committed = await commit(store, tasks.apply, [make_definition()], prune=False, actor="tester", now=at(0))

        assert [(wake.component, wake.at) for wake in committed.wakes] == [("clock", at(minutes=1)), ("ingest", at(0))]

    async def test_the_fingerprint_differs_after_each_kind_of_change_and_not_without_one(self, store: Store) -> None:
        seen = [await store.read(tasks.fingerprint)]
        await apply(store, make_definition())
        seen.append(await store.read(tasks.fingerprint))
        await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(0))
        seen.append(await store.read(tasks.fingerprint))
        await store.write(tasks.resume, "welcome", actor="tester", now=at(0))
        seen.append(await store.read(tasks.fingerprint))
        await apply(store, prune=True)
        seen.append(await store.read(tasks.fingerprint))
        await fire_due(store, at(0))

        assert len(set(seen)) == 5
        assert await store.read(tasks.fingerprint) == seen[-1]

    async def test_times_that_pass_during_a_pause_share_one_row_in_the_ledger_and_do_not_run(
        self, store: Store
    ) -> None:
        """B94: enabling a task ran it at once, and again at the next slot."""
        await apply(store, make_definition(), now=at(0))
        await store.write(tasks.pause, "welcome", reason="migration", actor="tester", now=at(30))

        task = await store.write(tasks.resume, "welcome", actor="tester", now=at(minutes=10, seconds=30))

        schedule = await schedule_of(store)
        assert task.state == "active"
        assert schedule is not None
        assert (schedule.state, schedule.next_at, schedule.last_due_at) == ("active", at(minutes=11), at(minutes=10))
        assert await _ledger(store) == [("skipped", 10)]
        assert await latest(store) == []

    async def test_what_is_due_when_a_task_is_paused_is_decided_before(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))

        await store.write(tasks.pause, "welcome", reason="migration", actor="tester", now=at(minutes=1, seconds=1))

        assert [run.due_at for run in await latest(store)] == [at(minutes=1)]

    async def test_a_paused_schedule_is_not_due(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))
        await store.write(tasks.pause, "welcome", reason="migration", actor="tester", now=at(1))

        assert await upcoming(store, at(days=1)) == []

    async def test_a_task_that_is_paused_twice_stays_as_it_was(self, store: Store) -> None:
        await apply(store, make_definition())
        first = await store.write(tasks.pause, "welcome", reason="migration", actor="tester", now=at(0))

        second = await store.write(tasks.pause, "welcome", reason="again", actor="tester", now=at(1))

        assert second == first == await store.read(tasks.read, "welcome")

    async def test_only_a_paused_task_is_resumed(self, store: Store) -> None:
        await apply(store, make_definition())

        with pytest.raises(Conflict, match="not paused"):
            await store.write(tasks.resume, "welcome", actor="tester", now=at(0))

    async def test_a_resumed_schedule_wakes_the_clock(self, store: Store) -> None:
        await apply(store, make_definition(), now=at(0))
        await store.write(tasks.pause, "welcome", reason="test", actor="tester", now=at(0))

        committed = await commit(store, tasks.resume, "welcome", actor="tester", now=at(30))

        assert [(wake.component, wake.at) for wake in committed.wakes] == [("clock", at(minutes=1)), ("ingest", at(30))]

    @pytest.mark.parametrize("schedule", [HOURLY, None], ids=["another", "none"])
    async def test_a_paused_task_that_is_changed_stays_paused_and_its_passed_times_are_noted(
        self, store: Store, schedule: dict[str, str] | None
    ) -> None:
        await apply(store, make_definition(), now=at(0))
        await store.write(tasks.pause, "welcome", reason="migration", actor="tester", now=at(1))

        await apply(store, make_definition(schedule=schedule), now=at(minutes=3))

        assert (await store.read(tasks.read, "welcome")).state == "paused"
        assert await upcoming(store, at(days=1)) == []
        assert await _ledger(store) == [("skipped", 3)]

    async def test_a_backlog_of_more_than_one_transaction_is_decided_before_a_change(self, store: Store) -> None:
        misfire = Misfire(catch_up="all")
        await apply(store, make_definition(misfire=misfire), now=at(0))

        await apply(store, make_definition(misfire=misfire, description="new"), now=at(hours=4))

        assert len(await latest(store)) == 240

    async def test_a_run_made_by_hand_leaves_the_schedule_as_it_is(self, store: Store) -> None:
        task = await make_task(store)
        before = await schedule_of(store)

        await store.write(runs.fire, task.id, task.uuid, 1, key="k", due_at=at(30), now=at(30))

        assert await schedule_of(store) == before
        assert [run.due_at for run in await fire_due(store, at(minutes=1))] == [at(30), at(minutes=1)]


def _no_rule(text: str) -> object:
    raise LookupError(f"no such zone in {len(text)} characters")
