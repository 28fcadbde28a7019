"""The seams to what belongs to others: one small protocol each. A new adapter is a file and a line in `registry.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from oncue.definition import BrokerTarget, HttpTarget
from oncue.model import Address, DeadMessage, Entity, Key, Message, Outcome, Page


class Source(Protocol):
    """Reads entities from a team's own data, page by page and by key."""

    async def page(self, sql: str, parameters: Mapping[str, Any], *, cursor: str | None, limit: int) -> Page:
        """Return up to `limit` entities after `cursor`, in the order of their keys.

        Raises ResolveError: the source is down, the query fails, or a row has no usable `key`.
        """
        ...

    async def ask(self, sql: str, parameters: Mapping[str, Any], *, keys: Sequence[Key]) -> list[Entity]:
        """Return those of `keys` that the query still yields, with their data as it is now. Raises ResolveError."""
        ...

    async def window(
        self,
        sql: str,
        parameters: Mapping[str, Any],
        *,
        after: datetime,
        until: datetime,
        cursor: str | None,
        limit: int,
    ) -> Page:
        """Return up to `limit` entities whose `due_at` is in (after, until], in the order of due time and key.

        No key is twice in a page. Raises ResolveError, as `page`, and where the query has no `due_at`.
        """
        ...

    async def first(self, sql: str, *, after: datetime) -> datetime | None:
        """Return the one time that a query answers for `:after`, None where it answers none. Raises ResolveError."""
        ...

    async def close(self) -> None: ...


class Envelope(Protocol):
    """Writes an entity in the format of one kind of worker."""

    def pack(self, entity: Entity, address: Address, *, target: BrokerTarget | HttpTarget) -> Message:
        """Return the message, byte for byte as the worker takes it. Raises TargetError if it cannot be written."""
        ...


class Broker(Protocol):
    """Publishes to a team's broker with confirms, and drains its dead-letter queues."""

    async def publish(self, messages: Sequence[Message], *, target: BrokerTarget) -> list[Outcome]:
        """Return one outcome a message, in their order. Never raises for what the broker does."""
        ...

    def consume(self, queue: str) -> AsyncIterator[DeadMessage]:
        """Yield what stands in a dead-letter queue, unacknowledged, until closed. Raises AdapterError if it is gone."""
        ...

    async def acknowledge(self, message: DeadMessage) -> None:
        """Take a message off its dead-letter queue, once it is stored."""
        ...

    async def depth(self, queue: str) -> int | None:
        """Return how many messages stand in a queue; None where the queue does not exist."""
        ...

    async def close(self) -> None: ...


class Receiver(Protocol):
    """Hands messages to something that answers at once."""

    async def send(self, messages: Sequence[Message], *, target: HttpTarget) -> list[Outcome]:
        """Return one outcome a message, in their order. Never raises for what the receiver does."""
        ...

    async def close(self) -> None: ...
