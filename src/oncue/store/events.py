"""The ingest's verbs: take events in once, with the runs that they cause, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from oncue.model import Change, Event, RunId, TaskId, TaskState
from oncue.rules import identity
from oncue.store import codec, followed
from oncue.store.base import Steps, Wake, ask


@dataclass(frozen=True, slots=True)
class Matched:
    """A task that an event starts, as the ingest knew it: version and state are compared when the run is written.

    `at_once` makes the run as already claimed by who takes the event in: the short path.
    """

    task_id: TaskId
    task_uuid: UUID
    version: int
    state: TaskState
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    """An event with the tasks that it matched, and those whose followed schedules it touches."""

    event: Event
    digest: str
    matched: tuple[Matched, ...]
    touched: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run that an event made; `at_once` where this process holds it."""

    task_id: TaskId
    id: RunId
    uuid: UUID
    at_once: bool


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of one event, with the runs that this transaction made of it."""

    verdict: Literal["accepted", "duplicate", "conflict"]
    runs: tuple[MadeRun, ...] = ()


class Stale(Exception):
    """A task changed since the ingest looked: nothing was written; look again and repeat."""


def accept(incoming: Sequence[Incoming], *, now: datetime, until: datetime) -> Steps[list[Accepted]]:
    """Take in a batch of events. Runs of the short path are made as already claimed, until `until`.

    An event that was known answers `duplicate`, or `conflict` where its content differs. For a task that is paused
    the ledger says so instead of a run. Raises Stale.
    """
    first: dict[tuple[str, str], Incoming] = {}
    for one in incoming:
        first.setdefault((one.event.source, one.event.id), one)
    new = sorted(
        first.items(), key=lambda item: item[0]
    )  # one lock order: two batches with the same events do not wait in a ring
    rows = yield ask("insert_events", rows=[_event(one, now) for _, one in new])
    ids = {(row["source"], row["event_id"]): row["id"] for row in rows}
    runs = yield from _make_runs([one for key, one in first.items() if key in ids], ids, now=now, until=until)
    if touched := {task_id for key, one in first.items() if key in ids for task_id in one.touched}:
        yield from followed.touch(touched, now=now)
    digests = yield from _known(first, ids)
    answers: list[Accepted] = []
    for one in incoming:
        key = (one.event.source, one.event.id)
        if first.get(key) is one and key in ids:
            answers.append(Accepted("accepted", tuple(runs.get(key, ()))))
        else:
            answers.append(Accepted("duplicate" if digests[key] == one.digest else "conflict"))
    for verdict, count in Counter(answer.verdict for answer in answers).items():
        yield Change("event", "", verdict, facts={"count": count})
    return answers


def _event(one: Incoming, now: datetime) -> tuple[object, ...]:
    event = one.event
    data = None if event.data is None else codec.write_json(event.data)
    return event.source, event.id, event.type, event.subject, event.time, data, one.digest, now


def _make_runs(
    new: Sequence[Incoming], ids: dict[tuple[str, str], int], *, now: datetime, until: datetime
) -> Steps[dict[tuple[str, str], list[MadeRun]]]:
    wanted: dict[UUID, tuple[tuple[str, str], TaskId]] = {}
    rows: dict[bool, list[tuple[object, ...]]] = {False: [], True: []}
    passed_over: list[tuple[object, ...]] = []
    for one in new:
        key = (one.event.source, one.event.id)
        cause = identity.event_cause(*key)
        for match in one.matched:
            if match.state != "active":
                reason = f"event {one.event.id} of {one.event.source} came while the task was paused"
                passed_over.append((match.task_id, match.version, reason))
                continue
            uuid = identity.run_uuid(match.task_uuid, cause)
            wanted[uuid] = (key, match.task_id)
            rows[match.at_once].append((uuid, match.task_id, match.version, cause, ids[key]))
    noted = (yield ask("insert_passed_over", rows=passed_over, now=now)) if passed_over else []
    if len(noted) < len(passed_over):
        raise Stale
    claimed = (yield ask("insert_claimed_runs", rows=rows[True], now=now, until=until)) if rows[True] else []
    due = (yield ask("insert_event_runs", rows=rows[False], now=now)) if rows[False] else []
    if len(claimed) + len(due) < len(wanted):
        raise Stale
    if due:
        yield Wake("dispatcher", now)
    if wanted:
        yield Change("run", "", "due", facts={"count": len(wanted)})
    runs: dict[tuple[str, str], list[MadeRun]] = {}
    for row, at_once in [*((row, True) for row in claimed), *((row, False) for row in due)]:
        uuid = codec.known_uuid(row["uuid"])
        key, task_id = wanted[uuid]
        runs.setdefault(key, []).append(MadeRun(task_id, RunId(row["id"]), uuid, at_once))
    return runs


def _known(
    first: dict[tuple[str, str], Incoming], ids: dict[tuple[str, str], int]
) -> Steps[dict[tuple[str, str], str]]:
    """Return the digests of the events that were known before this batch, or earlier in it."""
    digests = {key: one.digest for key, one in first.items() if key in ids}
    old = [key for key in first if key not in ids]
    if old:
        rows = yield ask("read_digests", rows=old)
        digests |= {(row["source"], row["event_id"]): row["digest"] for row in rows}
    return digests
