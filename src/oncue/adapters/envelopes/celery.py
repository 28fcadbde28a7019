"""Celery's message protocol 2, as a stock worker takes it: no positional arguments, the entity as keyword arguments.

The layout is `celery.app.amqp.as_task_v2`'s, held to it by `tests/adapters/test_envelopes.py`. No `eta`: Oncue sends
when the time has come.
"""

from __future__ import annotations

from typing import Any

from oncue.adapters.envelopes.payload import LIMIT, payload_of, write_json
from oncue.adapters.envelopes.trace import trace_of
from oncue.definition import BrokerTarget, HttpTarget
from oncue.errors import TargetError
from oncue.model import Address, Entity, Key, Message

EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
SHOWN = 80  # characters of a key in `kwargsrepr`


class CeleryEnvelope:
    """For Celery workers. The message id is the Celery task id; `self.request.headers` has the `oncue_*` headers."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit

    def pack(self, entity: Entity, address: Address, *, target: BrokerTarget | HttpTarget) -> Message:
        """Return the message. Raises TargetError if the target names no Celery task, or it cannot be written."""
        if isinstance(target, HttpTarget) or not target.task:
            raise TargetError(
                f'task "{address.task_name}": the celery envelope goes to a broker and needs the worker\'s name of '
                'its task. Write target = { broker = "…", queue = "…", envelope = "celery", task = "module.function" }.'
            )
        id = str(address.message_id)
        return Message(
            id=address.message_id,
            key=entity.key,
            body=write_json([[], payload_of(entity), EMBEDDED], address, limit=self._limit),
            content_type="application/json",
            headers={**_headers(id, entity.key, target.task, address), **trace_of(entity.key, address, joint="_")},
            properties={"correlation_id": id, "reply_to": "", "content_encoding": "utf-8"},
            requeue=address.requeue,
        )


def _headers(id: str, key: Key, task: str, address: Address) -> dict[str, Any]:
    return {
        "lang": "py",
        "task": task,
        "id": id,
        "root_id": id,
        "parent_id": None,
        "group": None,
        "group_index": None,
        "shadow": None,
        "eta": None,
        "expires": None,
        "retries": 0,
        "timelimit": [None, None],
        "argsrepr": "()",
        "kwargsrepr": _show(key),
        "origin": f"oncue@{address.task_name}",
        "ignore_result": False,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
    }


def _show(key: Key) -> str:
    """Return what Flower and the worker's log show of the arguments: the key, never the data."""
    return "{...}" if key == "" else f"{{'key': {repr(key)[:SHOWN]}, ...}}"
