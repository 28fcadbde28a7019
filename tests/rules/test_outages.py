"""What an outage leaves: `max`, `hold`, `max_runs` and a pace beside the policies, and every time accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncue.definition import CatchUp, Misfire
from oncue.model import Schedule, TaskId
from oncue.rules import firing, pacing, times
from oncue.rules.firing import Firing, PlannedRun
from oncue.rules.pacing import Pacing

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TASK = UUID(int=1)
MINUTELY = times.read_trigger({"every": "1m"}, anchor=START)
HOURLY = times.read_trigger({"cron": "0 * * * *"})
OUTAGE = START + timedelta(minutes=10, seconds=30)  # minutes 1 to 9 are missed, 10 is on time


def minute(number: float) -> datetime:
    return START + number * MINUTE


def due_at(moment: datetime, **changes: Any) -> Schedule:
    given: dict[str, Any] = {"next_at": moment, "last_due_at": None, "timing": ""} | changes
    return Schedule(TaskId(1), TASK, 1, 1, **given)


def after_outage(misfire: Misfire, *, pace: Pacing = pacing.NONE, **changes: Any) -> Firing:
    return firing.decide(due_at(minute(1), **changes), MINUTELY, misfire, now=OUTAGE, pace=pace)


def moved(fired: Firing) -> Schedule:
    """Return the schedule as the store keeps it after a firing."""
    changes = {name: getattr(fired, name) for name in ("next_at", "last_due_at", "state", "runs_left")}
    return replace(fired.schedule, **changes)


def carry(
    schedule: Schedule, trigger: times.Trigger, misfire: Misfire, *, now: datetime, pace: Pacing = pacing.NONE
) -> Iterator[Firing]:
    """Fire until nothing is due, as clocks do: a slice in each transaction."""
    while schedule.state == "active" and schedule.next_at is not None and schedule.next_at <= now:
        fired = firing.decide(schedule, trigger, misfire, now=now, pace=pace)
        schedule = moved(fired)
        yield fired


# --- max ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "max_age", "caught_up", "ledger"),
    [
        (1, 99, [9], [("missed", 1, 8)]),
        (3, 99, [7, 8, 9], [("missed", 1, 6)]),
        (9, 99, [1, 2, 3, 4, 5, 6, 7, 8, 9], []),
        (20, 99, [1, 2, 3, 4, 5, 6, 7, 8, 9], []),
        (2, 5, [8, 9], [("missed", 1, 5), ("missed", 6, 7)]),
        (20, 5, [6, 7, 8, 9], [("missed", 1, 5)]),
    ],
)
def test_no_more_than_the_latest_of_what_was_missed_are_caught_up(
    most: int, max_age: int, caught_up: list[int], ledger: list[tuple[str, int, int]]
) -> None:
    fired = after_outage(Misfire(catch_up="all", max=most, max_age=max_age * MINUTE))

    assert [run.due_at for run in fired.runs] == [minute(number) for number in [*caught_up, 10]]
    assert [run.caught_up for run in fired.runs] == [True] * len(caught_up) + [False]
    assert [(one.verdict, one.first_due_at, one.last_due_at, one.count) for one in fired.ledger] == [
        (verdict, minute(first), minute(last), last - first + 1) for verdict, first, last in ledger
    ]


def test_the_ledger_says_why_the_others_are_not_caught_up() -> None:
    fired = after_outage(Misfire(catch_up="all", max=2, max_age=5 * MINUTE))

    assert [one.reason for one in fired.ledger] == [
        "missed by more than 5m, the age that is caught up",
        "only the latest 2 missed times are caught up",
    ]


@settings(deadline=None)
@given(most=st.integers(1, 1000), minutes=st.integers(2, 1500))
def test_with_a_maximum_exactly_the_latest_are_caught_up_however_many_slices_it_takes(most: int, minutes: int) -> None:
    misfire = Misfire(grace=timedelta(0), catch_up="all", max=most, max_age=timedelta(days=99))
    now = minute(minutes) + timedelta(seconds=30)

    fired = list(carry(due_at(minute(1)), MINUTELY, misfire, now=now))

    runs = [run.due_at for one in fired for run in one.runs]
    assert runs == [minute(number) for number in range(1, minutes + 1)][-most:]
    assert sum(entry.count for one in fired for entry in one.ledger) == max(minutes - most, 0)


# --- hold ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch_up", "held", "ledger"),
    [
        ("none", [], [("missed", 9)]),
        ("latest", [9], [("coalesced", 8)]),
        ("all", [1, 2, 3, 4, 5, 6, 7, 8, 9], []),
    ],
)
def test_what_would_be_caught_up_is_held_and_what_is_on_time_runs(
    catch_up: CatchUp, held: list[int], ledger: list[tuple[str, int]]
) -> None:
    fired = after_outage(Misfire(catch_up=catch_up, hold=True))

    assert [(run.due_at, run.held, run.caught_up) for run in fired.runs] == [
        *((minute(number), True, True) for number in held),
        (minute(10), False, False),
    ]
    assert [(one.verdict, one.count) for one in fired.ledger] == ledger
    assert fired.next_at == minute(11)


def test_without_hold_a_later_time_that_is_on_time_stands_for_what_was_missed() -> None:
    fired = after_outage(Misfire())

    assert fired.runs == (PlannedRun(minute(10), None, True),)
    assert [(one.verdict, one.count) for one in fired.ledger] == [("coalesced", 9)]


def test_a_time_that_is_on_time_is_not_held() -> None:
    fired = firing.decide(due_at(minute(1)), MINUTELY, Misfire(hold=True), now=minute(1.5))

    assert fired.runs == (PlannedRun(minute(1)),)


# --- max_runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch_up", "left", "runs", "runs_left", "ledger"),
    [
        ("none", 3, [10], 2, [("missed", 9)]),  # what was skipped does not count
        ("none", 1, [10], 0, [("missed", 9)]),
        ("latest", 2, [10], 1, [("coalesced", 9)]),
        ("all", 10, list(range(1, 11)), 0, []),
        ("all", 4, [1, 2, 3, 4], 0, []),
        ("all", 99, list(range(1, 11)), 89, []),
    ],
)
def test_runs_are_counted_and_times_that_did_not_run_are_not(
    catch_up: CatchUp, left: int, runs: list[int], runs_left: int, ledger: list[tuple[str, int]]
) -> None:
    fired = after_outage(Misfire(catch_up=catch_up), runs_left=left)

    assert [run.due_at for run in fired.runs] == [minute(number) for number in runs]
    assert (fired.runs_left, [(one.verdict, one.count) for one in fired.ledger]) == (runs_left, ledger)
    if runs_left:
        assert (fired.state, fired.next_at) == ("active", minute(11))
    else:
        assert (fired.state, fired.next_at, fired.reason) == ("finished", None, firing.ALL_MADE)
        assert fired.last_due_at == minute(runs[-1])


def test_the_last_run_of_its_max_runs_finishes_a_schedule_that_is_on_time() -> None:
    fired = firing.decide(due_at(minute(1), runs_left=1), MINUTELY, Misfire(), now=minute(1))

    assert (len(fired.runs), fired.state, fired.reason, fired.runs_left) == (1, "finished", firing.ALL_MADE, 0)


def test_a_schedule_without_max_runs_counts_nothing() -> None:
    assert after_outage(Misfire()).runs_left is None


# --- jitter and spread --------------------------------------------------------------------------------------------


def test_a_jittered_run_keeps_its_due_time_and_starts_later_at_its_share() -> None:
    pace = Pacing(jitter=timedelta(seconds=30))

    fired = firing.decide(due_at(minute(1)), MINUTELY, Misfire(), now=minute(1), pace=pace)

    (run,) = fired.runs
    assert (run.due_at, fired.last_due_at, fired.next_at) == (minute(1), minute(1), minute(2))
    assert run.starts_at == pacing.starts_at(pace, TASK, minute(1), following=minute(2))
    assert run.starts_at is not None
    assert minute(1) < run.starts_at < minute(1.5)


def test_what_is_caught_up_is_not_jittered_and_is_spread_from_now() -> None:
    pace = Pacing(jitter=MINUTE, spread=timedelta(seconds=20))

    fired = after_outage(Misfire(catch_up="all"), pace=pace)

    assert [run.starts_at for run in fired.runs[:9]] == [None] * 9
    assert {run.spread_until for run in fired.runs[:9]} == {OUTAGE + timedelta(seconds=20)}
    last = fired.runs[9]
    assert last.starts_at is not None
    assert last.spread_until == pacing.spread_until(pace, last.starts_at, following=minute(11))


def test_an_outage_that_makes_no_run_is_decided_with_a_pace_as_without() -> None:
    misfire, pace = Misfire(catch_up="none", grace=timedelta(0)), Pacing(jitter=MINUTE, spread=MINUTE)

    assert after_outage(misfire, pace=pace) == after_outage(misfire)
    assert after_outage(misfire).runs == ()


def test_the_last_of_its_max_runs_has_the_jitter_that_it_has_without() -> None:
    """Nothing follows it, but its share is a promise to whoever looked ahead; and `max_runs` can be raised."""
    pace = Pacing(jitter=timedelta(hours=1))
    schedule = due_at(minute(1))

    last = firing.decide(replace(schedule, runs_left=1), MINUTELY, Misfire(), now=minute(1), pace=pace)
    any_other = firing.decide(schedule, MINUTELY, Misfire(), now=minute(1), pace=pace)

    assert last.state == "finished"
    assert last.runs == any_other.runs


# --- all of it together -------------------------------------------------------------------------------------------


def durations(most: timedelta) -> st.SearchStrategy[timedelta]:
    return st.timedeltas(timedelta(0), most)


TRIGGERS = st.sampled_from(
    [
        MINUTELY,
        times.read_trigger({"every": "7m30s"}, anchor=START),
        times.read_trigger({"every": "1d", "zone": "Europe/Athens"}, anchor=START),
        HOURLY,
        times.read_trigger({"cron": "*/13 8-17 * * *", "zone": "Europe/Athens"}),
        times.read_trigger({"cron": "30 2,3 * * *", "zone": "America/New_York"}),
        times.read_trigger({"rrule": "FREQ=HOURLY;INTERVAL=5;COUNT=30"}, anchor=START),
        times.read_trigger({"at": "2026-03-02T11:11:00Z"}),
    ]
)
MISFIRES = st.one_of(
    st.builds(
        Misfire,
        grace=durations(timedelta(hours=3)),
        catch_up=st.sampled_from(["none", "latest"]),
        max_age=durations(timedelta(days=2)),
        hold=st.booleans(),
    ),
    st.builds(
        Misfire,
        grace=durations(timedelta(hours=3)),
        catch_up=st.just("all"),
        max_age=durations(timedelta(days=2)),
        max=st.one_of(st.none(), st.integers(1, 300)),
        hold=st.booleans(),
    ),
)
PACES = st.builds(Pacing, jitter=durations(timedelta(hours=2)), spread=durations(timedelta(hours=2)))
OUTAGES = st.lists(durations(timedelta(hours=30)), min_size=1, max_size=6)
LEFT = st.one_of(st.none(), st.integers(1, 400))


@settings(deadline=None)
@given(trigger=TRIGGERS, misfire=MISFIRES, pace=PACES, outages=OUTAGES, left=LEFT)
def test_every_due_time_of_every_outage_ends_under_exactly_one_verdict(
    trigger: times.Trigger, misfire: Misfire, pace: Pacing, outages: list[timedelta], left: int | None
) -> None:
    schedule, now = due_at(times.next_after(trigger, START) or START, runs_left=left), START
    slices: list[tuple[datetime, Firing]] = []
    for outage in outages:
        now += outage
        for fired in carry(schedule, trigger, misfire, now=now, pace=pace):
            slices.append((now, fired))
            schedule = moved(fired)

    runs = Counter(run.due_at for _, fired in slices for run in fired.runs)
    entries = [entry for _, fired in slices for entry in fired.ledger]
    decided_to = schedule.last_due_at or START
    for moment in times.times_between(trigger, START, now + timedelta(hours=1), 10_000):
        noted = sum(one.first_due_at <= moment <= one.last_due_at for one in entries)
        assert runs[moment] + noted == (moment <= decided_to), moment
        assert moment > now or moment <= decided_to or schedule.state == "finished"
    for one in entries:
        assert one.count == len(times.times_between(trigger, one.first_due_at - firing.TICK, one.last_due_at, 10_000))
    if left is not None:
        assert runs.total() == left - (schedule.runs_left or 0) <= left
    for at, fired in slices:
        check_slice(fired, trigger, misfire, now=at)


def check_slice(fired: Firing, trigger: times.Trigger, misfire: Misfire, *, now: datetime) -> None:
    moments = [run.due_at for run in fired.runs]
    assert moments == sorted(set(moments))
    assert [run.previous_due_at for run in fired.runs] == [fired.schedule.last_due_at, *moments][: len(moments)]
    if any(entry.verdict == "coalesced" for entry in fired.ledger):
        assert fired.runs, "a later time ran in its place"
        assert fired.runs[0].caught_up
    for run in fired.runs:
        is_late = now - run.due_at > misfire.grace
        assert run.held == (misfire.hold and is_late)
        assert run.caught_up or not is_late
        if is_late:
            assert misfire.catch_up != "none"
            assert now - run.due_at <= misfire.max_age
        check_pace(run, times.next_after(trigger, run.due_at))


def check_pace(run: PlannedRun, following: datetime | None) -> None:
    assert run.starts_at is None or (not run.caught_up and run.starts_at >= run.due_at)
    if following is None or run.caught_up:
        return
    assert (run.starts_at or run.due_at) < following
    assert run.spread_until is None or run.spread_until < following
