"""Metrics for Prometheus: counted from what changes, and set from what the watch sees. No label holds a user's text."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from oncue.model import Change
from oncue.rules import states
from oncue.rules.health import Problem

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENESS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
ON_CUE = ("schedule", "event", "cues")


class Figures(Protocol):
    """What is read of the store's: `oncue.store.watch.Figures`."""

    @property
    def schedules(self) -> Mapping[str, int]: ...
    @property
    def runs_due(self) -> int: ...
    @property
    def runs_running(self) -> int: ...
    @property
    def runs_settling(self) -> int: ...
    @property
    def runs_held(self) -> int: ...
    @property
    def deliveries_waiting(self) -> int: ...
    @property
    def dead_letters_open(self) -> int: ...
    @property
    def oldest_schedule(self) -> datetime | None: ...
    @property
    def oldest_run(self) -> datetime | None: ...


class Metrics:
    """One process's metrics, in a registry of their own."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.seen_at: datetime | None = None
        self.registry = registry = CollectorRegistry()
        self._lateness = Histogram(
            "oncue_lateness_seconds", "Run start minus due time.", buckets=LATENESS, registry=registry
        )
        self._runs = Counter("oncue_runs_total", "Runs that ended.", ["outcome"], registry=registry)
        self._events = Counter("oncue_events_total", "Events that came in.", ["verdict"], registry=registry)
        self._letters = Counter("oncue_dead_letters_total", "Dead letters that were opened.", registry=registry)
        self._requeues = Counter("oncue_requeues_total", "Requeues that ended.", ["outcome"], registry=registry)
        self._open_runs = Gauge("oncue_runs_open", "Runs that have not ended.", ["state"], registry=registry)
        self._waiting = Gauge("oncue_deliveries_waiting", "Deliveries that are to be tried.", registry=registry)
        self._open_letters = Gauge("oncue_dead_letters_open", "Dead letters that wait for one.", registry=registry)
        self._schedules = Gauge("oncue_schedules", "Schedules.", ["state"], registry=registry)
        self._overdue = Gauge(
            "oncue_oldest_overdue_seconds", "Age of the oldest that is due and waits.", ["kind"], registry=registry
        )
        self._problems = Gauge("oncue_problems", "What is wrong now.", ["code"], registry=registry)

    def count(self, change: Change) -> None:
        """Count a change: a listener of the store."""
        match change.noun:
            case "run" if change.state in states.ends("run"):
                self._runs.labels(change.state).inc()
                self._observe(change)
            case "event":
                self._events.labels(change.state).inc(change.facts.get("count", 1))
            case "dead_letter" if change.state == "open" and change.facts:
                self._letters.inc()
            case "requeue" if change.state in states.ends("requeue"):
                self._requeues.labels(change.state).inc()

    def see(self, figures: Figures, problems: Sequence[Problem]) -> None:
        """Set what is counted in the store, as it was just read."""
        now = self.seen_at = self._now()
        self._open_runs.labels("due").set(figures.runs_due)
        self._open_runs.labels("running").set(figures.runs_running)
        self._open_runs.labels("settling").set(figures.runs_settling)
        self._open_runs.labels("held").set(figures.runs_held)
        self._waiting.set(figures.deliveries_waiting)
        self._open_letters.set(figures.dead_letters_open)
        for state in states.states("schedule"):
            self._schedules.labels(state).set(figures.schedules.get(state, 0))
        self._overdue.labels("schedule").set(_age(figures.oldest_schedule, now))
        self._overdue.labels("run").set(_age(figures.oldest_run, now))
        self._problems.clear()
        for code, count in Tally(problem.code for problem in problems).items():
            self._problems.labels(code).set(count)

    def is_older_than(self, age: timedelta) -> bool:
        """Say whether what `see` was given last is out of date."""
        return self.seen_at is None or self._now() - self.seen_at > age

    def render(self) -> bytes:
        """Return everything in the text format of Prometheus."""
        return generate_latest(self.registry)

    def _observe(self, change: Change) -> None:
        late = change.facts.get("late")
        if late is not None and change.facts.get("cause") in ON_CUE:
            self._lateness.observe(max(late, 0.0))


def _age(moment: datetime | None, now: datetime) -> float:
    return max((now - moment).total_seconds(), 0.0) if moment else 0.0
