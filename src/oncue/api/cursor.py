"""Lists page by cursor: where the last page ended, written so that nobody counts on what it means."""

from __future__ import annotations

import base64
from typing import Annotated

from fastapi import Query
from fastapi.exceptions import RequestValidationError

Cursor = Annotated[str | None, Query(max_length=40)]
Limit = Annotated[int, Query(ge=1, le=1000)]


def read_cursor(text: str | None) -> int | None:
    """Return the id that the last page ended with. Raises RequestValidationError."""
    if text is None:
        return None
    try:
        return int(base64.urlsafe_b64decode(text.encode()).decode())
    except ValueError:
        told = "was not given out by this API: leave it out to start again."
        raise RequestValidationError([{"type": "cursor", "loc": ("query", "cursor"), "msg": told}]) from None
