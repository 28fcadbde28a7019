"""Triggers in a task file's form: spellings, refusals, anchors, counts, and words for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from oncue.cli import app
from oncue.rules import identity, times

ANCHOR = datetime(2026, 1, 31, 9, tzinfo=UTC)


def texts(found: list[datetime]) -> list[str]:
    return [identity.time_text(moment) for moment in found]


def next_texts(spec: dict[str, object], after: datetime = ANCHOR, count: int = 3) -> list[str]:
    trigger = times.read_trigger(spec, anchor=ANCHOR)
    return texts(times.times_between(trigger, after, after + timedelta(days=20_000), count))


STEPS = {
    "5m": timedelta(minutes=5),
    "90s": timedelta(seconds=90),
    "1h30m": timedelta(hours=1, minutes=30),
    "PT5M": timedelta(minutes=5),
    "PT1.5S": timedelta(seconds=1.5),
    "pt1h": timedelta(hours=1),
    "1d": timedelta(days=1),
    "2w": timedelta(days=14),
    "P1W": timedelta(days=7),
    "P1DT12H": timedelta(days=1, hours=12),
}


@pytest.mark.parametrize("text", STEPS)
def test_a_step_without_an_anchor_counts_from_the_one_that_is_given(text: str) -> None:
    assert next_texts({"every": text}) == texts([ANCHOR + k * STEPS[text] for k in (1, 2, 3)])


def test_months_are_counted_from_the_anchor_and_clamped_to_the_end_of_the_month() -> None:
    spec = {"every": "P1M", "anchor": "2024-01-31T12:00:00", "zone": "Europe/Athens"}

    found = next_texts(spec, datetime(2024, 1, 31, 10, tzinfo=UTC), 3)

    assert found == ["2024-02-29T10:00:00Z", "2024-03-31T09:00:00Z", "2024-04-30T09:00:00Z"]


def test_a_day_in_short_follows_the_wall_and_24_hours_do_not() -> None:
    spec = {"zone": "Europe/Athens", "anchor": "2026-03-28T09:00:00"}
    after = datetime(2026, 3, 28, 12, tzinfo=UTC)

    assert next_texts({**spec, "every": "1d"}, after, 1) == ["2026-03-29T06:00:00Z"]
    assert next_texts({**spec, "every": "24h"}, after, 1) == ["2026-03-29T07:00:00Z"]


def test_the_anchor_itself_is_the_first_time_of_a_step() -> None:
    assert next_texts({"every": "P1D"}, ANCHOR - timedelta(days=9), 2) == [
        "2026-01-31T09:00:00Z",
        "2026-02-01T09:00:00Z",
    ]


def test_years_and_weeks_are_as_long_as_they_are() -> None:
    assert next_texts({"every": "P1Y"}, count=2) == ["2027-01-31T09:00:00Z", "2028-01-31T09:00:00Z"]
    assert next_texts({"every": "P1Y1M"}, count=2) == ["2027-02-28T09:00:00Z", "2028-03-31T09:00:00Z"]
    assert next_texts({"every": "P2W3D"}, count=2) == ["2026-02-17T09:00:00Z", "2026-03-06T09:00:00Z"]


@pytest.mark.parametrize("step", ["P1D", "P1M", "5m"])
def test_no_time_of_a_step_is_earlier_than_its_anchor(step: str) -> None:
    trigger = times.read_trigger({"every": step}, anchor=ANCHOR)

    assert times.previous_before(trigger, ANCHOR) is None
    assert times.previous_before(trigger, ANCHOR - timedelta(days=9)) is None
    assert times.previous_before(trigger, ANCHOR + timedelta(microseconds=1)) == ANCHOR
    assert times.next_after(trigger, ANCHOR - timedelta(microseconds=1)) == ANCHOR


def test_a_toml_time_is_taken_as_it_is() -> None:
    spec = {"at": datetime(2026, 3, 8, 2, 30), "zone": "America/New_York"}  # noqa: DTZ001 - as TOML gives it

    assert next_texts(spec) == ["2026-03-08T07:30:00Z"]


def test_a_local_time_between_two_copies_is_not_given_out_again() -> None:
    trigger = times.read_trigger({"at": "2025-11-02T01:30:00", "zone": "America/New_York"})

    assert times.next_after(trigger, datetime(2025, 11, 2, 5, 45, tzinfo=UTC)) is None
    assert times.previous_before(trigger, datetime(2025, 11, 2, 5, 45, tzinfo=UTC)) == datetime(
        2025, 11, 2, 5, 30, tzinfo=UTC
    )


RULES = {
    "RRULE:DTSTART=20260101T090000;FREQ=DAILY;COUNT=33": ["2026-02-01T09:00:00Z", "2026-02-02T09:00:00Z"],
    "dtstart=2026-02-01T09:00:00Z;freq=daily;count=1": ["2026-02-01T09:00:00Z"],
    "FREQ=DAILY;COUNT=2": ["2026-02-01T09:00:00Z"],
    "DTSTART=20260201T090000;FREQ=DAILY;UNTIL=20260202": ["2026-02-01T09:00:00Z", "2026-02-02T09:00:00Z"],
    "DTSTART=20260201T090000;FREQ=DAILY;UNTIL=20260202T080000": ["2026-02-01T09:00:00Z"],
    "DTSTART=20260201T090000;FREQ=DAILY;COUNT=3;EXDATE=20260202T090000": [
        "2026-02-01T09:00:00Z",
        "2026-02-03T09:00:00Z",
    ],
    "DTSTART=20260201T090000;FREQ=YEARLY;UNTIL=99991231T235959Z;RDATE=20260205T100000,20260203T100000Z": [
        "2026-02-01T09:00:00Z",
        "2026-02-03T10:00:00Z",
        "2026-02-05T10:00:00Z",
    ],
    "DTSTART=20260201T090000;FREQ=YEARLY;INTERVAL=100": ["2026-02-01T09:00:00Z"],
    "DTSTART=20200229T090000;FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU": [
        "2032-02-29T09:00:00Z",
        "2060-02-29T09:00:00Z",
    ],
    "DTSTART=20260101T000000;FREQ=MONTHLY;BYDAY=-1FR,2MO": ["2026-02-09T00:00:00Z", "2026-02-27T00:00:00Z"],
    "DTSTART=20251228T000000;FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=SU,SA": [
        "2026-02-08T00:00:00Z",
        "2026-02-14T00:00:00Z",
    ],
    "DTSTART=20251228T000000;FREQ=WEEKLY;INTERVAL=2;WKST=MO;BYDAY=SU,SA": [
        "2026-02-07T00:00:00Z",
        "2026-02-08T00:00:00Z",
    ],
    "DTSTART=20260101T001500;FREQ=HOURLY;INTERVAL=6;BYDAY=MO": ["2026-02-02T00:15:00Z", "2026-02-02T06:15:00Z"],
    "DTSTART=20260101T001500;FREQ=HOURLY;BYHOUR=9;BYMINUTE=5,10": ["2026-01-31T09:05:00Z", "2026-01-31T09:10:00Z"],
}


@pytest.mark.parametrize("text", RULES)
def test_a_calendar_rule_means_these_times(text: str) -> None:
    assert next_texts({"rrule": text}, count=len(RULES[text]) + 1)[: len(RULES[text])] == RULES[text]


def test_a_count_of_a_calendar_rule_includes_what_is_excluded() -> None:
    rule = "DTSTART=20260201T090000;FREQ=DAILY;COUNT=3;EXDATE=20260202T090000"

    assert len(next_texts({"rrule": rule}, count=9)) == 2


def test_an_hourly_rule_with_hours_follows_the_wall_in_them() -> None:
    spec = {"rrule": "DTSTART=20260301T000000;FREQ=HOURLY;BYHOUR=2,3", "zone": "America/New_York"}

    found = next_texts(spec, datetime(2026, 3, 7, 12, tzinfo=UTC))

    assert found == ["2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z", "2026-03-09T07:00:00Z"]


def test_a_moved_time_of_a_calendar_rule_stays_in_order() -> None:
    spec = {"rrule": "DTSTART=20260301T000000;FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30", "zone": "America/New_York"}

    found = next_texts(spec, datetime(2026, 3, 8, 6, tzinfo=UTC))

    assert found == ["2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z", "2026-03-09T06:00:00Z"]


def test_a_day_that_a_zone_dropped_is_not_made_up_for() -> None:
    after, zone = datetime(2011, 12, 29, 22, tzinfo=UTC), "Pacific/Apia"
    expected = ["2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"]

    assert next_texts({"cron": "0 9 * * *", "zone": zone}, after, 2) == expected
    assert next_texts({"every": "P1D", "anchor": "2011-12-01T09:00:00", "zone": zone}, after, 2) == expected
    assert next_texts({"rrule": "DTSTART=20111201T090000;FREQ=DAILY", "zone": zone}, after, 2) == expected
    assert next_texts({"cron": "0 9 30 12 *", "zone": zone}, after, 1) == ["2012-12-29T19:00:00Z"]
    assert next_texts({"rrule": "DTSTART=20101230T090000;FREQ=YEARLY", "zone": zone}, after, 1) == [
        "2012-12-29T19:00:00Z"
    ]


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "nothing": ({}, "Write exactly one of cron, every, at, rrule"),
    "both kinds": ({"cron": "* * * * *", "every": "5m"}, "both cron and every"),
    "unknown key": ({"corn": "* * * * *"}, 'Did you mean "cron"?'),
    "unknown zone": ({"cron": "* * * * *", "zone": "Europe/Athen"}, 'Did you mean "Europe/Athens"?'),
    "zone by its city": ({"cron": "* * * * *", "zone": "mars"}, "Write an IANA name"),
    "zone of the host": ({"cron": "* * * * *", "zone": "localtime"}, 'no time zone "localtime"'),
    "zone outside": ({"cron": "* * * * *", "zone": "../../etc/passwd"}, "no time zone"),
    "empty zone": ({"cron": "* * * * *", "zone": ""}, "no time zone"),
    "zone as a number": ({"cron": "* * * * *", "zone": 2}, "is not text"),
    "cron as a number": ({"cron": 5}, "Write it in quotes"),
    "anchor of a cron": ({"cron": "* * * * *", "anchor": "2026-01-01T00:00:00Z"}, "cron has no anchor"),
    "at without offset": ({"at": "2026-01-01T00:00:00"}, "no offset and no zone"),
    "at in words": ({"at": "tomorrow", "zone": "UTC"}, '"tomorrow" is not a time'),
    "at far away": ({"at": "9999-12-31T23:59:59-12:00"}, "from 1900 to 9000"),
    "every in words": ({"every": "five minutes"}, "is not a duration"),
    "every zero": ({"every": "0m"}, "between one second"),
    "every half second": ({"every": "PT0.5S"}, "between one second"),
    "every eternity": ({"every": "P9999Y"}, "a hundred years"),
    "every without unit": ({"every": "5"}, "is not a duration"),
    "every nothing": ({"every": "P"}, "is not a duration"),
    "every without anchor": ({"every": "5m"}, "nothing to count from"),
    "every counted": ({"every": "R5/2026-01-01T00:00:00Z/PT5M"}, "Write R/<anchor>/<duration>"),
    "every with a bad anchor": ({"every": "R/soon/PT5M"}, '"soon" is not a time'),
    "rule without start": ({"rrule": "FREQ=DAILY"}, "DTSTART is missing"),
    "rule without frequency": ({"rrule": "DTSTART=20260101T000000"}, "Write one of YEARLY"),
    "rule of seconds": ({"rrule": "DTSTART=20260101T000000;FREQ=SECONDLY"}, 'every = "PT30S"'),
    "rule with a typo": ({"rrule": "DTSTART=20260101T000000;FREQ=DAILY;BYMONTHS=1"}, "Did you mean BYMONTH?"),
    "rule with a part twice": ({"rrule": "DTSTART=20260101T000000;FREQ=DAILY;FREQ=DAILY"}, "twice"),
    "rule with a bad day": ({"rrule": "DTSTART=20260101T000000;FREQ=DAILY;BYDAY=XX"}, "2MO or -1FR"),
    "rule with a bad place": ({"rrule": "DTSTART=20260101T000000;FREQ=WEEKLY;BYDAY=2MO"}, "counts within a month"),
    "rule out of range": ({"rrule": "DTSTART=20260101T000000;FREQ=DAILY;BYHOUR=24"}, "from 0 to 23"),
    "rule with only places": ({"rrule": "DTSTART=20260101T000000;FREQ=MONTHLY;BYSETPOS=1"}, "stands alone"),
    "rule with a bad end": ({"rrule": "DTSTART=20260101T000000;FREQ=DAILY;UNTIL=later"}, 'UNTIL "LATER"'),
    "rule excluding a day": ({"rrule": "DTSTART=20260101T000000;FREQ=DAILY;EXDATE=20260101"}, "has no time"),
    "rule counted too far": ({"rrule": "DTSTART=20260101T000000;FREQ=DAILY;COUNT=1000000"}, "from 1 to 10000"),
    "rule too dense": (
        {"rrule": "DTSTART=20260101T000000;FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE="
         + ",".join(map(str, range(60))) + ";BYSECOND=0,30"},
        "too many",
    ),
}  # fmt: skip


@pytest.mark.parametrize("spec", REFUSED)
def test_a_wrong_schedule_is_refused_with_the_place_and_the_remedy(spec: str) -> None:
    wrong, words = REFUSED[spec]
    with pytest.raises(times.TriggerError) as refusal:
        times.read_trigger(wrong)

    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=3;BYSETPOS=3",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;INTERVAL=2;BYHOUR=1",
    ],
)
def test_a_calendar_rule_that_can_never_match_is_refused_by_check_and_answers_none(rule: str) -> None:
    trigger = times.read_trigger({"rrule": f"DTSTART=20220101T000000;{rule}"})

    with pytest.raises(times.TriggerError, match="names no time"):
        times.check(trigger, ANCHOR)
    assert times.next_after(trigger, ANCHOR) is None
    assert times.previous_before(trigger, ANCHOR) is None


@pytest.mark.parametrize(
    "spec",
    [{"at": "2020-01-01T00:00:00Z"}, {"rrule": "DTSTART=20200101T000000;FREQ=DAILY;UNTIL=20210101T000000Z"}],
)
def test_a_schedule_that_has_merely_ended_is_not_refused(spec: dict[str, object]) -> None:
    trigger = times.read_trigger(spec)

    times.check(trigger, ANCHOR)

    assert times.next_after(trigger, ANCHOR) is None


@pytest.mark.parametrize(
    ("spec", "count"),
    [({"every": "1s"}, 31_536_000), ({"cron": "* * * * * *"}, 31_536_000), ({"cron": "*/5 9-17 * * *"}, 39_420)],
)
def test_a_year_of_missed_times_is_counted_without_listing_them(spec: dict[str, object], count: int) -> None:
    trigger = times.read_trigger({**spec, "zone": "Europe/Athens"}, anchor=ANCHOR)

    counted, first, last = times.count_between(trigger, ANCHOR, ANCHOR + timedelta(days=365))

    assert counted == count
    assert first is not None
    assert first == times.next_after(trigger, ANCHOR)
    assert last == times.previous_before(trigger, ANCHOR + timedelta(days=365, microseconds=1))


def test_a_moment_of_any_offset_is_answered_in_utc() -> None:
    trigger = times.read_trigger({"cron": "0 9 * * *", "zone": "Europe/Athens"})

    found = times.next_after(trigger, datetime.fromisoformat("2026-03-28T12:00:00.5+05:30"))

    assert found == datetime(2026, 3, 28, 7, tzinfo=UTC)
    assert found is not None
    assert found.tzinfo is UTC


@pytest.mark.parametrize("spec", [{"cron": "@daily"}, {"every": "P1M"}, {"rrule": "FREQ=YEARLY"}])
def test_the_end_of_the_calendar_is_the_end_of_the_times(spec: dict[str, object]) -> None:
    trigger = times.read_trigger(spec, anchor=ANCHOR)
    end = datetime.max.replace(tzinfo=UTC)

    assert times.next_after(trigger, end - timedelta(days=3)) is None
    assert times.times_between(trigger, end - timedelta(days=3), end, 3) == []


WORDS = [
    ({"cron": "0 9 * * mon-fri"}, "At 09:00, on Monday to Friday, Europe/Athens time."),
    ({"cron": "0 2 29 2 0"}, "At 02:00, on day 29 of the month or on Sunday in February, Europe/Athens time."),
    ({"cron": "0 9 */2 * 1"}, "if it is Monday"),
    ({"cron": "*/5 9-17 * * *"}, "Every 5 minutes, in hours 9 to 17, every day, Europe/Athens time."),
    ({"cron": "*/35 * * * *"}, "At minutes 0 and 35 of every hour, Europe/Athens time."),
    ({"cron": "* * * * * *"}, "Every second, Europe/Athens time."),
    ({"cron": "0 9 LW * *"}, "on the last workday of the month"),
    ({"cron": "0 9 * * 5#3,sun"}, "on Sunday or the third Friday of the month"),
    ({"every": "90m"}, "Every 1 hour and 30 minutes, elapsed time, counted from 2026-01-31 11:00:00+02:00."),
    ({"every": "P1D"}, "Every day, Europe/Athens time, counted from 2026-01-31 11:00:00+02:00."),
    ({"at": "2026-03-08T02:30:00"}, "Once, at 2026-03-08 02:30:00+02:00, Europe/Athens time."),
    ({"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;COUNT=5"}, "every 2 weeks (BYDAY=MO) from 2026-01-31 11:00:00 on, 5 t"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "words"), WORDS)
def test_a_trigger_is_described_in_words(spec: dict[str, object], words: str) -> None:
    trigger = times.read_trigger({**spec, "zone": "Europe/Athens"}, anchor=ANCHOR)

    assert words in times.describe(trigger)


NOTES: list[tuple[dict[str, object], str, str | None]] = [
    ({"cron": "30 2 * * *"}, "2026-03-08T07:00:00Z", "moved from 02:30"),
    ({"cron": "0,30 2 * * *"}, "2026-03-08T07:00:00Z", "moved from 02:00, 02:30"),
    ({"cron": "30 2 * * *"}, "2026-03-09T06:30:00Z", None),
    ({"cron": "0 * * * *"}, "2026-03-08T07:00:00Z", None),
    ({"cron": "30 1 * * *"}, "2026-11-01T05:30:00Z", "first of two"),
    ({"cron": "*/30 * * * *"}, "2026-11-01T06:30:00Z", "second of two"),
    ({"at": "2026-03-08T02:30:00"}, "2026-03-08T07:30:00Z", "moved from 02:30"),
    ({"at": "2026-03-08T03:30:00-04:00"}, "2026-03-08T07:30:00Z", None),
    ({"every": "P1D", "anchor": "2026-03-01T02:30:00"}, "2026-03-08T07:30:00Z", "moved from 02:30"),
    ({"every": "PT24H", "anchor": "2026-03-01T02:30:00"}, "2026-03-08T07:30:00Z", None),
    ({"rrule": "DTSTART=20260301T023000;FREQ=DAILY"}, "2026-03-08T07:30:00Z", "moved from 02:30"),
    ({"rrule": "DTSTART=20260301T023000;FREQ=DAILY"}, "2026-03-09T06:30:00Z", None),
]


@pytest.mark.parametrize(("spec", "moment", "note"), NOTES)
def test_what_the_clocks_did_to_a_time_is_said_in_words(spec: dict[str, Any], moment: str, note: str | None) -> None:
    trigger = times.read_trigger({**spec, "zone": "America/New_York"}, anchor=ANCHOR)
    due = datetime.fromisoformat(moment)

    assert times.next_after(trigger, due - timedelta(seconds=1)) == due
    assert times.note_of(trigger, due) == note


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["next", *words])


def test_the_command_shows_local_time_and_utc_and_what_was_moved() -> None:
    zone = ["--zone", "America/New_York", "--after", "2026-03-08T00:00:00"]

    result = run("--cron", "30 2 * * *", *zone, "-n", "2")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "At 02:30, every day, America/New_York time.",
        "",
        "America/New_York               UTC",
        "Sun 2026-03-08 03:00:00-04:00  2026-03-08T07:00:00Z  moved from 02:30",
        "Mon 2026-03-09 02:30:00-04:00  2026-03-09T06:30:00Z",
    ]


def test_the_command_counts_steps_from_after() -> None:
    result = run("--every", "5m", "--after", "2026-01-01T00:00:00.5Z", "-n", "2", "--json")

    assert result.stdout == '{"times": ["2026-01-01T00:05:00.500000Z", "2026-01-01T00:10:00.500000Z"]}\n'


def test_the_command_says_when_there_are_no_further_times() -> None:
    result = run("--at", "2026-01-01T00:00:00Z", "--after", "2026-01-02T00:00:00Z")

    assert result.exit_code == 0
    assert result.stdout.endswith("No further times.\n")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--cron", "* * * * *", "--every", "5m"],
        ["some-task", "--cron", "* * * * *"],
        ["--cron", "* * * * *", "--zone", "Europe/Athen"],
        ["--cron", "* * * * *", "--after", "soon"],
        ["--cron", "0 0 30 2 *"],
        ["--at", "2026-01-01T00:00:00"],
    ],
)
def test_the_command_refuses_bad_input_in_one_sentence(words: list[str]) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
