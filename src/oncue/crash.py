"""Places where a process may be made to die, so that tests can walk every one of them.

`ONCUE_CRASH=point:n` ends the process at the n-th pass of a point, as `kill -9` would. A point registers itself when
its module is loaded: `POINT = crash.point("clock.before_commit")`, and then `POINT()` where it stands.
"""

from __future__ import annotations

import os
from collections.abc import Callable

POINTS: list[str] = []


def point(name: str) -> Callable[[], None]:
    """Register a point and return what to call there: nothing happens but in a process that was told to die."""
    POINTS.append(name)
    wanted, _, count = os.environ.get("ONCUE_CRASH", "").partition(":")
    if wanted != name:
        return _pass
    left = int(count or 1)

    def die() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(137)

    return die


def _pass() -> None:
    return
