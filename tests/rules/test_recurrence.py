"""Calendar rules beside dateutil, beside ISO's weeks, and beside a walk through elapsed minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from dateutil import rrule as dateutil_rrule
from hypothesis import assume, given
from hypothesis import strategies as st

from oncue.rules import times
from tests.rules import oracle
from tests.rules.drawing import moments_near_changes, rule_texts, thorough

MOST = 300


def naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def read(text: str, zone: str = "UTC") -> times.Rrule:
    trigger = times.read_trigger({"rrule": text, "zone": zone})
    assert isinstance(trigger, times.Rrule)
    return trigger


@thorough(250)
@given(rule_texts(is_plain=True), st.integers(0, 20 * 366))
def test_a_calendar_rule_asked_late_answers_as_dateutil_does_from_its_start(text: str, days: int) -> None:
    rule = read(text)
    after = rule.first + timedelta(days=days % {"HOURLY": 200, "MINUTELY": 5}.get(rule.freq, 20 * 366))
    end = after + timedelta(days={"HOURLY": 20, "MINUTELY": 2}.get(rule.freq, 1500))

    found = times.times_between(rule, after, end, 20)
    # dateutil goes on to the year 9999 where a place or an interval is never met.
    assume(found or not any(part in text for part in ("BYSETPOS", "INTERVAL", "BYYEARDAY")))

    plain = as_dateutil(text, rule.start, after, end)
    assert [naive(moment) for moment in found] == plain[:20]
    if len(plain) < MOST:
        assert times.count_between(rule, after, end)[0] == len(plain)
    for earlier, later in pairwise(plain[:20]):
        assert times.previous_before(rule, later.replace(tzinfo=UTC)) == earlier.replace(tzinfo=UTC)


def as_dateutil(text: str, start: datetime, after: datetime, end: datetime) -> list[datetime]:
    ended = f"RRULE:{text.partition(';')[2]};UNTIL={end:%Y%m%dT%H%M%S}"
    try:
        rule = dateutil_rrule.rrulestr(ended, dtstart=start)
        return list(islice((moment for moment in rule if moment > naive(after)), MOST))
    except ValueError:
        return []  # dateutil's word for an interval that never meets the hour


@pytest.mark.parametrize("week", [1, 2, 20, 51, 52, 53, -1, -2, -52, -53])
def test_numbered_weeks_are_those_of_the_iso_calendar(week: int) -> None:
    rule = read(f"DTSTART=19700101T000000;FREQ=YEARLY;BYWEEKNO={week}")
    day, expected = datetime(1970, 1, 1, tzinfo=UTC), []
    while day.year < 2040:
        year, number, _ = day.isocalendar()
        weeks = datetime(year, 12, 28, tzinfo=UTC).isocalendar().week
        if week in (number, number - weeks - 1):
            expected.append(day)
        day += timedelta(days=1)

    assert times.times_between(rule, rule.first - timedelta(days=1), day - timedelta(seconds=1), 9999) == expected


def test_weekdays_with_and_without_a_number_stand_side_by_side() -> None:
    rule = read("DTSTART=20260101T000000;FREQ=MONTHLY;BYDAY=1MO,-1SU,FR")

    found = times.times_between(rule, rule.first, rule.first + timedelta(days=32), 99)

    assert [moment.day for moment in found] == [2, 5, 9, 16, 23, 25, 30, 2]


def test_seconds_without_minutes_keep_the_minute_of_the_start() -> None:
    rule = read("DTSTART=20260101T001510;FREQ=HOURLY;BYSECOND=0,30")

    found = times.times_between(rule, rule.first, rule.first + timedelta(hours=1), 9)

    assert [f"{moment:%H:%M:%S}" for moment in found] == ["00:15:30", "01:15:00"]


@thorough(120)
@given(rule_texts(("HOURLY", "MINUTELY"), is_plain=True), moments_near_changes(), st.integers(0, 9))
def test_hours_and_minutes_go_on_in_elapsed_time_in_every_zone(
    text: str, near: tuple[str, datetime], days: int
) -> None:
    zone, change = near
    begin = f"DTSTART={change - timedelta(days=days):%Y%m%dT%H%M%SZ}"
    rule = read(f"{begin};{text.partition(';')[2]}", zone)
    after, until = change - timedelta(hours=5), change + timedelta(hours=20)
    # Where an offset has seconds in it, minutes of the clock are no minutes since the start.
    offsets = [moment.astimezone(ZoneInfo(zone)).utcoffset() for moment in (rule.first, after, until)]
    assume(all(offset is not None and offset.seconds % 60 == 0 for offset in offsets))

    expected = paced(rule, ZoneInfo(zone), after, until)

    assert times.times_between(rule, after, until, 99_999) == expected
    assert times.count_between(rule, after, until)[0] == len(expected)
    for earlier, later in pairwise(expected[:50]):
        assert times.previous_before(rule, later) == earlier


def paced(rule: times.Rrule, zone: ZoneInfo, after: datetime, until: datetime) -> list[datetime]:
    """Walk through elapsed minutes, and keep those in step whose wall time has all BY parts."""
    parts = dict(part.split("=") for part in rule.text.split(";"))
    chosen = {
        name: {int(item) for item in text.split(",")}
        for name, text in parts.items()
        if name.startswith("BY") and name != "BYDAY"
    }
    base = rule.first.replace(second=0) - timedelta(minutes=rule.start.minute if rule.freq == "HOURLY" else 0)
    unit = timedelta(hours=1) if rule.freq == "HOURLY" else oracle.MINUTE
    found = []
    for instant, wall in oracle.clock(zone, after, until, before=oracle.MINUTE):
        length = ((wall.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day
        fits = (
            (instant - base) // unit % rule.interval == 0
            and wall.month in chosen.get("BYMONTH", {wall.month})
            and bool({wall.day, wall.day - length - 1} & chosen.get("BYMONTHDAY", {wall.day}))
            and wall.hour in chosen.get("BYHOUR", {wall.hour})
            and wall.minute in chosen.get("BYMINUTE", {wall.minute})
            and f"{wall:%a}"[:2].upper() in parts.get("BYDAY", f"{wall:%a}"[:2].upper()).split(",")
        )
        if rule.freq == "HOURLY" and "BYMINUTE" not in chosen:
            fits = fits and (instant - base) % unit == timedelta(minutes=rule.start.minute)
        if fits:
            seconds = sorted(chosen.get("BYSECOND", {rule.start.second}))
            found += [instant + timedelta(seconds=second) for second in seconds]
    return [moment for moment in found if max(after, rule.first - timedelta(seconds=1)) < moment <= until]
