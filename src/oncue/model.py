"""The nouns. Frozen values, no behaviour: every other room speaks in these and adds none of its own.

All times are aware and in UTC. Ids inside are integers; what is shown outside is a UUID.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NewType
from uuid import UUID

from oncue.definition import Calendar, Definition, Misfire, Overlap, Override

TaskId = NewType("TaskId", int)
RunId = NewType("RunId", int)
DeliveryId = NewType("DeliveryId", int)
DeadLetterId = NewType("DeadLetterId", int)
RequeueId = NewType("RequeueId", int)

Json = dict[str, Any]
Key = str | int

TaskState = Literal["active", "paused", "removed"]
ScheduleState = Literal["active", "paused", "finished", "stopped"]
RunState = Literal[
    "due", "queued", "running", "held", "settling", "done", "partial", "failed", "skipped", "expired", "cancelled"
]
DeliveryState = Literal["waiting", "sending", "delivered", "dead", "expired", "cancelled", "unqualified"]
DeadLetterState = Literal["open", "requeuing", "recovered", "discarded", "quarantined"]
RequeueState = Literal["canary", "running", "paused", "done", "stopped", "cancelled"]


@dataclass(frozen=True, slots=True)
class Task:
    """A definition that was applied. `uuid` is new each time it is created; `version` rises with each change.

    `resume_at` is when a pause ends by itself.
    """

    id: TaskId
    uuid: UUID
    version: int
    state: TaskState
    reason: str | None
    created_at: datetime
    changed_at: datetime
    definition: Definition
    resume_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.definition.name


@dataclass(frozen=True, slots=True)
class Timing:
    """What the clock needs of a definition: kept as text beside the schedule, read once per distinct text.

    `name` is what `H` in a cron text is hashed from: like the anchor, it stays as it was when the trigger was written.
    `calendars` are those that the schedule refers to, as they were when it was last reckoned; `overrides` are due times
    that a person skipped or moved.
    """

    schedule: Json
    anchor: datetime
    misfire: Misfire
    overlap: Overlap
    name: str = ""
    calendars: tuple[Calendar, ...] = ()
    overrides: tuple[Override, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """The one row that says when a task is next due. `version` rises with each move: the token of every claim.

    Times up to `since` were decided before the trigger stood as it does. `runs_left` counts down from `max_runs`.
    `zone_data` is the edition of the zone data that `next_at` was reckoned with.
    """

    task_id: TaskId
    task_uuid: UUID
    task_version: int
    version: int
    next_at: datetime | None
    last_due_at: datetime | None
    timing: str
    state: ScheduleState = "active"
    reason: str | None = None
    since: datetime | None = None
    runs_left: int | None = None
    zone_data: str | None = None

    @property
    def decided_to(self) -> datetime | None:
        """The moment up to which all due times are decided: a schedule never fires at or before it."""
        return max((moment for moment in (self.last_due_at, self.since) if moment), default=None)


@dataclass(frozen=True, slots=True)
class Event:
    """A CloudEvent that came in. Its key is `subject`, else `id`."""

    id: str
    source: str
    type: str
    time: datetime
    subject: str | None = None
    data: Any = None

    @property
    def key(self) -> str:
        return self.subject or self.id


@dataclass(frozen=True, slots=True)
class Run:
    """One firing of a task. `due_at` never changes; `ready_at` is what it is claimed by; `fence` guards its claim.

    `overlap` is None for a run that takes no slot. `asked_at` is when it was recorded; `starts_at` its moment after
    jitter, None without; its messages are spread up to `spread_until`. `stop_reason` asks the
    dispatcher that holds it to end it at its next page.
    """

    id: RunId
    uuid: UUID
    task_id: TaskId
    task_name: str
    task_version: int
    cause: str
    due_at: datetime
    ready_at: datetime
    state: RunState
    reason: str | None
    attempts: int
    fence: int
    overlap: Overlap | None
    caught_up: bool
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cursor: str | None
    previous_due_at: datetime | None
    event: Event | None
    dead_letter_id: DeadLetterId | None
    stop_reason: str | None
    resolved: int = 0
    confirmed: int = 0
    dead: int = 0
    dropped: int = 0
    open: int = 0
    starts_at: datetime | None = None
    spread_until: datetime | None = None

    @property
    def kind(self) -> str:
        """The first word of the cause: schedule, event, manual, backfill, requeue (later also cues)."""
        return self.cause.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that a run concerns."""

    key: Key
    data: Json


@dataclass(frozen=True, slots=True)
class Page:
    """Entities that were resolved together; `cursor` is where the next page starts, None after the last.

    `rejected` are rows that cannot become messages, by key and reason: they are dead letters, and stop nobody else.
    `dues` are the due times of all of them in a followed schedule's window; None for one that cannot be read.
    """

    entities: tuple[Entity, ...]
    cursor: str | None
    rejected: tuple[tuple[Key, str], ...] = ()
    dues: Mapping[Key, datetime | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """What a worker gets: exact bytes and headers, under one id over every retry and requeue.

    `properties` are the broker's own fields beside the headers (AMQP: `correlation_id`, `priority`, ...). `requeue` is
    how many times the message was requeued.
    """

    id: UUID
    key: Key
    body: bytes
    content_type: str
    headers: Mapping[str, Any]
    properties: Mapping[str, Any] = field(default_factory=dict)
    requeue: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """All that a message may say of where it comes from, given to an envelope with each entity."""

    message_id: UUID
    task_name: str
    run_uuid: UUID
    due_at: datetime
    attempt: int
    requeue: int


# --- What became of a message -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker confirmed it, or the receiver answered with success."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It was turned down, and belongs to this message alone. With `again` False no retry can help."""

    reason: str
    again: bool = True
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may or may not have arrived: no answer came in time."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The target cannot be reached at all; nothing was sent, and the attempt does not count."""

    reason: str


Outcome = Confirmed | Refused | Unknown | Unreachable


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try that failed: when, and what was answered."""

    at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A message of a page that was not confirmed at once, on its way into the store."""

    message_id: UUID
    key: Key
    data: Json
    requeue: int
    ready_at: datetime
    attempts: tuple[Attempt, ...]
    counted: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message that was not confirmed at once, with its failed attempts and its next time."""

    id: DeliveryId
    run_id: RunId
    message_id: UUID
    key: Key
    data: Json
    requeue: int
    state: DeliveryState
    reason: str | None
    ready_at: datetime
    attempts: int
    fence: int
    errors: tuple[Attempt, ...]
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewDeadLetter:
    """What failed for good, with its context, on its way into the store. `identity` is unique."""

    identity: str
    kind: Literal["message", "run"]
    reason: str
    task_id: TaskId | None = None
    task_name: str | None = None
    task_version: int | None = None
    run_id: RunId | None = None
    run_uuid: UUID | None = None
    message_id: UUID | None = None
    key: Key | None = None
    data: Json | None = None
    requeue: int = 0
    attempts: tuple[Attempt, ...] = ()
    broker: str | None = None
    queue: str | None = None
    origin: str | None = None
    body: bytes | None = None
    content_type: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message or a run that failed for good. `parent_id` names the dead letter that was requeued and came back."""

    id: DeadLetterId
    uuid: UUID
    state: DeadLetterState
    what: NewDeadLetter
    created_at: datetime
    ended_at: datetime | None = None
    ended_reason: str | None = None
    parent_id: DeadLetterId | None = None
    requeue_id: RequeueId | None = None


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message as it was read from a broker's dead-letter queue: exact bytes, and what the broker says of its death.

    `origin` is the queue that it failed in; `deaths` how often it died there. `tag` is the broker's handle to
    acknowledge it with, once it is stored.
    """

    broker: str
    queue: str
    origin: str | None
    reason: str
    deaths: int
    body: bytes
    content_type: str
    headers: Mapping[str, Any]
    properties: Mapping[str, Any]
    tag: Any


@dataclass(frozen=True, slots=True)
class Requeue:
    """A set of dead letters that go back under control: one first (canary), then the rest at `rate` a second."""

    id: RequeueId
    uuid: UUID
    state: RequeueState
    reason: str | None
    rate: float
    ask: bool
    total: int
    sent: int
    recovered: int
    failed: int
    actor: str
    created_at: datetime
    ready_at: datetime
    ended_at: datetime | None
    forgiven: int = 0  # those of `failed` that came back before it was last resumed


@dataclass(frozen=True, slots=True)
class Lost:
    """A write that found the state or the fence changed: somebody else holds it now. An answer, not an error."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed its state, told after the commit to who listens: logs, metrics, the console."""

    noun: str
    name: str
    state: str
    reason: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
