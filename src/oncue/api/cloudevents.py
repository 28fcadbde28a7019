"""CloudEvents 1.0 from the bytes of an HTTP request, each attribute checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from oncue.api import sound
from oncue.errors import InvalidEvent
from oncue.model import Event

LONGEST: Final = 1024  # characters of an attribute
STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
ATTRIBUTES: Final = ("id", "source", "type")


class Unsupported(Exception):
    """The content type is not one that events come in."""


def is_batch(headers: Mapping[str, str]) -> bool:
    return _media_type(headers.get("content-type", "")) == BATCH


def read(headers: Mapping[str, str], body: bytes, *, now: datetime) -> list[Event]:
    """Return the events of a request; those without a time happened `now`. Raises InvalidEvent, Unsupported."""
    media_type = _media_type(headers.get("content-type", ""))
    if media_type == BATCH:
        batch = read_json(body)
        if not isinstance(batch, list):
            raise InvalidEvent("a batch is a JSON array of events.")
        return [_with_place(place, one, now=now) for place, one in enumerate(batch)]
    if media_type == STRUCTURED:
        return [read_event(read_json(body), now=now)]
    if "ce-specversion" in headers:
        return [_read_binary(headers, body, media_type, now=now)]
    raise Unsupported(
        f"an event comes as {STRUCTURED}, as {BATCH}, or with its attributes in ce-… headers; this came as "
        f'"{media_type or "nothing"}".'
    )


def read_event(value: Any, *, now: datetime) -> Event:
    """Return one event from its structured form. Raises InvalidEvent."""
    if not isinstance(value, dict):
        raise InvalidEvent("an event is a JSON object.")
    if value.get("specversion") != "1.0":
        raise InvalidEvent('specversion: write "1.0".')
    if "data_base64" in value:
        raise InvalidEvent("data_base64: binary data is not taken; send JSON as data.")
    content_type = value.get("datacontenttype", "application/json")
    if not isinstance(content_type, str) or not _is_json(_media_type(content_type)):
        raise InvalidEvent("datacontenttype: data is taken as JSON only.")
    id, source, type = (_attribute(name, value.get(name)) for name in ATTRIBUTES)
    subject = value.get("subject")
    return Event(
        id=id,
        source=source,
        type=type,
        time=_read_time(value.get("time"), now=now),
        subject=None if subject is None else _attribute("subject", subject),
        data=value.get("data"),
    )


def read_json(body: bytes) -> Any:
    """Return JSON; what other readers might read differently is refused. Raises InvalidEvent."""
    try:
        return sound.read_json(body)
    except sound.Unsound as error:
        raise InvalidEvent(str(error)) from None


def _with_place(place: int, value: Any, *, now: datetime) -> Event:
    try:
        return read_event(value, now=now)
    except InvalidEvent as error:
        raise InvalidEvent(f"event {place} of the batch: {error} None of the batch was taken.") from None


def _read_binary(headers: Mapping[str, str], body: bytes, media_type: str, *, now: datetime) -> Event:
    attributes: dict[str, Any] = {
        name[3:]: unquote(value, errors="strict") for name, value in headers.items() if name.startswith("ce-")
    }
    if media_type and not _is_json(media_type):
        raise Unsupported(f'data is taken as JSON only; this came as "{media_type}".')
    data = read_json(body) if body else None
    return read_event({**attributes, "data": data}, now=now)


def _attribute(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidEvent(f"{name}: give a text that is not empty.")
    if len(value) > LONGEST:
        raise InvalidEvent(f"{name}: is longer than {LONGEST} characters.")
    if not value.isprintable():
        raise InvalidEvent(f"{name}: holds control characters.")
    return value


def _read_time(value: Any, *, now: datetime) -> datetime:
    if value is None:
        return now
    try:
        moment = datetime.fromisoformat(value)
        if "T" not in value.upper() or moment.tzinfo is None:
            raise ValueError(value)
        return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidEvent('time: write it by RFC 3339, such as "2026-03-28T07:00:00Z".') from None


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _is_json(media_type: str) -> bool:
    return media_type in ("application/json", "text/json") or media_type.endswith("+json")
