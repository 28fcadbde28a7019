"""until() waits for a condition and says what it saw."""

from __future__ import annotations

from datetime import timedelta

import pytest

from oncue.testing.until import until

pytestmark = pytest.mark.anyio


async def test_it_returns_the_first_true_value_of_a_plain_predicate() -> None:
    answers = iter([None, 0, "there"])

    assert await until(lambda: next(answers)) == "there"


async def test_it_awaits_an_async_predicate() -> None:
    answers = iter([[], [1]])

    async def rows() -> list[int]:
        return next(answers)

    assert await until(rows) == [1]


async def test_it_fails_with_the_last_value_seen() -> None:
    with pytest.raises(AssertionError, match=r"not within 0.01 s: three runs; last seen: 0"):
        await until(lambda: 0, within=timedelta(seconds=0.01), what="three runs")
