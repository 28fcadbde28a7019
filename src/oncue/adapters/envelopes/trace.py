"""Where a message comes from, carried beside it: written by every envelope, read back from a dead message.

To brokers numbers go as numbers, so that a key keeps its type; to HTTP everything goes as printable text.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from oncue.model import Address, Key

PRINTABLE = "".join(map(chr, range(0x21, 0x7F))).replace('"', "").replace("%", "")  # as CloudEvents does over HTTP
REQUEUE = "oncue-requeue"
INTEGERS = range(-(2**63), 2**63)


def trace_of(key: Key, address: Address, *, joint: str = "-") -> dict[str, Any]:
    """Return the headers that say where a message comes from: `oncue-run`, or `oncue_run` with `joint="_"`."""
    facts = {
        "message": str(address.message_id),
        "run": str(address.run_uuid),
        "task": address.task_name,
        "key": key if isinstance(key, str) or key in INTEGERS else str(key),
        "due": address.due_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "attempt": address.attempt,
        "requeue": address.requeue,
    }
    return {f"oncue{joint}{name}": value for name, value in facts.items()}


def as_http(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return headers as HTTP carries them safely: spaces, quotes and all but printable ASCII are percent-encoded."""
    return {name: quote(str(value), safe=PRINTABLE) for name, value in headers.items()}


def retrace(headers: Mapping[str, Any], address: Address) -> dict[str, Any]:
    """Return the headers of a message that goes out again as it was: what they say of this time is of this time."""
    again = dict(headers)
    for name, value in (("run", str(address.run_uuid)), ("attempt", address.attempt), ("requeue", address.requeue)):
        for header in (f"oncue-{name}", f"oncue_{name}"):
            if header in again:
                again[header] = str(value) if isinstance(again[header], str) else value
    return again


def mark_requeue(headers: Mapping[str, Any], requeue: int) -> dict[str, Any]:
    """Return a stranger's headers with the number of its requeue: when it comes back, that is another death."""
    return {**headers, REQUEUE: requeue}


def read_requeue(headers: Mapping[str, Any]) -> int:
    """Return how many times a stranger's message was requeued."""
    return _count(headers.get(REQUEUE), default=0)


def read_address(headers: Mapping[str, Any]) -> tuple[Address, Key] | None:
    """Return the address and key that a message carries, in either spelling; None for a stranger's message."""
    facts = {
        name: headers.get(f"oncue-{name}", headers.get(f"oncue_{name}"))
        for name in ("message", "run", "task", "key", "due", "attempt", "requeue")
    }
    task, key = facts["task"], facts["key"]
    if not _is_text(task) or not (_is_text(key) or (isinstance(key, int) and not isinstance(key, bool))):
        return None
    try:
        due_at = datetime.fromisoformat(facts["due"])
        address = Address(
            message_id=UUID(facts["message"]),
            task_name=task,
            run_uuid=UUID(facts["run"]),
            due_at=due_at.astimezone(UTC),
            attempt=_count(facts["attempt"], default=1),
            requeue=_count(facts["requeue"], default=0),
        )
    except (TypeError, ValueError, AttributeError, OverflowError):
        return None
    return (address, key) if due_at.tzinfo is not None else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value  # which no database would take


def _count(value: Any, *, default: int) -> int:
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return count if 0 <= count < 2**31 else default
