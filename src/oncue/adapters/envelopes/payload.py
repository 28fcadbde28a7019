"""What every envelope writes of an entity: its key and data as JSON, within a limit."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from oncue.errors import TargetError
from oncue.model import Address, Entity, Json

LIMIT = 256 * 1024


def payload_of(entity: Entity) -> Json:
    """Return what a worker gets: the key beside the data; the data alone where a run concerns nobody in particular."""
    return dict(entity.data) if entity.key == "" else {"key": entity.key, **entity.data}


def write_json(value: Any, address: Address, *, limit: int) -> bytes:
    """Return JSON in UTF-8; times, dates, UUIDs and decimals become text. Raises TargetError, which shows no data."""
    try:
        body = to_json(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise TargetError(f"{_named(address)} cannot be written as JSON: {reason}. Select it as text.") from None
    if (b"NaN" in body or b"Infinity" in body) and (place := _find_not_a_number(value)):
        raise TargetError(f"{_named(address)} has no number in {place} (NaN or Infinity), which JSON cannot carry.")
    if len(body) > limit:
        raise TargetError(
            f"{_named(address)} has {len(body):,} bytes, more than the limit of {limit:,}. "
            "Select fewer or shorter columns, and let the worker read the rest by its key."
        )
    return body


def _named(address: Address) -> str:
    return f'task "{address.task_name}", message {address.message_id}: the payload'


def _find_not_a_number(value: Any, place: str = "") -> str:
    """Return where the first number that is none stands, as `items[2].price`; nothing where there is none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else place or "it"
    if isinstance(value, Decimal):
        return "" if value.is_finite() else place or "it"
    if isinstance(value, dict):
        inside = [(f"{place}.{name}" if place else str(name), item) for name, item in value.items()]
    elif isinstance(value, list | tuple):
        inside = [(f"{place}[{index}]", item) for index, item in enumerate(value)]
    else:
        return ""
    return next(filter(None, (_find_not_a_number(item, where) for where, item in inside)), "")
