"""Waits for a condition, never for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(ask: Callable[[], Awaitable[T]], *, within: float = 10.0) -> T:
    """Ask again and again until the answer is true, and return it. Raises TimeoutError."""
    async with asyncio.timeout(within):
        while not (found := await ask()):  # noqa: ASYNC110  what it waits for is outside this process
            await asyncio.sleep(0.01)
        return found
