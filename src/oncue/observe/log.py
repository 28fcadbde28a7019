"""Log lines: one for each thing that ended, in fixed words with fields. Nothing of an entity's data is ever logged.

Only executables set logging up; used as a library, Oncue leaves that to its host.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from datetime import datetime
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
    ("task", "active"): ("info", "task active"),
    ("task", "paused"): ("info", "task paused"),
    ("task", "removed"): ("info", "task removed"),
}
SHOWN: Final = 500  # characters of a value
QUIET: Final = frozenset({"dead_letter"})  # their reasons are the words of receivers, which may repeat data

_log = structlog.get_logger("oncue")
_Fields = MutableMapping[str, Any]


def set_up_logging(
    format: Format = "text", level: Level = "info", *, now: Callable[[], datetime], file: TextIO | None = None
) -> None:
    """Write log lines to `file` (standard error): ours, and warnings of the libraries below. `now` stamps them."""

    def stamp(_logger: Any, _name: str, fields: _Fields) -> _Fields:
        moment = now()
        fields["time"] = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
        return fields

    lowest = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[structlog.processors.add_log_level, stamp, _as_json if format == "json" else _as_text],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.PrintLoggerFactory(file or sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.root.handlers = [_OfLibraries(max(lowest, logging.WARNING))]
    logging.root.setLevel(logging.WARNING)


def tell_changes(change: Change) -> None:
    """Write one line for a thing that ended: a listener of the store."""
    if (change.noun, change.state) not in LINES:
        return
    level, words = LINES[change.noun, change.state]
    getattr(_log, level)(words, **_fields(change))


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
        facts["queue"] = urlsplit(facts["queue"]).hostname  # a receiver's URL may hold a secret
    fields[change.noun] = change.name
    if (late := facts.pop("late", None)) is not None:
        fields["late"] = f"{late:.1f}s"
    fields |= {name: value for name, value in facts.items() if name != "dropped" or value}
    if change.reason and change.noun not in QUIET:
        fields["reason"] = change.reason
    return fields


def _as_text(_logger: Any, _name: str, fields: _Fields) -> str:
    moment, words, level = fields.pop("time"), fields.pop("event"), fields.pop("level")
    trace = _trace(fields.pop("exc_info", None))
    marked = {"level": level, **fields} if level in ("warning", "error", "critical") else fields
    text = f"{moment[11:]} {escape(str(words))} {line(marked)}".rstrip()
    return "\n    ".join([text, *(escape(row) for row in trace)])


def _as_json(_logger: Any, _name: str, fields: _Fields) -> str:
    if trace := _trace(fields.pop("exc_info", None)):
        fields["exception"] = "\n".join(trace)
    first = {"time": fields.pop("time"), "level": fields.pop("level"), "event": fields.pop("event")}
    return json.dumps(first | dict(fields), default=str)


def _trace(error: Any) -> list[str]:
    if error is True:
        error = sys.exc_info()[1]
    if not isinstance(error, BaseException):
        return []
    return "".join(traceback.format_exception(error)).splitlines()


def _text(value: Any) -> str:
    text = str(value)
    text = escape(text if len(text) <= SHOWN else text[:SHOWN] + "…")
    return json.dumps(text, ensure_ascii=False) if not text or any(char in text for char in ' "=') else text


class _OfLibraries(logging.Handler):
    """Passes on what libraries say through the standard library's logging."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        logger = structlog.get_logger("oncue")
        logger.log(max(record.levelno, logging.WARNING), record.getMessage(), logger=record.name, exc_info=error)
