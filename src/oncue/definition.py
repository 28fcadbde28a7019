"""The nouns that a user writes: a task's triggers, resolver, target and policies. Frozen values, as in `model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal

Overlap = Literal["allow", "skip", "queue", "replace"]
CatchUp = Literal["none", "latest", "all"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """What an event of type `event` does whose attributes fit `match` (an event pattern).

    `fire` starts the task; `touch` has the next time of its followed schedule read again.
    """

    event: str
    match: dict[str, Any] = field(default_factory=dict)
    do: Literal["fire", "touch"] = "fire"
    all: bool = False


@dataclass(frozen=True, slots=True)
class SqlResolver:
    """Reads entities by a query that yields `key` and any other columns, from a source named in the configuration."""

    sql: str
    source: str


@dataclass(frozen=True, slots=True)
class EventResolver:
    """Takes the event itself as the one entity: its key is the event's subject, else its id; its data the event's."""


@dataclass(frozen=True, slots=True)
class NoResolver:
    """Concerns nobody in particular: one message a run, with an empty key."""


Resolver = SqlResolver | EventResolver | NoResolver


@dataclass(frozen=True, slots=True)
class BrokerTarget:
    """Hands entities to a queue. An empty `exchange` is the broker's default; `task` is the worker's name for it."""

    broker: str
    queue: str
    exchange: str = ""
    envelope: str = "json"
    task: str | None = None


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """Posts entities to a URL that answers. `concurrency` is both the page size and the requests in flight."""

    url: str
    timeout: timedelta = timedelta(seconds=10)
    concurrency: int = 20
    headers: Mapping[str, str] = field(default_factory=dict)


Target = BrokerTarget | HttpTarget


@dataclass(frozen=True, slots=True)
class Misfire:
    """What becomes of due times that were not fired within `grace`; none older than `max_age` is caught up.

    With `all`, at most the latest `max` of them. With `hold`, what is caught up waits for a person.
    """

    grace: timedelta = timedelta(minutes=1)
    catch_up: CatchUp = "latest"
    max_age: timedelta = timedelta(days=1)
    max: int | None = None
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and how far apart, a run or a delivery is tried before it is a dead letter."""

    attempts: int = 5
    backoff: Literal["exponential", "fixed"] = "exponential"
    first: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Definition:
    """All that a task file says of one task. `schedule` is the trigger as written, read by `rules.times`."""

    name: str
    target: Target
    description: str = ""
    schedule: dict[str, Any] | None = None
    on: tuple[Subscription, ...] = ()
    resolve: Resolver = NoResolver()
    misfire: Misfire = Misfire()
    overlap: Overlap = "skip"
    expires: timedelta | None = None
    retry: Retry = Retry()
    renamed_from: str | None = None


@dataclass(frozen=True, slots=True)
class Calendar:
    """A named set of days: those on `weekdays` ("mon", …) and `dates` (each with a name, or ""), less `without`.

    `known_until` is the last day that it was filled to, None for one that has no end; `source` says where it came from.
    """

    name: str
    weekdays: tuple[str, ...] = ()
    dates: Mapping[date, str] = field(default_factory=dict)
    without: tuple[date, ...] = ()
    known_until: date | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Override:
    """One named due time that is skipped, or (with `moved_to`) runs at another moment instead."""

    due_at: datetime
    moved_to: datetime | None = None
    reason: str = ""
