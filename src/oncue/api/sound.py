"""JSON from strangers: what another reader might read differently, or not at all, is refused before it is believed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Final

LIMIT: Final = 256 * 1024  # bytes of a body
DEPTH: Final = 32


class Unsound(ValueError):
    """The text is no JSON that can be taken; the message says why."""


def read_json(body: bytes) -> Any:
    """Return what a body holds. Raises Unsound."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError:
        raise Unsound("the body is not UTF-8.") from None
    except RecursionError:
        raise Unsound(f"the body is nested deeper than {DEPTH}.") from None
    except ValueError as error:
        words = str(error).partition("; use sys.")[0]  # Python tells programmers how to raise its limit for numbers
        raise Unsound(f"the body is not JSON that can be taken: {words}.") from None
    check(value)
    return value


def check(value: Any, depth: int = 0) -> None:
    """Raise Unsound for a value that is nested too deep, or holds half of a character."""
    match value:
        case str():
            if not value.isascii() and not _is_text(value):
                raise Unsound("a text holds half of a surrogate pair, which is no character.")
        case dict() | list():
            if depth == DEPTH:
                raise Unsound(f"the body is nested deeper than {DEPTH}.")
            for part in [*value, *value.values()] if isinstance(value, dict) else value:
                check(part, depth + 1)


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f'the key "{name[:50]}" stands twice')
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
