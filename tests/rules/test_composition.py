"""What a schedule table may say, and the sentence for each thing that it may not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from oncue.definition import Calendar
from oncue.rules import times
from tests.rules.test_timetable import CALENDARS, read

NINE = {"cron": "0 9 * * *"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "schedule: it says nothing. Write exactly one of cron, every, at, rrule, or any for several."),
        (
            {**NINE, "any": [NINE]},
            "schedule: it has both cron and any. Write exactly one of cron, every, at, rrule, or any for several.",
        ),
        ({**NINE, "onlyon": "open"}, 'schedule: there is no key "onlyon". Did you mean "only_on"?'),
        ({**NINE, "excpet": []}, 'schedule: there is no key "excpet". Did you mean "except"?'),
        ({"any": []}, 'any: it is not a list of triggers. Write any = [{ cron = "0 9 * * sat" }].'),
        ({"any": NINE}, 'any: it is not a list of triggers. Write any = [{ cron = "0 9 * * sat" }].'),
        ({"any": [NINE] * 21}, "any: it has 21 triggers. Write at most 20."),
        (
            {"any": [NINE, "0 9 * * *"]},
            "any: in part 2, '0 9 * * *' is not a table. Write it as { cron = \"0 9 * * sat\" }.",
        ),
        (
            {"any": [NINE, {"cron": "0 9 * *"}]},
            'any: in part 2, cron: "0 9 * *" has 4 fields. Write five (minute hour day month weekday), '
            "or six with the second first.",
        ),
        ({"any": [{**NINE, "start": "2026-01-01"}]}, 'any: in part 1, schedule: there is no key "start".'),
        ({"any": [{"any": [NINE]}]}, 'any: in part 1, schedule: there is no key "any".'),
        ({**NINE, "except": []}, 'except: it is not a list of triggers. Write except = [{ cron = "0 9 * * sat" }].'),
        ({**NINE, "except": [{}]}, "except: in part 1, schedule: it says nothing."),
        ({**NINE, "only_on": ""}, "only_on: '' names no calendar. Write only_on = \"business-days\", or a list."),
        ({**NINE, "only_on": []}, 'only_on: [] names no calendar. Write only_on = "business-days", or a list.'),
        ({**NINE, "except_on": 3}, 'except_on: 3 names no calendar. Write except_on = "business-days", or a list.'),
        ({**NINE, "except_on": ["open"] * 21}, "except_on: it names 21 calendars. Write at most 20."),
        (
            {**NINE, "only_on": "trading"},
            'only_on: there is no calendar "trading". Known calendars: holidays, open, past, quarter-days, '
            "saturdays-of-2036, sundays, week-and-a-saturday, weekdays. Write [calendar.trading] in the task file, "
            "or import one: oncue calendars import trading --country GR.",
        ),
        ({**NINE, "move": "next"}, "move: there is no calendar to move by."),
        ({**NINE, "only_on": "open", "move": "nearest"}, "move: 'nearest' is not a way to move."),
        (
            {"cron": "*/59 * * * *", "only_on": "open", "move": "next"},
            "move: the schedule can be due more than 24 times",
        ),
        ({"cron": "0 0 * * * *", "any": []}, "schedule: it has both cron and any."),
        ({"every": "59m", "only_on": "open", "move": "next"}, "move: the schedule can be due more than 24 times"),
        (
            {"rrule": "FREQ=HOURLY", "only_on": "open", "move": "next"},
            "move: the schedule can be due more than 24 times",
        ),
        (
            {
                "rrule": "FREQ=DAILY;BYMINUTE=0,30;BYHOUR=1,2,3,4,5,6,7,8,9,10,11,12,13",
                "only_on": "open",
                "move": "next",
            },
            "move: the schedule can be due more than 24 times",
        ),
        (
            {"any": [{"every": "1h"}, NINE], "only_on": "open", "move": "next"},
            "move: the schedule can be due more than 24 times",
        ),
        (
            {**NINE, "start": "2026-12-31", "end": "2026-01-01"},
            "end: 2026-01-01 is before the start, 2026-12-31. Write a later end.",
        ),
        ({**NINE, "start": "soon"}, 'start: "soon" is not a time from 1900 to 9000.'),
        ({**NINE, "end": 3}, "end: 3 is not text. Write it in quotes."),
        ({**NINE, "end": " "}, "end: it is empty."),
        ({**NINE, "zone": 3}, "zone: 3 is not text."),
        ({**NINE, "anchor": "2026-01-01T00:00:00Z"}, "anchor: cron has no anchor. Leave it out."),
        ({"any": [{**NINE, "anchor": "2026-01-01T00:00:00Z"}]}, "any: in part 1, anchor: cron has no anchor."),
    ],
)
def test_what_is_written_badly_is_refused_with_a_sentence(spec: dict[str, Any], expected: str) -> None:
    with pytest.raises(times.TriggerError) as error:
        read(spec)

    assert str(error.value).startswith(expected)


@pytest.mark.parametrize(
    "spec",
    [
        {"cron": "0 * * * *", "only_on": "open", "move": "next"},
        {"every": "1h", "only_on": "open", "move": "previous"},
        {"every": "PT23H", "except_on": "open", "move": "next"},
        {"any": [{"cron": "0 0-22 * * *"}, NINE], "only_on": ["open", "weekdays"], "move": "next"},
        {"rrule": "FREQ=DAILY;BYMINUTE=0,30;BYHOUR=1,2,3,4,5,6,7,8,9,10,11,12", "only_on": "open", "move": "next"},
        {**NINE, "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"},
        {**NINE, "start": date(2026, 1, 1), "end": datetime(2026, 1, 1, 12, tzinfo=UTC)},
        {"any": [NINE] * 20, "except": [NINE] * 20},
        {"rrule": "FREQ=DAILY", "start": "2026-01-01T09:00:00"},
    ],
)
def test_what_is_just_allowed_is_read(spec: dict[str, Any]) -> None:
    assert isinstance(read(spec), times.Timetable)


def test_steps_of_elapsed_time_do_not_take_the_dst_of_their_schedule() -> None:
    parts = [{"every": "1h", "anchor": "2026-01-01T00:00:00Z"}, {"cron": "30 2 * * *"}, {"every": "P1D"}]
    trigger = read({"any": parts, "dst": {"gap": "skip"}})

    assert isinstance(trigger, times.Timetable)
    assert [part.placing.gap for part in trigger.parts] == ["skip", "skip", "skip"]
    assert [part.placing.repeat for part in trigger.parts] == ["both", "first", "first"]
    with pytest.raises(times.TriggerError, match="any: in part 1, dst: every"):
        read({"any": [{**parts[0], "dst": {"gap": "skip"}}]})


def test_the_names_of_calendars_are_told_without_the_calendars() -> None:
    spec = {**NINE, "only_on": ["open", "weekdays"], "except_on": "holidays"}

    assert times.calendar_names(spec) == ("open", "weekdays", "holidays")
    assert times.calendar_names({**spec, "except_on": "open"}) == ("open", "weekdays")
    assert times.calendar_names(NINE) == ()


def test_a_calendar_that_names_no_weekday_of_ours_is_refused() -> None:
    calendars = {**CALENDARS, "odd": Calendar("odd", ("monday",))}

    with pytest.raises(times.TriggerError, match='calendar: odd has the weekday "monday"'):
        times.read_trigger({**NINE, "only_on": "odd"}, calendars=calendars)


def test_a_schedule_says_that_no_calendar_is_known() -> None:
    with pytest.raises(times.TriggerError, match="Known calendars: none"):
        times.read_trigger({**NINE, "only_on": "odd"})
