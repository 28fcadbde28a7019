"""Followed schedules, stepped by hand: the next time read from data, windows, touches, late rows, pauses, outages."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import types
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from oncue.definition import Misfire, Retry, SqlResolver, Subscription
from oncue.engine.clock import Clock
from oncue.rules import identity
from oncue.store import failures, followed, runs, tasks, watch
from tests.engine.following import DUE, after_noon, book, go_to, open_book, remind, tell, text, turn, where
from tests.engine.stage import NOON, Stage

pytestmark = pytest.mark.anyio
CALLED: list[datetime] = []


@pytest.fixture(autouse=True)
def _book(stage: Stage) -> None:
    open_book(stage)


async def spans(stage: Stage) -> list[tuple[float, float]]:
    """Return the windows of all runs, in seconds after noon."""
    found = []
    for run in await stage.runs():
        assert run.previous_due_at is not None
        found.append(((run.previous_due_at - NOON).total_seconds(), (run.due_at - NOON).total_seconds()))
    return found


async def test_it_fires_at_the_exact_moment_of_the_next_entity_and_takes_all_that_are_due_by_then(
    stage: Stage,
) -> None:
    book(stage, "a", after_noon(90.25))
    book(stage, "b", after_noon(90.25))
    book(stage, "c", after_noon(200))
    await stage.apply(remind(stage))
    await turn(stage)
    asked = await where(stage)

    await go_to(stage, after_noon(90.249))
    before = list(stage.worker.keys)
    await go_to(stage, after_noon(90.25))

    (run,) = await stage.runs()
    assert asked.schedule.next_at == after_noon(90.25)
    assert before == []
    assert sorted(stage.worker.keys) == ["a", "b"]
    assert (run.cause, run.due_at, run.previous_due_at) == ("schedule:2026-03-28T12:01:30.250000Z", run.due_at, NOON)
    assert run.state == "done"
    assert (await where(stage)).schedule.next_at == after_noon(200)


async def test_a_worker_gets_the_due_time_of_the_entity_as_it_stands_in_its_row(stage: Stage) -> None:
    book(stage, "a", after_noon(90))
    await stage.apply(remind(stage))
    await turn(stage)

    await go_to(stage, after_noon(90))

    (_, message, body) = stage.worker.took[0]
    task = await stage.store.read(tasks.read, "remind")
    assert body["due_at"] == text(after_noon(90))
    assert message == str(identity.followed_uuid(task.uuid, "a", after_noon(90)))


async def test_an_entity_that_was_due_before_the_task_was_made_is_not_its_concern(stage: Stage) -> None:
    book(stage, "old", after_noon(-60))
    await stage.apply(remind(stage))

    await go_to(stage, after_noon(minutes=70))

    assert stage.worker.keys == []
    assert await stage.runs() == []


async def test_windows_follow_each_other_without_a_gap(stage: Stage) -> None:
    for number in range(1, 6):
        book(stage, f"k{number}", after_noon(number * 40))
    await stage.apply(remind(stage))
    await turn(stage)

    for number in range(1, 6):
        await go_to(stage, after_noon(number * 40))

    assert await spans(stage) == [(0, 40), (40, 80), (80, 120), (120, 160), (160, 200)]
    assert stage.worker.keys == [f"k{number}" for number in range(1, 6)]


async def test_a_touch_brings_an_earlier_time(stage: Stage) -> None:
    book(stage, "a", after_noon(hours=5))
    await stage.apply(remind(stage))
    await turn(stage)

    book(stage, "a", after_noon(10))
    await tell(stage, "e1")
    touched = await where(stage)
    await turn(stage)
    await go_to(stage, after_noon(10))

    assert (touched.schedule.next_at, touched.ready_at) == (after_noon(hours=5), NOON)
    assert stage.worker.keys == ["a"]


async def test_a_touch_takes_a_time_away_that_moved_to_later(stage: Stage) -> None:
    book(stage, "a", after_noon(10))
    await stage.apply(remind(stage))
    await turn(stage)

    book(stage, "a", after_noon(20))
    await tell(stage, "e1")
    await turn(stage)
    await go_to(stage, after_noon(10))
    early = await stage.runs()
    await go_to(stage, after_noon(20))

    assert early == []
    assert stage.worker.keys == ["a"]


async def test_who_moved_after_its_window_was_fired_is_not_handed_over_before_its_new_time(stage: Stage) -> None:
    """The run asks who is due when it executes: who moved meanwhile is not."""
    book(stage, "a", after_noon(10))
    await stage.apply(remind(stage))
    await turn(stage)
    stage.now = after_noon(10)
    await stage.tick()

    book(stage, "a", after_noon(30))
    await tell(stage, "e1")
    await go_to(stage, after_noon(10))
    then = list(stage.worker.keys)
    await go_to(stage, after_noon(30))

    assert then == []
    assert stage.worker.keys == ["a"]
    assert [run.reason for run in await stage.runs()] == ["nobody qualifies", None]


async def test_a_duplicate_event_touches_once(stage: Stage) -> None:
    await stage.apply(remind(stage))
    await turn(stage)
    before = (await where(stage)).touched

    await tell(stage, "e1")
    await tell(stage, "e1")

    assert (await where(stage)).touched == before + 1


async def test_a_task_may_be_touched_and_fired_by_one_event(stage: Stage) -> None:
    book(stage, "a", after_noon(50))
    both = (Subscription("appointment.moved", do="touch"), Subscription("appointment.moved"))
    await stage.apply(remind(stage, on=both))
    await turn(stage)

    await tell(stage, "e1")
    await go_to(stage, NOON)
    await go_to(stage, after_noon(50))

    assert [run.kind for run in await stage.runs()] == ["event", "schedule"]
    assert stage.worker.keys == ["a", "a"]
    assert len({message for _, message, _ in stage.worker.took}) == 2


async def test_data_that_changes_without_an_event_is_seen_at_the_next_recheck(stage: Stage) -> None:
    await stage.apply(remind(stage))
    await turn(stage)

    book(stage, "a", after_noon(100))
    await go_to(stage, after_noon(60))
    seen = await where(stage)
    await go_to(stage, after_noon(100))

    assert seen.schedule.next_at == after_noon(100)
    assert stage.worker.keys == ["a"]


async def test_an_answer_in_the_past_is_due_at_once(stage: Stage) -> None:
    await stage.apply(remind(stage))
    await turn(stage)

    book(stage, "a", after_noon(30))
    await go_to(stage, after_noon(60))

    assert stage.worker.keys == ["a"]
    assert await spans(stage) == [(0, 30)]


async def test_a_late_row_behind_the_horizon_makes_a_run_of_its_own(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    await turn(stage)
    await go_to(stage, after_noon(30))

    book(stage, "late", after_noon(20))
    await go_to(stage, after_noon(89))
    before = list(stage.worker.keys)
    await go_to(stage, after_noon(90))
    await go_to(stage, after_noon(minutes=5))

    last = (await stage.runs())[-1]
    assert before == ["a"]
    assert stage.worker.keys == ["a", "late"]
    assert (last.cause, last.caught_up) == ("schedule:2026-03-28T12:00:30Z:late:1", True)
    assert (await where(stage)).horizon == after_noon(30)


async def test_a_late_row_is_found_until_the_lookback_has_passed_and_not_after(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    await turn(stage)
    await go_to(stage, after_noon(30))

    for minute in range(1, 60):
        await go_to(stage, after_noon(30, minutes=minute))
    book(stage, "in-time", after_noon(30))
    await go_to(stage, after_noon(30, minutes=60))
    await go_to(stage, after_noon(30, minutes=61))
    book(stage, "too-late", after_noon(29))
    for minute in range(62, 70):
        await go_to(stage, after_noon(30, minutes=minute))

    settled = await where(stage)
    assert stage.worker.keys == ["a", "in-time"]
    assert (settled.look_at, settled.reach) == (None, settled.horizon)


async def test_no_look_is_made_for_who_waits_in_a_window_that_is_still_open(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    await turn(stage)
    stage.now = after_noon(30)
    await turn(stage)  # and no dispatcher comes for it

    stage.now = after_noon(minutes=10)
    await turn(stage)

    assert len(await stage.runs()) == 1
    assert (await where(stage)).reach == NOON


async def test_who_was_cancelled_by_a_person_is_not_looked_for_again(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    await turn(stage)
    stage.now = after_noon(30)
    await turn(stage)
    (run,) = await stage.runs()
    await stage.store.write(runs.cancel, run.uuid, reason="not today", now=stage.now)

    for minute in range(1, 5):
        await go_to(stage, after_noon(30, minutes=minute))

    assert stage.worker.keys == []
    assert await stage.states() == ["cancelled"]


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_windows_that_come_close_take_turns_whatever_overlap_says(stage: Stage, overlap: Any) -> None:
    """Each concerns others than the one before it: none of them may be left out."""
    for number in range(30, 34):
        book(stage, f"k{number}", after_noon(number))
    await stage.apply(remind(stage, overlap=overlap))
    await turn(stage)
    stage.worker.gate = asyncio.Event()
    for number in range(30, 34):
        stage.now = after_noon(number)
        await turn(stage)
        await stage.dispatcher.step(stage.now)
    waiting = await stage.states()

    stage.worker.gate.set()
    for _ in range(4):
        await stage.dispatch()

    assert waiting == ["running", "queued", "queued", "queued"]
    assert await stage.states() == ["done"] * 4
    assert stage.worker.keys == ["k30", "k31", "k32", "k33"]


async def test_windows_go_side_by_side_where_the_task_allows_it(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    book(stage, "b", after_noon(31))
    await stage.apply(remind(stage, overlap="allow"))
    await turn(stage)
    stage.worker.gate = asyncio.Event()
    for number in (30, 31):
        stage.now = after_noon(number)
        await turn(stage)
        await stage.dispatcher.step(stage.now)

    states = await stage.states()
    stage.worker.gate.set()
    await stage.dispatch()

    assert states == ["running", "running"]


async def test_a_next_that_fails_moves_no_horizon_and_is_asked_again_with_a_growing_pause(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    await turn(stage)
    stage.write("alter table appointment rename to gone")
    await go_to(stage, after_noon(30))
    horizon = (await where(stage)).horizon
    tries = [(await where(stage)).ready_at]
    for _ in range(8):
        stage.now = tries[-1] or NOON
        await turn(stage)
        tries.append((await where(stage)).ready_at)

    failing = await where(stage)
    pauses = [(later - sooner).total_seconds() for sooner, later in pairwise(tries)]  # type: ignore[operator]
    figures = await stage.store.read(watch.figures, now=stage.now)
    (told,) = await stage.store.read(followed.unanswered)
    assert horizon == failing.horizon == after_noon(30)
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60]
    assert failing.failing_since == after_noon(30)
    assert "no such table" in (failing.reason or "")
    assert told[0] == "remind"
    assert figures.oldest_schedule is None


async def test_the_first_answer_after_failures_makes_one_window_up_to_now_and_is_no_misfire(stage: Stage) -> None:
    await stage.apply(remind(stage, misfire=Misfire(catch_up="none"), resolve=SqlResolver(DUE, "app")))
    await turn(stage)
    stage.write("alter table appointment rename to gone")
    for seconds in range(60, 1201, 20):
        stage.now = after_noon(seconds)
        await turn(stage)
    stage.write("alter table gone rename to appointment")
    for number in range(1, 4):
        book(stage, f"k{number}", after_noon(minutes=5 * number))

    await go_to(stage, after_noon(1260))

    (run,) = await stage.runs()
    assert stage.worker.keys == ["k1", "k2", "k3"]
    assert (run.previous_due_at, run.due_at) == (NOON, stage.now)
    assert await stage.ledger() == {}
    assert (await where(stage)).failures == 0


async def test_an_answer_that_is_not_later_than_the_horizon_is_a_failure_that_says_so(stage: Stage) -> None:
    book(stage, "a", after_noon(-30))
    wrong = {"next": {"sql": "select min(starts_at) from appointment", "source": "app"}}
    await stage.apply(remind(stage, schedule=wrong))

    await turn(stage)

    assert "not later than :after" in ((await where(stage)).reason or "")
    assert await stage.runs() == []


async def test_a_slow_next_delays_nobody_else(stage: Stage, slow: None) -> None:
    await stage.apply(remind(stage, "hangs", schedule={"next": {"python": "calendar_of_shop:hanging"}}))
    await stage.apply(stage.definition())
    await stage.clock.step(stage.now)
    assert stage.follow._asks

    stage.now = after_noon(60)
    await stage.tick()

    assert [run.task_name for run in await stage.runs()] == ["greet"]
    assert stage.follow._asks
    HANGING.set()
    await turn(stage)


async def test_a_touch_while_somebody_asks_is_asked_for_after_it(stage: Stage, slow: None) -> None:
    """What was answered before the touch is not taken for the answer to it."""
    await stage.apply(remind(stage, schedule={"next": {"python": "calendar_of_shop:hanging"}}))
    await stage.clock.step(stage.now)
    await tell(stage, "e1")
    await stage.clock.step(stage.now)
    at_once = len(stage.follow._asks)
    HANGING.set()
    await turn(stage)

    answered = await where(stage)
    assert at_once == 1
    assert answered.answered == answered.touched
    assert len(CALLED) == 2


async def test_next_may_be_a_callable_of_python(stage: Stage, slow: None) -> None:
    book(stage, "a", after_noon(90))
    await stage.apply(remind(stage, schedule={"next": {"python": "calendar_of_shop:plain"}}))
    await stage.apply(remind(stage, "other", schedule={"next": {"python": "calendar_of_shop:waits"}}))
    await turn(stage)

    await go_to(stage, after_noon(90))

    assert stage.worker.keys == ["a", "a"]
    assert CALLED[0] == NOON


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("calendar_of_shop:naive", "without a zone"),
        ("calendar_of_shop:breaks", "KeyError"),
        ("calendar_of_shop:absent", "is not there"),
        ("no_such_module:next", "is not there"),
        ("calendar_of_shop:number", "answered int"),
        ("calendar_of_shop:NOTHING", "not callable"),
        ("calendar_of_shop:stops", "StopIteration"),
    ],
)
async def test_a_callable_that_does_not_answer_is_told_of(stage: Stage, slow: None, place: str, words: str) -> None:
    await stage.apply(remind(stage, schedule={"next": {"python": place}}))

    await turn(stage)

    assert words in ((await where(stage)).reason or "")


async def test_a_pause_lets_times_pass_and_the_ledger_says_so(stage: Stage) -> None:
    book(stage, "passed", after_noon(90))
    book(stage, "later", after_noon(400))
    await stage.apply(remind(stage))
    await turn(stage)
    await stage.store.write(tasks.pause, "remind", reason="release", actor="test", now=after_noon(30))
    await go_to(stage, after_noon(200))
    resting = await where(stage)

    await stage.store.write(tasks.resume, "remind", actor="test", now=stage.now)
    await go_to(stage, after_noon(200))
    await go_to(stage, after_noon(400))

    (entry,) = await stage.store.read(watch.ledger, resting.task_id, first=NOON, last=stage.now, limit=9)
    assert (resting.ready_at, resting.look_at) == (None, None)
    assert stage.worker.keys == ["later"]
    assert (entry["first_due_at"], entry["last_due_at"]) == (after_noon(90), after_noon(200))
    assert (entry["verdict"], entry["reason"]) == ("skipped", "paused: release")
    assert (await where(stage)).horizon == after_noon(400)


async def test_an_answer_that_comes_after_a_pause_is_not_written(stage: Stage, slow: None) -> None:
    await stage.apply(remind(stage, schedule={"next": {"python": "calendar_of_shop:hanging"}}))
    await stage.clock.step(stage.now)
    await stage.store.write(tasks.pause, "remind", reason="release", actor="test", now=stage.now)

    HANGING.set()
    await stage.follow.idle()

    paused = await where(stage)
    assert (paused.schedule.next_at, paused.asked_at, paused.schedule.state) == (None, None, "paused")


async def test_a_change_keeps_the_horizon_and_asks_the_new_query(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    book(stage, "b", after_noon(100))
    await stage.apply(remind(stage))
    await turn(stage)
    await go_to(stage, after_noon(30))
    book(stage, "late", after_noon(25))

    stage.now = after_noon(50)
    before = "datetime(starts_at, '-20 seconds')"
    earlier = f"select min({before}) from appointment where {before} > :after"
    due = f"select id as key, {before} as due_at from appointment"
    await stage.apply(
        remind(stage, schedule={"next": {"sql": earlier, "source": "app"}}, resolve=SqlResolver(due, "app"))
    )
    changed = await where(stage)
    await turn(stage)
    await go_to(stage, after_noon(80))

    assert changed.horizon == after_noon(30)
    assert [key for key in stage.worker.keys if key == "b"] == ["b"]
    assert (await spans(stage))[1] == (30, 80)


async def test_a_change_of_another_kind_ends_the_following_and_what_was_kept_of_it_is_swept(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    await turn(stage)
    await go_to(stage, after_noon(30))
    assert len(await handed_over(stage)) == 1

    await stage.apply(stage.definition("remind"))
    await sweep(stage)

    task = await stage.store.read(tasks.read, "remind")
    assert await stage.store.read(followed.of, task.id) is None
    assert await handed_over(stage) == []


async def test_what_no_look_can_reach_any_more_is_swept(stage: Stage) -> None:
    for minute in range(1, 100, 10):
        book(stage, f"k{minute}", after_noon(minutes=minute))
    await stage.apply(remind(stage))
    await turn(stage)
    for minute in range(1, 100):
        await go_to(stage, after_noon(minutes=minute))

    await sweep(stage)

    reach = (await where(stage)).reach
    assert reach == after_noon(minutes=39)
    assert all(due > reach for due in await handed_over(stage))
    assert len(stage.worker.keys) == 10


@pytest.mark.parametrize("catch_up", ["latest", "all"])
async def test_after_an_outage_one_window_ends_now(stage: Stage, catch_up: Any) -> None:
    for number in range(1, 4):
        book(stage, f"k{number}", after_noon(minutes=10 * number))
    await stage.apply(remind(stage, misfire=Misfire(catch_up=catch_up)))
    await turn(stage)

    await go_to(stage, after_noon(minutes=45))

    (run,) = await stage.runs()
    assert stage.worker.keys == ["k1", "k2", "k3"]
    assert (run.due_at, run.caught_up) == (after_noon(minutes=45), True)


async def test_after_an_outage_who_is_older_than_max_age_is_left_out_and_stays_so(stage: Stage) -> None:
    for number in range(1, 4):
        book(stage, f"k{number}", after_noon(minutes=10 * number))
    await stage.apply(remind(stage, misfire=Misfire(max_age=timedelta(minutes=20))))
    await turn(stage)

    for minute in range(45, 60):
        await go_to(stage, after_noon(minutes=minute))

    (entry,) = await stage.store.read(watch.ledger, (await where(stage)).task_id, first=NOON, last=stage.now, limit=9)
    assert stage.worker.keys == ["k3"]
    assert (entry["verdict"], entry["first_due_at"]) == ("missed", after_noon(minutes=10))
    assert entry["last_due_at"] == after_noon(minutes=25)


async def test_after_an_outage_nobody_missed_runs_where_nothing_is_caught_up(stage: Stage) -> None:
    book(stage, "missed", after_noon(minutes=10))
    book(stage, "on-time", after_noon(minutes=44, seconds=30))
    await stage.apply(remind(stage, misfire=Misfire(catch_up="none")))
    await turn(stage)

    for minute in range(45, 60):
        await go_to(stage, after_noon(minutes=minute))

    assert stage.worker.keys == ["on-time"]
    assert await stage.ledger() == {"missed": 1}


async def test_a_message_that_was_refused_is_tried_again_only_while_it_is_due_at_the_same_time(stage: Stage) -> None:
    book(stage, "moves", after_noon(30))
    book(stage, "stays", after_noon(30))
    await stage.apply(remind(stage, retry=Retry(first=timedelta(seconds=1))))
    await turn(stage)
    stage.worker.answer = lambda _key: 503
    await go_to(stage, after_noon(30))

    book(stage, "moves", after_noon(minutes=30))
    stage.worker.answer = lambda _key: 200
    await go_to(stage, after_noon(40))
    (run,) = await stage.runs()
    await go_to(stage, after_noon(minutes=30))

    assert (run.state, run.confirmed, run.dropped) == ("done", 1, 1)
    assert stage.worker.keys[2:] == ["stays", "moves"]
    assert len(stage.worker.ids["moves"]) == 2
    assert len(stage.worker.ids["stays"]) == 1


async def test_a_requeue_asks_for_the_same_due_time_and_keeps_the_message(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage, retry=Retry(attempts=1)))
    await turn(stage)
    stage.worker.answer = lambda _key: 503
    await go_to(stage, after_noon(30))
    stage.worker.answer = lambda _key: 200

    await stage.store.write(failures.requeue, everything=True, rate=10, ask_again=True, actor="test", now=stage.now)
    await stage.failures.step(stage.now)
    await stage.dispatch()

    assert stage.worker.keys == ["a", "a"]
    assert len(stage.worker.ids["a"]) == 1
    assert [letter.state for letter in await stage.letters()] == ["recovered"]


async def test_a_requeue_of_a_run_goes_on_in_its_window(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage, retry=Retry(attempts=1)))
    await turn(stage)
    stage.now = after_noon(30)
    await turn(stage)
    stage.write("alter table appointment rename to gone")
    await stage.dispatch()
    stage.write("alter table gone rename to appointment")
    book(stage, "not-yet", after_noon(hours=9))
    for minute in range(1, 4):
        await go_to(stage, after_noon(30, minutes=minute))
    assert stage.worker.keys == []

    await stage.store.write(failures.requeue, everything=True, rate=10, ask_again=True, actor="test", now=stage.now)
    await stage.failures.step(stage.now)
    await stage.dispatch()

    assert stage.worker.keys == ["a"]


async def test_a_row_whose_due_time_is_none_is_buried_once_and_its_neighbours_go_on(stage: Stage) -> None:
    book(stage, "bad", "soon")
    book(stage, "a", after_noon(30))
    book(stage, "b", after_noon(40))
    book(stage, "never", None)
    await stage.apply(remind(stage))
    await turn(stage)

    await go_to(stage, after_noon(30))
    await go_to(stage, after_noon(40))

    (letter,) = await stage.letters()
    assert stage.worker.keys == ["a", "b"]
    assert letter.what.key == "bad"
    assert "due_at cannot be read" in letter.what.reason
    assert await stage.states() == ["partial", "done"]


async def test_a_query_without_due_at_fails_with_a_sentence_that_says_what_to_write(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    plain = SqlResolver("select id as key from appointment", "app")
    await stage.apply(remind(stage, resolve=plain, retry=Retry(attempts=1)))
    await turn(stage)

    await go_to(stage, after_noon(30))

    (run,) = await stage.runs()
    assert run.state == "failed"
    assert 'no column "due_at"' in (run.reason or "")


async def test_one_key_may_be_due_several_times_in_a_window(stage: Stage) -> None:
    twice = "select email as key, starts_at as due_at from appointment"
    stage.write("drop table appointment; create table appointment (id text, starts_at text, email text)")
    connection = sqlite3.connect(stage.shop)
    with connection:
        rows = [(f"k{number}", text(after_noon(number)), "same") for number in range(1, 6)]
        connection.executemany("insert into appointment values (?, ?, ?)", rows)
    connection.close()
    await stage.apply(remind(stage, resolve=SqlResolver(twice, "app")))

    await go_to(stage, after_noon(minutes=10))

    assert stage.worker.keys == ["same"] * 5
    assert len(stage.worker.ids["same"]) == 5


async def test_a_run_by_hand_takes_its_own_window_and_shifts_nothing(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    await turn(stage)
    task = await stage.store.read(tasks.read, "remind")

    await stage.store.write(runs.fire, task.id, task.uuid, task.version, key="x", due_at=after_noon(60), now=stage.now)
    await stage.dispatch()
    by_hand = list(stage.worker.keys)
    await go_to(stage, after_noon(30))

    assert by_hand == ["a"]
    assert stage.worker.keys == ["a"]
    assert [run.kind for run in await stage.runs()] == ["manual", "schedule"]


async def test_two_clocks_ask_once_for_each_touch(stage: Stage, slow: None) -> None:
    await stage.apply(remind(stage, schedule={"next": {"python": "calendar_of_shop:hanging"}}))
    other = stage.another_follow()
    second = Clock(stage.store, follow=other)

    await stage.clock.step(stage.now)
    await second.step(stage.now)
    HANGING.set()
    await stage.follow.idle()
    await other.idle()

    assert len(CALLED) == 1


async def test_who_died_while_asking_is_replaced_when_its_lease_is_over(stage: Stage) -> None:
    book(stage, "a", after_noon(30))
    await stage.apply(remind(stage))
    claimed = await stage.store.write(followed.claim_asks, now=NOON, until=after_noon(5), limit=9)
    assert len(claimed) == 1  # and it dies

    await go_to(stage, after_noon(4.9))
    blind = await where(stage)
    await go_to(stage, after_noon(5))
    await go_to(stage, after_noon(30))

    assert blind.schedule.next_at is None
    assert stage.worker.keys == ["a"]


async def test_a_drain_gives_an_ask_back_at_once(stage: Stage, slow: None) -> None:
    await stage.apply(remind(stage, schedule={"next": {"python": "calendar_of_shop:hanging"}}))
    await stage.clock.step(stage.now)

    for task in stage.follow._asks:
        task.cancel()
    await stage.follow.idle()

    assert (await where(stage)).ready_at == stage.now
    HANGING.set()


# --- A module of the shop ------------------------------------------------------------------------------------------

HANGING = asyncio.Event()


@pytest.fixture
def slow(stage: Stage) -> Iterator[None]:
    """A module of the shop that can be imported: callables that answer, hang and fail."""
    global HANGING
    HANGING = asyncio.Event()
    CALLED.clear()
    module = types.ModuleType("calendar_of_shop")
    module.__dict__.update(_callables(stage), NOTHING=None)
    sys.modules["calendar_of_shop"] = module
    yield
    HANGING.set()
    del sys.modules["calendar_of_shop"]


def _callables(stage: Stage) -> dict[str, Any]:
    def plain(after: datetime) -> datetime | None:
        CALLED.append(after)
        connection = sqlite3.connect(stage.shop)
        rows = connection.execute("select starts_at from appointment").fetchall()
        connection.close()
        return min((at for (row,) in rows if (at := datetime.fromisoformat(row)) > after), default=None)

    async def waits(after: datetime) -> datetime | None:
        await asyncio.sleep(0)
        return plain(after)

    async def hanging(after: datetime) -> datetime | None:
        CALLED.append(after)
        await HANGING.wait()
        return None

    def naive(after: datetime) -> datetime:
        return after.replace(tzinfo=None) + timedelta(days=1)

    def breaks(after: datetime) -> datetime:
        raise KeyError("shop")

    def stops(after: datetime) -> datetime:
        raise StopIteration

    def number(after: datetime) -> Any:
        return 7

    made = (plain, waits, hanging, naive, breaks, stops, number)
    return {one.__name__: one for one in made}


async def sweep(stage: Stage) -> None:
    await stage.store.write(followed.sweep, limit=1000)


async def handed_over(stage: Stage) -> list[datetime]:
    """Return the due times of all that is kept of whom was handed over."""
    task = (await stage.store.read(tasks.every))[0]
    every = [(f"k{minute}", after_noon(minutes=minute)) for minute in range(1, 100, 10)]
    found = await stage.store.read(followed.handed_over, task.id, [("a", after_noon(30)), *every])
    return sorted(due.astimezone(UTC) for _, due in found)
