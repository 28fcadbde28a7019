"""`dst`: what becomes of wall times that clocks skip or show twice, for every kind and every policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from oncue.rules import identity, times
from oncue.rules.triggers.placing import CALENDAR, FIXED, WILDCARD, Placing, read_placing

NEW_YORK = "America/New_York"
SPRING, AUTUMN = datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2026, 11, 1, 4, tzinfo=UTC)
GAPS = {"after": ["07:00:00"], "skip": [], "shift": ["07:30:00"]}
REPEATS = {"first": ["05:30:00"], "last": ["06:30:00"], "both": ["05:30:00", "06:30:00"]}
POLICIES = [{"gap": gap, "repeat": repeat} for gap, repeat in product(GAPS, REPEATS)]


def on_the_day(spec: dict[str, object], midnight: datetime) -> list[str]:
    trigger = times.read_trigger({"zone": NEW_YORK, **spec})
    found = times.times_between(trigger, midnight - timedelta(seconds=1), midnight + timedelta(hours=23), 99)
    return [f"{moment:%H:%M:%S}" for moment in found]


def at(wall: str) -> list[dict[str, object]]:
    """One schedule of each kind that is due at 02:30 or 01:30 on both days of change."""
    hour = wall[:2]
    return [
        {"cron": f"30 {int(hour)} * * *"},
        {"every": "P1D", "anchor": f"2026-03-01T{wall}:00"},
        {"every": f"R/2026-03-01T{wall}:00/P1D"},
        {"every": "P1D", "anchor": f"2026-03-01T{wall}:00-05:00"},
        {"rrule": f"DTSTART=20260301T{hour}3000;FREQ=DAILY"},
        {"rrule": f"DTSTART=20260301T{hour}3000;FREQ=WEEKLY;BYDAY=SU"},
    ]


@pytest.mark.parametrize("dst", POLICIES, ids=lambda dst: f"{dst['gap']}-{dst['repeat']}")
def test_a_policy_means_the_same_for_every_kind(dst: dict[str, str]) -> None:
    for spec in [*at("02:30"), {"at": "2026-03-08T02:30:00"}]:
        assert on_the_day({**spec, "dst": dst}, SPRING) == GAPS[dst["gap"]], spec
    for spec in [*at("01:30"), {"at": "2026-11-01T01:30:00"}]:
        assert on_the_day({**spec, "dst": dst}, AUTUMN) == REPEATS[dst["repeat"]], spec


@pytest.mark.parametrize("gap", GAPS)
def test_a_step_that_begins_in_a_gap_keeps_the_wall_time_that_was_written(gap: str) -> None:
    for spec in ({"every": "P1D", "anchor": "2026-03-08T02:30:00"}, {"rrule": "DTSTART=20260308T023000;FREQ=DAILY"}):
        assert on_the_day({**spec, "dst": {"gap": gap}}, SPRING) == GAPS[gap]
        assert on_the_day({**spec, "dst": {"gap": gap}}, SPRING + timedelta(days=1)) == ["06:30:00"]


def test_an_anchor_with_an_offset_is_the_moment_that_it_names() -> None:
    spec = {"every": "P1D", "anchor": "2026-11-01T01:30:00-05:00"}

    assert on_the_day(spec, AUTUMN) == ["06:30:00"]
    assert on_the_day({**spec, "dst": {"repeat": "both"}}, AUTUMN) == ["06:30:00"]


@pytest.mark.parametrize(
    ("dst", "spring", "autumn"),
    [
        ({"gap": "after"}, ["06:00:00", "06:30:00", "07:00:00", "07:30:00"], 6),
        ({"gap": "shift"}, ["06:00:00", "06:30:00", "07:00:00", "07:30:00"], 6),
        ({"repeat": "first"}, ["06:00:00", "06:30:00", "07:00:00", "07:30:00"], 4),
        ({"repeat": "last"}, ["06:00:00", "06:30:00", "07:00:00", "07:30:00"], 4),
    ],
)
def test_what_is_said_holds_for_a_cron_with_a_rhythm_too(dst: dict[str, str], spring: list[str], autumn: int) -> None:
    spec = {"cron": "*/30 1-3 * * *", "dst": dst}

    assert on_the_day(spec, SPRING) == spring
    assert len(on_the_day({"cron": "*/30 0-1 * * *", "dst": dst}, AUTUMN)) == autumn


def test_skipped_times_that_move_onto_real_ones_run_once() -> None:
    spec = {"cron": "0,20 2,3 * * *"}

    assert on_the_day({**spec, "dst": {"gap": "after"}}, SPRING) == ["07:00:00", "07:20:00"]
    assert on_the_day({**spec, "dst": {"gap": "shift"}}, SPRING) == ["07:00:00", "07:20:00"]
    assert on_the_day({"cron": "10 2 * * *", "dst": {"gap": "shift"}}, SPRING) == ["07:10:00"]
    assert on_the_day({"cron": "10,50 2 * * *", "dst": {"gap": "shift"}}, SPRING) == ["07:10:00", "07:50:00"]


@pytest.mark.parametrize("dst", POLICIES, ids=lambda dst: f"{dst['gap']}-{dst['repeat']}")
def test_no_policy_makes_up_for_a_dropped_day(dst: dict[str, str]) -> None:
    midnight = datetime(2011, 12, 30, 10, tzinfo=UTC)
    specs: list[dict[str, object]] = [
        {"cron": "0 9 * * *"},
        {"every": "P1D", "anchor": "2011-12-01T09:00:00"},
        {"rrule": "DTSTART=20111201T090000;FREQ=DAILY"},
    ]
    for spec in specs:
        trigger = times.read_trigger({**spec, "zone": "Pacific/Apia", "dst": dst})
        found = times.times_between(trigger, midnight - timedelta(hours=24), midnight + timedelta(hours=24), 9)
        assert [identity.time_text(moment) for moment in found] == ["2011-12-29T19:00:00Z", "2011-12-30T19:00:00Z"]
    trigger = times.read_trigger({"at": "2011-12-30T09:00:00", "zone": "Pacific/Apia", "dst": dst})
    assert times.next_after(trigger, midnight - timedelta(days=9)) is None


def test_what_is_left_out_keeps_the_default_of_the_kind() -> None:
    assert [read_placing({"gap": "skip"}, kind).repeat for kind in (FIXED, WILDCARD, CALENDAR)] == [
        "first",
        "both",
        "first",
    ]
    assert [read_placing({"repeat": "last"}, kind).gap for kind in (FIXED, WILDCARD, CALENDAR)] == [
        "after",
        "skip",
        "shift",
    ]
    assert read_placing({}, FIXED) == read_placing(None, FIXED) == FIXED
    assert read_placing({"gap": "shift", "repeat": "both"}, FIXED) == Placing("shift", "both")


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"cron": "@daily", "dst": "skip"}, "is not a table"),
    ({"cron": "@daily", "dst": {"gaps": "skip"}}, 'no key "gaps". Did you mean "gap"?'),
    ({"cron": "@daily", "dst": {"zone": "UTC"}}, "Write one of gap, repeat"),
    ({"cron": "@daily", "dst": {"gap": "aftr"}}, 'gap = "aftr" is not known. Did you mean "after"?'),
    ({"cron": "@daily", "dst": {"repeat": "shift"}}, "Write one of first, last, both"),
    ({"cron": "@daily", "dst": {"gap": 3}}, "gap = 3 is not known. Write one of after, skip, shift"),
    ({"every": "PT24H", "anchor": "2026-01-01T00:00:00Z", "dst": {"gap": "skip"}}, 'every = "PT24H" does not go by'),
    ({"every": "5m", "anchor": "2026-01-01T00:00:00Z", "dst": {}}, "Leave it out"),
    ({"at": "2026-01-01T00:00:00Z", "dst": {"gap": "skip"}}, "with its offset"),
    ({"rrule": "DTSTART=20260101T000000;FREQ=HOURLY", "dst": {"gap": "skip"}}, "a rule with FREQ=HOURLY"),
    ({"rrule": "DTSTART=20260101T000000;FREQ=MINUTELY", "dst": {"gap": "skip"}}, "a rule with FREQ=MINUTELY"),
]


@pytest.mark.parametrize(("spec", "words"), REFUSED)
def test_a_wrong_policy_is_refused_with_the_place_and_the_remedy(spec: dict[str, object], words: str) -> None:
    with pytest.raises(times.TriggerError, match=r"^dst: .*[.?]$") as refusal:
        times.read_trigger({"zone": NEW_YORK, **spec})

    assert words in str(refusal.value)


NOTES: list[tuple[dict[str, object], dict[str, str], str, str | None]] = [
    ({"cron": "10,30 2 * * *"}, {"gap": "shift"}, "2026-03-08T07:30:00Z", "moved from 02:30"),
    ({"cron": "0 3 * * *"}, {"gap": "shift"}, "2026-03-08T07:00:00Z", None),
    ({"cron": "0 3,4 * * *"}, {"gap": "shift"}, "2026-03-08T08:00:00Z", None),
    ({"cron": "0 2-4 * * *"}, {"gap": "after"}, "2026-03-08T08:00:00Z", None),
    ({"cron": "0 2,3 * * *"}, {"gap": "after"}, "2026-03-08T07:00:00Z", "moved from 02:00"),
    ({"rrule": "DTSTART=20260301T020000;FREQ=DAILY;BYHOUR=2,3"}, {"gap": "after"}, "2026-03-08T07:00:00Z",
     "moved from 02:00"),
    ({"cron": "*/30 * * * *"}, {"gap": "after"}, "2026-03-08T07:00:00Z", "moved from 02:00, 02:30"),
    (
        {"cron": "*/10 * * * *"},
        {"gap": "after"},
        "2026-03-08T07:00:00Z",
        "moved from 02:00, 02:10, 02:20, 02:30 and 2 more",
    ),
    ({"cron": "*/10 * * * *"}, {"gap": "after"}, "2026-03-08T07:10:00Z", None),
    ({"cron": "30 1 * * *"}, {"repeat": "last"}, "2026-11-01T06:30:00Z", "second of two"),
    ({"cron": "30 1 * * *"}, {"repeat": "both"}, "2026-11-01T05:30:00Z", "first of two"),
    ({"every": "P1D", "anchor": "2026-03-01T02:30:00"}, {"gap": "after"}, "2026-03-08T07:00:00Z", "moved from 02:30"),
    ({"every": "P1D", "anchor": "2026-03-01T02:30:00.5"}, {}, "2026-03-08T07:30:00.5Z", "moved from 02:30"),
    ({"every": "P1DT12H", "anchor": "2026-03-01T02:30:00"}, {}, "2026-03-02T19:30:00Z", None),
    ({"rrule": "DTSTART=20260301T023000;FREQ=DAILY"}, {"gap": "after"}, "2026-03-08T07:00:00Z", "moved from 02:30"),
    ({"at": "2026-03-08T02:30:00"}, {"gap": "after"}, "2026-03-08T07:00:00Z", "moved from 02:30"),
    ({"at": "2026-11-01T01:30:00"}, {"repeat": "last"}, "2026-11-01T06:30:00Z", "second of two"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "dst", "moment", "note"), NOTES)
def test_a_note_says_what_the_policy_did(
    spec: dict[str, object], dst: dict[str, str], moment: str, note: str | None
) -> None:
    trigger = times.read_trigger({**spec, "zone": NEW_YORK, "dst": dst})
    due = datetime.fromisoformat(moment)

    assert times.next_after(trigger, due - timedelta(seconds=1)) == due
    assert times.previous_before(trigger, due + timedelta(seconds=1)) == due
    assert times.note_of(trigger, due) == note


WORDS: list[tuple[dict[str, object], dict[str, str], str]] = [
    ({"cron": "30 2 * * *"}, {"gap": "after"}, "At 02:30, every day, America/New_York time."),
    (
        {"cron": "30 2 * * *"},
        {"gap": "skip", "repeat": "both"},
        "At 02:30, every day, America/New_York time; times that the clocks skip are left out; "
        "times that they repeat run at both copies.",
    ),
    ({"every": "P1D", "anchor": "2026-01-01T00:00:00Z"}, {"gap": "after"}, "run right after the change."),
    ({"rrule": "DTSTART=20260301T023000;FREQ=DAILY"}, {"repeat": "last"}, "run at the last copy."),
    ({"at": "2026-11-01T01:30:00"}, {"repeat": "both"}, "Twice, at 2026-11-01 01:30:00-04:00 and at"),
    ({"at": "2026-03-08T02:30:00"}, {"gap": "skip"}, "Never: the clocks of America/New_York skip 2026-03-08T02:30:00."),
]


@pytest.mark.parametrize(("spec", "dst", "words"), WORDS)
def test_a_policy_of_its_own_is_told_in_words(spec: dict[str, object], dst: dict[str, str], words: str) -> None:
    assert words in times.describe(times.read_trigger({**spec, "zone": NEW_YORK, "dst": dst}))


def test_a_cron_that_only_names_skipped_times_is_refused() -> None:
    spec = {"cron": "30 2 * 3 sun#2", "zone": NEW_YORK}
    after = datetime(2026, 1, 1, tzinfo=UTC)

    times.check(times.read_trigger(spec), after)

    trigger = times.read_trigger({**spec, "dst": {"gap": "skip"}})
    with pytest.raises(times.TriggerError, match="13 years"):
        times.check(trigger, after)
    # Until 2006 the second Sunday in March was a day like others.
    assert times.previous_before(trigger, after.replace(year=2015)) == datetime(2006, 3, 12, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize("gap", ["after", "shift"])
def test_what_is_made_up_for_is_counted_at_its_instant_and_at_no_other(gap: str) -> None:
    trigger = times.read_trigger({"cron": "30 2 * * *", "zone": NEW_YORK, "dst": {"gap": gap}})
    due = datetime(2026, 3, 8, 7, 0 if gap == "after" else 30, tzinfo=UTC)
    second = timedelta(seconds=1)

    assert times.count_between(trigger, due - second, due) == (1, due, due)
    assert times.count_between(trigger, due - 2 * second, due - second)[0] == 0
    assert times.count_between(trigger, due, due + second)[0] == 0
    assert times.count_between(trigger, due - timedelta(hours=12), due + timedelta(hours=12)) == (1, due, due)


def test_what_falls_on_the_end_of_a_dropped_day_was_not_moved_there() -> None:
    spec = {"cron": "0 0 * * *", "zone": "Pacific/Apia", "dst": {"gap": "after"}}
    midnight = datetime(2011, 12, 30, 10, tzinfo=UTC)
    trigger = times.read_trigger(spec)

    assert times.next_after(trigger, midnight - timedelta(seconds=1)) == midnight
    assert times.note_of(trigger, midnight) is None


def test_a_gap_of_two_hours_is_made_up_for_and_one_of_three_is_not() -> None:
    two, three = datetime(2025, 3, 30, 1, tzinfo=UTC), datetime(2009, 10, 17, 18, tzinfo=UTC)
    troll = times.read_trigger({"cron": "30 1 * * *", "zone": "Antarctica/Troll"})
    casey = times.read_trigger({"cron": "30 3 * * *", "zone": "Antarctica/Casey"})

    assert times.next_after(troll, two - timedelta(hours=1)) == two
    assert times.next_after(casey, three - timedelta(hours=1)) == datetime(2009, 10, 18, 16, 30, tzinfo=UTC)
