"""Log lines: one for each thing that ended, in fixed words with fields. Nothing of an entity's data is ever logged.

They go to the standard library's logger "oncue". Only executables set logging up; a host has its own way.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO
from urllib.parse import urlsplit

import structlog

from oncue.model import Change

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

LINES: Final[Mapping[tuple[str, str], tuple[Level, str]]] = {
    ("run", "done"): ("info", "run finished"),
    ("run", "partial"): ("warning", "run finished"),
    ("run", "failed"): ("warning", "run failed"),
    ("run", "skipped"): ("info", "run skipped"),
    ("run", "expired"): ("warning", "run expired"),
    ("run", "cancelled"): ("info", "run cancelled"),
    ("dead_letter", "open"): ("warning", "dead letter opened"),
    ("dead_letter", "recovered"): ("info", "dead letter recovered"),
    ("dead_letter", "discarded"): ("info", "dead letter discarded"),
    ("requeue", "done"): ("info", "requeue finished"),
    ("requeue", "stopped"): ("warning", "requeue stopped"),
    ("requeue", "cancelled"): ("info", "requeue cancelled"),
    ("schedule", "finished"): ("info", "schedule finished"),
    ("schedule", "stopped"): ("warning", "schedule stopped"),
    ("followed", "unanswered"): ("warning", "next time not read"),
    ("followed", "answered"): ("info", "next time read again"),
    ("followed", "unseen"): ("warning", "late rows not read"),
    ("schedule", "reckoned"): ("info", "schedule reckoned"),
    ("calendar", "created"): ("info", "calendar created"),
    ("calendar", "changed"): ("info", "calendar changed"),
    ("calendar", "removed"): ("info", "calendar removed"),
    ("task", "active"): ("info", "task active"),
    ("task", "paused"): ("info", "task paused"),
    ("task", "removed"): ("info", "task removed"),
}
SHOWN: Final = 500  # characters of a value
DRIVERS: Final = ("pika", "asyncpg")  # they tell of each try; what it means is told once, in our words
QUIET: Final = frozenset({"dead_letter"})  # their reasons are the words of receivers, which may repeat data

_Fields = MutableMapping[str, Any]


def _pass_on(_logger: Any, _name: str, fields: _Fields) -> tuple[tuple[str], dict[str, Any]]:
    """Give a line to the standard library: the words with their fields as text, and the fields themselves beside it."""
    words, error = str(fields.pop("event")), fields.pop("exc_info", None)
    text = f"{words} {line(fields)}".rstrip()
    return (text,), {"exc_info": error, "extra": {"words": words, "fields": dict(fields)}}


log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    logging.getLogger("oncue"),
    processors=[structlog.stdlib.filter_by_level, _pass_on],
    wrapper_class=structlog.stdlib.BoundLogger,
)


def set_up_logging(format: Format = "text", level: Level = "info", *, file: TextIO | None = None) -> None:
    """Write log lines to `file` (standard error): ours from `level` on, and warnings of the libraries below.

    Those that speak to stores and brokers are silent: an outage is no storm of lines.
    """
    handler = logging.StreamHandler(file or sys.stderr)
    handler.setFormatter(_Json() if format == "json" else _Text())
    lowest = logging.getLevelNamesMapping()[level.upper()]
    logging.root.handlers = [handler]
    logging.root.setLevel(max(lowest, logging.WARNING))
    logging.getLogger("oncue").setLevel(lowest)
    for driver in DRIVERS:
        logging.getLogger(driver).setLevel(logging.CRITICAL)


def tell_changes(change: Change) -> None:
    """Write one line for a thing that ended: a listener of the store."""
    if (change.noun, change.state) not in LINES:
        return
    level, words = LINES[change.noun, change.state]
    getattr(log, level)(words, **_fields(change))


def line(fields: Mapping[str, Any]) -> str:
    """Return fields as `name=value`, each on the same line whatever it holds."""
    return " ".join(f"{name}={_text(value)}" for name, value in fields.items() if value is not None)


def escape(text: str) -> str:
    """Return text without control characters: a terminal or a log reads it as it is meant."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _fields(change: Change) -> dict[str, Any]:
    facts = dict(change.facts)
    fields: dict[str, Any] = {}
    if "task" in facts:
        fields["task"] = facts.pop("task")
    if "://" in str(facts.get("queue")):
        facts["queue"] = _host(facts["queue"])  # a receiver's URL may hold a secret
    fields[change.noun] = change.name
    if (late := facts.pop("late", None)) is not None:
        fields["late"] = f"{late:.1f}s"
    fields |= {name: value for name, value in facts.items() if name != "dropped" or value}
    if change.reason and change.noun not in QUIET:
        fields["reason"] = change.reason
    return fields


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # it was never a URL, and telling of it must go on
        return None


def _text(value: Any) -> str:
    text = str(value)
    text = escape(text if len(text) <= SHOWN else text[:SHOWN] + "…")
    return json.dumps(text, ensure_ascii=False) if not text or any(char in text for char in ' "=') else text


class _Text(logging.Formatter):
    """One line for people, and a failure's trace beneath it."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno < logging.WARNING else f" level={record.levelname.lower()}"
        text = f"{_time(record)[11:]} {escape(record.getMessage())}{level}"
        return "\n    ".join([text, *(escape(row) for row in _trace(record))])


class _Json(logging.Formatter):
    """One object for machines."""

    def format(self, record: logging.LogRecord) -> str:
        words = getattr(record, "words", None) or record.getMessage()
        fields: dict[str, Any] = {"time": _time(record), "level": record.levelname.lower(), "event": words}
        fields |= getattr(record, "fields", {"logger": record.name})
        if trace := _trace(record):
            fields["exception"] = "\n".join(trace)
        return json.dumps(fields, default=str)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def _trace(record: logging.LogRecord) -> list[str]:
    error = record.exc_info[1] if record.exc_info else None
    return "".join(traceback.format_exception(error)).splitlines() if error else []
