"""What a backfill runs, how long it takes, and from when its runs expire."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.errors import Conflict
from oncue.model import Run, RunId, Schedule, TaskId
from oncue.rules import backfilling, binding, health, identity, times
from oncue.testing.factories import make_definition

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MINUTELY = times.read_trigger({"cron": "* * * * *"})
FOLLOWED = {"next": {"sql": "select 1"}}
SECOND = timedelta(seconds=1)


def test_both_ends_of_a_span_are_in_it() -> None:
    found = backfilling.due_times(MINUTELY, START, START + 2 * MINUTE, name="t")

    assert found == (START, START + MINUTE, START + 2 * MINUTE)


def test_one_due_time_is_a_span() -> None:
    assert backfilling.due_times(MINUTELY, START, START, name="t") == (START,)


def test_ten_thousand_are_the_most_and_a_split_is_told_that_loses_none() -> None:
    most = backfilling.due_times(MINUTELY, START, START + 9_999 * MINUTE, name="t")

    with pytest.raises(Conflict, match="more than 10,000") as refused:
        backfilling.due_times(MINUTELY, START, START + 10_000 * MINUTE, name="t")

    assert len(most) == backfilling.MOST
    assert f"--to {identity.time_text(most[-1])} first" in str(refused.value)
    assert f"then --from {identity.time_text(most[-1] + MINUTE)}." in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "near"),
    [
        ({"at": "2026-03-02T08:00:00Z"}, "The nearest to the beginning: 2026-03-02T08:00:00Z."),
        ({"at": "2026-03-02T10:00:00Z"}, "The nearest to the beginning: 2026-03-02T10:00:00Z."),
        ({"cron": "0 * * * *"}, "The nearest to the beginning: 2026-03-02T09:00:00Z and 2026-03-02T10:00:00Z."),
        ({"rrule": "DTSTART=20260101T000000Z;FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "It has none at all."),
    ],
)
def test_a_span_without_due_times_is_refused_with_the_nearest(spec: dict[str, str], near: str) -> None:
    trigger = times.read_trigger(spec)

    with pytest.raises(Conflict) as refused:
        backfilling.due_times(trigger, START + MINUTE, START + 9 * MINUTE, name="t")

    assert near in str(refused.value)


@pytest.mark.parametrize(
    ("schedule", "row", "sentence"),
    [(None, False, "has no schedule"), (None, True, None), (FOLLOWED, True, "follows its data")],
)
def test_only_a_task_with_due_times_of_its_own_is_backfilled(
    schedule: dict[str, object] | None, row: bool, sentence: str | None
) -> None:
    stands = Schedule(TaskId(1), UUID(int=1), 1, 1, None, None, "") if row else None
    definition = make_definition(schedule=schedule)

    if sentence is None:
        backfilling.check(definition, stands)
        return
    with pytest.raises(Conflict, match=sentence):
        backfilling.check(definition, stands)


@pytest.mark.parametrize(
    ("count", "pace", "is_right"),
    [
        (1, None, True),
        (10_000, None, True),
        (10_000, 30 * SECOND, True),
        (366, timedelta(days=1), True),
        (367, timedelta(days=1), False),
        (1, timedelta(0), False),
        (1, -SECOND, False),
    ],
)
def test_a_pace_is_longer_than_nothing_and_takes_no_more_than_a_year(
    count: int, pace: timedelta | None, is_right: bool
) -> None:
    if is_right:
        backfilling.check_pace(count, pace)
        return
    with pytest.raises(Conflict, match="pace"):
        backfilling.check_pace(count, pace)


@given(count=st.integers(1, backfilling.MOST), seconds=st.integers(1, 3000))
def test_the_words_say_when_the_last_has_its_turn(count: int, seconds: int) -> None:
    pace = seconds * SECOND

    assert backfilling.duration(count, pace) == sum([pace] * (count - 1), timedelta())
    assert backfilling.pace_words(count, pace).startswith("One starts each ")
    assert backfilling.duration(count, None) == timedelta()


def test_a_key_makes_one_backfill_of_a_task() -> None:
    one, other = UUID(int=1), UUID(int=2)

    assert identity.backfill_uuid(one, "k") == identity.backfill_uuid(one, "k")
    assert len({identity.backfill_uuid(task, key) for task in (one, other) for key in ("k", "l")}) == 4


def test_the_cause_of_a_run_names_its_backfill_and_its_due_time() -> None:
    assert identity.backfill_cause(UUID(int=1), START) == f"backfill:{UUID(int=1)}:2026-03-02T09:00:00Z"


@pytest.mark.parametrize(
    ("cause", "starts_at", "counts_from"),
    [
        ("backfill:b:d", None, START + MINUTE),
        ("backfill:b:d", START + 5 * MINUTE, START + 5 * MINUTE),
        ("manual:k", None, START + MINUTE),
        ("requeue:r:d", None, START + MINUTE),
        ("schedule:d", None, START),
        ("schedule:d", START + 5 * MINUTE, START),  # jitter
        ("event:s:i", None, START),
    ],
)
def test_expiry_counts_from_the_asking_where_somebody_asked(
    cause: str, starts_at: datetime | None, counts_from: datetime
) -> None:
    run = replace(RUN, cause=cause, starts_at=starts_at)

    assert binding.asked_by(run) == counts_from
    assert not binding.is_expired(run, MINUTE, now=counts_from + MINUTE)
    assert binding.is_expired(run, MINUTE, now=counts_from + MINUTE + timedelta(microseconds=1))
    assert not binding.is_expired(run, None, now=counts_from + timedelta(days=999))


def test_a_run_at_a_pace_is_late_from_its_turn() -> None:
    run = replace(RUN, cause="backfill:b:d", starts_at=START + 5 * MINUTE, started_at=START + 6 * MINUTE)

    assert binding.lateness(run) == MINUTE


def test_missed_runs_that_wait_are_a_problem_that_is_not_urgent() -> None:
    signs = health.Signs(None, None, (), [], 0, 0, [], to_catch_up=[("report", 3)])

    (found,) = health.problems(signs, now=START, overdue=MINUTE, silent=MINUTE)

    assert (found.code, found.subject, found.urgent) == ("runs_wait_for_person", "report", False)
    assert found.text == '3 missed run(s) of task "report" wait for a decision: see `oncue catch-up report`.'


RUN = Run(
    id=RunId(1),
    uuid=UUID(int=9),
    task_id=TaskId(1),
    task_name="t",
    task_version=1,
    cause="schedule:d",
    due_at=START,
    ready_at=START,
    state="due",
    reason=None,
    attempts=0,
    fence=0,
    overlap=None,
    caught_up=False,
    asked_at=START + MINUTE,
    started_at=None,
    ended_at=None,
    cursor=None,
    previous_due_at=None,
    event=None,
    dead_letter_id=None,
    stop_reason=None,
)
