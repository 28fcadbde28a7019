"""The edges of what was missed: exactly at its grace, at its greatest age, at this very moment."""

from __future__ import annotations

from datetime import timedelta

import pytest

from oncue.definition import CatchUp, Misfire
from oncue.rules import firing, times
from tests.rules.test_outages import MINUTE, MINUTELY, START, due_at, minute

TICK = timedelta(microseconds=1)


def test_a_time_that_is_due_at_this_very_moment_is_decided_with_those_that_were_missed() -> None:
    fired = firing.decide(due_at(minute(1)), MINUTELY, Misfire(), now=minute(10))

    assert (fired.last_due_at, fired.next_at) == (minute(10), minute(11))
    assert [run.due_at for run in fired.runs][-1] == minute(10)


def test_the_latest_of_what_was_missed_is_counted_up_to_the_grace_itself() -> None:
    now = minute(11) + TICK  # minute 10 was missed by a microsecond more than the grace
    fired = firing.decide(due_at(minute(1)), MINUTELY, Misfire(catch_up="all", max=2), now=now)

    assert [(run.due_at, run.caught_up) for run in fired.runs] == [
        (minute(9), True),
        (minute(10), True),
        (minute(11), False),
    ]


@pytest.mark.parametrize("catch_up", ["all", "latest"])
@pytest.mark.parametrize(("older", "runs"), [(timedelta(), 1), (TICK, 0)])
def test_what_is_exactly_as_old_as_is_caught_up_runs_and_what_is_older_does_not(
    catch_up: CatchUp, older: timedelta, runs: int
) -> None:
    hourly = times.read_trigger({"cron": "0 * * * *"})
    misfire = Misfire(catch_up=catch_up, max_age=30 * MINUTE)

    fired = firing.decide(due_at(minute(60)), hourly, misfire, now=minute(90) + older)

    assert len(fired.runs) == runs
    assert [(one.verdict, one.count) for one in fired.ledger] == ([] if runs else [("missed", 1)])


def test_a_schedule_of_days_that_nothing_is_known_of_leaves_nothing_out() -> None:
    table = times.read_trigger({"any": [{"cron": "* * * * *"}], "except": [{"cron": "5 * * * *"}]})

    fired = firing.decide(due_at(minute(1)), table, Misfire(catch_up="all"), now=minute(9))
    known = firing.decide(due_at(minute(1), since=START), table, Misfire(catch_up="all"), now=minute(9))

    assert fired.ledger == ()
    assert [(one.verdict, one.first_due_at, one.count) for one in known.ledger] == [("skipped", minute(5), 1)]


def test_nothing_is_passed_over_by_a_pause_that_ends_before_the_next_time() -> None:
    told = firing.pass_over(due_at(minute(5)), MINUTELY, now=minute(5) - TICK, verdict="skipped", reason="r")
    at_once = firing.pass_over(due_at(minute(5)), MINUTELY, now=minute(5), verdict="skipped", reason="r")

    assert told == (minute(5), [])
    assert [(one.first_due_at, one.count) for one in at_once[1]] == [(minute(5), 1)]
