"""Properties of every trigger, and second opinions on cron: a minute-by-minute oracle, and cronsim."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st

from oncue.rules import times
from tests.rules import oracle
from tests.rules.drawing import (
    ALL_ZONES,
    DEEP,
    ODD_ZONES,
    POLICIES,
    changes_of,
    dst_of,
    moments_near_changes,
    policies,
    thorough,
    triggers,
    wanted_crons,
)

EVERY_DAY = (frozenset(range(1, 32)), frozenset(range(1, 13)), frozenset(range(7)))
CRONS = [
    oracle.Wanted(text, frozenset(minutes), frozenset(hours), *EVERY_DAY)
    for text, minutes, hours in (
        ("30 2 * * *", {30}, {2}),
        ("*/20 * * * *", {0, 20, 40}, range(24)),
        ("0,45 0-3 * * *", {0, 45}, range(4)),
        ("15 */2 * * *", {15}, range(0, 24, 2)),
        ("5 23 * * *", {5}, {23}),
    )
]


def check_around(zone: str, change: datetime, asked: tuple[str, str] | None) -> None:
    """Compare all crons with the oracle, forwards, backwards and counted, around a change of clocks."""
    after, until = change - timedelta(hours=3), change + timedelta(hours=4)
    shown = oracle.clock(ZoneInfo(zone), after, until, before=timedelta(hours=4))
    for wanted in CRONS:
        trigger = times.read_trigger({"cron": wanted.text, "zone": zone, **dst_of(asked)})
        expected = oracle.times_on(shown, wanted, after, until, asked)
        place = (zone, wanted.text, change, asked)
        assert times.times_between(trigger, after, until, 5000) == expected, place
        assert times.count_between(trigger, after, until)[0] == len(expected), place
        for earlier, later in pairwise(expected):
            assert times.previous_before(trigger, later) == earlier, place


@thorough(120)
@given(wanted_crons(), moments_near_changes(), policies())
def test_cron_times_near_a_change_are_those_of_the_minute_by_minute_oracle(
    wanted: oracle.Wanted, near: tuple[str, datetime], asked: tuple[str, str] | None
) -> None:
    zone, after = near
    until = after + timedelta(hours=30)
    trigger = times.read_trigger({"cron": wanted.text, "zone": zone, **dst_of(asked)})

    found = times.times_between(trigger, after, until, 5000)

    assert found == oracle.times_on(oracle.clock(ZoneInfo(zone), after, until), wanted, after, until, asked)


@pytest.mark.parametrize("zone", ODD_ZONES)
def test_cron_times_around_the_changes_of_an_odd_zone_are_those_of_the_oracle(zone: str) -> None:
    for number, change in enumerate(changes_of(zone)):
        for asked in [None, *POLICIES] if DEEP else [[None, *POLICIES][number % 10]]:
            check_around(zone, change, asked)


@pytest.mark.parametrize("letters", ["A", "B-F", "G-O", "P-Z"])
def test_cron_times_around_changes_in_every_zone_are_those_of_the_oracle(letters: str) -> None:
    zones = [zone for zone in ALL_ZONES if re.match(f"[{letters}]", zone)]
    chosen = random.Random(letters)

    for zone in zones:
        changes = changes_of(zone)
        for change in changes if DEEP else chosen.sample(changes, min(1, len(changes))):
            check_around(zone, change, chosen.choice([None, *POLICIES]))


@thorough(100)
@given(
    st.integers(0, 23),
    st.integers(0, 59),
    moments_near_changes(),
    st.sampled_from(POLICIES),
    st.sampled_from([1, 2, 7]),
)
def test_every_kind_places_a_time_of_day_as_a_cron_does(
    hour: int, minute: int, near: tuple[str, datetime], asked: tuple[str, str], days: int
) -> None:
    zone, after = near
    until = after + timedelta(days=2)
    first = (after.astimezone(ZoneInfo(zone)) - timedelta(days=14)).replace(hour=hour, minute=minute, second=0)
    wall = f"{first.replace(tzinfo=None, microsecond=0).isoformat()}"
    spec = {"zone": zone, **dst_of(asked)}
    cron = times.times_between(times.read_trigger({**spec, "cron": f"{minute} {hour} * * *"}), after, until, 9)

    step = times.times_between(times.read_trigger({**spec, "every": f"P{days}D", "anchor": wall}), after, until, 9)
    start = f"DTSTART={re.sub('[-:]', '', wall)};FREQ=DAILY;INTERVAL={days}"
    rule = times.times_between(times.read_trigger({**spec, "rrule": start}), after, until, 9)

    assert step == rule
    assert set(step) <= set(cron)
    if days == 1:
        assert step == cron


@thorough(120)
@given(wanted_crons(), moments_near_changes(("America/New_York", "Europe/Berlin", "Europe/London", "UTC")))
def test_cron_times_are_those_of_cronsim_where_the_rules_agree(
    wanted: oracle.Wanted, near: tuple[str, datetime]
) -> None:
    # cronsim reads a/n in the weekday field up to 7, and a-a/n as a/n; it loses hours where clocks change off the hour,
    # and makes up for a midnight that a wildcard does not have.
    assume("/" not in wanted.text.split()[4] and not re.search(r"\b(\d+)-\1/", wanted.text))
    zone, start = near
    # Asked between the two copies of an hour it gives out what was due in the first.
    assume(not start.astimezone(ZoneInfo(zone)).fold)
    trigger = times.read_trigger({"cron": wanted.text, "zone": zone})
    assume(times.next_after(trigger, start) is not None)

    found = times.times_between(trigger, start, start + timedelta(days=4000), 40)

    theirs = CronSim(wanted.text, start.astimezone(ZoneInfo(zone)))
    assert found == [moment.astimezone(UTC) for moment in islice(theirs, len(found))]


@thorough(200)
@given(triggers(), moments_near_changes())
def test_times_rise_and_previous_is_the_inverse_of_next(trigger: times.Trigger, near: tuple[str, datetime]) -> None:
    after = near[1]

    found = times.times_between(trigger, after, after + timedelta(days=3000), 12)

    assert all(later > earlier for earlier, later in pairwise([after, *found]))
    assert all(moment.tzinfo is UTC for moment in found)
    for earlier, later in pairwise(found):
        assert times.previous_before(trigger, later) == earlier
        assert times.next_after(trigger, earlier) == later
        assert times.next_after(trigger, later - timedelta(microseconds=1)) == later
    if found:
        before = times.previous_before(trigger, found[0])
        assert before is None or (before <= after and times.next_after(trigger, before) == found[0])


@thorough(200)
@given(triggers(), moments_near_changes(), st.integers(1, 4 * 86400))
def test_times_are_counted_as_they_are_listed(trigger: times.Trigger, near: tuple[str, datetime], seconds: int) -> None:
    after = near[1]
    until = after + timedelta(seconds=seconds)
    listed = times.times_between(trigger, after, until, 3000)
    assume(len(listed) < 3000)

    counted = times.count_between(trigger, after, until)

    assert counted == ((len(listed), listed[0], listed[-1]) if listed else (0, None, None))
