"""Cron text: what each spelling means, and what is refused with which words."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from oncue.rules import times

START = datetime(2026, 1, 1, tzinfo=UTC)


def next_times(text: str, count: int = 4, *, zone: str = "UTC", name: str = "", after: datetime = START) -> list[str]:
    trigger = times.read_trigger({"cron": text, "zone": zone}, name=name)
    found = times.times_between(trigger, after, after + timedelta(days=5000), count)
    return [moment.isoformat(" ").removesuffix("+00:00").removesuffix(":00") for moment in found]


MEANINGS = {
    "0 9 * * *": ["2026-01-01 09:00", "2026-01-02 09:00"],
    "  0\t9 *  * * ": ["2026-01-01 09:00", "2026-01-02 09:00"],
    "15,45 8-9 * * *": ["2026-01-01 08:15", "2026-01-01 08:45", "2026-01-01 09:15"],
    "30 0 9 * * *": ["2026-01-01 09:00:30"],
    "*/20 0 9 1 jan *": ["2026-01-01 09:00", "2026-01-01 09:00:20", "2026-01-01 09:00:40", "2027-01-01 09:00"],
    "0 9 1 JAN,Jul *": ["2026-01-01 09:00", "2026-07-01 09:00"],
    "0 9 * * mon-fri": ["2026-01-01 09:00", "2026-01-02 09:00", "2026-01-05 09:00"],
    "0 9 * * sat-sun": ["2026-01-03 09:00", "2026-01-04 09:00", "2026-01-10 09:00"],
    "0 9 * * sun-mon": ["2026-01-04 09:00", "2026-01-05 09:00", "2026-01-11 09:00"],
    "0 9 * * 5-7": ["2026-01-02 09:00", "2026-01-03 09:00", "2026-01-04 09:00"],
    "0 9 * * 0": ["2026-01-04 09:00"],
    "0 9 * * 7": ["2026-01-04 09:00"],
    "0 9 * * 7/3": ["2026-01-03 09:00", "2026-01-04 09:00", "2026-01-07 09:00"],
    "0 20/2 * * *": ["2026-01-01 20:00", "2026-01-01 22:00", "2026-01-02 20:00"],
    "0 9 ? * 2": ["2026-01-06 09:00", "2026-01-13 09:00"],
    "0 9 13 * 5": ["2026-01-02 09:00", "2026-01-09 09:00", "2026-01-13 09:00"],
    "0 9 */2 * 1": ["2026-01-05 09:00", "2026-01-19 09:00"],
    "0 9 13 * */5": ["2026-02-13 09:00", "2026-03-13 09:00", "2026-09-13 09:00"],
    "0 9 L * *": ["2026-01-31 09:00", "2026-02-28 09:00", "2026-03-31 09:00"],
    "0 9 L-2 * *": ["2026-01-29 09:00", "2026-02-26 09:00"],
    "0 9 1,L * *": ["2026-01-01 09:00", "2026-01-31 09:00", "2026-02-01 09:00"],
    "0 9 LW * *": ["2026-01-30 09:00", "2026-02-27 09:00", "2026-03-31 09:00"],
    "0 9 15W * *": ["2026-01-15 09:00", "2026-02-16 09:00", "2026-03-16 09:00"],
    "0 9 1W * *": ["2026-01-01 09:00", "2026-02-02 09:00", "2026-03-02 09:00"],
    "0 9 31W * *": ["2026-01-30 09:00", "2026-03-31 09:00", "2026-05-29 09:00"],
    "0 9 * * 5L": ["2026-01-30 09:00", "2026-02-27 09:00"],
    "0 9 * * friL": ["2026-01-30 09:00", "2026-02-27 09:00"],
    "0 9 * * 7L": ["2026-01-25 09:00", "2026-02-22 09:00"],
    "0 9 * * L": ["2026-01-03 09:00", "2026-01-10 09:00"],
    "0 9 * * 4#1": ["2026-01-01 09:00", "2026-02-05 09:00"],
    "0 9 * * mon#5": ["2026-03-30 09:00", "2026-06-29 09:00"],
    "0 9 * * 1#1,5L": ["2026-01-05 09:00", "2026-01-30 09:00", "2026-02-02 09:00"],
    "@hourly": ["2026-01-01 01:00", "2026-01-01 02:00"],
    "@daily": ["2026-01-02 00:00"],
    "@midnight": ["2026-01-02 00:00"],
    "@weekly": ["2026-01-04 00:00"],
    "@monthly": ["2026-02-01 00:00"],
    "@yearly": ["2027-01-01 00:00"],
    "@annually": ["2027-01-01 00:00"],
}


@pytest.mark.parametrize("text", MEANINGS)
def test_a_cron_text_means_these_times(text: str) -> None:
    expected = MEANINGS[text]

    assert next_times(text, len(expected)) == expected


REFUSED = {
    "60 * * * *": "minute field",
    "* 24 * * *": "hour field",
    "* * 0 * *": "day of the month field",
    "* * 32 * *": "day of the month field",
    "* * * 13 *": "month field",
    "* * * * 8": "weekday field",
    "60 * * * * *": "second field",
    "* * * foo *": "a name such as feb",
    "5-1 * * * *": "runs backwards",
    "* * * * fri-mon": "runs backwards",
    "* * * * 6-0": "runs backwards",
    "*/0 * * * *": "from 1 to 60",
    "*/90 * * * *": "from 1 to 60",
    "5/ * * * *": "is not a number",
    "1,,2 * * * *": "is not a number",
    "-5 * * * *": "is not a number",
    "+5 * * * *": "is not a number",
    "1-2-3 * * * *": "is not a number",
    "٣ * * * *": "is not a number",
    "* * 32W * *": "out of range",
    "* * L/2 * *": "is not a number",
    "* * * * 5#6": "out of range",
    "* * * * 5#0": "out of range",
    "* * L-0 * *": "out of range",
    "* * L-31 * *": "out of range",
    "* * 0W * *": "out of range",
    "H(9-3) * * * *": "runs backwards",
    "* * * *": "has 4 fields",
    "* * * * * * *": "has 7 fields",
    "@reboot": "Known macros",
    "0" * 1001: "at most 1000",
    "9" * 900 + " * * * *": "is not a number",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_wrong_cron_text_is_refused_with_the_place_and_the_remedy(text: str) -> None:
    with pytest.raises(times.TriggerError, match=r"^cron: .*\. ?.*\.$") as refusal:
        times.read_trigger({"cron": text})

    assert REFUSED[text] in str(refusal.value)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31W 2 *", "0 0 29 2 */7", "0 0 * 2 0#5"])
def test_a_cron_with_no_time_in_thirteen_years_is_refused(text: str) -> None:
    with pytest.raises(times.TriggerError, match="13 years"):
        times.check(times.read_trigger({"cron": text}), datetime(2033, 1, 1, tzinfo=UTC))


def test_a_hashed_field_stays_in_place_for_a_name_and_spreads_over_names() -> None:
    minutes = {next_times("H * * * *", 1, name=f"task-{k}")[0][-2:] for k in range(300)}

    assert next_times("H H * * *", name="a") == next_times("H H * * *", name="a")
    assert len(minutes) > 50
    assert all(0 <= int(next_times("H(10-19) 5 * * *", 1, name=f"{k}")[0][-2:]) - 10 < 10 for k in range(20))
    assert all(next_times("0 0 H 2 *", 1, name=f"{k}")[0][5:7] == "02" for k in range(60))


def test_a_hashed_step_keeps_its_distance() -> None:
    found = next_times("H/15 * * * *", 5, name="a")

    minutes = [datetime.fromisoformat(text) for text in found]
    assert {later - earlier for earlier, later in pairwise(minutes)} == {timedelta(minutes=15)}


@pytest.mark.parametrize(
    "text",
    [
        "0 0 29 2 */7",
        "*/5 * 29 2 *",
        "0 0 31 2 *",
        "59 59 23 31 12 *",
        ",".join(["*"] * 490) + " * * * *",
        "* " * 499,
        "H(" * 400,
        "1-" * 450,
        "0 0 L,LW,1W,15W,31W 2 1#5,5L",
    ],
)
def test_no_cron_text_takes_long_to_read_or_to_answer(text: str) -> None:
    start = time.process_time()

    try:
        trigger = times.read_trigger({"cron": text, "zone": "Africa/Casablanca"})
        times.next_after(trigger, START)
        times.previous_before(trigger, START)
        times.count_between(trigger, START, START + timedelta(days=365))
    except times.TriggerError:
        pass

    assert time.process_time() - start < 0.25


def test_a_hashed_place_stays_where_it_is_from_one_release_to_the_next() -> None:
    assert next_times("H H * * *", 2, name="trial-ending") == ["2026-01-01 10:26", "2026-01-02 10:26"]
    assert next_times("H/15 H(8-17) * * H", 5, name="trial-ending") == [
        "2026-01-07 14:11",
        "2026-01-07 14:26",
        "2026-01-07 14:41",
        "2026-01-07 14:56",
        "2026-01-14 14:11",
    ]
    assert next_times("H H H H H *", 1, name="trial-ending") == ["2026-04-10 10:26:11"]


def test_a_text_may_be_as_long_as_is_said() -> None:
    assert next_times("0 9 * * *".ljust(1000), 1) == ["2026-01-01 09:00"]
    with pytest.raises(times.TriggerError, match="1001 characters"):
        times.read_trigger({"cron": "0 9 * * " + ",".join(["1"] * 496) + ",1"})
