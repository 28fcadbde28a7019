"""One page of a list, as the API and the command line's `--json` show it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from oncue.api.shapes import Page


class Numbered(Protocol):
    """Anything with an id that rises."""

    @property
    def id(self) -> int: ...


N = TypeVar("N", bound=Numbered)
S = TypeVar("S")


def page_of(found: Sequence[N], shape: Callable[[N], S], *, limit: int) -> Page[S]:
    """Return one page of what was found, which is one more than `limit` where there is more."""
    is_more = len(found) > limit
    cursor = base64.urlsafe_b64encode(str(found[limit - 1].id).encode()).decode() if is_more else None
    return Page(items=[shape(one) for one in found[:limit]], next_cursor=cursor)
