"""What is said of a due time in the end: one verdict for each, from its run or from the ledger.

A time that ran is on time, late or caught up; one that made no run has a row of the ledger, for itself or with others.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from oncue.model import Run
from oncue.rules import binding

WORDS: Final = {
    "coalesced": "coalesced",
    "missed": "missed",
    "skipped": "skipped",
    "stopped": "skipped",
    "paused": "skipped",  # as earlier versions wrote it
}
STATES: Final = {
    "due": "waiting",
    "queued": "waiting",
    "held": "held",
    "running": "running",
    "partial": "partly delivered",
    "failed": "failed to resolve",
    "skipped": "skipped",
    "expired": "expired",
    "cancelled": "cancelled",
}


def of_run(run: Run, *, grace: timedelta) -> str:
    """Return the verdict on a run's due time; `grace` is the task's, within which a start is on time."""
    if run.state in STATES:
        return STATES[run.state]
    if run.caught_up:
        return "caught up"
    late = binding.lateness(run)
    return "late" if late is not None and late > grace else "on time"


def of_entry(verdict: str) -> str:
    """Return the verdict that a row of the ledger stands for."""
    return WORDS[verdict]
