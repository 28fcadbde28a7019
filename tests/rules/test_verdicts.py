"""The verdict on each due time."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from oncue.model import Run, RunState
from oncue.rules import verdicts
from oncue.rules.firing import Verdict

BEGIN = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
GRACE = timedelta(minutes=1)


def make_run(**changes: Any) -> Run:
    """Return a run of which only what is given, and its due time, says anything."""
    plain: dict[str, Any] = dict.fromkeys(field.name for field in fields(Run))
    return Run(**(plain | {"cause": "schedule:x", "due_at": BEGIN, "caught_up": False} | changes))


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"state": "due"}, "waiting"),
        ({"state": "queued"}, "waiting"),
        ({"state": "held"}, "held"),
        ({"state": "partial"}, "partly delivered"),
        ({"state": "cancelled"}, "cancelled"),
        ({"state": "settling", "started_at": BEGIN}, "on time"),
        ({"state": "done", "started_at": BEGIN + timedelta(seconds=60)}, "on time"),
        ({"state": "done", "started_at": BEGIN + timedelta(seconds=60.001)}, "late"),
        (
            {"state": "done", "started_at": BEGIN + timedelta(minutes=9), "starts_at": BEGIN + timedelta(minutes=8)},
            "on time",
        ),
        ({"state": "done", "started_at": BEGIN + timedelta(minutes=9), "caught_up": True}, "caught up"),
    ],
)
def test_a_run_has_a_verdict(changes: dict[str, Any], verdict: str) -> None:
    assert verdicts.of_run(make_run(**changes), grace=GRACE) == verdict


@pytest.mark.parametrize("state", get_args(RunState))
def test_every_state_of_a_run_has_a_verdict(state: RunState) -> None:
    assert verdicts.of_run(make_run(state=state, started_at=BEGIN), grace=GRACE)


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_every_verdict_of_the_ledger_has_a_word(verdict: Verdict) -> None:
    assert verdicts.of_entry(verdict) in ("coalesced", "missed", "skipped")
