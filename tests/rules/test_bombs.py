"""Schedules that are made to be costly: each is refused, or answered. What they cost is measured in `benchmarks`."""

from __future__ import annotations

from datetime import UTC, timedelta
from itertools import pairwise

import pytest
from benchmarks.times import BOMBS, SPARSE, START, ZONE, defuse

from oncue.rules import times

ANSWERED = {
    "an odd hour every second hour",  # the clocks move it onto an even one
    "every second",
    "as many items as fit",
    "all minutes of a year",
    "ten thousand years",
    "as many exceptions as fit",
    "as many exceptions as fit, and a COUNT",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_answered(name: str) -> None:
    found = defuse(BOMBS[name])

    if name in ANSWERED:
        assert found is not None
        assert len(found) == 5
        assert all(later > earlier for earlier, later in pairwise([START, *found]))
    else:
        assert not found


@pytest.mark.parametrize("name", SPARSE)
def test_a_far_time_is_found_from_both_sides(name: str) -> None:
    spec, after = SPARSE[name]
    trigger = times.read_trigger({"zone": ZONE, **spec}, name="some task")

    found = times.next_after(trigger, after)

    if found is not None:
        assert times.previous_before(trigger, found + timedelta(microseconds=1)) == found
        assert times.count_between(trigger, after, found) == (1, found, found)
        assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "rule",
    ["FREQ=MINUTELY;INTERVAL=7", "FREQ=MINUTELY;UNTIL=20300101T000000Z", "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,10,20,30"],
)
def test_years_of_a_dense_rule_are_counted_without_listing_them(rule: str) -> None:
    trigger = times.read_trigger({"rrule": f"DTSTART=20260101T000000;{rule};EXDATE=20260601T000000,20260601T010200"})
    years = [START.replace(year=year) for year in (2026, 2027, 2028)]

    first, second = (times.count_between(trigger, a, b)[0] for a, b in pairwise(years))
    both, earliest, latest = times.count_between(trigger, years[0], years[-1])

    assert both == first + second
    assert earliest == times.next_after(trigger, years[0])
    assert latest == times.previous_before(trigger, years[-1] + timedelta(microseconds=1))
    day = times.times_between(trigger, years[0].replace(month=6), years[0].replace(month=6, day=2), 9999)
    assert times.count_between(trigger, years[0].replace(month=6), years[0].replace(month=6, day=2))[0] == len(day)
