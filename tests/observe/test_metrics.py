"""Metrics: what is counted, and that no label holds what a user wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from oncue.model import Change
from oncue.observe.metrics import Metrics
from oncue.rules.health import Problem
from oncue.store.watch import Figures

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def metrics() -> Metrics:
    return Metrics(now=lambda: NOW)


def run(state: str, **facts: object) -> Change:
    return Change("run", "8f3", state, "why", {"task": "canary", "cause": "schedule", "late": 0.3} | facts)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (run("done"), 'oncue_runs_total{outcome="done"} 1.0'),
        (run("failed"), 'oncue_runs_total{outcome="failed"} 1.0'),
        (run("done"), 'oncue_lateness_seconds_bucket{le="0.5"} 1.0'),
        (run("done"), 'oncue_lateness_seconds_bucket{le="0.25"} 0.0'),
        (run("done", cause="manual"), "oncue_lateness_seconds_count 0.0"),
        (run("skipped", late=None), "oncue_lateness_seconds_count 0.0"),
        (Change("event", "", "accepted", facts={"count": 7}), 'oncue_events_total{verdict="accepted"} 7.0'),
        (Change("dead_letter", "1", "open", "canary", {"queue": "canary"}), "oncue_dead_letters_total 1.0"),
        (Change("dead_letter", "1", "open", "canary"), "oncue_dead_letters_total 0.0"),
        (Change("requeue", "1", "done"), 'oncue_requeues_total{outcome="done"} 1.0'),
    ],
)
def test_what_ended_is_counted(change: Change, line: str) -> None:
    counted = metrics()

    counted.count(change)

    assert line in counted.render().decode().splitlines()
    assert "canary" not in counted.render().decode()


def test_runs_that_were_only_made_are_not_counted() -> None:
    counted = metrics()

    counted.count(Change("run", "", "due", facts={"count": 3}))

    assert "oncue_runs_total{" not in counted.render().decode()


def test_what_the_watch_sees_is_set_and_what_is_over_goes() -> None:
    seen = metrics()
    figures = Figures(1, {"active": 2}, 3, 4, 5, 6, 7, NOW - timedelta(seconds=90), None, ())

    seen.see(figures, [Problem("schedule_stopped", "canary", "canary"), Problem("schedule_stopped", "b", "")])
    during = seen.render().decode()
    seen.see(figures, [])

    for line in (
        'oncue_runs_open{state="due"} 3.0',
        'oncue_runs_open{state="running"} 4.0',
        'oncue_runs_open{state="settling"} 5.0',
        "oncue_deliveries_waiting 6.0",
        "oncue_dead_letters_open 7.0",
        'oncue_schedules{state="active"} 2.0',
        'oncue_oldest_overdue_seconds{kind="schedule"} 90.0',
        'oncue_oldest_overdue_seconds{kind="run"} 0.0',
        'oncue_problems{code="schedule_stopped"} 2.0',
    ):
        assert line in during
    assert "canary" not in during
    assert "schedule_stopped" not in seen.render().decode()
