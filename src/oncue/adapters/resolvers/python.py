"""A team's own callable that says when a followed schedule is due next: `module:name`, plain or async."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import reduce
from importlib import import_module
from typing import Any

from oncue.errors import ResolveError


class PythonNext:
    """Calls `place` with `after`. One that is not async runs in a thread of its own, one call at a time."""

    def __init__(self, place: str, *, timeout: timedelta = timedelta(seconds=30)) -> None:
        self._place = place
        self._timeout = timeout
        self._thread: threading.Thread | None = None

    async def first(self, *, after: datetime) -> datetime | None:
        """Return the first time after `after`, None for none. Raises ResolveError."""
        function = self._load()
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                answer = function(after) if _is_async(function) else await self._call(function, after)
                return self._checked(await answer if inspect.isawaitable(answer) else answer)
        except TimeoutError:
            limit = f"{self._timeout.total_seconds():g}s"
            raise ResolveError(f"{self._place} did not answer within {limit}.") from None
        except ResolveError:
            raise
        except Exception as error:
            raise ResolveError(f"{self._place} failed: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """A call that hangs is left alone: its thread does not keep the process."""

    def _load(self) -> Callable[[datetime], Any]:
        module, _, name = self._place.partition(":")
        try:
            found = reduce(getattr, name.split("."), import_module(module))
        except (ImportError, AttributeError) as error:
            remedy = "It must be importable where the clock runs: install it, or set PYTHONPATH."
            raise ResolveError(f"{self._place} is not there: {error}. {remedy}") from None
        except Exception as error:
            raise ResolveError(f"{self._place} cannot be imported: {type(error).__name__}: {error}") from error
        if not callable(found):
            raise ResolveError(f"{self._place} is not callable: name a function that takes the time `after`.")
        function: Callable[[datetime], Any] = found
        return function

    async def _call(self, function: Callable[[datetime], Any], after: datetime) -> Any:
        if self._thread is not None and self._thread.is_alive():
            raise ResolveError(f"{self._place} still has not answered an earlier call.")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def tell(result: Any, error: BaseException | None) -> None:
            if not answer.done():
                answer.set_result(result) if error is None else answer.set_exception(error)

        def work() -> None:
            result, failed = None, None
            try:
                result = function(after)
            except Exception as error:  # noqa: BLE001  passed on to who waits, in words: a future takes no StopIteration
                failed = ResolveError(f"{self._place} failed: {type(error).__name__}: {error}")
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(tell, result, failed)

        self._thread = threading.Thread(target=work, name=f"oncue-next {self._place}", daemon=True)
        self._thread.start()
        return await answer

    def _checked(self, answer: Any) -> datetime | None:
        if answer is None:
            return None
        if not isinstance(answer, datetime):
            raise ResolveError(f"{self._place} answered {type(answer).__name__}: return a datetime, or None.")
        if answer.tzinfo is None or answer.utcoffset() is None:
            raise ResolveError(f"{self._place} answered a time without a zone: return it with one, as UTC.")
        return answer


def _is_async(function: Callable[[datetime], Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
