"""Plain JSON: `{"key": …, **data}`, with where it comes from in the headers. Goes to brokers and over HTTP alike."""

from __future__ import annotations

from oncue.adapters.envelopes.payload import LIMIT, payload_of, write_json
from oncue.adapters.envelopes.trace import as_http, trace_of
from oncue.definition import BrokerTarget, HttpTarget
from oncue.model import Address, Entity, Message


class JsonEnvelope:
    """For workers that read JSON. `limit` is the most bytes that a body may have."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit

    def pack(self, entity: Entity, address: Address, *, target: BrokerTarget | HttpTarget) -> Message:
        """Return the message; over HTTP it carries an `Idempotency-Key`. Raises TargetError if it cannot be written."""
        headers = trace_of(entity.key, address)
        if isinstance(target, HttpTarget):
            headers = {**as_http(headers), "Idempotency-Key": str(address.message_id)}
        return Message(
            id=address.message_id,
            key=entity.key,
            body=write_json(payload_of(entity), address, limit=self._limit),
            content_type="application/json",
            headers=headers,
            properties={"content_encoding": "utf-8"},
            requeue=address.requeue,
        )
