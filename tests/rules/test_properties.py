"""Properties of every trigger, and second opinions: a minute-by-minute oracle, cronsim and plain dateutil."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from dateutil import rrule as dateutil_rrule
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from oncue.rules import times
from tests.rules import oracle

ODD_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Europe/Lisbon",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Pacific/Kwajalein",
    "UTC",
)
MODEST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


@cache
def changes_of(zone: str) -> list[datetime]:
    return oracle.changes(ZoneInfo(zone), 1970, 2037)


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """Draw a cron field and the set that it means."""
    everything = range(low, high + 1)
    kind = draw(st.sampled_from(["star", "star", "step", "one", "list", "range", "range step", "from"]))
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, max(1, (high - low) // 2)))
    match kind:
        case "star":
            return "*", frozenset(everything)
        case "step":
            return f"*/{step}", frozenset(everything[::step])
        case "one":
            return str(first), frozenset({first})
        case "list":
            chosen = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
            return ",".join(map(str, chosen)), frozenset(chosen)
        case "range":
            return f"{first}-{last}", frozenset(range(first, last + 1))
        case "range step":
            return f"{first}-{last}/{step}", frozenset(range(first, last + 1, step))
        case _:
            return f"{first}/{step}", frozenset(range(first, high + 1, step))


@st.composite
def wanted_crons(draw: st.DrawFn) -> oracle.Wanted:
    minute, hour = draw(fields(0, 59)), draw(fields(0, 23))
    day, month, weekday = draw(fields(1, 31)), draw(fields(1, 12)), draw(fields(0, 6))
    if draw(st.booleans()):
        day, month, weekday = [("*", frozenset(range(low, 32))) for low in (1, 1, 0)]
    if draw(st.booleans()):
        hour = draw(st.sampled_from([("2", {2}), ("0", {0}), ("1-3", {1, 2, 3}), ("23,0", {0, 23})]))
    parts = (minute, hour, day, month, weekday)
    return oracle.Wanted(" ".join(part[0] for part in parts), *(frozenset(part[1]) for part in parts))


@st.composite
def moments_near_changes(draw: st.DrawFn, zones: tuple[str, ...] = ODD_ZONES) -> tuple[str, datetime]:
    zone = draw(st.sampled_from(zones))
    around = draw(st.sampled_from(changes_of(zone) or [datetime(2026, 3, 8, 7, tzinfo=UTC)]))
    return zone, around + timedelta(seconds=draw(st.integers(-26 * 3600, 8 * 3600)))


def walls(first_year: int, last_year: int) -> st.SearchStrategy[datetime]:
    first, last = (naive(datetime(year, 1, 1, tzinfo=UTC)) for year in (first_year, last_year))
    return st.datetimes(first, last)


def triggers() -> st.SearchStrategy[times.Trigger]:
    zones = st.sampled_from(ODD_ZONES)
    crons = wanted_crons().map(lambda wanted: {"cron": wanted.text})
    every = st.sampled_from(
        ["1s", "7m", "1h30m", "PT168H", "P1D", "P7D", "P1M", "P3M", "P1Y", "P1DT12H", "P1M2DT3H", "P2W"]
    )
    anchors = walls(1965, 2037).map(lambda wall: wall.isoformat())
    steps = st.builds(lambda step, anchor: {"every": step, "anchor": anchor}, every, anchors)
    rules = rule_texts().map(lambda text: {"rrule": text})
    return st.builds(
        lambda spec, zone: times.read_trigger({**spec, "zone": zone}), st.one_of(crons, steps, rules), zones
    )


@st.composite
def rule_texts(draw: st.DrawFn, *, with_end: bool = True) -> str:
    start = draw(walls(1990, 2030)).replace(microsecond=0)
    freq = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"]))
    parts = [f"DTSTART={start:%Y%m%dT%H%M%S}", f"FREQ={freq}"]
    if draw(st.booleans()):
        parts.append(f"INTERVAL={draw(st.integers(1, 5))}")
    numbers = {"BYMONTH": (1, 12), "BYMONTHDAY": (1, 31), "BYHOUR": (0, 23), "BYMINUTE": (0, 59)}
    for name, (low, high) in numbers.items():
        if draw(st.sampled_from([True, False, False])):
            parts.append(f"{name}={','.join(map(str, draw(st.sets(st.integers(low, high), min_size=1, max_size=3))))}")
    if draw(st.sampled_from([True, False, False])):
        parts.append(f"BYDAY={','.join(draw(st.sets(st.sampled_from(['MO', 'WE', 'FR', 'SA', 'SU']), min_size=1)))}")
        if freq in ("YEARLY", "MONTHLY") and draw(st.booleans()):
            parts.append(f"BYSETPOS={draw(st.sampled_from(['1', '-1', '2', '-2,1']))}")
    if freq == "WEEKLY" and draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(['MO', 'SU', 'TH']))}")
    if with_end and draw(st.booleans()):
        parts.append(draw(st.sampled_from(["COUNT=7", "UNTIL=20310101T000000Z", "UNTIL=20281231"])))
    return ";".join(parts)


@MODEST
@given(wanted_crons(), moments_near_changes())
def test_cron_times_near_a_change_are_those_of_the_minute_by_minute_oracle(
    wanted: oracle.Wanted, near: tuple[str, datetime]
) -> None:
    zone, after = near
    until = after + timedelta(hours=30)
    trigger = times.read_trigger({"cron": wanted.text, "zone": zone})

    found = times.times_between(trigger, after, until, 5000)

    assert found == oracle.times_on(oracle.clock(ZoneInfo(zone), after, until), wanted, after, until)


@pytest.mark.parametrize("zone", ODD_ZONES)
def test_cron_times_around_every_change_of_a_zone_are_those_of_the_oracle(zone: str) -> None:
    texts = ("30 2 * * *", "*/20 * * * *", "0,45 0-3 * * *", "15 */2 * * *", "5 23 * * *")
    sets = ({30}, {0, 20, 40}, {0, 45}, {15}, {5}), ({2}, range(24), range(4), range(0, 24, 2), {23})
    everyday = (frozenset(range(1, 32)), frozenset(range(1, 13)), frozenset(range(7)))
    crons = [
        oracle.Wanted(text, frozenset(minutes), frozenset(hours), *everyday)
        for text, minutes, hours in zip(texts, *sets, strict=True)
    ]
    read = [times.read_trigger({"cron": wanted.text, "zone": zone}) for wanted in crons]

    for change in changes_of(zone):
        after, until = change - timedelta(hours=3), change + timedelta(hours=4)
        shown = oracle.clock(ZoneInfo(zone), after, until, before=timedelta(hours=1))
        for wanted, trigger in zip(crons, read, strict=True):
            found = times.times_between(trigger, after, until, 5000)
            assert found == oracle.times_on(shown, wanted, after, until), (wanted.text, change)


@MODEST
@given(wanted_crons(), st.sampled_from(["America/New_York", "Europe/Berlin", "Pacific/Chatham", "UTC"]))
def test_cron_times_are_those_of_cronsim_where_the_rules_agree(wanted: oracle.Wanted, zone: str) -> None:
    # cronsim reads a/n in the weekday field up to 7, and a-a/n as a/n; it loses full hours where clocks move by half.
    assume("/" not in wanted.text.split()[4] and not re.search(r"\b(\d+)-\1/", wanted.text))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    trigger = times.read_trigger({"cron": wanted.text, "zone": zone})
    assume(times.next_after(trigger, start) is not None)

    found = times.times_between(trigger, start, start + timedelta(days=4000), 40)

    theirs = CronSim(wanted.text, start.astimezone(ZoneInfo(zone)))
    assert found == [moment.astimezone(UTC) for moment in islice(theirs, len(found))]


@MODEST
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


@MODEST
@given(triggers(), moments_near_changes(), st.integers(1, 4 * 86400))
def test_times_are_counted_as_they_are_listed(trigger: times.Trigger, near: tuple[str, datetime], seconds: int) -> None:
    after = near[1]
    until = after + timedelta(seconds=seconds)
    listed = times.times_between(trigger, after, until, 3000)
    assume(len(listed) < 3000)

    counted = times.count_between(trigger, after, until)

    assert counted == ((len(listed), listed[0], listed[-1]) if listed else (0, None, None))


@MODEST
@given(rule_texts(with_end=False), st.integers(0, 20 * 366))
def test_a_calendar_rule_asked_late_answers_as_dateutil_does_from_its_start(text: str, days: int) -> None:
    trigger = times.read_trigger({"rrule": text, "zone": "UTC"})
    assert isinstance(trigger, times.Rrule)
    after = trigger.first + timedelta(days=days % {"HOURLY": 200, "MINUTELY": 5}.get(trigger.freq, 20 * 366))
    end = after + timedelta(days=20 if trigger.is_elapsed else 500)

    found = times.times_between(trigger, after, end, 10)

    ended = f"RRULE:{text.partition(';')[2]};UNTIL={end:%Y%m%dT%H%M%S}"
    try:
        plain = [moment for moment in dateutil_rrule.rrulestr(ended, dtstart=trigger.start) if moment > naive(after)]
    except ValueError:
        plain = []  # dateutil's word for an interval that never meets the hour
    assert [naive(moment) for moment in found] == plain[:10]
