"""Dialects of cron: what each spelling means, that it means the same as in the plain one, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncue.rules import times
from oncue.rules.triggers.pattern import Pattern

START = datetime(2026, 1, 1, tzinfo=UTC)


def read(text: str, dialect: str = "unix", zone: str = "UTC", name: str = "", **more: object) -> times.Trigger:
    return times.read_trigger({"cron": text, "dialect": dialect, "zone": zone, **more}, name=name)


def next_times(text: str, dialect: str, count: int) -> list[str]:
    found = times.times_between(read(text, dialect), START, START + timedelta(days=90_000), count)
    return [moment.isoformat(" ").removesuffix("+00:00").removesuffix(":00") for moment in found]


QUARTZ = {
    "0 0 12 * * ?": ["2026-01-01 12:00", "2026-01-02 12:00"],
    "0 15 10 ? * *": ["2026-01-01 10:15", "2026-01-02 10:15"],
    "15 0 12 ? * 2": ["2026-01-05 12:00:15", "2026-01-12 12:00:15"],
    "0 0 12 ? * 1": ["2026-01-04 12:00"],
    "0 0 12 ? * 7": ["2026-01-03 12:00"],
    "0 0 12 ? * 2-6": ["2026-01-01 12:00", "2026-01-02 12:00", "2026-01-05 12:00"],
    "0 0 12 ? * sat-sun": ["2026-01-03 12:00", "2026-01-04 12:00", "2026-01-10 12:00"],
    "0 0 12 ? * 7/2": ["2026-01-03 12:00", "2026-01-10 12:00"],
    "0 0 12 ? * 1/3": ["2026-01-03 12:00", "2026-01-04 12:00", "2026-01-07 12:00"],
    "0 0 12 ? * */3": ["2026-01-03 12:00", "2026-01-04 12:00", "2026-01-07 12:00"],
    "0 0 12 ? * L": ["2026-01-03 12:00", "2026-01-10 12:00"],
    "0 0 12 ? * 6L": ["2026-01-30 12:00", "2026-02-27 12:00"],
    "0 0 12 ? * 1L": ["2026-01-25 12:00"],
    "0 0 12 ? * 7L": ["2026-01-31 12:00"],
    "0 0 12 ? * friL": ["2026-01-30 12:00"],
    "0 0 12 ? * 6#3": ["2026-01-16 12:00", "2026-02-20 12:00"],
    "0 0 12 ? * 1#5": ["2026-03-29 12:00"],
    "0 0 12 L * ?": ["2026-01-31 12:00", "2026-02-28 12:00"],
    "0 0 12 L-3 * ?": ["2026-01-28 12:00", "2026-02-25 12:00"],
    "0 0 12 LW * ?": ["2026-01-30 12:00", "2026-02-27 12:00"],
    "0 0 12 15W * ?": ["2026-01-15 12:00", "2026-02-16 12:00"],
    "0 0 12 1 JAN ? 2027,2030": ["2027-01-01 12:00", "2030-01-01 12:00"],
    "0 0 12 1 1 ? 2028-2029": ["2028-01-01 12:00", "2029-01-01 12:00"],
    "0 0 12 1 1 ? 2020/8": ["2028-01-01 12:00", "2036-01-01 12:00", "2044-01-01 12:00"],
    "0 0 12 1 1 ? */100": ["2070-01-01 12:00", "2170-01-01 12:00"],
    "0 0 12 29 2 ? 2028,2100,2196": ["2028-02-29 12:00", "2196-02-29 12:00"],
    "0 0 12 1 1 ? 2198/1": ["2198-01-01 12:00", "2199-01-01 12:00"],
}
AWS = {
    "0 12 * * ? *": ["2026-01-01 12:00", "2026-01-02 12:00"],
    "cron(0 12 * * ? *)": ["2026-01-01 12:00", "2026-01-02 12:00"],
    " CRON( 0/15 8 ? * MON-FRI 2026 ) ": ["2026-01-01 08:00", "2026-01-01 08:15"],
    "cron(0 12 ? * 2 *)": ["2026-01-05 12:00"],
    "cron(0 12 ? * 3#2 *)": ["2026-01-13 12:00", "2026-02-10 12:00"],
    "cron(0 12 L * ? 2026-2027)": ["2026-01-31 12:00", "2026-02-28 12:00"],
    "cron(0 12 1 1 ? 2199)": ["2199-01-01 12:00"],
}


@pytest.mark.parametrize(
    ("text", "dialect"), [*((text, "quartz") for text in QUARTZ), *((text, "aws") for text in AWS)]
)
def test_a_text_of_a_dialect_means_these_times(text: str, dialect: str) -> None:
    expected = (QUARTZ | AWS)[text]

    assert next_times(text, dialect, len(expected)) == expected


def test_the_times_of_a_year_end_with_it_in_both_directions() -> None:
    trigger = read("0 0 12 1 * ? 2026,2060", "quartz")

    assert times.next_after(trigger, datetime(2026, 12, 1, 12, tzinfo=UTC)) == datetime(2060, 1, 1, 12, tzinfo=UTC)
    assert times.previous_before(trigger, datetime(2060, 1, 1, 12, tzinfo=UTC)) == datetime(2026, 12, 1, 12, tzinfo=UTC)
    assert times.next_after(trigger, datetime(2060, 12, 1, 12, tzinfo=UTC)) is None
    assert times.previous_before(trigger, datetime(2026, 1, 1, 12, tzinfo=UTC)) is None
    assert times.previous_before(trigger, datetime(2150, 1, 1, 12, tzinfo=UTC)) == datetime(2060, 12, 1, 12, tzinfo=UTC)
    assert times.next_after(trigger, datetime(1905, 1, 1, 12, tzinfo=UTC)) == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert times.count_between(trigger, START, START.replace(year=2100))[0] == 24


@pytest.mark.parametrize("text", ["0 0 12 1 1 ? 2010", "0 0 12 1 1 ? 2026", "0 0 12 ? * 2 1970-2025"])
def test_a_cron_whose_years_are_over_has_ended_and_is_not_refused(text: str) -> None:
    trigger = read(text, "quartz")
    after = datetime(2026, 6, 1, tzinfo=UTC)

    times.check(trigger, after)

    assert times.next_after(trigger, after) is None


@pytest.mark.parametrize(
    "text", ["0 0 12 30 2 ? 2010", "0 0 12 30 2 ? 2027", "0 0 12 1 1 ? 2060", "0 0 12 29 2 ? 2100"]
)
def test_a_cron_whose_years_have_no_time_or_only_a_far_one_is_refused(text: str) -> None:
    with pytest.raises(times.TriggerError, match="13 years"):
        times.check(read(text, "quartz"), START)


REFUSED = [
    ("0 9 * * *", "quartz", "has 5 fields", "leave the dialect out: this is a unix text"),
    ("@daily", "quartz", "has 1 field,", "leave the dialect out"),
    ("0 9 * * *", "aws", "not a text of the aws dialect", "minute hour day month weekday year"),
    ("0 0 9 * * ? 2026", "aws", "has 7 fields", 'dialect = "quartz"'),
    ("0 0 9 * * *", "quartz", '"*" and "*" of the quartz dialect, neither is a ?', "exactly one"),
    ("0 0 9 ? * ?", "quartz", "both is a ?", "exactly one"),
    ("0 0 9 1 * MON", "quartz", '"1" and "mon"', "exactly one"),
    ("0 9 * * * *", "aws", "neither is a ?", "exactly one"),
    ("0 0 9 ?/2 * ?", "quartz", 'day of the month field "?/2" of the quartz dialect', "Write a number from 1 to 31"),
    ("? 0 9 * * ?", "quartz", "in the second field", "a ? stands for a day or a weekday only"),
    ("0 0 9 ? * 0", "quartz", "0 is out of range", "from 1 to 7. 1 is Sunday."),
    ("0 0 9 ? * 8", "quartz", "8 is out of range", "from 1 to 7"),
    ("0 0 9 ? * 6-2", "quartz", "runs backwards", "Write two ranges"),
    ("0 0 9 ? * fri-mon", "quartz", "runs backwards", "Write two ranges"),
    ("0 9 ? * 0 *", "aws", "weekday field", "of the aws dialect"),
    ("0 0 9 1 1 ? 1969", "quartz", 'year field "1969" of the quartz dialect', "from 1970 to 2199"),
    ("0 0 9 1 1 ? 2200", "quartz", "2200 is out of range", "from 1970 to 2199"),
    ("0 0 9 1 1 ? H", "quartz", "a year has no H", "such as 2026"),
    ("0 0 9 1 1 ? 2030-2027", "quartz", "runs backwards", ""),
    ("0 0 9 1 1 ? soon", "quartz", '"soon" is not a number', ""),
    ("0 0 9 1 1 ? */0", "quartz", "0 is out of range", "from 1 to 230"),
    ("60 0 9 1 1 ?", "quartz", 'second field "60" of the quartz dialect', ""),
    ("0 9 * * ? 2026", "unix", "month field", 'dialect = "aws"'),
    ("0 9 1 * mon 2026", "unix", "stands a year", 'dialect = "aws"'),
    ("0 0 9 * * ? 2026", "unix", "has 7 fields", 'dialect = "quartz"'),
    ("cron(0 9 * * ? *)", "unix", "spelled as in AWS", 'dialect = "aws"'),
    ("cron(0 9 * * ? *)", "quartz", "spelled as in AWS", 'dialect = "aws"'),
]


@pytest.mark.parametrize(("text", "dialect", "what", "remedy"), REFUSED)
def test_a_wrong_text_is_refused_with_the_field_the_dialect_and_the_remedy(
    text: str, dialect: str, what: str, remedy: str
) -> None:
    with pytest.raises(times.TriggerError, match=r"^cron: .*\.$") as refusal:
        read(text, dialect)

    assert what in str(refusal.value)
    assert remedy in str(refusal.value)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"cron": "0 9 * * *", "dialect": "quarz"}, 'no cron dialect "quarz". Did you mean "quartz"?'),
        ({"cron": "0 9 * * *", "dialect": "vixie"}, "Write one of unix, quartz, aws"),
        ({"cron": "0 9 * * *", "dialect": 3}, "is not text"),
        ({"every": "5m", "dialect": "unix"}, "how a cron is spelled, and there is none"),
    ],
)
def test_a_wrong_dialect_is_refused(spec: dict[str, object], words: str) -> None:
    with pytest.raises(times.TriggerError) as refusal:
        times.read_trigger(spec, anchor=START)

    assert words in str(refusal.value)


SECONDS = [("* 30 1 * * *", "unix"), ("*/20 30 1 * * *", "unix"), ("* 30 1 * * ?", "quartz")]


@pytest.mark.parametrize(("text", "dialect"), SECONDS)
def test_a_seconds_field_that_begins_with_a_star_makes_no_rhythm(text: str, dialect: str) -> None:
    trigger = read(text, dialect, zone="America/New_York")
    midnight = datetime(2026, 11, 1, 4, tzinfo=UTC)

    found = times.times_between(trigger, midnight, midnight + timedelta(hours=5), 999)

    assert isinstance(trigger, times.Cron)
    assert not trigger.is_wildcard
    assert {(moment.hour, moment.minute) for moment in found} == {(5, 30)}


@pytest.mark.parametrize(
    ("text", "dialect", "is_wildcard"),
    [
        ("0 * 1 * * ?", "quartz", True),
        ("0 */5 1 * * ?", "quartz", True),
        ("0 0 */2 * * ?", "quartz", True),
        ("0 0/5 1 * * ?", "quartz", False),
        ("*/5 1 * * ? *", "aws", True),
        ("0 * ? * mon *", "aws", True),
        ("0 1 * * ? *", "aws", False),
    ],
)
def test_minute_and_hour_alone_make_a_rhythm_in_every_dialect(text: str, dialect: str, is_wildcard: bool) -> None:
    trigger = read(text, dialect)

    assert isinstance(trigger, times.Cron)
    assert trigger.is_wildcard == is_wildcard


def weekday_texts() -> st.SearchStrategy[tuple[str, str]]:
    """A weekday field in plain and in Quartz's numbers."""
    one = st.integers(0, 6).map(lambda day: (f"{day}", f"{day + 1}"))
    pairs = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
    span = pairs.map(lambda pair: (f"{pair[0]}-{pair[1]}", f"{pair[0] + 1}-{pair[1] + 1}"))
    last = st.integers(0, 6).map(lambda day: (f"{day}L", f"{day + 1}L"))
    nth = st.tuples(st.integers(0, 6), st.integers(1, 5)).map(
        lambda pair: (f"{pair[0]}#{pair[1]}", f"{pair[0] + 1}#{pair[1]}")
    )
    step = st.tuples(st.integers(0, 6), st.integers(1, 5)).map(
        lambda pair: (f"{pair[0]}/{pair[1]}", f"{pair[0] + 1}/{pair[1]}")
    )
    items = st.lists(st.one_of(one, span, last, nth, step), min_size=1, max_size=3)
    lists = items.map(lambda chosen: (",".join(item[0] for item in chosen), ",".join(item[1] for item in chosen)))
    return st.one_of(
        lists, st.sampled_from(["mon-fri", "sat-sun", "*", "*/2", "H", "friL", "mon#2"]).map(lambda w: (w, w))
    )


def pattern_of(text: str, dialect: str) -> tuple[Pattern, bool]:
    trigger = read(text, dialect, name="some task")
    assert isinstance(trigger, times.Cron)
    return trigger.pattern, trigger.is_wildcard


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from(["0", "*", "*/7", "H", "5-50/5", "1,2"]),
    st.sampled_from(["2", "*", "*/2", "H(1-3)", "9-17"]),
    st.sampled_from(["1", "*", "L", "LW", "15W", "L-3", "*/2", "H", "1,15"]),
    st.sampled_from(["*", "jan", "2-4", "*/3"]),
    weekday_texts(),
    st.booleans(),
)
def test_a_dialect_changes_the_spelling_and_nothing_else(
    minute: str, hour: str, day: str, month: str, weekday: tuple[str, str], by_date: bool
) -> None:
    plain, theirs = (f"{day} {month} *", f"{day} {month} ?") if by_date else (
        f"* {month} {weekday[0]}", f"? {month} {weekday[1]}"
    )  # fmt: skip

    unix = pattern_of(f"{minute} {hour} {plain}", "unix")

    assert pattern_of(f"0 {minute} {hour} {theirs}", "quartz") == unix
    assert pattern_of(f"0 {minute} {hour} {theirs} *", "quartz") == unix
    assert pattern_of(f"{minute} {hour} {theirs} *", "aws") == unix
    assert pattern_of(f"cron({minute} {hour} {theirs} *)", "aws") == unix


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 9 1 1 ? 2027", "At 09:00, on day 1 of the month in January of 2027, UTC time."),
        ("0 0 9 1 * ? 2027-2029,2031", "At 09:00, on day 1 of the month in 2027 to 2029 and 2031, UTC time."),
        ("0 0 * * * ? 2027", "At minute 0 of every hour, every day in 2027, UTC time."),
        ("0 0 9 * * ? 2027", "At 09:00, every day in 2027, UTC time."),
    ],
)
def test_the_years_are_told_in_words(text: str, words: str) -> None:
    assert times.describe(read(text, "quartz")) == words
