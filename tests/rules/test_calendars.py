"""Calendars as people write them, and in words."""

from __future__ import annotations

from datetime import date

import pytest

from oncue.definition import Calendar
from oncue.rules import calendar_words
from oncue.rules.calendar_text import read_calendar, read_dates, write_calendar

CHRISTMAS = date(2026, 12, 25)
EVENT = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
DTSTART;VALUE=DATE:20261225
DTEND;VALUE=DATE:20261227
SUMMARY:Christ
 mas\\, both days
DESCRIPTION:an RRULE:FREQ=DAILY in a text is none
BEGIN:VALARM
SUMMARY:a bell
RRULE:FREQ=DAILY
END:VALARM
END:VEVENT
END:VCALENDAR
"""


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"weekdays": "mon-fri"}, "mon-fri"),
        ({"weekdays": "mon-wed, fri"}, "mon-wed, fri"),
        ({"weekdays": ["sun", "sat"]}, "sat-sun"),
        ({"weekdays": "tue,thu"}, "tue, thu"),
        ({"dates": ["2026-12-25"]}, "1 date"),
        ({"dates": {"2026-12-25": "Christmas", "2026-12-26": ""}}, "2 dates"),
        ({"weekdays": "mon-fri", "dates": ["2026-12-26"], "except": ["2026-12-25"]}, "mon-fri, 1 date, except 1 date"),
    ],
)
def test_a_calendar_is_read_said_in_words_and_written_back(table: dict[str, object], words: str) -> None:
    calendar = read_calendar("days", table)

    assert calendar_words.describe_calendar(calendar) == words
    assert read_calendar("days", write_calendar(calendar)) == calendar


@pytest.mark.parametrize(
    ("name", "table", "says"),
    [
        ("Days", {"weekdays": "mon"}, "is not a calendar's name"),
        ("a b", {"weekdays": "mon"}, "is not a calendar's name"),
        ("days", {}, "it names no day"),
        ("days", {"weekdays": "fri-mon"}, "runs backwards"),
        ("days", {"weekdays": "funday"}, "is no weekday"),
        ("days", {"dates": ["2026-02-30"]}, "is not a date"),
        ("days", {"dates": "2026-02-03"}, "is not a list of dates"),
        ("days", {"dates": {"2026-02-03": "x" * 201}}, "201 characters"),
        ("days", {"dates": [date.fromordinal(n).isoformat() for n in range(1, 10_002)]}, "10,001 dates"),
        ("days", {"weekdays": "mon", "known_until": "soon"}, "is not a date"),
        ("days", {"weekday": "mon"}, 'Did you mean "weekdays"'),
    ],
)
def test_what_is_no_calendar_is_refused_with_a_sentence(name: str, table: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_calendar(name, table)


def test_lines_of_dates_are_read_with_their_names() -> None:
    text = (
        "# bank holidays\n2026-12-25, Christmas\n\n2026-12-26;Boxing Day  # and a remark\n2026-12-25 Yule\n2027-01-01\n"
    )

    assert read_dates(text) == {
        CHRISTMAS: "Christmas; Yule",
        date(2026, 12, 26): "Boxing Day",
        date(2027, 1, 1): "",
    }


def test_events_of_an_icalendar_are_read_day_by_day() -> None:
    both = "Christmas, both days"

    assert read_dates(EVENT) == {CHRISTMAS: both, date(2026, 12, 26): both}
    assert read_dates(EVENT.replace("\n", "\r\n")) == read_dates(EVENT)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-12-25\nsoon after\n", 'line 2: "soon" is not a date'),
        ("# nothing\n", "it holds no day"),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR\n", "it holds no day"),
        (EVENT.replace("20261225", "Christmas"), 'line 3: the event "Christmas, both days" has no day'),
        (EVENT.replace("DESCRIPTION:an RRULE", "RRULE"), "line 3: .* repeats by a rule"),
        (EVENT.replace("20261227", "20661227"), "more than 10,000 days"),
        ("\n".join(date.fromordinal(700_000 + n).isoformat() for n in range(10_001)), "more than 10,000 days"),
    ],
)
def test_a_file_that_cannot_be_read_names_its_line(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_dates(text)


@pytest.mark.parametrize(
    ("day", "says"),
    [
        ("2026-12-25", "2026-12-25, a Friday, is in work: Christmas."),
        ("2026-12-26", "2026-12-26, a Saturday, is in work: it is one of its dates."),
        ("2026-12-28", "2026-12-28, a Monday, is not in work: it is one of its exceptions."),
        ("2026-12-29", "2026-12-29, a Tuesday, is in work: it holds mon-fri."),
        ("2026-12-27", "2026-12-27, a Sunday, is not in work."),
        ("2027-01-02", "2027-01-02, a Saturday, is not in work, which is known until 2026-12-31 only."),
    ],
)
def test_a_day_is_explained(day: str, says: str) -> None:
    dates = {CHRISTMAS: "Christmas", date(2026, 12, 26): ""}
    week = ("mon", "tue", "wed", "thu", "fri")
    calendar = Calendar("work", week, dates, (date(2026, 12, 28),), date(2026, 12, 31))

    assert calendar_words.explain_day(calendar, date.fromisoformat(day)) == says


def test_what_a_new_calendar_changes_is_told_day_by_day() -> None:
    old = Calendar("days", (), {CHRISTMAS: "Xmas", date(2026, 1, 1): "New Year"}, (), date(2026, 12, 31))
    new = Calendar(
        "days",
        ("sat",),
        {CHRISTMAS: "Christmas", date(2027, 1, 1): "New Year"},
        (date(2026, 5, 2),),
        date(2027, 12, 31),
    )

    assert calendar_words.day_changes(old, new) == [
        "~ weekdays: none → sat",
        "- 2026-01-01 Thu  New Year",
        "~ 2026-12-25 Fri  Xmas → Christmas",
        "+ 2027-01-01 Fri  New Year",
        "+ except 2026-05-02 Sat",
        "~ known until: 2026-12-31 → 2027-12-31",
    ]
    assert calendar_words.day_changes(old, old) == []
    assert calendar_words.day_changes(None, old)[0] == "+ 2026-01-01 Thu  New Year"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "holidays 0.109 --country FR --subdivision 'Zone A'",
            "calendars import days --country FR --subdivision 'Zone A'",
        ),
        ("holidays 0.109 --exchange XNYS", "oncue calendars import days --exchange XNYS"),
        ("file gr.ics", "import a file with more years: oncue calendars import days --file FILE"),
        ("", "write more days, and a later known_until, where [calendar.days] is written"),
    ],
)
def test_how_to_carry_a_calendar_on_depends_on_where_it_came_from(source: str, says: str) -> None:
    assert says in calendar_words.how_to_continue(Calendar("days", source=source))
