"""What a resolver's query may refer to: the due time and what belongs to it, and the event that caused the run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from oncue.definition import Definition
from oncue.model import Event, Run
from oncue.rules.triggers.zones import read_zone


def parameters(run: Run, definition: Definition) -> dict[str, Any]:
    """Return the parameters of a run by name. `due_date` is the day of the due time in the schedule's zone.

    Raises TriggerError: this host's zone data does not have that zone (any more).
    """
    zone = read_zone(str((definition.schedule or {}).get("zone", "UTC")))
    bound: dict[str, Any] = {
        "due_at": run.due_at,
        "previous_due_at": run.previous_due_at,
        "due_date": run.due_at.astimezone(zone).date(),
    }
    return bound | (_of_event(run.event) if run.event else {})


def _of_event(event: Event) -> dict[str, Any]:
    bound: dict[str, Any] = {
        "event_id": event.id,
        "event_source": event.source,
        "event_type": event.type,
        "event_subject": event.subject,
        "event_time": event.time,
        "event_key": event.key,
    }
    data = event.data if isinstance(event.data, dict) else {}
    return bound | {f"event_{name}": value for name, value in data.items() if not isinstance(value, dict | list)}


def asked_by(run: Run) -> datetime:
    """Return the moment that `expires` counts from: when it was asked for, where somebody asked; else the due time.

    A backfill at a pace asks for each run at its turn.
    """
    if run.kind == "backfill":
        return run.starts_at or run.asked_at
    return run.asked_at if run.kind in ("manual", "requeue") else run.due_at


def is_expired(run: Run, expires: timedelta | None, *, now: datetime) -> bool:
    """Say whether a run is too late by its task's own rule."""
    return expires is not None and now > asked_by(run) + expires


def lateness(run: Run) -> timedelta | None:
    """Return how long after its moment, which is after jitter, a run started; None where it has not."""
    return run.started_at - (run.starts_at or asked_by(run)) if run.started_at else None
