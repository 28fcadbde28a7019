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
    if rule.freq == "WEEKLY" and "BYSETPOS" in text:
        after += timedelta(days=7)  # dateutil picks from what is left of the first week, RFC 5545 from the whole
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


DAILY = "DTSTART=20260307T023000;FREQ=DAILY"
TWICE = "DTSTART=20261031T013000;FREQ=DAILY"
ENDS: list[tuple[str, dict[str, str], list[str]]] = [
    (f"{DAILY};UNTIL=20260308T023000", {}, ["07T07:30", "08T07:30"]),
    (f"{DAILY};UNTIL=20260308T022959", {}, ["07T07:30"]),
    (f"{DAILY};UNTIL=20260308T072959Z", {}, ["07T07:30"]),
    (f"{DAILY};UNTIL=20260308T073000Z", {}, ["07T07:30", "08T07:30"]),
    (f"{DAILY};UNTIL=20260308T070000Z", {"gap": "after"}, ["07T07:30", "08T07:00"]),
    (f"{DAILY};UNTIL=20260309T023000", {"gap": "skip"}, ["07T07:30", "09T06:30"]),
    (f"{TWICE};UNTIL=20261101T013000", {"repeat": "both"}, ["31T05:30", "01T05:30", "01T06:30"]),
    (f"{TWICE};UNTIL=20261101T013000", {"repeat": "last"}, ["31T05:30", "01T06:30"]),
    (f"{TWICE};UNTIL=20261101T060000Z", {"repeat": "both"}, ["31T05:30", "01T05:30"]),
    (f"{TWICE};UNTIL=20261101", {"repeat": "last"}, ["31T05:30", "01T06:30"]),
    (f"{DAILY};COUNT=2", {"gap": "skip"}, ["07T07:30", "09T06:30"]),
    (f"{TWICE};COUNT=2", {"repeat": "both"}, ["31T05:30", "01T05:30"]),
    (f"{TWICE};COUNT=3", {"repeat": "both"}, ["31T05:30", "01T05:30", "01T06:30"]),
    (f"{DAILY};COUNT=3;EXDATE=20260308T023000", {}, ["07T07:30", "09T06:30"]),
    (f"{DAILY};COUNT=3;EXDATE=20260308T023000", {"gap": "after"}, ["07T07:30", "09T06:30"]),
    (f"{DAILY};COUNT=3;EXDATE=20260308T073000Z", {}, ["07T07:30", "09T06:30"]),
    (f"{DAILY};COUNT=3;EXDATE=20260308T073000Z", {"gap": "after"}, ["07T07:30", "08T07:00", "09T06:30"]),
    (
        f"{DAILY};BYMINUTE=0,30;COUNT=4;EXDATE=20260308T020000",
        {"gap": "after"},
        ["07T07:30", "08T07:00", "09T06:00", "09T06:30"],
    ),
    (f"{DAILY};BYHOUR=2,3;COUNT=4;EXDATE=20260308T023000", {}, ["07T07:30", "07T08:30", "08T07:30", "09T06:30"]),
    (f"{TWICE};COUNT=4;EXDATE=20261101T013000", {"repeat": "both"}, ["31T05:30", "02T06:30"]),
    (f"{TWICE};COUNT=4;EXDATE=20261101T063000Z", {"repeat": "both"}, ["31T05:30", "01T05:30", "02T06:30"]),
    (f"{DAILY};COUNT=1;RDATE=20260308T021500", {}, ["07T07:30", "08T07:15"]),
    (f"{DAILY};COUNT=1;RDATE=20260308T021500", {"gap": "after"}, ["07T07:30", "08T07:00"]),
    (f"{DAILY};COUNT=1;RDATE=20260308T021500", {"gap": "skip"}, ["07T07:30"]),
    (f"{DAILY};COUNT=1;RDATE=20260307T073000Z,20260306T100000Z", {}, ["06T10:00", "07T07:30"]),
    (f"{DAILY};COUNT=1;RDATE=20260309T021500;EXDATE=20260309T061500Z", {}, ["07T07:30"]),
    (f"{DAILY};COUNT=1;RDATE=20260309T021500;EXDATE=20260309T021500", {}, ["07T07:30"]),
    ("DTSTART=20261101T063000Z;FREQ=DAILY;COUNT=2", {}, ["01T06:30", "02T06:30", "03T06:30"]),
    ("DTSTART=20261101T053000Z;FREQ=DAILY;COUNT=2", {}, ["01T05:30", "02T06:30"]),
    ("DTSTART=20261101T063000Z;FREQ=DAILY;BYMINUTE=30,45;COUNT=2", {}, ["01T06:30", "02T06:30", "02T06:45"]),
    ("DTSTART=20261101T003000;FREQ=HOURLY;UNTIL=20261101T013000", {}, ["01T04:30", "01T05:30"]),
    ("DTSTART=20261101T003000;FREQ=HOURLY;UNTIL=20261101T012959", {}, ["01T04:30"]),
    ("DTSTART=20261101T003000;FREQ=HOURLY;UNTIL=20261101T023000", {}, ["01T04:30", "01T05:30", "01T06:30", "01T07:30"]),
    ("DTSTART=20260308T013000;FREQ=HOURLY;UNTIL=20260308T023000", {}, ["08T06:30"]),
    ("DTSTART=20261101T003000;FREQ=HOURLY;COUNT=3;EXDATE=20261101T013000", {}, ["01T04:30", "01T06:30"]),
    ("DTSTART=20261101T003000;FREQ=HOURLY;COUNT=3;EXDATE=20261101T063000Z", {}, ["01T04:30", "01T05:30"]),
    (
        "DTSTART=20261101T003000;FREQ=HOURLY;COUNT=1;RDATE=20261101T004500,20261101T063000Z",
        {},
        ["01T04:30", "01T04:45", "01T06:30"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "dst", "expected"), ENDS)
def test_the_end_and_the_exceptions_of_a_rule_hold_where_clocks_change(
    text: str, dst: dict[str, str], expected: list[str]
) -> None:
    spec = {"rrule": text, "zone": "America/New_York", **({"dst": dst} if dst else {})}
    rule = times.read_trigger(spec)
    before = datetime(2026, 1, 1, tzinfo=UTC)

    found = times.times_between(rule, before, before.replace(year=2027), 9)

    assert [f"{moment:%dT%H:%M}" for moment in found] == expected
    assert times.count_between(rule, before, before.replace(year=2027)) == (len(found), found[0], found[-1])
    assert times.previous_before(rule, before.replace(year=2027)) == found[-1]
    assert times.previous_before(rule, found[0]) is None


def test_the_whole_of_a_day_has_both_copies_of_its_last_hour() -> None:
    spec = {"rrule": "DTSTART=20261024T213000;FREQ=HOURLY;UNTIL=20261024", "zone": "Asia/Beirut"}

    found = times.times_between(
        times.read_trigger(spec), datetime(2026, 10, 24, tzinfo=UTC), datetime.max.replace(tzinfo=UTC), 9
    )

    assert [f"{moment:%dT%H:%M}" for moment in found] == ["24T18:30", "24T19:30", "24T20:30", "24T21:30"]


def test_an_end_at_the_end_of_the_calendar_is_none() -> None:
    rule = read("DTSTART=20260101T000000;FREQ=HOURLY;UNTIL=99991231T235959")

    assert times.next_after(rule, rule.first) == rule.first + timedelta(hours=1)
    assert not rule.has_end


@pytest.mark.parametrize("count", [1, 2, 3, 29, 30, 31, 32, 1000, 1023, 1024, 1025, 2047, 2048, 5000])
def test_a_count_ends_after_just_as_many_times_asked_from_anywhere(count: int) -> None:
    rule = read(f"DTSTART=20000101T090000;FREQ=DAILY;COUNT={count}")
    last = rule.first + timedelta(days=count - 1)

    assert times.previous_before(rule, datetime(2026, 1, 1, tzinfo=UTC)) == last
    assert times.next_after(rule, last - timedelta(seconds=1)) == last
    assert times.next_after(rule, last) is None
    assert times.next_after(rule, last + timedelta(days=3650)) is None
    assert times.count_between(rule, rule.first, last + timedelta(days=3650))[0] == count - 1


@pytest.mark.parametrize("freq", ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_a_count_of_picked_times_ends_after_just_as_many(freq: str, count: int) -> None:
    rule = read(f"DTSTART=20000101T000000;FREQ={freq};BYHOUR=1,2,3;BYSETPOS=1,-1;COUNT={count}")

    found = times.times_between(rule, rule.first, datetime(2026, 1, 1, tzinfo=UTC), 99)

    assert len(found) == count
    assert times.previous_before(rule, datetime(2026, 1, 1, tzinfo=UTC)) == found[-1]
    assert times.count_between(rule, rule.first, datetime(2026, 1, 1, tzinfo=UTC))[0] == count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FREQ=YEARLY;INTERVAL=1000", "3020-01-01T00:00:00"),
        ("FREQ=MONTHLY;INTERVAL=1000", "2103-05-01T00:00:00"),
        ("FREQ=WEEKLY;INTERVAL=1000", "2039-03-02T00:00:00"),
        ("FREQ=DAILY;INTERVAL=1000", "2022-09-27T00:00:00"),
        ("FREQ=HOURLY;INTERVAL=1000", "2020-02-11T16:00:00"),
        ("FREQ=MINUTELY;INTERVAL=1000", "2020-01-01T16:40:00"),
    ],
)
def test_a_long_step_of_a_rule_reaches_its_second_time(text: str, expected: str) -> None:
    rule = read(f"DTSTART=20200101T000000;{text}")
    second = datetime.fromisoformat(expected).replace(tzinfo=UTC)

    assert times.next_after(rule, rule.first) == second
    assert times.previous_before(rule, second) == rule.first


def test_a_long_step_of_a_rule_may_miss_many_times() -> None:
    rule = read("DTSTART=20200229T000000;FREQ=YEARLY;INTERVAL=50;BYMONTH=2;BYMONTHDAY=29")

    # 2070 and 2170 are no leap years.
    assert times.next_after(rule, rule.first) == datetime(2120, 2, 29, tzinfo=UTC)
    assert times.next_after(rule, datetime(2120, 2, 29, tzinfo=UTC)) == datetime(2220, 2, 29, tzinfo=UTC)
    assert times.previous_before(rule, datetime(2120, 2, 29, tzinfo=UTC)) == rule.first


MINUTES = ",".join(map(str, range(60)))


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [
        (f"FREQ=HOURLY;BYMINUTE={MINUTES}", True),
        (f"FREQ=HOURLY;BYMINUTE={MINUTES};BYSECOND=0,30", False),
        (f"FREQ=MINUTELY;BYSECOND={MINUTES}", True),
        (f"FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE={MINUTES}", True),
        (f"FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12;BYMINUTE={MINUTES};BYSECOND=0,30", False),
    ],
)
def test_a_rule_has_at_most_a_time_for_each_minute(text: str, is_fine: bool) -> None:
    rule = f"DTSTART=20200101T000000;{text}"

    if is_fine:
        assert times.next_after(read(rule), datetime(2020, 1, 1, tzinfo=UTC)) is not None
    else:
        with pytest.raises(times.TriggerError, match="too many"):
            read(rule)


@pytest.mark.parametrize("interval", [2, 3, 5, 8, 31])
@pytest.mark.parametrize(("freq", "days"), [("DAILY", 1), ("WEEKLY", 7)])
def test_days_and_weeks_are_as_far_apart_as_is_said(freq: str, days: int, interval: int) -> None:
    rule = read(f"DTSTART=20260101T090000;FREQ={freq};INTERVAL={interval}")
    expected = [rule.first + k * timedelta(days=days * interval) for k in range(120)]

    assert times.times_between(rule, rule.first - timedelta(days=99), expected[-1], 999) == expected
    assert [times.previous_before(rule, later) for later in expected[1:]] == expected[:-1]
    assert times.count_between(rule, rule.first, expected[-1])[0] == 119


def test_the_first_and_the_last_weekday_of_a_year_may_be_its_first_and_last_day() -> None:
    rule = read("DTSTART=20200101T000000;FREQ=YEARLY;BYDAY=1TH,-1TH")

    found = times.times_between(rule, datetime(2025, 12, 31, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), 9)

    assert [f"{moment:%m-%d}" for moment in found] == ["01-01", "12-31"]


@pytest.mark.parametrize(("week_start", "last"), [("MO", 6), ("SU", 5), ("TH", 2)])
def test_the_last_day_of_a_week_depends_on_its_first(week_start: str, last: int) -> None:
    rule = read(f"DTSTART=20260101T000000;FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=-1;WKST={week_start}")

    found = times.times_between(rule, rule.first, rule.first + timedelta(days=100), 99)

    assert {moment.weekday() for moment in found} == {last}
    assert len(found) in (14, 15)
    assert [times.previous_before(rule, later) for later in found[1:]] == found[:-1]


def test_a_place_in_the_first_week_counts_from_the_beginning_of_that_week() -> None:
    rule = read("DTSTART=20000502T000000;FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1")

    assert times.next_after(rule, rule.first - timedelta(days=1)) == datetime(2000, 5, 8, tzinfo=UTC)


BOUNDS = {
    "BYSETPOS": (-366, 366),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 59),
    "INTERVAL": (1, 1000),
    "COUNT": (1, 10_000),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_part_of_a_rule_takes_what_lies_between_its_bounds(name: str) -> None:
    low, high = BOUNDS[name]

    for number in (low, high, *((-1, 1) if low < 0 else ())):
        read(f"DTSTART=20200101T000000;FREQ=YEARLY;BYDAY=MO;{name}={number}")
    for number in (low - 1, high + 1, *((0,) if low < 0 else ())):
        with pytest.raises(times.TriggerError, match=name):
            read(f"DTSTART=20200101T000000;FREQ=YEARLY;BYDAY=MO;{name}={number}")


def test_a_place_in_a_year_may_lie_in_its_first_and_last_month() -> None:
    rule = read("DTSTART=20200101T000000;FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1")

    found = times.times_between(rule, datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC), 9)

    assert [f"{moment:%Y-%m-%d}" for moment in found] == ["2026-12-31", "2027-01-01"]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("", " on, UTC"),
        (";UNTIL=20210101", "with an end"),
        (";UNTIL=20210101T000000Z", "with an end"),
        (";COUNT=3", "3 times"),
    ],
)
def test_the_end_of_a_rule_is_told_in_words(end: str, words: str) -> None:
    assert words in times.describe(read(f"DTSTART=20200101T000000;FREQ=DAILY{end}"))
    assert words in times.describe(read(f"DTSTART=20200101T000000;FREQ=HOURLY{end}")).replace("elapsed time", "UTC")
