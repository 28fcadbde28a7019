"""Times that few allowed days draw to them, where a trigger begins or ends near by; and that no search is long."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.definition import Calendar
from oncue.rules import times
from tests.rules.drawing import thorough

TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)
FIRST, LAST = datetime(2026, 11, 29, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)
DATES = (date(2026, 12, 17), date(2027, 1, 20))


def read(spec: Mapping[str, Any], dates: tuple[date, ...] = DATES) -> times.Trigger:
    calendar = Calendar("few", dates=dict.fromkeys(dates, ""))
    return times.read_trigger({**spec, "only_on": "few"}, anchor=FIRST, calendars={"few": calendar})


def back(trigger: times.Trigger, until: datetime, after: datetime) -> list[datetime]:
    found, moment = [], times.previous_before(trigger, until + TICK)
    while moment is not None and moment > after:
        found.append(moment)
        moment = times.previous_before(trigger, moment)
    return found[::-1]


def ahead(trigger: times.Trigger, after: datetime, until: datetime) -> list[datetime]:
    found, moment = [], times.next_after(trigger, after)
    while moment is not None and moment <= until:
        found.append(moment)
        moment = times.next_after(trigger, moment)
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # All these begin before the first of the two days, ...
        ({"rrule": "DTSTART=20261207T090000;FREQ=WEEKLY"}, ["12-17 09:00", "01-20 09:00"]),
        ({"rrule": "DTSTART=20261207T090000;FREQ=DAILY;INTERVAL=5"}, ["12-17 09:00", "01-20 09:00"]),
        ({"every": "P1W", "anchor": "2026-12-07T09:00:00Z"}, ["12-17 09:00", "01-20 09:00"]),
        (
            {"every": "36h", "anchor": "2026-12-07T09:00:00Z"},
            ["12-17 09:00", "12-17 21:00", "01-20 09:00", "01-20 21:00"],
        ),
        ({"at": "2026-12-07T09:00:00Z"}, ["12-17 09:00"]),
        # ... these on it or behind it, later than 13 years after what is looked through for it.
        ({"rrule": "DTSTART=20261217T090000;FREQ=WEEKLY"}, ["12-17 09:00", "01-20 09:00"]),
        ({"rrule": "DTSTART=20261218T090000;FREQ=WEEKLY"}, ["01-20 09:00"]),
        ({"every": "P1W", "anchor": "2026-12-17T09:00:00Z"}, ["12-17 09:00", "01-20 09:00"]),
        ({"every": "36h", "anchor": "2026-12-17T09:00:00Z"}, ["12-17 09:00", "01-20 09:00", "01-20 21:00"]),
        ({"every": "P1W", "anchor": "2027-01-19T09:00:00Z"}, ["01-20 09:00"]),
        ({"at": "2027-01-05T09:00:00Z"}, ["01-20 09:00"]),
        ({"cron": "0 9 * * mon", "start": "2026-12-18"}, ["01-20 09:00"]),
        ({"any": [{"at": "2015-01-01T08:00:00Z"}, {"at": "2027-01-05T09:00:00Z"}]}, ["12-17 08:00", "01-20 09:00"]),
    ],
)
def test_a_trigger_that_begins_among_few_allowed_days_is_moved_to_them(
    spec: dict[str, Any], expected: list[str]
) -> None:
    trigger = read({**spec, "move": "next"})

    times.check(trigger, FIRST)
    found = times.times_between(trigger, FIRST, LAST, 50)
    assert [f"{moment:%m-%d %H:%M}" for moment in found] == expected
    assert ahead(trigger, FIRST, LAST) == back(trigger, LAST, FIRST) == found
    assert times.tally_between(trigger, FIRST, LAST) == times.Tally(len(found), found[0], found[-1])


def test_a_trigger_that_begins_late_has_its_times_on_a_calendar_as_without_one() -> None:
    trigger = times.read_trigger(
        {"every": "P1D", "anchor": "2045-01-01T09:00:00Z", "only_on": "mondays", "except": [{"cron": "0 9 1-2 1 *"}]},
        calendars={"mondays": Calendar("mondays", ("mon",))},
    )

    assert times.next_after(trigger, FIRST) == datetime(2045, 1, 9, 9, tzinfo=UTC)


BEGUN = st.integers(0, 80).map(lambda days: (FIRST + days * DAY).replace(hour=9, tzinfo=None))
KINDS = st.one_of(
    st.builds(lambda day: {"at": f"{day.isoformat()}Z"}, BEGUN),
    st.builds(
        lambda step, day: {"every": step, "anchor": f"{day.isoformat()}Z"},
        st.sampled_from(["36h", "25h", "P1D", "P5D", "P1W", "P1M", "P1DT12H"]),
        BEGUN,
    ),
    st.builds(
        lambda day, rule: {"rrule": f"DTSTART={day:%Y%m%dT%H%M%S};{rule}"},
        BEGUN,
        st.sampled_from(["FREQ=WEEKLY", "FREQ=DAILY;INTERVAL=5", "FREQ=DAILY;COUNT=3", "FREQ=MONTHLY;COUNT=2"]),
    ),
)


@thorough(200)
@given(
    st.lists(KINDS, min_size=1, max_size=3),
    st.sets(st.integers(0, 70), min_size=1, max_size=3),
    st.sampled_from(["next", "previous"]),
    st.integers(-20, 60),
)
def test_what_few_days_draw_to_them_is_every_time_around_them(
    kinds: list[dict[str, Any]], places: set[int], move: str, since: int
) -> None:
    dates = sorted((FIRST + place * DAY).date() for place in places)
    trigger = read({"any": kinds, "move": move, "end": "2027-06-01"}, tuple(dates))
    after, until = FIRST + since * DAY, LAST
    expected = set()
    for kind in kinds:
        alone = times.read_trigger({**kind, "end": "2027-06-01"}, anchor=FIRST)
        for moment in times.times_between(alone, FIRST - DAY, LAST + 365 * DAY, 5000):
            day = moment.date()
            near = [one for one in dates if (one >= day if move == "next" else one <= day)]
            if near:
                expected.add(moment + ((near[0] if move == "next" else near[-1]) - day))

    wanted = sorted(moment for moment in expected if after < moment <= until)
    assert times.times_between(trigger, after, until, 5000) == wanted
    assert ahead(trigger, after, until) == wanted
    assert back(trigger, until, after) == wanted


@pytest.mark.parametrize(
    "spec",
    [
        {"rrule": "DTSTART=20261101T013000;FREQ=MINUTELY;COUNT=1"},
        {"rrule": "DTSTART=20261101T013000;FREQ=MINUTELY;COUNT=3"},
        {"rrule": "DTSTART=20261101T013000;FREQ=MINUTELY;UNTIL=20261101T013000Z"},
        {"rrule": "DTSTART=20261101T013000;FREQ=HOURLY;INTERVAL=13;COUNT=1"},
        {"rrule": "DTSTART=20261101T013000;FREQ=DAILY;COUNT=2"},
        {"at": "2026-11-01T01:30:00Z"},
        {"every": "1s", "start": "2026-11-01", "end": "2026-11-01T23:00:00Z"},
        {"cron": "* * * * * *", "start": "2026-11-01", "end": "2026-11-01T23:00:00Z"},
    ],
)
@pytest.mark.parametrize("moment", ["2026-03-08", "2026-12-08", "2200-01-01"])
def test_a_search_for_what_a_calendar_allows_none_of_is_short(spec: dict[str, Any], moment: str) -> None:
    trigger = times.read_trigger({**spec, "only_on": "wed"}, anchor=FIRST, calendars={"wed": Calendar("wed", ("wed",))})
    start = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    begun = process_time()
    for ask in (times.next_after, times.previous_before, times.check):
        with suppress(times.TriggerError):
            assert ask(trigger, start) is None
    assert process_time() - begun < 1
