"""What cannot be had here is skipped, named in one closing line, and fails the session where `CI=true`."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

MARK = "not tested here: "


class Missing(pytest.skip.Exception):
    """A service or tool that a test needs is not on this machine: skips the test, and says how to get it."""

    def __init__(self, name: str, remedy: str) -> None:
        super().__init__(f"{MARK}{name} ({remedy})")


def closing_line(skipped: Iterable[pytest.TestReport]) -> str | None:
    """Return the line that names all that was missing, None where nothing was."""
    reasons = {str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)}
    names = sorted(reason.partition(MARK)[2] for reason in reasons if MARK in reason)
    return MARK + "; ".join(names) if names else None


def is_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"true", "1", "yes"}
