"""What is shown of dead letters and requeues outside: the rest of `shapes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from oncue.api.shapes import AttemptShape, Shape, Time, attempt_shapes, body_fields
from oncue.model import DeadLetter, Json, Key, Requeue


class DeadLetterShape(Shape):
    """What failed for good."""

    id: UUID
    kind: str
    state: str
    reason: str
    task: str | None
    task_version: int | None
    run: UUID | None
    message_id: UUID | None
    key: Key | None
    requeues: int
    attempts: list[AttemptShape]
    broker: str | None
    queue: str | None
    origin: str | None
    created_at: Time
    ended_at: Time | None
    ended_reason: str | None


class DeadLetterDetailShape(DeadLetterShape):
    """A dead letter with what it carried; a body that is no text is in base64."""

    data: Any
    content_type: str | None
    headers: Json
    properties: Json
    body: str | None
    body_base64: str | None


class GroupShape(Shape):
    """Open dead letters that failed for the same reason."""

    task: str | None
    queue: str | None
    reason: str
    count: int


class RequeueShape(Shape):
    """Dead letters that go back under control."""

    id: UUID
    state: str
    reason: str | None
    rate: float
    ask: bool
    total: int
    sent: int
    recovered: int
    failed: int
    actor: str
    created_at: Time
    ended_at: Time | None


class DiscardedShape(Shape):
    """How many dead letters were closed."""

    discarded: int


def dead_letter_shape(letter: DeadLetter) -> DeadLetterShape:
    return DeadLetterShape(**_letter_fields(letter))


def dead_letter_detail(letter: DeadLetter) -> DeadLetterDetailShape:
    what = letter.what
    return DeadLetterDetailShape(
        **_letter_fields(letter),
        data=what.data,
        content_type=what.content_type,
        headers=dict(what.headers),
        properties=dict(what.properties),
        **body_fields(what.body),
    )


def group_shapes(groups: Sequence[tuple[str | None, str | None, str, int]]) -> list[GroupShape]:
    return [GroupShape(task=task, queue=queue, reason=reason, count=count) for task, queue, reason, count in groups]


def requeue_shape(requeue: Requeue) -> RequeueShape:
    names = RequeueShape.model_fields.keys() - {"id"}
    return RequeueShape(id=requeue.uuid, **{name: getattr(requeue, name) for name in names})


def _letter_fields(letter: DeadLetter) -> dict[str, Any]:
    what = letter.what
    same = ("kind", "reason", "task_version", "message_id", "key", "broker", "queue", "origin")
    return {
        "id": letter.uuid,
        "state": letter.state,
        "task": what.task_name,
        "run": what.run_uuid,
        "requeues": what.requeue,
        "attempts": attempt_shapes(what.attempts),
        "created_at": letter.created_at,
        "ended_at": letter.ended_at,
        "ended_reason": letter.ended_reason,
    } | {name: getattr(what, name) for name in same}
