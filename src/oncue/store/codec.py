"""Rows to nouns and back: JSON, ids and times as either database gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from pydantic_core import to_json

from oncue.definition import Calendar, Definition, EventResolver, NoResolver, Resolver, SqlResolver
from oncue.model import (
    Attempt,
    DeadLetter,
    DeadLetterId,
    Delivery,
    DeliveryId,
    Event,
    NewDeadLetter,
    Requeue,
    RequeueId,
    Run,
    RunId,
    Schedule,
    Task,
    TaskId,
    Timing,
)
from oncue.rules import followed, pacing, times
from oncue.store.base import Row

ATTEMPTS_KEPT = 20
TEXT_KEPT = 2000

RESOLVERS: dict[type[Resolver], str] = {SqlResolver: "sql", EventResolver: "event", NoResolver: "none"}
_DEFINITION = TypeAdapter(Definition)
_TIMING = TypeAdapter(Timing)
_CALENDAR = TypeAdapter(Calendar)
_ATTEMPTS = TypeAdapter(tuple[Attempt, ...])


def write_json(value: Any) -> str:
    """Return JSON text; None stays None in the column by the caller's choice."""
    return to_json(value).decode()


def read_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def write_definition(definition: Definition) -> str:
    """Return a definition as JSON. Resolvers without a setting of their own are told apart by their kind."""
    mapping = _DEFINITION.dump_python(definition, mode="json")
    mapping["resolve"]["kind"] = RESOLVERS[type(definition.resolve)]
    return write_json(mapping)


@lru_cache(4096)
def read_definition(text: str) -> Definition:
    mapping = json.loads(text)
    kind = mapping["resolve"].pop("kind")
    (resolver,) = (resolver for resolver, name in RESOLVERS.items() if name == kind)
    return replace(_DEFINITION.validate_python(mapping), resolve=resolver(**mapping["resolve"]))


def write_timing(timing: Timing) -> str:
    return _TIMING.dump_json(timing).decode()


@lru_cache(65536)
def read_timing(text: str) -> Timing:
    """Return what the clock needs of a definition. Kept by its text, which many schedules may share."""
    return _TIMING.validate_json(text)


@lru_cache(65536)
def read_trigger(text: str) -> times.Trigger:
    """Return the trigger of a timing. Raises TriggerError where its rule can no longer be followed."""
    timing = read_timing(text)
    return times.read_trigger(
        timing.schedule,
        anchor=timing.anchor,
        name=timing.name,
        calendars={one.name: one for one in timing.calendars},
        overrides=timing.overrides,
    )


@lru_cache(65536)
def read_pacing(text: str) -> pacing.Pacing:
    """Return the pace of a timing."""
    return pacing.read_pacing(read_timing(text).schedule)


def write_calendar(calendar: Calendar) -> str:
    return _CALENDAR.dump_json(calendar).decode()


@lru_cache(256)
def read_calendar(text: str) -> Calendar:
    """Return a calendar. Kept by its text: the watch looks at all of them every few seconds."""
    return _CALENDAR.validate_json(text)


@lru_cache(65536)
def read_followed(text: str) -> followed.Followed | None:
    """Return the followed schedule of a timing, None where it is of another kind. Raises TriggerError."""
    spec = read_timing(text).schedule
    return followed.read_followed(spec) if followed.is_followed(spec) else None


def write_attempts(attempts: Sequence[Attempt]) -> str:
    told = tuple(Attempt(attempt.at, plain_text(attempt.error) or "") for attempt in attempts[-ATTEMPTS_KEPT:])
    return _ATTEMPTS.dump_json(told).decode()


def plain_text(text: str | None) -> str | None:
    """Return what others said of a failure as text that every database takes, and not a book."""
    if text is None:
        return None
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()[:TEXT_KEPT]


def read_attempts(text: str) -> tuple[Attempt, ...]:
    return _ATTEMPTS.validate_json(text)


def as_time(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def as_uuid(value: Any) -> UUID | None:
    return UUID(value) if isinstance(value, str) else value


def read_task(row: Row) -> Task:
    return Task(
        id=TaskId(row["id"]),
        uuid=known_uuid(row["uuid"]),
        version=row["version"],
        state=row["state"],
        reason=row["reason"],
        created_at=known_time(row["created_at"]),
        changed_at=known_time(row["changed_at"]),
        definition=read_definition(row["definition"]),
        resume_at=as_time(row["resume_at"]),
    )


def read_schedule(row: Row) -> Schedule:
    """Return where a schedule stands."""
    return Schedule(
        TaskId(row["task_id"]),
        known_uuid(row["task_uuid"]),
        row["task_version"],
        row["version"],
        as_time(row["next_at"]),
        as_time(row["last_due_at"]),
        row["timing"],
        row["state"],
        row["reason"],
        as_time(row["since"]),
        row["runs_left"],
        row["zone_data"],
    )


def read_run(row: Row) -> Run:
    return Run(
        id=RunId(row["id"]),
        uuid=known_uuid(row["uuid"]),
        task_id=TaskId(row["task_id"]),
        task_name=row["task_name"],
        task_version=row["task_version"],
        cause=row["cause"],
        due_at=known_time(row["due_at"]),
        ready_at=known_time(row["ready_at"]),
        state=row["state"],
        reason=row["reason"],
        attempts=row["attempts"],
        fence=row["fence"],
        overlap=row["overlap"],
        caught_up=bool(row["caught_up"]),
        asked_at=known_time(row["asked_at"]),
        started_at=as_time(row["started_at"]),
        ended_at=as_time(row["ended_at"]),
        cursor=row["cursor_text"],
        previous_due_at=as_time(row["previous_due_at"]),
        event=_event(row),
        dead_letter_id=row["dead_letter_id"],
        stop_reason=row["stop_reason"],
        resolved=row["resolved"],
        confirmed=row["confirmed"],
        dead=row["dead"],
        dropped=row["dropped"],
        open=row["open"],
        starts_at=as_time(row["starts_at"]),
        spread_until=as_time(row["spread_until"]),
    )


def read_delivery(row: Row) -> Delivery:
    return Delivery(
        id=DeliveryId(row["id"]),
        run_id=RunId(row["run_id"]),
        message_id=known_uuid(row["message_id"]),
        key=read_json(row["key_json"]),
        data=read_json(row["data"]),
        requeue=row["requeue"],
        state=row["state"],
        reason=row["reason"],
        ready_at=known_time(row["ready_at"]),
        attempts=row["attempts"],
        fence=row["fence"],
        errors=_ATTEMPTS.validate_json(row["errors"]),
        created_at=known_time(row["created_at"]),
        ended_at=as_time(row["ended_at"]),
    )


def read_dead_letter(row: Row) -> DeadLetter:
    what = NewDeadLetter(
        identity=row["identity"],
        kind=row["kind"],
        reason=row["reason"],
        task_id=row["task_id"],
        task_name=row["task_name"],
        task_version=row["task_version"],
        run_id=row["run_id"],
        run_uuid=as_uuid(row["run_uuid"]),
        message_id=as_uuid(row["message_id"]),
        key=read_json(row["key_json"]),
        data=read_json(row["data"]),
        requeue=row["requeue"],
        attempts=_ATTEMPTS.validate_json(row["attempts"]),
        broker=row["broker"],
        queue=row["queue"],
        origin=row["origin"],
        body=row["body"],
        content_type=row["content_type"],
        headers=read_json(row["headers"]),
        properties=read_json(row["properties"]),
        cursor=row["cursor_text"],
    )
    return DeadLetter(
        id=DeadLetterId(row["id"]),
        uuid=known_uuid(row["uuid"]),
        state=row["state"],
        what=what,
        created_at=known_time(row["created_at"]),
        ended_at=as_time(row["ended_at"]),
        ended_reason=row["ended_reason"],
        parent_id=row["parent_id"],
        requeue_id=row["requeue_id"],
    )


def read_requeue(row: Row) -> Requeue:
    return Requeue(
        id=RequeueId(row["id"]),
        uuid=known_uuid(row["uuid"]),
        state=row["state"],
        reason=row["reason"],
        rate=row["rate"],
        ask=bool(row["ask"]),
        total=row["total"],
        sent=row["sent"],
        recovered=row["recovered"],
        failed=row["failed"],
        actor=row["actor"],
        created_at=known_time(row["created_at"]),
        ready_at=known_time(row["ready_at"]),
        ended_at=as_time(row["ended_at"]),
        forgiven=row["forgiven"],
    )


def write_dead_letter(letter: NewDeadLetter) -> Mapping[str, Any]:
    """Return the columns of a new dead letter; bytes stay bytes, structures become JSON."""
    return {
        "identity": letter.identity,
        "kind": letter.kind,
        "reason": plain_text(letter.reason),
        "task_id": letter.task_id,
        "task_name": letter.task_name,
        "task_version": letter.task_version,
        "run_id": letter.run_id,
        "run_uuid": letter.run_uuid,
        "message_id": letter.message_id,
        "key_json": None if letter.key is None else write_json(letter.key),
        "data": None if letter.data is None else write_json(letter.data),
        "requeue": letter.requeue,
        "attempts": write_attempts(letter.attempts),
        "broker": letter.broker,
        "queue": letter.queue,
        "origin": letter.origin,
        "body": letter.body,
        "content_type": letter.content_type,
        "headers": _plain(letter.headers),
        "properties": _plain(letter.properties),
        "cursor_text": letter.cursor,
    }


def _plain(mapping: Mapping[str, Any]) -> str:
    return to_json(mapping, fallback=str, bytes_mode="base64", inf_nan_mode="constants").decode()


def _event(row: Row) -> Event | None:
    if row["event_name"] is None:
        return None
    return Event(
        id=row["event_name"],
        source=row["event_source"],
        type=row["event_type"],
        subject=row["event_subject"],
        time=known_time(row["event_occurred_at"]),
        data=read_json(row["event_data"]),
    )


def known_time(value: Any) -> datetime:
    moment = as_time(value)
    assert moment is not None
    return moment


def known_uuid(value: Any) -> UUID:
    known = as_uuid(value)
    assert known is not None
    return known
