"""Composed schedules by table: each can be checked with a calendar in the hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import islice, takewhile
from typing import Any

import pytest

from oncue.definition import Calendar, Override
from oncue.rules import times
from oncue.rules.triggers import search

TICK = timedelta(microseconds=1)
ATHENS = "Europe/Athens"
NEW_YORK = "America/New_York"
WEEK = ("mon", "tue", "wed", "thu", "fri")
CALENDARS = {
    "weekdays": Calendar("weekdays", WEEK),
    "holidays": Calendar(
        "holidays",
        dates={date(2026, 12, 25): "Christmas Day", date(2026, 12, 26): "Boxing Day", date(2027, 1, 1): ""},
        known_until=date(2027, 12, 31),
    ),
    "open": Calendar("open", WEEK, without=(date(2026, 12, 25), date(2027, 1, 1))),
    "quarter-days": Calendar("quarter-days", dates={date(2026, 12, 31): "", date(2027, 3, 31): ""}),
    "saturdays-of-2036": Calendar("saturdays-of-2036", dates={date(2036, 11, 22): ""}),
    "week-and-a-saturday": Calendar("week-and-a-saturday", WEEK, dates={date(2036, 11, 22): ""}),
    "past": Calendar("past", dates={date(2020, 1, 1): ""}),
    "sundays": Calendar("sundays", ("sun",)),
}


def read(spec: Mapping[str, Any], *overrides: Override) -> times.Trigger:
    created = datetime(2026, 1, 1, tzinfo=UTC)
    return times.read_trigger(spec, anchor=created, calendars=CALENDARS, overrides=overrides)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def after(trigger: times.Trigger, text: str, count: int) -> list[str]:
    """Return the next times as the clock shows them: `12-24 09:00` of the year that is asked for."""
    found = times.times_between(trigger, utc(text), utc("9000-01-01T00:00Z"), count)
    assert found == before(trigger, found)
    for moment in found:
        assert times.next_after(trigger, moment - TICK) == moment
        assert times.previous_before(trigger, moment + TICK) == moment
    if found:
        assert times.tally_between(trigger, utc(text), found[-1]) == times.Tally(len(found), found[0], found[-1])
        assert times.tally_between(trigger, utc(text), found[0] - TICK) == times.Tally(0, None, None)
    return [f"{moment.astimezone(trigger.zone):%m-%d %H:%M}" for moment in found]


def before(trigger: times.Trigger, expected: list[datetime]) -> list[datetime]:
    """Return as many times, found from behind."""
    found: list[datetime] = []
    moment: datetime | None = expected[-1] + TICK if expected else None
    while moment is not None and len(found) < len(expected):
        moment = times.previous_before(trigger, moment)
        found[:0] = [moment] if moment else []
    return found


@pytest.mark.parametrize(
    ("spec", "start", "expected"),
    [
        pytest.param(
            {"cron": "0 9 * * *", "only_on": "open"},
            "2026-12-23T12:00Z",
            ["12-24 09:00", "12-28 09:00", "12-29 09:00", "12-30 09:00", "12-31 09:00", "01-04 09:00"],
            id="business days over Christmas",
        ),
        pytest.param(
            {"cron": "0 9 25,26 * *", "only_on": "open", "move": "next"},
            "2026-12-01T00:00Z",
            ["12-28 09:00", "01-25 09:00", "01-26 09:00", "02-25 09:00"],
            id="two days of Christmas move onto one Monday",
        ),
        pytest.param(
            {"cron": "0 9 25,26 * *", "only_on": "open", "move": "previous"},
            "2026-12-01T00:00Z",
            ["12-24 09:00", "01-25 09:00", "01-26 09:00", "02-25 09:00"],
            id="and onto the Thursday before",
        ),
        pytest.param(
            {"cron": "0 9 25 * *", "except_on": ["holidays", "sundays"], "move": "next"},
            "2026-12-01T00:00Z",
            ["12-28 09:00", "01-25 09:00"],
            id="Friday's holiday, Saturday's holiday and Sunday are passed over",
        ),
        pytest.param(
            {"cron": "0 18 L * *", "only_on": "weekdays", "move": "previous"},
            "2026-12-01T00:00Z",
            ["12-31 18:00", "01-29 18:00", "02-26 18:00", "03-31 18:00", "04-30 18:00"],
            id="the last business day of the month",
        ),
        pytest.param(
            {"any": [{"cron": "0 9 * * mon-fri"}, {"cron": "0 11 * * sat"}, {"cron": "0 9 * * wed,thu"}]},
            "2026-12-03T00:00Z",
            ["12-03 09:00", "12-04 09:00", "12-05 11:00", "12-07 09:00"],
            id="weekdays at nine and Saturday at eleven, each time once",
        ),
        pytest.param(
            {"cron": "0 9 * * mon-fri", "except": [{"cron": "0 9 * * mon#1"}]},
            "2026-12-04T00:00Z",
            ["12-04 09:00", "12-08 09:00", "12-09 09:00"],
            id="except the first Monday",
        ),
        pytest.param(
            {
                "cron": "0 9 * * mon-fri",
                "except": [{"rrule": "DTSTART=20260105T090000;FREQ=MONTHLY;BYDAY=1MO"}, {"at": "2026-12-08T09:00:00"}],
                "zone": ATHENS,
            },
            "2026-12-04T00:00Z",
            ["12-04 09:00", "12-09 09:00", "12-10 09:00"],
            id="except by a calendar rule and one moment",
        ),
        pytest.param(
            {"cron": "0 9 * * *", "except": [{"cron": "1 9 * * *"}, {"cron": "0 9 * * *", "zone": ATHENS}]},
            "2026-12-04T00:00Z",
            ["12-04 09:00", "12-05 09:00"],
            id="an exclusion names instants, not days",
        ),
        pytest.param(
            {"cron": "0 9 24,25 * *", "only_on": "open", "move": "next", "except": [{"cron": "0 9 25 * *"}]},
            "2026-12-01T00:00Z",
            ["12-24 09:00", "02-24 09:00"],
            id="what is excluded is not moved",
        ),
        pytest.param(
            {"cron": "0 9 26 * *", "only_on": "open", "move": "next", "except": [{"cron": "0 9 28 * *"}]},
            "2026-12-01T00:00Z",
            ["01-26 09:00", "02-26 09:00"],
            id="what is moved onto an excluded moment is no time",
        ),
        pytest.param(
            {"cron": "0 3 * * *", "only_on": "quarter-days", "move": "next"},
            "2026-12-01T00:00Z",
            ["12-31 03:00", "03-31 03:00"],
            id="a quarter's times move to its end as one",
        ),
        pytest.param(
            {"cron": "0 3 * * *", "only_on": "past", "move": "previous"},
            "2019-12-31T00:00Z",
            ["01-01 03:00"],
            id="all the times after the last allowed day move back to it",
        ),
        pytest.param(
            {"cron": "0 9 * * sat", "only_on": ["saturdays-of-2036"]},
            "2026-12-01T00:00Z",
            ["11-22 09:00"],
            id="one Saturday in ten years",
        ),
        pytest.param(
            {"every": "P1D", "start": "2026-12-24T10:30:00", "end": "2026-12-26T10:30:00", "zone": ATHENS},
            "2026-01-01T00:00Z",
            ["12-24 10:30", "12-25 10:30", "12-26 10:30"],
            id="a step counts from the start, and both bounds belong to it",
        ),
        pytest.param(
            {"every": "P1D", "anchor": "2026-12-01T08:00:00", "start": "2026-12-24", "end": "2026-12-25"},
            "2026-01-01T00:00Z",
            ["12-24 08:00", "12-25 08:00"],
            id="but from its anchor where it has one",
        ),
        pytest.param(
            {"cron": "0 0,12 * * *", "start": date(2026, 12, 24), "end": date(2026, 12, 24), "zone": ATHENS},
            "2026-01-01T00:00Z",
            ["12-24 00:00", "12-24 12:00"],
            id="a date is a whole day",
        ),
        pytest.param(
            {"cron": "0 * * * *", "start": "2018-11-04", "end": "2018-11-04T02:00:00", "zone": "America/Sao_Paulo"},
            "2018-01-01T00:00Z",
            ["11-04 01:00", "11-04 02:00"],
            id="a day without a midnight starts at one",
        ),
        pytest.param(
            {"cron": "30 * * * *", "end": "2018-02-17", "start": "2018-02-17T22:00:00", "zone": "America/Sao_Paulo"},
            "2018-01-01T00:00Z",
            ["02-17 22:30", "02-17 23:30", "02-17 23:30"],
            id="a day whose last hour comes twice ends with the second",
        ),
        pytest.param(
            {"cron": "30 2 * * *", "zone": NEW_YORK, "only_on": "weekdays", "start": "2026-03-07", "move": "next"},
            "2026-03-06T12:00Z",
            ["03-09 02:30", "03-10 02:30"],
            id="a Sunday's time that the clocks skip moves with its own wall time",
        ),
        pytest.param(
            {"cron": "30 2 * * fri", "zone": NEW_YORK, "only_on": "sundays", "move": "next"},
            "2026-03-05T12:00Z",
            ["03-08 03:00", "03-15 02:30"],
            id="moved into a gap it is placed as the cron would be",
        ),
        pytest.param(
            {"every": "P7D", "anchor": "2026-03-06T02:30:00", "zone": NEW_YORK, "only_on": "sundays", "move": "next"},
            "2026-03-05T12:00Z",
            ["03-08 03:30", "03-15 02:30"],
            id="and as the step would be",
        ),
        pytest.param(
            {"cron": "30 23 * * sat", "zone": "America/Nuuk", "only_on": "sundays"},
            "2024-03-01T00:00Z",
            ["03-31 00:00", "03-30 00:00"],
            id="where the clocks skip midnight, Saturday's time is on Sunday",
        ),
        pytest.param(
            {"cron": "30 23 * * sat,sun", "zone": "America/Nuuk", "except_on": "sundays"},
            "2024-03-22T00:00Z",
            ["03-23 23:30", "04-06 23:30"],
            id="and where Sunday is not allowed it is none",
        ),
        pytest.param(
            {"every": "PT12H", "anchor": "2026-03-06T12:00:00Z", "only_on": "weekdays", "move": "next"},
            "2026-03-06T00:00Z",
            ["03-06 12:00", "03-09 00:00", "03-09 12:00", "03-10 00:00"],
            id="elapsed steps move by the wall too",
        ),
        pytest.param(
            {"rrule": "DTSTART=20260131T090000;FREQ=MONTHLY;BYMONTHDAY=-1", "only_on": "weekdays", "move": "next"},
            "2026-01-01T00:00Z",
            ["02-02 09:00", "03-02 09:00", "03-31 09:00"],
            id="a calendar rule moves into the next month",
        ),
        pytest.param(
            {"at": "2026-12-25T09:00:00", "zone": ATHENS, "except_on": "holidays", "move": "next"},
            "2026-01-01T00:00Z",
            ["12-27 09:00"],
            id="one moment moves",
        ),
        pytest.param(
            {
                "any": [{"cron": "0 1 * * *", "zone": "Asia/Tokyo"}],
                "zone": "UTC",
                "only_on": "weekdays",
                "move": "next",
            },
            "2026-12-04T00:00Z",
            ["12-04 16:00", "12-07 16:00", "12-08 16:00"],
            id="the schedule's zone says what day it is, the part's zone what time",
        ),
        pytest.param(
            {"cron": "30 23 * * sat", "zone": "America/Nuuk", "except_on": "sundays", "move": "next"},
            "2024-03-22T00:00Z",
            ["03-23 23:30", "04-01 23:30", "04-06 23:30"],
            id="but moves to Monday with its wall time",
        ),
        pytest.param(
            {"cron": "0 3 * * sat", "only_on": "past", "move": "previous"},
            "2019-06-01T00:00Z",
            ["01-01 03:00"],
            id="times behind the last allowed day move back to it",
        ),
        pytest.param(
            {"cron": "0 3 * * sat", "only_on": "past", "move": "next"},
            "2019-06-01T00:00Z",
            ["01-01 03:00"],
            id="times before the first allowed day move on to it",
        ),
        pytest.param(
            {"cron": "0 9 * * sat", "only_on": "weekdays", "move": "next", "start": "2026-12-06"},
            "2026-12-01T00:00Z",
            ["12-14 09:00", "12-21 09:00"],
            id="a time before the start is not moved past it",
        ),
        pytest.param(
            {"cron": "0 9 * * sun", "only_on": "weekdays", "move": "previous", "end": "2026-12-05"},
            "2026-11-21T00:00Z",
            ["11-27 09:00"],
            id="a time after the end is not moved before it",
        ),
        pytest.param(
            {"every": "PT18H", "anchor": "2026-03-06T12:00:00Z", "only_on": "weekdays", "move": "next"},
            "2026-03-06T00:00Z",
            ["03-06 12:00", "03-09 00:00", "03-09 06:00", "03-09 12:00", "03-09 18:00", "03-10 06:00"],
            id="each of a weekend's elapsed steps moves",
        ),
        pytest.param(
            {"any": [{"cron": "0 1 * * mon,tue", "zone": "Asia/Tokyo"}], "only_on": "sundays"},
            "2026-12-04T00:00Z",
            ["12-06 16:00", "12-13 16:00"],
            id="Monday's time in Tokyo is Sunday's in UTC",
        ),
    ],
)
def test_times_of_a_composed_schedule(spec: dict[str, Any], start: str, expected: list[str]) -> None:
    assert after(read(spec), start, len(expected)) == expected


@pytest.mark.parametrize(
    "spec",
    [
        {"cron": "0 9 * * sat", "only_on": "week-and-a-saturday"},
        {"cron": "* * * * * *", "only_on": "saturdays-of-2036"},
        {"every": "P7D", "anchor": "2026-01-03T09:00:00Z", "only_on": "week-and-a-saturday"},
        {"every": "P1M", "anchor": "2026-01-22T09:00:00Z", "only_on": "saturdays-of-2036"},
        {"rrule": "DTSTART=20260103T090000;FREQ=WEEKLY;BYDAY=SA", "only_on": "week-and-a-saturday"},
        {
            "any": [{"cron": "0 9 * * sat"}, {"every": "1m", "anchor": "2026-01-03T09:00:00Z"}],
            "only_on": "saturdays-of-2036",
        },
    ],
)
def test_a_search_goes_past_few_times_that_are_on_no_allowed_day(spec: dict[str, Any]) -> None:
    trigger = read({**spec, "zone": ATHENS})
    assert isinstance(trigger, times.Timetable)
    ahead = list(islice(search.named(trigger, trigger.days, search.AHEAD, utc("2026-12-01T00:00Z")), 8))
    back = list(islice(search.named(trigger, trigger.days, search.BACK, utc("2046-12-01T00:00Z")), 8))

    for steps in (ahead, back):
        passed = list(takewhile(lambda step: not step[1], steps))
        assert len(passed) <= len(trigger.parts)
        assert steps[len(passed)][0].astimezone(trigger.zone).date() == date(2036, 11, 22)


def test_a_schedule_of_one_kind_is_that_kind() -> None:
    plain = {"cron": "0 9 * * *", "zone": ATHENS, "jitter": "5m", "spread": "1m", "max_runs": 3}

    assert isinstance(read(plain), times.Cron)
    assert isinstance(read({**plain, "only_on": "open"}), times.Timetable)
    assert isinstance(read(plain, Override(utc("2026-12-24T07:00Z"))), times.Timetable)


def test_a_part_takes_zone_and_dst_from_its_schedule_and_may_have_its_own() -> None:
    parts = [
        {"cron": "30 2 * * *"},
        {"cron": "30 2 * * *", "zone": "UTC"},
        {"cron": "45 2 * * *", "dst": {"gap": "after"}},
    ]
    trigger = read({"any": parts, "zone": NEW_YORK, "dst": {"gap": "skip"}})

    assert after(trigger, "2026-03-07T22:00-05:00", 4) == ["03-08 03:00", "03-08 22:30", "03-09 02:30", "03-09 02:45"]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([Override(utc("2026-12-24T07:00Z"))], ["12-23 09:00", "12-25 09:00", "12-26 09:00"]),
        (
            [Override(utc("2026-12-24T07:00Z"), utc("2026-12-24T20:00Z"))],
            ["12-23 09:00", "12-24 22:00", "12-25 09:00"],
        ),
        ([Override(utc("2026-12-24T07:30Z"), utc("2026-12-24T20:00Z"))], ["12-23 09:00", "12-24 09:00", "12-25 09:00"]),
        ([Override(utc("2026-12-24T07:00Z"), utc("2026-12-25T07:00Z"))], ["12-23 09:00", "12-25 09:00", "12-26 09:00"]),
        (
            [Override(utc("2026-12-24T07:00Z"), utc("2026-12-25T07:00Z")), Override(utc("2026-12-25T07:00Z"))],
            ["12-23 09:00", "12-25 09:00", "12-26 09:00"],
        ),
        (
            [Override(utc("2026-12-24T07:00Z")), Override(utc("2026-12-24T07:00Z"), utc("2026-12-24T20:00Z"))],
            ["12-23 09:00", "12-24 22:00", "12-25 09:00"],
        ),
        ([Override(utc("2026-12-26T07:00Z"), utc("2026-12-24T01:00Z"))], ["12-23 09:00", "12-24 03:00", "12-24 09:00"]),
    ],
    ids=["skip", "move", "void", "onto another", "onto one that is skipped", "the last word counts", "to before"],
)
def test_changes_by_hand(overrides: list[Override], expected: list[str]) -> None:
    trigger = read({"cron": "0 9 * * *", "zone": ATHENS}, *overrides)

    assert after(trigger, "2026-12-23T00:00Z", 3) == expected


def test_a_time_may_be_moved_by_hand_past_the_end_and_onto_a_holiday() -> None:
    spec = {"cron": "0 9 * * *", "end": "2026-12-24", "except_on": "holidays"}
    trigger = read(spec, Override(utc("2026-12-24T09:00Z"), utc("2026-12-25T10:00Z")))

    assert after(trigger, "2026-12-23T00:00Z", 9) == ["12-23 09:00", "12-25 10:00"]
    assert after(trigger, "2026-12-25T00:00Z", 9) == ["12-25 10:00"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"cron": "0 9 * * *", "zone": ATHENS, "only_on": "open", "move": "next", "start": "2026-01-01"},
            "At 09:00, every day, Europe/Athens time, only on open, moved to the next such day; from 2026-01-01.",
        ),
        (
            {"cron": "0 9 * * *", "except_on": ["holidays", "sundays"], "start": "2026-01-01", "end": "2026-12-31"},
            "At 09:00, every day, UTC time, not on holidays and sundays; from 2026-01-01 until 2026-12-31.",
        ),
        (
            {"any": [{"cron": "0 9 * * *"}, {"every": "P1D", "anchor": "2026-01-01T11:00:00Z"}], "only_on": "open"},
            "At 09:00, every day, UTC time; or every day, UTC time, counted from 2026-01-01 11:00:00+00:00, "
            "only on open.",
        ),
        (
            {"cron": "0 9 * * *", "except": [{"cron": "0 9 1 * *"}], "end": "2026-12-31T12:00:00"},
            "At 09:00, every day, UTC time; except at 09:00, on day 1 of the month, UTC time; "
            "until 2026-12-31 12:00:00+00:00.",
        ),
    ],
)
def test_a_composed_schedule_in_words(spec: dict[str, Any], expected: str) -> None:
    assert times.describe(read(spec)) == expected


def test_notes_say_what_moved_a_time() -> None:
    spec = {"cron": "30 9 24,26 * *", "only_on": "open", "move": "next", "zone": ATHENS}
    by_hand = Override(utc("2026-12-24T07:30Z"), utc("2026-12-24T12:00Z"), "the office closes")
    trigger = read(spec, by_hand)

    assert (
        times.note_of(trigger, utc("2026-12-24T12:00Z"))
        == "moved by hand from Thu 2026-12-24 09:30 (the office closes)"
    )
    assert times.note_of(trigger, utc("2026-12-28T07:30Z")) == "moved from Sat 2026-12-26 by its calendar"
    assert times.note_of(trigger, utc("2027-01-26T07:30Z")) is None
    clocks = read({"cron": "30 2 * * *", "zone": NEW_YORK, "only_on": "sundays"})
    assert times.note_of(clocks, utc("2026-03-08T07:00Z")) == "moved from 02:30"
    assert times.describe(trigger).endswith("; with 1 change by hand.")


def test_what_is_taken_out_is_told_with_its_reason() -> None:
    spec = {"cron": "0 9 * * *", "except_on": "holidays", "except": [{"cron": "0 9 * * mon"}]}
    trigger = read(spec, Override(utc("2026-12-29T09:00Z"), None, "strike"), Override(utc("2026-12-30T09:00Z")))
    one_day = (utc("2026-12-24T12:00Z"), utc("2026-12-25T12:00Z"))

    found = times.dropped_between(trigger, utc("2026-12-24T09:00Z"), utc("2026-12-31T08:59Z"))

    assert [(d.count, f"{d.first:%d %H}", f"{d.last:%d %H}", d.reason) for d in found] == [
        (2, "25 09", "26 09", "left out by its calendar: not on holidays"),
        (1, "28 09", "28 09", "excluded by except"),
        (2, "29 09", "30 09", "skipped by hand"),
    ]
    assert [d.reason for d in times.dropped_between(trigger, *one_day)] == [
        "left out by its calendar: 2026-12-25 is Christmas Day in holidays"
    ]
    assert [d.reason for d in times.dropped_between(trigger, utc("2026-12-29T00:00Z"), utc("2026-12-29T09:00Z"))] == [
        "skipped by hand: strike"
    ]
    until_then = times.dropped_between(trigger, utc("2026-12-24T12:00Z"), utc("2026-12-25T09:00Z"))
    assert [(d.count, d.first, d.last) for d in until_then] == [(1, utc("2026-12-25T09:00Z"), utc("2026-12-25T09:00Z"))]
    within = {**spec, "start": "2026-12-26", "end": "2026-12-27"}
    found = times.dropped_between(read(within), utc("2026-12-24T00:00Z"), utc("2027-01-31T00:00Z"))
    assert [(d.count, d.first) for d in found] == [(1, utc("2026-12-26T09:00Z"))]
    assert times.dropped_between(read({**spec, "move": "next"}), *one_day) == []
    assert times.dropped_between(read({"cron": "0 9 * * *"}), *one_day) == []


def test_what_is_taken_out_of_several_triggers_is_told_as_one() -> None:
    parts = [{"cron": "0 9 * * *"}, {"cron": "0,30 9 * * fri"}, {"every": "P1D", "anchor": "2026-12-01T10:00:00Z"}]
    gone = [{"cron": "30 9 * * *"}, {"cron": "0 10 12 * *"}, {"cron": "0 9 10-12 * *"}]
    trigger = read({"any": parts, "except": gone, "only_on": "open"})

    found = times.dropped_between(trigger, utc("2026-12-09T09:30Z"), utc("2026-12-18T09:29Z"))

    assert [(d.count, f"{d.first:%d %H:%M}", f"{d.last:%d %H:%M}", d.is_exact) for d in found] == [
        (4, "12 09:00", "13 10:00", True),
        (3, "10 09:00", "11 09:30", True),
    ]
    assert times.tally_between(trigger, utc("2026-12-09T09:30Z"), utc("2026-12-18T09:29Z")).count == 12


def test_the_year_of_seconds_is_counted_without_a_walk() -> None:
    start, end = utc("2026-01-01T00:00Z") - timedelta(seconds=1), utc("2026-12-31T23:59:59Z")
    seconds = {"cron": "* * * * * *", "only_on": "weekdays", "except": [{"cron": "* * 9 * * *"}]}

    tally = times.tally_between(read(seconds), start, end)

    assert tally == times.Tally(261 * 23 * 3600, utc("2026-01-01T00:00Z"), end)
    assert times.count_between(read(seconds), start, end) == (tally.count, tally.first, tally.last)
    (by_days, by_hours) = times.dropped_between(read(seconds), start, end)
    assert (by_days.count, by_hours.count) == (104 * 86400, 261 * 3600)
    assert by_days.is_exact
    assert by_hours.is_exact


def test_dense_and_sparse_triggers_are_counted_together() -> None:
    start, end = utc("2026-01-01T00:00Z") - timedelta(seconds=1), utc("2026-12-31T23:59:59Z")
    halves = {"every": "P1D", "anchor": "2026-01-01T09:00:00.5Z"}
    parts = [{"cron": "0 9 * * *"}, {"cron": "* * * * * *"}, halves, {"at": "2026-05-01T12:00:00Z"}]

    tally = times.tally_between(read({"any": parts}), start, end)

    assert tally == times.Tally(365 * 86400 + 365, utc("2026-01-01T00:00Z"), end)


@pytest.mark.parametrize(
    ("zone", "calendar", "start", "end", "expected"),
    [
        ("America/Sao_Paulo", "sundays", "2018-02-17T00:00Z", "2018-02-20T00:00Z", 24),
        ("America/Sao_Paulo", "sundays", "2018-11-03T00:00Z", "2018-11-06T00:00Z", 23),
        ("America/Sao_Paulo", "weekdays", "2018-02-16T12:00Z", "2018-02-19T12:00Z", 23),
        ("America/New_York", "sundays", "2026-03-07T00:00Z", "2026-03-10T00:00Z", 23),
        ("America/New_York", "sundays", "2026-10-31T00:00Z", "2026-11-03T00:00Z", 25),
        ("Pacific/Apia", "weekdays", "2011-12-29T10:00Z", "2012-01-02T09:59Z", 48),
    ],
)
def test_hours_of_a_calendar_are_counted_by_what_the_clock_shows(
    zone: str, calendar: str, start: str, end: str, expected: int
) -> None:
    trigger = read({"cron": "30 * * * *", "zone": zone, "only_on": calendar})

    assert times.tally_between(trigger, utc(start), utc(end)).count == expected
    assert len(times.times_between(trigger, utc(start), utc(end), 999)) == expected


def test_a_count_that_would_take_too_long_is_a_lower_bound_and_says_so() -> None:
    start, end = utc("2026-01-01T00:00Z") - timedelta(seconds=1), utc("2026-12-31T23:59:59Z")
    spec = {"cron": "* * * * * *", "except": [{"every": "2s", "anchor": "2026-01-01T00:00:00Z"}]}

    tally = times.tally_between(read(spec), start, end)

    assert tally == times.Tally(365 * 43200, utc("2026-01-01T00:00:01Z"), end, is_exact=False)
    (dropped,) = times.dropped_between(read(spec), start, end)
    assert not dropped.is_exact
    assert 1000 < dropped.count <= 365 * 43200
    both = {"any": [{"every": "1s", "anchor": "2026-01-01T00:00:00Z"}, {"cron": "* * * * * *"}]}
    assert times.tally_between(read(both), start, end) == times.Tally(
        365 * 86400, start + timedelta(seconds=1), end, False
    )


@pytest.mark.parametrize(
    ("spec", "start", "expected"),
    [
        (
            {"cron": "* * * * *", "except": [{"cron": "* * * * sun"}]},
            "2026-12-05T23:59Z",
            ["12-07 00:00", "12-07 00:01"],
        ),
        (
            {"cron": "* * * * *", "except": [{"cron": "* 1-22 * * *"}]},
            "2026-12-05T00:59Z",
            ["12-05 23:00", "12-05 23:01"],
        ),
        ({"cron": "* * * * * *", "except": [{"cron": "* 1-58 * * * *"}]}, "2026-12-05T00:00:59Z", ["12-05 00:59"]),
        ({"every": "5m", "except": [{"cron": "* * * 1-11 *"}]}, "2026-01-05T00:00Z", ["12-01 00:00", "12-01 00:05"]),
        ({"cron": "*/5 * * * *", "except": [{"cron": "* * 2-31 * *"}]}, "2026-12-01T23:55Z", ["01-01 00:00"]),
        (
            {"cron": "0 9 * * *", "except": [{"cron": "0 9 * 1-11 *"}]},
            "2026-01-01T00:00Z",
            ["12-01 09:00", "12-02 09:00"],
        ),
        (
            {"any": [{"cron": "* * * * *"}, {"cron": "30 9 * * * *"}], "except": [{"cron": "* * * * sun"}]},
            "2026-12-05T23:59Z",
            ["12-06 00:09", "12-06 01:09"],
        ),
        (
            {"every": "90s", "anchor": "2026-12-05T23:58:30Z", "except": [{"cron": "* * * * sun"}]},
            "2026-12-05T23:59Z",
            ["12-06 00:01", "12-06 00:04"],
        ),
        (
            {"cron": "*/30 * * * *", "zone": NEW_YORK, "except": [{"cron": "*/30 * * * sun"}, {"cron": "0 1 2 11 *"}]},
            "2026-11-01T03:30Z",
            ["11-02 00:00", "11-02 00:30", "11-02 01:30"],
        ),
        (
            {"cron": "30 2 * * *", "zone": NEW_YORK, "except": [{"cron": "15,30 * * 3 *"}]},
            "2026-02-28T12:00Z",
            ["03-08 03:00", "04-01 02:30"],
        ),
        (
            {"cron": "*/30 * * * *", "zone": NEW_YORK, "except": [{"cron": "0,30 0-23 * 11 *"}]},
            "2026-11-01T03:30Z",
            ["11-01 01:00", "11-01 01:30", "12-01 00:00"],
        ),
    ],
)
def test_long_exclusions_of_dense_schedules_are_leapt_over(
    spec: dict[str, Any], start: str, expected: list[str]
) -> None:
    assert after(read(spec), start, len(expected)) == expected


def test_an_exclusion_that_leaves_nothing_for_long_is_an_error_with_a_sentence() -> None:
    trigger = read({"cron": "0 9 * * *", "except": [{"every": "P1D", "anchor": "2026-01-01T09:00:00Z"}]})

    with pytest.raises(times.TriggerError, match="except: it takes away more than 500 times in a row from 2026-01-01"):
        times.next_after(trigger, utc("2026-01-01T00:00Z"))


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ({"cron": "0 9 * * sat", "only_on": "weekdays"}, "no time in the next 13 years: its calendar allows no day"),
        ({"at": "2026-12-25T09:00:00Z", "except_on": "holidays"}, "no time in the next 13 years: its calendar"),
        ({"cron": "0 9 * * *", "except": [{"cron": "0 9 * * *"}]}, "except: it leaves no time"),
        ({"any": [{"cron": "0 9 * * *"}, {"cron": "0 9 30 2 *"}]}, "has no time in the 13 years after"),
        (
            {"cron": "0 9 1 1 *", "start": "2026-01-01", "except": [{"rrule": "DTSTART=20200101T090000;FREQ=YEARLY"}]},
            "except: it leaves no time",
        ),
    ],
)
def test_a_composition_that_can_never_fire_is_refused(spec: dict[str, Any], match: str) -> None:
    with pytest.raises(times.TriggerError, match=match):
        times.check(read(spec), utc("2026-11-29T00:00Z"))


@pytest.mark.parametrize(
    "spec",
    [
        {"cron": "0 9 * * *", "only_on": "past"},
        {"cron": "0 9 * * *", "end": "2025-12-31"},
        {"at": "2026-10-25T09:00:00Z", "except_on": "holidays"},
        {"cron": "0 9 * * *", "start": "2060-01-01", "only_on": "weekdays"},
        {"cron": "0 9 * * sat", "only_on": "weekdays", "move": "next"},
    ],
)
def test_a_composition_that_has_merely_ended_or_starts_late_is_not_refused(spec: dict[str, Any]) -> None:
    times.check(read(spec), utc("2026-11-29T00:00Z"))


def test_what_lint_asks_a_trigger() -> None:
    spec = {"any": [{"cron": "0 9 * * *"}, {"every": "1h"}], "only_on": "open", "except_on": "holidays"}
    trigger = read({**spec, "start": "2026-01-01T00:00Z", "end": "2026-12-31"})

    assert times.kind_of(trigger) == "any"
    assert times.kind_of(read({"every": "1h", "only_on": "open"})) == "every"
    assert times.kind_of(read({"rrule": "FREQ=DAILY"})) == "rrule"
    assert [calendar.name for calendar in times.calendars_of(trigger)] == ["open", "holidays"]
    assert times.starts_at(trigger) == utc("2026-01-01T00:00Z")
    assert times.ends_at(trigger) == utc("2027-01-01T00:00Z") - timedelta(microseconds=1)
    plain = read({"cron": "0 9 * * *"})
    assert (times.starts_at(plain), times.ends_at(plain), times.calendars_of(plain)) == (None, None, ())
