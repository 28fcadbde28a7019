"""A store as it is after a while: most of it ended or not due, a little of it open. `scale` is in 100,000 tasks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
TIMING = '{"schedule":{"every":"1h"}}'
VERBS = ("apply", "pause", "resume", "calendar", "reckon")
BY_CALENDAR = '{"schedule":{"cron":"* * * * *"},"calendars":[{"name":"holidays","weekdays":[]}]}'
Rows = Iterator[tuple[Any, ...]]


def tables(scale: float) -> dict[str, tuple[tuple[str, ...], Rows]]:
    """Return the columns and the rows of each table."""
    tasks = int(100_000 * scale)
    return {
        "tasks": (("id", "uuid", "name", "version", "state", "created_at", "changed_at"), _tasks(tasks)),
        "definitions": (("task_id", "version", "definition", "created_at"), _definitions(tasks)),
        "schedules": (
            ("task_id", "task_uuid", "task_version", "version", "state", "next_at", "last_due_at", "timing"),
            _schedules(tasks),
        ),
        "events": (
            ("id", "source", "event_id", "type", "occurred_at", "digest", "received_at"),
            _events(tasks),
        ),
        "runs": (
            (
                *("id", "uuid", "task_id", "task_version", "cause", "due_at", "asked_at", "ready_at", "ended_at"),
                *("state", "overlap", "event_id", "backfill_id", "open", "is_window"),
            ),
            _runs(2 * tasks, tasks),
        ),
        "deliveries": (
            (
                *("id", "run_id", "message_id", "key_json", "data", "state", "ready_at", "attempts", "errors"),
                *("created_at", "ended_at"),
            ),
            _deliveries(tasks),
        ),
        "dead_letters": (
            (
                *("id", "uuid", "identity", "kind", "state", "reason", "task_id", "task_name", "message_id"),
                *("attempts", "headers", "properties", "created_at", "ended_at", "requeued_at", "requeue_id"),
            ),
            _dead_letters(tasks // 2),
        ),
        "requeues": (
            ("id", "uuid", "state", "rate", "ask", "total", "actor", "created_at", "ready_at"),
            _requeues(tasks // 20),
        ),
        "ledger": (
            (
                *("id", "task_id", "task_version", "first_due_at", "last_due_at", "count", "verdict", "reason"),
                "created_at",
            ),
            _ledger(tasks, tasks),
        ),
        "backfills": (
            (
                *("id", "uuid", "task_id", "task_version", "first_due_at", "last_due_at", "total", "actor"),
                "created_at",
            ),
            _backfills(tasks // 50),
        ),
        "followed": (
            (
                *("task_id", "touched", "answered", "asking", "fence", "ready_at", "seen_at", "failures", "reach"),
                *("look_at", "late", "failing_since"),
            ),
            _followed(tasks // 5),
        ),
        "handed_over": (("task_id", "due_at", "key_text"), _handed_over(tasks)),
        "audit": (("id", "happened_at", "actor", "verb", "subject"), _audit(tasks // 2)),
    }


def _uuid(kind: int, number: int) -> UUID:
    return UUID(int=(kind << 100) + number * 2654435761 % 2**64 + (number << 64))


def _ago(number: int, step: float) -> datetime:
    return NOW - timedelta(seconds=number * step)


def _tasks(count: int) -> Rows:
    for n in range(1, count + 1):
        yield n, _uuid(1, n), f"task-{n}", 1, "removed" if n % 50 == 0 else "active", NOW, NOW


def _definitions(count: int) -> Rows:
    for n in range(1, count + 1):
        yield n, 1, '{"name":"task"}', NOW


def _schedules(count: int) -> Rows:
    for n in range(1, count + 1):
        state = {0: "paused", 1: "finished", 2: "stopped"}.get(n % 100, "active")
        yield (
            n,
            _uuid(1, n),
            1,
            1,
            state,
            NOW + timedelta(seconds=n * 7919 % 86_400 - 5),
            None,
            TIMING if n % 500 else BY_CALENDAR,
        )


def _events(count: int) -> Rows:
    for n in range(1, count + 1):
        yield n, "shop", f"e{n}", "order.paid", _ago(n, 60), "d" * 64, _ago(n, 60)


def _runs(count: int, tasks: int) -> Rows:
    for n in range(1, count + 1):
        state = {0: "due", 1: "running", 2: "queued", 3: "settling", 4: "held"}.get(n % 400, "done")
        due = _ago(count - n, 20)
        overlap = "skip" if n % 2 else None
        ready, ended = (due, due) if state == "done" else (NOW + timedelta(seconds=n % 60 - 10), None)
        event = n // 2 if n % 2 == 0 and n // 2 <= tasks else None
        yield (
            *(n, _uuid(2, n), n % tasks + 1, 1, f"schedule:{n}", due, due, ready, ended, state, overlap, event),
            n // 1000 + 1 if n % 20 == 0 else None,
            2 if state == "settling" else 0,
            n % 20 < 4,
        )


def _deliveries(count: int) -> Rows:
    for n in range(1, count + 1):
        state, ended = ("delivered", NOW) if n % 50 else ("sending" if n % 100 else "waiting", None)
        yield n, n, _uuid(3, n), f'"{n}"', "{}", state, NOW + timedelta(seconds=n % 90 - 10), 1, "[]", NOW, ended


def _dead_letters(count: int) -> Rows:
    for n in range(1, count + 1):
        state = {0: "open", 1: "requeuing", 2: "quarantined"}.get(n % 20, "recovered")
        ended = _ago(count - n, 60) if state == "recovered" else None
        task = None if n % 40 == 1 else n
        sent = _ago(n, 1) if state == "requeuing" and n % 3 else None
        yield (
            *(n, _uuid(4, n), f"message:{n}", "message", state, "503", task, task and f"task-{task}", _uuid(5, n)),
            *("[]", "{}", "{}", NOW, ended, sent, n // 20 + 1 if state == "requeuing" else None),
        )


def _requeues(count: int) -> Rows:
    for n in range(1, count + 1):
        yield n, _uuid(6, n), "running" if n % 50 == 0 else "done", 10.0, True, 9, "tester", NOW, NOW


def _ledger(count: int, tasks: int) -> Rows:
    for n in range(1, count + 1):
        moment = _ago(count - n, 60)
        yield n, n * 7 % tasks + 1, 1, moment, moment, 1, "missed", "test", moment


def _backfills(count: int) -> Rows:
    for n in range(1, count + 1):
        yield n, _uuid(7, n), n, 1, _ago(n, 60), NOW, 50, "tester", _ago(count - n, 60)


def _followed(count: int) -> Rows:
    for n in range(1, count + 1):
        ready, failing = NOW + timedelta(seconds=n % 3600), _ago(n, 1) if n % 500 == 0 else None
        reach = NOW - timedelta(hours=1) if n % 50 else NEVER
        yield n, 7, 7, False, 3, ready, _ago(n, 1), 0, reach, ready if n % 3 == 0 else None, 0, failing


def _handed_over(count: int) -> Rows:
    """Of a few tasks, of the last two hours."""
    for n in range(1, count + 1):
        yield n % 20 + 1, _ago(n, 7200 / count), f"k{n}"


def _audit(count: int) -> Rows:
    for n in range(1, count + 1):
        yield n, _ago(count - n, 60), "tester", VERBS[n % len(VERBS)], f"task-{n}"
