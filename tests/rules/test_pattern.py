"""Patterns to the second, beside a walk through every second: forwards, backwards, counted and as bits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from oncue.rules.triggers.pattern import Pattern
from tests.rules.drawing import thorough

SECOND = timedelta(seconds=1)
MIDNIGHT = datetime(2026, 2, 27, 23, 57, tzinfo=UTC).replace(tzinfo=None)
"""The walk goes over the turn of a day that is near the turn of a month."""


def masks(high: int) -> st.SearchStrategy[int]:
    return st.sets(st.integers(0, high), min_size=1, max_size=4).map(lambda some: sum(1 << value for value in some))


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    minutes = draw(st.sampled_from([(1 << 60) - 1, 1 << 57 | 1 << 59 | 1 << 1, 1 << 58, 1]))
    hours = draw(st.sampled_from([(1 << 24) - 1, 1 << 23, 1, 1 << 23 | 1]))
    days = draw(st.sampled_from([(1 << 32) - 2, 1 << 27, 1 << 28, 1 << 27 | 1 << 28]))
    return Pattern(draw(masks(59)), minutes, hours, days, (1 << 13) - 2, 127)


@thorough(60)
@given(patterns(), st.integers(0, 359), st.integers(0, 360))
def test_a_pattern_names_the_seconds_that_a_walk_finds(pattern: Pattern, start: int, length: int) -> None:
    begin = MIDNIGHT + start * SECOND
    end = begin + length * SECOND
    matching = [
        wall
        for wall in (MIDNIGHT + k * SECOND for k in range(-1, 722))
        if pattern.seconds >> wall.second & 1
        and pattern.minutes >> wall.minute & 1
        and pattern.hours >> wall.hour & 1
        and pattern.days >> wall.day & 1
    ]
    inside = [wall for wall in matching if begin <= wall < end]

    assert pattern.count_in(begin, end) == len(inside)
    assert pattern.matches_in(begin, end) == sum(1 << (wall - begin) // SECOND for wall in inside)
    found = pattern.first_from(begin)
    assert found is not None
    assert found >= begin
    if inside:
        assert found == inside[0]
        assert pattern.last_to(end - SECOND) == inside[-1]
        assert pattern.first_from(inside[0]) == inside[0]
        assert pattern.last_to(inside[0]) == inside[0]
    else:
        assert found >= end


def test_a_walk_ends_where_its_reach_does() -> None:
    leap_day = Pattern(1, 1, 1, 1 << 29, 1 << 2, 127)
    never = Pattern(1, 1, 1, 1 << 30, 1 << 2, 127)
    last = datetime(2096, 2, 29, tzinfo=UTC).replace(tzinfo=None)
    following = last.replace(year=2104)

    assert leap_day.first_from(last + SECOND) == following
    assert leap_day.last_to(following - SECOND) == last
    assert never.first_from(last) is None
    assert never.last_to(last) is None
    short = Pattern(1, 1, 1, 1 << 29, 1 << 2, 127, reach=following - last - SECOND)
    assert short.first_from(last + SECOND) == following
    assert short.first_from(last + SECOND - timedelta(days=1)) == last
    assert Pattern(1, 1, 1, 1 << 29, 1 << 2, 127, reach=following - last - 2 * SECOND).first_from(last + SECOND) is None
    assert (
        Pattern(1, 1, 1, 1 << 29, 1 << 2, 127, reach=following - last - 2 * SECOND).last_to(following - SECOND) is None
    )
    assert short.last_to(following - SECOND) == last


def test_a_walk_looks_thirteen_years_far_in_both_directions() -> None:
    friday = Pattern(1, 1, 1, 1 << 29, 1 << 2, 1 << 5)  # 29 February on a Friday: 2092 and, as 2100 has none, 2104
    first = datetime(2092, 2, 29, tzinfo=UTC).replace(tzinfo=None)

    assert friday.first_from(first + SECOND) == first.replace(year=2104)
    assert friday.last_to(first.replace(year=2104) - SECOND) == first
    assert friday.first_from(first.replace(year=2104) + SECOND) is None
    assert friday.last_to(first - SECOND) is None
