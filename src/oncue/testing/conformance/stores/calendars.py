"""Calendars: stored, used, changed while clocks run, and removed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from oncue.definition import Calendar
from oncue.errors import Conflict, NotFound, TaskFileError
from oncue.model import Json
from oncue.store import calendars, tasks, watch
from oncue.store.base import Store
from oncue.store.calendars import Retimed, Stored
from oncue.testing.factories import apply, at, commit, fire_due, latest, make_definition, make_task, schedule_of

WEEK = Calendar("week", weekdays=("mon", "tue", "wed", "thu", "fri"))
FREE = Calendar("free", dates={date(2026, 3, 3): "Tuesday off"}, known_until=date(2026, 12, 31), source="test")
NOON: Json = {"cron": "0 12 * * *", "only_on": "week", "except_on": ["free"]}  # tests begin on a Monday, at 9:00


def _free(*days: int, **changes: Any) -> Calendar:
    """The calendar `free`, with other days of March."""
    return replace(FREE, dates={date(2026, 3, day): "" for day in days}, **changes)


async def _put(store: Store, *put: Calendar, now: Any = None) -> list[Stored]:
    return [await store.write(calendars.put, one, actor="tester", now=now or at(0)) for one in put]


async def _make(store: Store, name: str = "welcome", **changes: Any) -> None:
    """Store both calendars, and a task that uses them."""
    await _put(store, WEEK, FREE)
    await make_task(store, name, **{"schedule": NOON} | changes)


async def _next(store: Store, name: str = "welcome") -> Any:
    schedule = await schedule_of(store, name)
    assert schedule is not None
    return schedule.next_at


class CalendarConformance:
    """Calendars."""

    async def test_a_calendar_is_created_then_changed_then_left_as_it_is(self, store: Store) -> None:
        stored = await _put(store, FREE, _free(4), _free(4))

        assert [one.verdict for one in stored] == ["created", "changed", "unchanged"]
        assert await store.read(calendars.every) == {"free": _free(4)}
        assert await store.read(calendars.read, "free") == _free(4)

    async def test_calendars_are_listed_by_name_with_all_that_they_hold(self, store: Store) -> None:
        whole = replace(WEEK, dates={date(2026, 3, 7): "öffnet"}, without=(date(2026, 3, 9),), source="file a.ics")

        await _put(store, whole, FREE)

        assert list((await store.read(calendars.every)).values()) == [FREE, whole]

    async def test_a_change_is_told_and_audited_and_the_same_again_is_not(self, store: Store) -> None:
        told = []
        for _ in range(2):
            committed = await commit(store, calendars.put, FREE, actor="ops", now=at(0))
            told += [(change.noun, change.name, change.state) for change in committed.changes]

        (entry,) = await store.read(watch.audit, "calendar", limit=10)
        assert told == [("calendar", "free", "created")]
        assert (entry.actor, entry.subject, entry.detail, entry.happened_at) == ("ops", "free", "1 date", at(0))

    async def test_the_audit_is_read_latest_first_by_its_verb(self, store: Store) -> None:
        for second, day in enumerate((3, 4, 5)):
            await _put(store, _free(day, source=str(day)), now=at(second))
        await make_task(store)

        found = await store.read(watch.audit, "calendar", limit=2)

        assert [entry.happened_at for entry in found] == [at(2), at(1)]

    async def test_a_schedule_keeps_to_its_calendars(self, store: Store) -> None:
        await _make(store)
        due = []
        for _ in range(5):
            due.append(await _next(store))
            await fire_due(store, due[-1])

        assert due == [at(hours=3, days=day) for day in (0, 2, 3, 4, 7)]

    async def test_a_change_moves_the_next_times_of_those_who_use_it_and_of_no_others(self, store: Store) -> None:
        await _make(store)
        await make_task(store, "other", schedule={"cron": "0 12 * * *"})

        (stored,) = await _put(store, _free(2, 3), now=at(hours=1))

        assert stored == Stored("changed", (Retimed("welcome", at(hours=3), at(hours=3, days=2)),))
        assert (await _next(store), await _next(store, "other")) == (at(hours=3, days=2), at(hours=3))

    async def test_a_moved_next_time_wakes_the_clock_and_is_told(self, store: Store) -> None:
        await _make(store)

        committed = await commit(store, calendars.put, _free(2, 3), actor="tester", now=at(hours=1))

        assert ("clock", at(hours=3, days=2)) in [(wake.component, wake.at) for wake in committed.wakes]
        assert ("schedule", "welcome", "reckoned") in [(one.noun, one.name, one.state) for one in committed.changes]

    async def test_a_preview_says_what_would_move_and_writes_nothing(self, store: Store) -> None:
        await _make(store)

        planned = await store.read(calendars.preview, _free(2, 3), now=at(hours=1))
        again = await store.read(calendars.preview, FREE, now=at(hours=1))

        assert planned == Stored("changed", (Retimed("welcome", at(hours=3), at(hours=3, days=2)),))
        assert again == Stored("unchanged")
        assert (await _next(store), await store.read(calendars.read, "free")) == (at(hours=3), FREE)

    async def test_what_is_due_already_is_decided_by_the_old_calendar(self, store: Store) -> None:
        await _make(store)

        planned = await store.read(calendars.preview, _free(2, 3), now=at(1, hours=3))
        (stored,) = await _put(store, _free(2, 3), now=at(1, hours=3))

        assert [run.due_at for run in await latest(store)] == [at(hours=3)]
        assert planned.moved == stored.moved == ()
        assert await _next(store) == at(hours=3, days=2)

    async def test_a_day_that_is_over_is_not_made_up_for_when_a_calendar_gives_it_back(self, store: Store) -> None:
        await _put(store, WEEK, _free(2))
        await make_task(store, schedule=NOON)

        await _put(store, _free(6), now=at(hours=5))
        runs = await fire_due(store, at(hours=6))

        schedule = await schedule_of(store)
        assert runs == []
        assert schedule is not None
        assert (schedule.next_at, schedule.decided_to) == (at(hours=3, days=1), at(hours=5))

    async def test_a_clock_that_holds_the_schedule_from_before_the_change_fires_nothing(self, store: Store) -> None:
        from oncue.store import schedules

        await _make(store)
        held = await store.read(schedules.upcoming, after=(at(days=-1), 0), until=at(days=1), limit=10)
        await _put(store, _free(2, 3), now=at(hours=1))

        firings = [schedules.decide(schedule, now=at(hours=3)) for schedule in held]
        won = await store.write(schedules.record_firings, firings, now=at(hours=3))

        assert (won, await latest(store), await _next(store)) == (set(), [], at(hours=3, days=2))

    async def test_a_change_that_leaves_a_task_no_time_is_refused_with_its_name_and_changes_nothing(
        self, store: Store
    ) -> None:
        await _make(store, schedule=NOON | {"end": "2026-03-04"})

        with pytest.raises(TaskFileError, match='task "welcome" would have no time left by calendar "free"'):
            await store.read(calendars.preview, _free(2, 3, 4), now=at(0))
        with pytest.raises(TaskFileError, match='task "welcome" would have no time left by calendar "free"'):
            await _put(store, _free(2, 3, 4))

        assert (await store.read(calendars.read, "free"), await _next(store)) == (FREE, at(hours=3))

    async def test_a_task_that_changes_with_its_calendar_is_not_held_against_it(self, store: Store) -> None:
        end = {"end": "2026-03-04"}
        await _make(store, schedule=NOON | end)

        for changed in (make_definition(schedule=NOON), None):
            definitions = [changed] if changed else []
            await store.write(
                tasks.apply, definitions, calendars=[_free(2, 3, 4)], prune=True, actor="tester", now=at(0)
            )

        assert await store.read(calendars.users_of, "free") == []
        assert await store.read(calendars.read, "free") == _free(2, 3, 4)

    async def test_apply_refuses_a_calendar_that_is_not_known_and_one_that_leaves_no_day(self, store: Store) -> None:
        with pytest.raises(TaskFileError, match='no calendar "week"'):
            await make_task(store, schedule=NOON)
        await _put(store, WEEK, FREE)
        with pytest.raises(TaskFileError, match="no time"):
            await make_task(store, schedule=NOON | {"except_on": "week"})

        assert await store.read(tasks.every) == []

    async def test_a_finished_schedule_goes_on_when_its_calendar_gives_it_a_day(self, store: Store) -> None:
        await _put(store, WEEK, Calendar("days", dates={date(2026, 3, 2): ""}))
        await make_task(store, schedule={"cron": "0 12 * * *", "only_on": "days"})
        await fire_due(store, at(hours=3))
        before = await schedule_of(store)

        await _put(store, Calendar("days", dates={date(2026, 3, 5): ""}), now=at(hours=4))

        after = await schedule_of(store)
        assert before is not None
        assert after is not None
        assert (before.state, before.next_at) == ("finished", None)
        assert (after.state, after.reason, after.next_at) == ("active", None, at(hours=3, days=3))

    async def test_a_paused_schedule_keeps_its_pause_and_the_ledger_of_what_passed(self, store: Store) -> None:
        await _make(store)
        await store.write(tasks.pause, "welcome", reason="release", actor="tester", now=at(hours=1))

        await _put(store, _free(4), now=at(hours=5))
        await store.write(tasks.resume, "welcome", actor="tester", now=at(hours=6))

        task = await store.read(tasks.read, "welcome")
        entries = await store.read(watch.ledger, task.id, first=at(0), last=at(days=9), limit=10)
        assert [(entry["first_due_at"], entry["count"], entry["verdict"]) for entry in entries] == [
            (at(hours=3), 1, "skipped")
        ]
        assert (await _next(store), await latest(store)) == (at(hours=3, days=1), [])

    async def test_a_calendar_is_removed_when_nobody_uses_it(self, store: Store) -> None:
        await _make(store)

        with pytest.raises(Conflict, match='calendar "free" is used by welcome'):
            await store.write(calendars.remove, "free", actor="tester", now=at(0))
        await apply(store, make_definition())
        await store.write(calendars.remove, "free", actor="tester", now=at(0))

        assert list(await store.read(calendars.every)) == ["week"]
        with pytest.raises(NotFound, match="Known calendars: week"):
            await store.write(calendars.remove, "free", actor="tester", now=at(0))

    async def test_users_are_found_by_the_whole_name_and_only_those_that_can_still_fire_where_asked(
        self, store: Store
    ) -> None:
        for name in ("a", "a_b", "a-b", "a.b", "aab"):
            await _put(store, replace(WEEK, name=name))
            await make_task(store, f"task-{name}", schedule={"cron": "0 12 * * *", "only_on": name})
        await make_task(store, "over", schedule={"at": "2026-03-02T12:00:00Z", "only_on": "a_b"})
        await store.write(tasks.pause, "task-a_b", reason="test", actor="tester", now=at(0))
        await fire_due(store, at(hours=3))

        assert await store.read(calendars.users_of, "a") == ["task-a"]
        assert await store.read(calendars.users_of, "a_b") == ["over", "task-a_b"]
        assert await store.read(calendars.users_to_come, "a_b", limit=9) == ["task-a_b"]
        assert await store.read(calendars.users_to_come, "a_b", limit=0) == []
        assert await store.read(calendars.users_of, "b") == []

    async def test_two_that_import_at_once_go_one_after_another(self, store: Store) -> None:
        await _make(store)
        for name in "abcde":
            await make_task(store, name, schedule=NOON)

        for number in range(5):
            one, other = _free(2, 3, source=f"one {number}"), _free(4, source=f"other {number}")
            stored = await asyncio.gather(_put(store, one), _put(store, other))

            last = await store.read(calendars.read, "free")
            expected = at(hours=3, days=2) if last == one else at(hours=3)
            assert last in (one, other)
            assert {(await _next(store, name)) for name in ("welcome", *"abcde")} == {expected}
            assert [each.verdict for (each,) in stored] == ["changed", "changed"]

    async def test_an_import_and_a_firing_at_once_make_each_run_once(self, store: Store) -> None:
        await _make(store)

        for number in range(4):
            noon = at(hours=3, days=number)
            await asyncio.gather(_put(store, _free(9, source=str(number)), now=noon), fire_due(store, noon))

        assert [run.due_at for run in await latest(store)] == [
            at(hours=3) + timedelta(days=number) for number in range(4)
        ]
