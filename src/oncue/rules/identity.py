"""Who is who: ids that come out the same on every retry, in every process. Rules of `docs/design.md`, "Identity"."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from uuid import NAMESPACE_OID, UUID, uuid5

from oncue.model import Key


def run_uuid(task_uuid: UUID, cause: str) -> UUID:
    """Return the id of the one run that `cause` makes of a task."""
    return uuid5(task_uuid, cause)


def backfill_uuid(task_uuid: UUID, key: str) -> UUID:
    """Return the id of the one backfill that a key makes of a task."""
    return uuid5(task_uuid, f"backfill:{key}")


def message_uuid(base: UUID, key: Key) -> UUID:
    """Return the id of the message to one entity; `base` is the run that first resolved it."""
    return uuid5(base, str(key))


def followed_uuid(task_uuid: UUID, key: Key, due_at: datetime) -> UUID:
    """Return the id of the message to an entity that is followed: the same whichever run hands it over."""
    return uuid5(task_uuid, f"followed:{time_text(due_at)}:{key}")


def time_text(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with a Z, microseconds only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def schedule_cause(due_at: datetime) -> str:
    return f"schedule:{time_text(due_at)}"


def late_cause(until: datetime, number: int) -> str:
    """Return the cause of a run for those who appeared behind the horizon of a followed schedule, up to `until`."""
    return f"{schedule_cause(until)}:late:{number}"


def event_cause(source: str, event_id: str) -> str:
    """Return the cause of an event. Sources are full of colons, so those of the id are written as in a URL."""
    return f"event:{source}:{event_id.replace('%', '%25').replace(':', '%3A')}"


def manual_cause(key: str) -> str:
    return f"manual:{key}"


def requeue_cause(requeue: UUID, dead_letter: UUID) -> str:
    return f"requeue:{requeue}:{dead_letter}"


def backfill_cause(backfill: UUID, due_at: datetime) -> str:
    return f"backfill:{backfill}:{time_text(due_at)}"


def delivery_identity(message: UUID, requeue: int) -> str:
    """Return the identity of a dead letter of our own: a message dies once for each time it is requeued."""
    return f"message:{message}:{requeue}"


def run_identity(run: UUID) -> str:
    return f"run:{run}"


def broker_identity(message: UUID | None, requeue: int, queue: str, *, deaths: int, body: bytes) -> str:
    """Return the identity of a dead letter read from a broker; strangers go by a hash of their bytes."""
    who = str(message) if message else f"sha256:{hashlib.sha256(body).hexdigest()}"
    return f"broker:{who}:{requeue}:{queue}:{deaths}"


def dead_letter_uuid(dead_letter_identity: str) -> UUID:
    return uuid5(NAMESPACE_OID, dead_letter_identity)


def event_digest(canonical: bytes) -> str:
    """Return what tells two events of the same id apart."""
    return hashlib.sha256(canonical).hexdigest()
