"""Waits for a condition that something else brings about: for a signal, never for a second."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar, overload

from oncue import wall

T = TypeVar("T")

FIRST_WAIT = timedelta(milliseconds=2)
LONGEST_WAIT = timedelta(milliseconds=100)


@overload
async def until(predicate: Callable[[], Awaitable[T]], *, within: timedelta = ..., what: str | None = None) -> T: ...
@overload
async def until(predicate: Callable[[], T], *, within: timedelta = ..., what: str | None = None) -> T: ...
async def until(
    predicate: Callable[[], Any], *, within: timedelta = timedelta(seconds=10), what: str | None = None
) -> Any:
    """Ask `predicate` again and again until its value is true, and return that value.

    Raises AssertionError, with the last value seen, when that takes longer than `within`. `what` says what is awaited.
    """
    end, wait = wall.monotonic() + within.total_seconds(), FIRST_WAIT
    while True:
        answer = predicate()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if wall.monotonic() >= end:
            name = what or getattr(predicate, "__qualname__", repr(predicate))
            raise AssertionError(f"not within {within.total_seconds():g} s: {name}; last seen: {value!r}")
        await asyncio.sleep(wait.total_seconds())
        wait = min(wait * 1.5, LONGEST_WAIT)
