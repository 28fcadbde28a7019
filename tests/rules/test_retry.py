"""When to try again: within the cap, spread, the same on every replay, and not for ever."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.definition import Retry
from oncue.rules import retry

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(("attempts", "is_over"), [(0, False), (4, False), (5, True), (6, True)])
def test_a_policy_allows_as_many_attempts_as_it_says(attempts: int, is_over: bool) -> None:
    assert retry.is_exhausted(Retry(attempts=5), attempts) is is_over


@pytest.mark.parametrize(
    ("backoff", "attempts", "longest"),
    [("exponential", 1, 2), ("exponential", 3, 8), ("exponential", 99, 300), ("fixed", 1, 2), ("fixed", 9, 2)],
)
def test_the_wait_is_anywhere_up_to_the_backoff(backoff: str, attempts: int, longest: int) -> None:
    policy = Retry(backoff="fixed" if backoff == "fixed" else "exponential")
    waits = [retry.retry_at(policy, attempts, now=NOW, seed=f"m{number}") - NOW for number in range(500)]

    assert min(waits) >= timedelta(0)
    assert longest * 0.95 * SECOND < max(waits) <= longest * SECOND


def test_what_failed_at_one_second_does_not_come_back_at_one_second() -> None:
    """B82: 500 messages fail at once with a delay of 15 s; at most a few per cent in any one second."""
    policy = Retry(first=60 * SECOND)
    seconds = Counter(
        int((retry.retry_at(policy, 1, now=NOW, seed=f"m{number}") - NOW).total_seconds()) for number in range(500)
    )

    assert max(seconds.values()) <= 0.05 * 500


@given(attempts=st.integers(0, 10**6), seed=st.text())
def test_a_replay_agrees_and_no_wait_is_negative_or_above_the_cap(attempts: int, seed: str) -> None:
    first, again = (retry.retry_at(Retry(), attempts, now=NOW, seed=seed) for _ in range(2))

    assert first == again
    assert NOW <= first <= NOW + Retry().cap


@pytest.mark.parametrize(
    ("asked", "waited"), [(timedelta(hours=1), timedelta(hours=1)), (timedelta(days=9), timedelta(days=1))]
)
def test_what_the_other_side_asks_for_is_obeyed_up_to_a_day(asked: timedelta, waited: timedelta) -> None:
    assert retry.retry_at(Retry(), 1, now=NOW, seed="m", at_least=asked) == NOW + waited


@given(st.text())
def test_a_fraction_is_less_than_one(seed: str) -> None:
    assert 0 <= retry.fraction(seed) < 1
