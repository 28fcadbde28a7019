"""Lists page by cursor: where the last page ended, written so that nobody counts on what it means."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Annotated, Protocol, TypeVar

from fastapi import Query
from fastapi.exceptions import RequestValidationError

from oncue.api.shapes import Page

Cursor = Annotated[str | None, Query(max_length=40)]
Limit = Annotated[int, Query(ge=1, le=1000)]


class Numbered(Protocol):
    """Anything with an id that rises."""

    @property
    def id(self) -> int: ...


N = TypeVar("N", bound=Numbered)
S = TypeVar("S")


def read_cursor(text: str | None) -> int | None:
    """Return the id that the last page ended with. Raises RequestValidationError."""
    if text is None:
        return None
    try:
        return int(base64.urlsafe_b64decode(text.encode()).decode())
    except ValueError:
        told = "was not given out by this API: leave it out to start again."
        raise RequestValidationError([{"type": "cursor", "loc": ("query", "cursor"), "msg": told}]) from None


def page_of(found: Sequence[N], shape: Callable[[N], S], *, limit: int) -> Page[S]:
    """Return one page of what was found, which is one more than `limit` where there is more."""
    is_more = len(found) > limit
    cursor = base64.urlsafe_b64encode(str(found[limit - 1].id).encode()).decode() if is_more else None
    return Page(items=[shape(one) for one in found[:limit]], next_cursor=cursor)
