"""A callable of the team's own that says when a followed schedule is due next."""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from oncue.adapters.resolvers.python import PythonNext
from oncue.errors import ResolveError

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
GATE = threading.Event()


class Asked:
    """An object that is called."""

    async def __call__(self, after: datetime) -> datetime:
        return after + HOUR

    def by_name(self, after: datetime) -> datetime:
        return after + 2 * HOUR


def waiting(after: datetime) -> datetime:
    GATE.wait(10)
    return after + HOUR


def elsewhere(after: datetime) -> datetime:
    return (after + HOUR).astimezone(timezone(timedelta(hours=2)))


async def awaited(after: datetime) -> datetime | None:
    await asyncio.sleep(0)
    return None


def in_a_thread(after: datetime) -> datetime:
    assert threading.current_thread() is not threading.main_thread()
    return after + HOUR


@pytest.fixture(autouse=True)
def _module() -> Iterator[None]:
    GATE.clear()
    module = types.ModuleType("shop_times")
    made: dict[str, Any] = {one.__name__: one for one in (waiting, elsewhere, awaited, in_a_thread)}
    module.__dict__.update(made, asked=Asked())
    sys.modules["shop_times"] = module
    yield
    GATE.set()
    del sys.modules["shop_times"]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("in_a_thread", NOON + HOUR),
        ("elsewhere", NOON + HOUR),
        ("awaited", None),
        ("asked", NOON + HOUR),
        ("asked.by_name", NOON + 2 * HOUR),
    ],
)
async def test_it_answers_a_time_or_none(name: str, answer: datetime | None) -> None:
    assert await PythonNext(f"shop_times:{name}").first(after=NOON) == answer


async def test_one_that_hangs_is_left_alone_and_not_called_again_beside_itself() -> None:
    hanging = PythonNext("shop_times:waiting", timeout=timedelta(milliseconds=50))

    with pytest.raises(ResolveError, match=r"did not answer within 0\.05s"):
        await hanging.first(after=NOON)
    with pytest.raises(ResolveError, match="still has not answered an earlier call"):
        await hanging.first(after=NOON)

    thread = hanging._thread
    assert thread is not None
    GATE.set()
    thread.join(5)
    assert await hanging.first(after=NOON) == NOON + HOUR


async def test_a_call_that_hangs_does_not_hold_the_loop() -> None:
    hanging = asyncio.create_task(PythonNext("shop_times:waiting").first(after=NOON))

    for _ in range(10):
        await asyncio.sleep(0)
    is_under_way = not hanging.done()
    GATE.set()

    assert is_under_way
    assert await hanging == NOON + HOUR
