"""Durations: what can be written, what is refused, and that both directions agree."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.rules.durations import LONGEST, SPELLINGS, read_duration, write_duration

READ = {
    "30s": timedelta(seconds=30),
    "250ms": timedelta(milliseconds=250),
    "10m": timedelta(minutes=10),
    "1h30m": timedelta(minutes=90),
    "2d": timedelta(days=2),
    "1w": timedelta(days=7),
    "1w2d3h4m5s6ms": timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5, milliseconds=6),
    "0s": timedelta(0),
    "0.5s": timedelta(milliseconds=500),
    " 5m ": timedelta(minutes=5),
    "PT30S": timedelta(seconds=30),
    "PT1H30M": timedelta(minutes=90),
    "P1DT12H": timedelta(hours=36),
    "P2W": timedelta(days=14),
    "pt0.000001s": timedelta(microseconds=1),
}

REFUSED = {
    "": "is not a duration",
    "s": "is not a duration",
    "5": "is not a duration",
    "5x": "is not a duration",
    "-5s": "is not a duration",
    "PT-5S": "is not a duration",
    "5s10m": "is not a duration",
    "1h 30m": "is not a duration",
    "P": "is not a duration",
    "PT": "is not a duration",
    "P1DT": "is not a duration",
    "P1M": "is not a duration",
    "P1Y": "is not a duration",
    "٣s": "is not a duration",
    "1e3s": "is not a duration",
    "0.0000001s": "is finer than a microsecond",
    "999999w": "is longer than a hundred years",
}


@pytest.mark.parametrize("text", READ)
def test_a_duration_is_read(text: str) -> None:
    assert read_duration(text) == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_nonsense_is_refused_with_the_spellings(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as caught:
        read_duration(text)

    assert str(caught.value) == f'"{text}" {REFUSED[text]}. {SPELLINGS}'


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(days=10), "10d"),
        (timedelta(days=14), "2w"),
        (timedelta(milliseconds=1250), "1s250ms"),
        (timedelta(microseconds=1), "PT0.000001S"),
    ],
)
def test_a_duration_is_written_in_its_shortest_words(duration: timedelta, text: str) -> None:
    assert write_duration(duration) == text


def test_a_negative_duration_is_not_written() -> None:
    with pytest.raises(ValueError, match="is negative"):
        write_duration(timedelta(seconds=-1))


@given(st.timedeltas(timedelta(0), LONGEST))
def test_what_is_written_reads_back(duration: timedelta) -> None:
    assert read_duration(write_duration(duration)) == duration
