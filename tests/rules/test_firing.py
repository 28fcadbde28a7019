"""What the clock does about a schedule that is due: the policies as tables, and that no time is lost or doubled."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.definition import CatchUp, Misfire
from oncue.model import Schedule, TaskId
from oncue.rules import firing, times
from oncue.rules.firing import Firing, LedgerEntry, PlannedRun

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTELY = times.read_trigger({"every": "1m"}, anchor=START)
EVERY_SECOND = times.read_trigger({"every": "1s"}, anchor=START)
HOURLY = times.read_trigger({"cron": "0 * * * *"})
YEARS = timedelta(days=4000)


def at(seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
    return START + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def due_at(moment: datetime, **changes: Any) -> Schedule:
    given: dict[str, Any] = {"next_at": moment, "last_due_at": None, "timing": ""} | changes
    return Schedule(TaskId(1), UUID(int=1), 1, 1, **given)


def told(fired: Firing) -> tuple[list[tuple[datetime, bool]], list[tuple[str, int]]]:
    """Return (due time, caught up) of each run, and (verdict, count) of each ledger entry."""
    return [(run.due_at, run.caught_up) for run in fired.runs], [(one.verdict, one.count) for one in fired.ledger]


def test_a_time_that_is_due_within_its_grace_runs() -> None:
    fired = firing.decide(due_at(at(60), last_due_at=at(0)), MINUTELY, Misfire(), now=at(60.3))

    assert fired.runs == (PlannedRun(at(60), at(0), False),)
    assert (fired.ledger, fired.next_at, fired.last_due_at, fired.state) == ((), at(120), at(60), "active")


def test_the_last_time_finishes_the_schedule() -> None:
    once = times.read_trigger({"at": "2026-03-02T10:00:00Z"})

    fired = firing.decide(due_at(at(hours=1)), once, Misfire(), now=at(hours=1))

    assert (len(fired.runs), fired.next_at, fired.state, fired.reason) == (1, None, "finished", "no further times")


@pytest.mark.parametrize(
    ("late", "catch_up", "runs", "ledger"),
    [
        (60, "none", [(at(60), False)], []),
        (61, "none", [], [("missed", 1)]),
        (61, "latest", [(at(60), True)], []),
        (61, "all", [(at(60), True)], []),
    ],
)
def test_the_grace_is_the_most_that_is_on_time(
    late: float, catch_up: CatchUp, runs: list[Any], ledger: list[Any]
) -> None:
    misfire = Misfire(grace=timedelta(minutes=1), catch_up=catch_up)

    fired = firing.decide(due_at(at(60)), HOURLY, misfire, now=at(60 + late))

    assert told(fired) == (runs, ledger)


@pytest.mark.parametrize(
    ("catch_up", "runs", "ledger"),
    [
        ("none", [], [("missed", 1)]),
        ("latest", [(at(hours=1), True)], []),
        ("all", [(at(hours=1), True)], []),
    ],
)
def test_a_time_that_fell_into_an_outage_runs_late_or_is_noted(
    catch_up: CatchUp, runs: list[Any], ledger: list[Any]
) -> None:
    """B58: a fixed look-back lost it. The scheduler is down for five minutes around the due time."""
    fired = firing.decide(due_at(at(hours=1)), HOURLY, Misfire(catch_up=catch_up), now=at(180, hours=1))

    assert told(fired) == (runs, ledger)
    assert fired.next_at == at(hours=2)


@pytest.mark.parametrize(("minutes", "days"), [(101, 0), (0, 3)])
def test_after_a_long_outage_one_run_is_made_and_the_rhythm_goes_on(minutes: int, days: int) -> None:
    """B67: after more than a hundred missed times the job never ran again."""
    now = at(30, minutes=minutes, days=days)

    fired = firing.decide(due_at(at(60)), MINUTELY, Misfire(grace=timedelta(0)), now=now)

    assert [run.caught_up for run in fired.runs] == [True]
    assert fired.runs[0].due_at == now - timedelta(seconds=30)
    assert fired.next_at == now + timedelta(seconds=30)


def test_a_backlog_makes_one_run_with_the_count_of_what_it_stands_for() -> None:
    """B70: after a restart the backlog of missed minutes ran all at once."""
    fired = firing.decide(due_at(at(60)), MINUTELY, Misfire(), now=at(minutes=10))

    assert told(fired) == ([(at(minutes=9), True), (at(minutes=10), False)], [("coalesced", 8)])


def test_what_is_older_than_the_age_that_is_caught_up_is_missed() -> None:
    misfire = Misfire(catch_up="all", max_age=timedelta(hours=2))

    fired = firing.decide(due_at(at(hours=1)), HOURLY, misfire, now=at(60 * 30, hours=9))

    assert told(fired) == ([(at(hours=8), True), (at(hours=9), True)], [("missed", 7)])


def test_each_caught_up_run_knows_the_time_before_its_own() -> None:
    schedule = due_at(at(hours=1), last_due_at=at(0))

    fired = firing.decide(schedule, HOURLY, Misfire(catch_up="all"), now=at(60 * 30, hours=3))

    assert [run.previous_due_at for run in fired.runs] == [at(0), at(hours=1), at(hours=2)]


def test_no_more_than_a_hundred_runs_are_made_at_once_and_the_rest_stay_ahead() -> None:
    fired = firing.decide(due_at(at(60)), MINUTELY, Misfire(catch_up="all"), now=at(hours=9))

    assert (len(fired.runs), fired.last_due_at, fired.next_at) == (100, at(minutes=100), at(minutes=101))


@pytest.mark.parametrize("catch_up", ["none", "latest"])
@pytest.mark.parametrize("trigger", [EVERY_SECOND, MINUTELY, HOURLY], ids=["second", "minute", "hour"])
def test_a_decade_of_missed_times_costs_no_more_than_a_day(
    trigger: times.Trigger, catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Counter[str]()
    for name in ("next_after", "previous_before", "times_between", "count_between"):
        monkeypatch.setattr(times, name, _counted(asked, name))

    fired = firing.decide(due_at(at(hours=1)), trigger, Misfire(catch_up=catch_up), now=START + YEARS)

    assert asked.total() <= firing.RUNS_AT_ONCE  # what lies within the grace is walked
    assert len(fired.runs) <= firing.RUNS_AT_ONCE
    assert len(fired.ledger) <= 2


def _counted(asked: Counter[str], name: str) -> Any:
    ask = getattr(times, name)

    def counted(*args: Any) -> Any:
        asked[name] += 1
        return ask(*args)

    return counted


def test_a_time_that_was_promised_is_decided_though_the_trigger_no_longer_has_it() -> None:
    """A new edition of the zones can move every other time of a schedule."""
    fired = firing.decide(due_at(at(60)), HOURLY, Misfire(catch_up="none"), now=at(60 * 10, hours=1))

    assert told(fired) == ([], [("missed", 2)])
    assert (fired.ledger[0].first_due_at, fired.ledger[0].last_due_at) == (at(60), at(hours=1))


def test_a_schedule_that_is_stopped_keeps_its_next_time() -> None:
    fired = firing.stop(due_at(at(60), last_due_at=at(0)), "no such zone")

    assert (fired.next_at, fired.last_due_at, fired.state, fired.reason) == (at(60), at(0), "stopped", "no such zone")


def test_enabling_runs_nothing_at_once() -> None:
    """B94: hourly, disabled 00:05, enabled 01:55; one run, at 02:00."""
    next_at, entries = firing.pass_over(
        due_at(at(hours=1)), HOURLY, now=at(hours=1, minutes=55), verdict="skipped", reason="paused: test"
    )

    assert next_at == at(hours=2)
    assert entries == [LedgerEntry(at(hours=1), at(hours=1), 1, "skipped", "paused: test")]


def test_a_pause_in_which_nothing_was_due_leaves_no_entry() -> None:
    next_at, entries = firing.pass_over(due_at(at(hours=1)), HOURLY, now=at(60), verdict="skipped", reason="test")

    assert (next_at, entries) == (at(hours=1), [])


def _durations(most: timedelta) -> st.SearchStrategy[timedelta]:
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
MISFIRES = st.builds(
    Misfire,
    grace=_durations(timedelta(hours=3)),
    catch_up=st.sampled_from(["none", "latest", "all"]),
    max_age=_durations(timedelta(days=2)),
)
OUTAGES = st.lists(_durations(timedelta(hours=30)), min_size=1, max_size=6)


@given(trigger=TRIGGERS, misfire=MISFIRES, outages=OUTAGES)
def test_every_due_time_runs_or_is_noted_or_stays_ahead_and_only_one_of_these(
    trigger: times.Trigger, misfire: Misfire, outages: list[timedelta]
) -> None:
    runs: Counter[datetime] = Counter()
    entries: list[LedgerEntry] = []
    first = times.next_after(trigger, START)
    schedule, now = due_at(first or START), START
    for outage in outages:
        now += outage
        while schedule.next_at is not None and schedule.next_at <= now:
            fired = firing.decide(schedule, trigger, misfire, now=now)
            _check_move(schedule, fired)
            runs.update(run.due_at for run in fired.runs)
            entries += fired.ledger
            schedule = due_at(fired.next_at, last_due_at=fired.last_due_at)  # type: ignore[arg-type]  # None at the end

    for moment in times.times_between(trigger, START, now + timedelta(hours=1), 10_000):
        noted = sum(one.first_due_at <= moment <= one.last_due_at for one in entries)
        ahead = schedule.next_at is not None and schedule.next_at <= moment
        assert runs[moment] + noted + ahead == 1, moment
    for one in entries:
        assert one.count == len(times.times_between(trigger, one.first_due_at - firing.TICK, one.last_due_at, 10_000))


def _check_move(schedule: Schedule, fired: Firing) -> None:
    assert fired.last_due_at is not None
    assert schedule.next_at is not None
    assert fired.last_due_at >= schedule.next_at
    assert fired.next_at is None or fired.next_at > fired.last_due_at
    assert len(fired.runs) <= firing.RUNS_AT_ONCE
    assert len(fired.ledger) <= 2
    moments = [run.due_at for run in fired.runs]
    assert moments == sorted(set(moments))
    assert [run.previous_due_at for run in fired.runs] == [schedule.last_due_at, *moments][: len(moments)]


@pytest.mark.parametrize(
    ("overlap", "slot_taken", "caught_up", "one_waits", "admission"),
    [
        (None, True, False, False, "claim"),
        ("allow", True, True, True, "claim"),
        ("skip", False, False, True, "claim"),
        ("skip", True, False, False, "skip"),
        ("skip", True, True, True, "queue"),
        ("queue", True, False, False, "queue"),
        ("queue", True, False, True, "skip"),
        ("queue", True, True, True, "queue"),
        ("replace", True, False, False, "replace"),
        ("replace", True, False, True, "replace"),
        ("replace", True, True, False, "queue"),
    ],
)
def test_a_run_is_admitted_by_the_policy_of_its_task(
    overlap: Any, slot_taken: bool, caught_up: bool, one_waits: bool, admission: str
) -> None:
    admitted = firing.admit(overlap, slot_taken=slot_taken, caught_up=caught_up, one_waits=one_waits)

    assert admitted == admission


def test_a_day_that_has_25_hours_loses_no_hour() -> None:
    athens = ZoneInfo("Europe/Athens")
    trigger = times.read_trigger({"cron": "0 * * * *", "zone": "Europe/Athens"})
    midnight = datetime(2026, 10, 25, tzinfo=athens).astimezone(UTC)

    fired = firing.decide(
        due_at(midnight),
        trigger,
        Misfire(catch_up="all", max_age=timedelta(days=9)),
        now=midnight + timedelta(hours=25),
    )

    assert len(fired.runs) == 26
