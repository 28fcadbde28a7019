"""Jitter and spread: the same share for the same words everywhere, evenly, and never as far as the next due time."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.errors import TriggerError
from oncue.rules import pacing
from oncue.rules.pacing import Pacing

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TASK = UUID(int=7)
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
SHARE = 0.8873619515247402
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - their zone follows
SPANS = st.timedeltas(TICK, timedelta(days=40))
UUIDS = st.uuids()
KEYS = st.one_of(st.integers(), st.text(max_size=30))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"every": "1m"}, pacing.NONE),
        ({"every": "1m", "jitter": "30s"}, Pacing(jitter=timedelta(seconds=30))),
        ({"every": "1m", "spread": "5m"}, Pacing(spread=timedelta(minutes=5))),
        ({"every": "1m", "max_runs": 3}, Pacing(max_runs=3)),
        (
            {"jitter": "1h", "spread": "PT1S", "max_runs": 10**9},
            Pacing(timedelta(hours=1), timedelta(seconds=1), 10**9),
        ),
    ],
)
def test_a_pace_is_read_from_a_schedule(spec: dict[str, object], expected: Pacing) -> None:
    assert pacing.read_pacing(spec) == expected


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"jitter": 30}, "jitter"),
        ({"jitter": "soon"}, "jitter"),
        ({"jitter": "0s"}, "jitter"),
        ({"spread": True}, "spread"),
        ({"spread": "-5m"}, "spread"),
        ({"max_runs": 0}, "max_runs"),
        ({"max_runs": -1}, "max_runs"),
        ({"max_runs": True}, "max_runs"),
        ({"max_runs": 1.0}, "max_runs"),
        ({"max_runs": "3"}, "max_runs"),
        ({"max_runs": 10**9 + 1}, "max_runs"),
    ],
)
def test_a_pace_that_is_none_is_refused_by_its_place(spec: dict[str, object], place: str) -> None:
    with pytest.raises(TriggerError, match=f"^{place}: "):
        pacing.read_pacing(spec)


def test_a_pace_is_no_part_of_when_a_schedule_is_due() -> None:
    spec = {"every": "1m", "zone": "UTC", "jitter": "1s", "spread": "1s", "max_runs": 1}

    assert pacing.trigger_of(spec) == {"every": "1m", "zone": "UTC"}


def test_shares_are_what_they_were_in_every_process_and_version() -> None:
    """A host that reckons another share would send twice, or never: these numbers are a promise."""
    text = f"{TASK}:2026-03-02T09:00:00Z"
    code = f"from oncue.rules.pacing import share; print(repr(share({text!r})))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert float(told.stdout) == pacing.share(text) == SHARE
    assert pacing.starts_at(Pacing(jitter=MINUTE), TASK, START, following=None) == START + SHARE * MINUTE


def test_the_greatest_share_is_less_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash of ones alone would round to 1, and meet the next due time."""

    class Ones:
        def digest(self) -> bytes:
            return b"\xff" * 8

    monkeypatch.setattr(hashlib, "blake2b", lambda *_, **__: Ones())

    assert pacing.share("any") < 1


def test_shares_are_spread_evenly() -> None:
    """Each tenth of a jitter gets about a tenth of the tasks: within five standard deviations."""
    tenths = [0] * 10
    for number in range(20_000):
        moment = pacing.starts_at(Pacing(jitter=MINUTE), UUID(int=number), START, following=None)
        assert moment is not None
        tenths[int((moment - START) / MINUTE * 10)] += 1

    assert all(abs(count - 2000) < 5 * (20_000 * 0.1 * 0.9) ** 0.5 for count in tenths), tenths


def test_the_due_times_of_one_task_are_moved_by_different_shares() -> None:
    paced = [pacing.starts_at(Pacing(jitter=MINUTE), TASK, START + n * MINUTE, following=None) for n in range(100)]

    assert len({moment - START - n * MINUTE for n, moment in enumerate(paced) if moment}) == 100


@given(task=UUIDS, due=MOMENTS, jitter=SPANS, until_next=SPANS)
def test_a_start_is_never_before_its_due_time_nor_at_the_next(
    task: UUID, due: datetime, jitter: timedelta, until_next: timedelta
) -> None:
    following = due + until_next

    moment = pacing.starts_at(Pacing(jitter=jitter), task, due, following=following)

    assert moment is not None
    assert due <= moment < following
    assert moment <= due + jitter
    assert moment == pacing.starts_at(Pacing(jitter=jitter), task, due, following=following)


@given(task=UUIDS, key=KEYS, due=MOMENTS, start=SPANS, spread=SPANS, until_next=SPANS)
def test_a_message_goes_out_after_its_start_and_before_the_next_due_time(
    task: UUID, key: str | int, due: datetime, start: timedelta, spread: timedelta, until_next: timedelta
) -> None:
    began = due + start
    following = began + until_next
    until = pacing.spread_until(Pacing(spread=spread), began, following=following)
    assert until is not None

    sent = pacing.sent_at(task, key, due, start=began, until=until)

    assert began <= sent < following
    assert sent <= began + spread
    assert sent == pacing.sent_at(task, key, due, start=began, until=until)


def test_the_messages_of_a_run_are_spread_evenly_and_each_by_itself() -> None:
    sent = [pacing.sent_at(TASK, f"k{n}", START, start=START, until=START + 10 * MINUTE) for n in range(10_000)]

    by_minute = [0] * 10
    for moment in sent:
        by_minute[(moment - START) // MINUTE] += 1
    assert all(850 < count < 1150 for count in by_minute), by_minute
    assert len(set(sent)) > 9_900


def test_a_run_that_starts_when_the_next_is_due_already_sends_at_once() -> None:
    until = pacing.spread_until(Pacing(spread=MINUTE), START, following=START - MINUTE)

    assert until == START
    assert pacing.sent_at(TASK, "k", START, start=START, until=START) == START


def test_without_jitter_and_spread_nothing_is_moved() -> None:
    assert pacing.starts_at(pacing.NONE, TASK, START, following=None) is None
    assert pacing.spread_until(pacing.NONE, START, following=None) is None
