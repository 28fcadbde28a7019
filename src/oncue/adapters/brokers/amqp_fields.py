"""Headers and properties as AMQP carries them, to and from what a message holds and a store can keep as JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pika

from oncue.model import Message

# `user_id` is left out: RabbitMQ closes the channel when it is not the publisher's own.
PROPERTIES = (
    "content_encoding",
    "correlation_id",
    "reply_to",
    "priority",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "app_id",
)
DEATHS = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count")


@dataclass(frozen=True, slots=True)
class Death:
    """What a broker says of a message's death: the queue that it failed in, why, and how often there."""

    origin: str | None
    reason: str
    count: int


def write_properties(message: Message) -> Any:
    """Return a message's headers and properties as pika takes them: persistent, under the message's id."""
    chosen = {name: message.properties[name] for name in PROPERTIES if message.properties.get(name) is not None}
    return pika.BasicProperties(
        content_type=message.content_type or None,
        delivery_mode=2,
        headers={
            name: to_amqp(value) if isinstance(value, dict | list | tuple) else value
            for name, value in without_deaths(message.headers).items()
        },
        **{"message_id": str(message.id), **chosen},
    )


def read_properties(properties: Any) -> dict[str, Any]:
    """Return the properties of a message that was read, but for its headers and content type."""
    return {name: value for name in PROPERTIES if (value := getattr(properties, name)) is not None}


def read_death(headers: Mapping[str, Any]) -> Death:
    """Read `x-death` (newest first): where the message failed first, why it died last, how often where it failed."""
    deaths = headers.get("x-death")
    entries = [entry for entry in deaths if isinstance(entry, dict)] if isinstance(deaths, list) else []
    if not entries:
        return Death(None, "unknown: it has no x-death header", 0)
    origin = headers.get("x-first-death-queue") or entries[0].get("queue")
    counts = [entry.get("count") for entry in entries if entry.get("queue") == origin]
    return Death(
        origin=str(origin) if origin else None,
        reason=str(entries[0].get("reason") or "unknown"),
        count=sum(count for count in counts if isinstance(count, int)),
    )


def without_deaths(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers to send a dead message with again.

    A kept `x-death` counts as a cycle, for which the broker drops the message in silence; a kept `x-delivery-count` may
    kill it at once.
    """
    return {name: value for name, value in headers.items() if not name.startswith(DEATHS)}


def to_amqp(value: Any) -> Any:
    """Return what `to_plain` made plain in its AMQP type again."""
    if not isinstance(value, dict | list | tuple):
        return value
    if not isinstance(value, dict):
        return [to_amqp(item) for item in value]
    match value:
        case {"$timestamp": int(seconds)} if len(value) == 1:
            return datetime.fromtimestamp(seconds, UTC)
        case {"$bytes": str(text)} if len(value) == 1:
            return base64.b64decode(text)
        case {"$decimal": str(text)} if len(value) == 1:
            return Decimal(text)
    return {name: to_amqp(item) for name, item in value.items()}


def to_plain(value: Any) -> Any:
    """Return a header's value in types that JSON has; the others are marked, so that they can be sent as they came."""
    if isinstance(value, dict):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, datetime):
        return {"$timestamp": int(value.timestamp())}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)  # pika reads large ones as a type of its own
    return value
