"""What is shown of the nouns outside: the JSON of the API, and of the command line's `--json`. Ids here are UUIDs."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from oncue.engine.handover import Preview
from oncue.model import Attempt, Delivery, Event, Json, Key, Run, Schedule, Task
from oncue.rules import binding, followed, times
from oncue.rules.health import Problem
from oncue.rules.triggers.at import EARLIEST_YEAR, LATEST_YEAR
from oncue.store import codec
from oncue.store.followed import Following
from oncue.taskfile import definition_to_json

T = TypeVar("T")
Time = Annotated[datetime, AfterValidator(lambda moment: moment.astimezone(UTC))]
Moment = Annotated[AwareDatetime, AfterValidator(lambda moment: _within_years(moment))]
"""A moment that somebody gives; far-off years are refused, for not even UTC can be reckoned beside them."""

Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00]+$")]


def _within_years(moment: datetime) -> datetime:
    if not EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
        raise ValueError(f"{moment.isoformat()} is not a time from {EARLIEST_YEAR} to {LATEST_YEAR}.")
    return moment


class Shape(BaseModel):
    """One noun as it is shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Body(BaseModel):
    """What a request says; a key that is not known is refused, for it was meant to say something."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Page(Shape, Generic[T]):
    """A part of a list; `next_cursor` asks for the part after it, null after the last."""

    items: list[T]
    next_cursor: str | None = None


class OverrideShape(Shape):
    """One due time that a person skipped, or moved."""

    due_at: Time
    moved_to: Time | None
    reason: str


class FollowedShape(Shape):
    """Where a followed schedule stands: what is due by the `horizon` has had a window.

    `answer_at` is what its data answered when it was last asked; `failing_since` and `reason` say that it cannot be.
    """

    horizon: Time
    asked_at: Time | None
    answer_at: Time | None
    failing_since: Time | None
    reason: str | None


class ScheduleShape(Shape):
    """When a task is due. `words` says the trigger as a sentence; `runs_left` counts down from its `max_runs`.

    `followed` is there where the next time is read from data.
    """

    trigger: Json
    words: str
    state: str
    reason: str | None
    next_at: Time | None
    last_due_at: Time | None
    runs_left: int | None
    overrides: list[OverrideShape]
    followed: FollowedShape | None = None


class TaskShape(Shape):
    """A task, with its definition as it would stand in a task file."""

    id: UUID
    name: str
    version: int
    state: str
    reason: str | None
    description: str
    schedule: ScheduleShape | None
    definition: Json
    created_at: Time
    changed_at: Time
    resume_at: Time | None


class EventShape(Shape):
    """The event that caused a run."""

    id: str
    source: str
    type: str
    subject: str | None
    time: Time


class RunShape(Shape):
    """One firing of a task, with what became of its entities so far."""

    id: UUID
    task: str
    task_version: int
    cause: str
    state: str
    reason: str | None
    due_at: Time
    starts_at: Time | None
    asked_at: Time
    started_at: Time | None
    ended_at: Time | None
    late_seconds: float | None
    caught_up: bool
    attempts: int
    resolved: int
    confirmed: int
    dead: int
    dropped: int
    open: int
    event: EventShape | None


class AttemptShape(Shape):
    """One try that failed."""

    at: Time
    error: str


class DeliveryShape(Shape):
    """One message that was not confirmed at once."""

    message_id: UUID
    key: Key
    state: str
    reason: str | None
    ready_at: Time
    attempts: int
    errors: list[AttemptShape]
    created_at: Time
    ended_at: Time | None


class RunDetailShape(RunShape):
    """A run with its deliveries, the first hundred."""

    deliveries: list[DeliveryShape]


class FiredShape(Shape):
    """A run made by hand; `duplicate` where the key had made it before."""

    run: UUID
    duplicate: bool


class CancelledShape(Shape):
    """What asking a run to end came to."""

    run: UUID
    outcome: str


class NextShape(Shape):
    """When a task is due next."""

    times: list[Time]


class MessageShape(Shape):
    """A message as a worker would get it."""

    id: UUID
    key: Key
    content_type: str | None
    headers: Json
    properties: Json
    body: str | None
    body_base64: str | None
    error: str | None = None


class PreviewShape(Shape):
    """Who would be resolved now, and what each would get; nothing was sent. `more` where further pages would follow."""

    task: str
    due_at: Time
    messages: list[MessageShape]
    more: bool


class AcceptedShape(Shape):
    """What became of an event; `runs` are those that it made now."""

    id: str
    duplicate: bool
    runs: list[UUID]


class AppliedShape(Shape):
    """What applying a definition came to."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "removed"]
    version: int


class ProblemShape(Shape):
    """Something that is wrong now, and what to do."""

    code: str
    subject: str
    text: str
    urgent: bool


def task_shape(task: Task, schedule: Schedule | None, following: Following | None = None) -> TaskShape:
    return TaskShape(
        id=task.uuid,
        name=task.name,
        version=task.version,
        state=task.state,
        reason=task.reason,
        description=task.definition.description,
        schedule=_schedule_shape(schedule, following) if schedule else None,
        definition=definition_to_json(task.definition),
        created_at=task.created_at,
        changed_at=task.changed_at,
        resume_at=task.resume_at,
    )


def run_shape(run: Run) -> RunShape:
    return RunShape(**_run_fields(run))


def run_detail(run: Run, deliveries: Sequence[Delivery]) -> RunDetailShape:
    return RunDetailShape(**_run_fields(run), deliveries=[_delivery_shape(delivery) for delivery in deliveries])


def preview_shape(task: Task, preview: Preview) -> PreviewShape:
    messages = [
        MessageShape(
            id=one.message_id,
            key=one.entity.key,
            content_type=one.message.content_type if one.message else None,
            headers=_plain(one.message.headers) if one.message else {},
            properties=_plain(one.message.properties) if one.message else {},
            error=None if one.message else getattr(one.outcome, "reason", "cannot be written"),
            **body_fields(one.message.body if one.message else None),
        )
        for one in preview.messages
    ]
    return PreviewShape(task=task.name, due_at=preview.due_at, messages=messages, more=preview.more)


def problem_shape(problem: Problem) -> ProblemShape:
    return ProblemShape(code=problem.code, subject=problem.subject, text=problem.text, urgent=problem.urgent)


def _followed_shape(following: Following) -> FollowedShape:
    return FollowedShape(**{name: getattr(following, name) for name in FollowedShape.model_fields})


def _schedule_shape(schedule: Schedule, following: Following | None) -> ScheduleShape:
    timing, rule = codec.read_timing(schedule.timing), codec.read_followed(schedule.timing)
    return ScheduleShape(
        trigger=timing.schedule,
        words=followed.describe(rule) if rule else times.describe(codec.read_trigger(schedule.timing)),
        state=schedule.state,
        reason=schedule.reason,
        next_at=schedule.next_at,
        last_due_at=schedule.last_due_at,
        runs_left=schedule.runs_left,
        overrides=[
            OverrideShape(due_at=one.due_at, moved_to=one.moved_to, reason=one.reason) for one in timing.overrides
        ],
        followed=_followed_shape(following) if following else None,
    )


def _run_fields(run: Run) -> dict[str, Any]:
    late = binding.lateness(run)
    same = RunShape.model_fields.keys() - {"id", "task", "late_seconds", "event"}
    return {
        "id": run.uuid,
        "task": run.task_name,
        "late_seconds": late.total_seconds() if late is not None else None,
        "event": _event_shape(run.event) if run.event else None,
    } | {name: getattr(run, name) for name in same}


def _event_shape(event: Event) -> EventShape:
    return EventShape(id=event.id, source=event.source, type=event.type, subject=event.subject, time=event.time)


def _delivery_shape(delivery: Delivery) -> DeliveryShape:
    names = DeliveryShape.model_fields.keys() - {"errors"}
    fields = {name: getattr(delivery, name) for name in names}
    return DeliveryShape(errors=attempt_shapes(delivery.errors), **fields)


def attempt_shapes(attempts: Sequence[Attempt]) -> list[AttemptShape]:
    return [AttemptShape(at=attempt.at, error=attempt.error) for attempt in attempts]


def _plain(mapping: Mapping[str, Any]) -> Json:
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in mapping.items()
    }


def body_fields(body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {"body": None, "body_base64": None}
    try:
        return {"body": body.decode(), "body_base64": None}
    except UnicodeDecodeError:
        return {"body": None, "body_base64": base64.b64encode(body).decode()}
