"""The ingest's verbs: take events in once, with the runs that they cause, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from oncue.model import Change, Event, RunId, TaskId, TaskState
from oncue.rules import identity
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask


@dataclass(frozen=True, slots=True)
class Matched:
    """A task that an event starts, as the ingest knew it: version and state are compared when the run is written."""

    task_id: TaskId
    task_uuid: UUID
    version: int
    state: TaskState


@dataclass(frozen=True, slots=True)
class Incoming:
    """An event with the tasks that it matched."""

    event: Event
    digest: str
    matched: tuple[Matched, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of one event. `runs` are those that this transaction made: (task, run id, run uuid)."""

    verdict: Literal["accepted", "duplicate", "conflict"]
    runs: tuple[tuple[TaskId, RunId, UUID], ...] = ()


class Stale(Exception):
    """A task changed since the ingest looked: nothing was written; look again and repeat."""


def accept(incoming: Sequence[Incoming], *, now: datetime, lease: datetime | None) -> Steps[list[Accepted]]:
    """Take in a batch of events. With a `lease` their runs are made as already claimed until then: the short path.

    An event that was known answers `duplicate`, or `conflict` where its content differs. For a task that is paused
    the ledger says so instead of a run. Raises Stale.
    """
    first: dict[tuple[str, str], Incoming] = {}
    for one in incoming:
        first.setdefault((one.event.source, one.event.id), one)
    rows = yield ask("insert_events", rows=[_event(one, now) for one in first.values()])
    ids = {(row["source"], row["event_id"]): row["id"] for row in rows}
    runs = yield from _make_runs([one for key, one in first.items() if key in ids], ids, now=now, lease=lease)
    digests = yield from _known(incoming, first, ids)
    answers: list[Accepted] = []
    for one in incoming:
        key = (one.event.source, one.event.id)
        if first.get(key) is one and key in ids:
            answers.append(Accepted("accepted", tuple(runs.get(key, ()))))
        else:
            answers.append(Accepted("duplicate" if digests[key] == one.digest else "conflict"))
    return answers


def _event(one: Incoming, now: datetime) -> tuple[object, ...]:
    event = one.event
    data = None if event.data is None else codec.write_json(event.data)
    return event.source, event.id, event.type, event.subject, event.time, data, one.digest, now


def _make_runs(
    new: Sequence[Incoming], ids: dict[tuple[str, str], int], *, now: datetime, lease: datetime | None
) -> Steps[dict[tuple[str, str], list[tuple[TaskId, RunId, UUID]]]]:
    wanted: dict[UUID, tuple[tuple[str, str], TaskId]] = {}
    rows, passed_over = [], []
    for one in new:
        key = (one.event.source, one.event.id)
        cause = identity.event_cause(*key)
        for match in one.matched:
            if match.state != "active":
                reason = f"event {one.event.id} of {one.event.source} came while the task was paused"
                passed_over.append((match.task_id, match.version, now, now, 1, "paused", reason, now))
                continue
            uuid = identity.run_uuid(match.task_uuid, cause)
            wanted[uuid] = (key, match.task_id)
            rows.append((uuid, match.task_id, match.version, cause, ids[key]))
    if passed_over:
        yield ask("insert_ledger", rows=passed_over)
    if not rows:
        return {}
    name = "insert_event_runs" if lease is None else "insert_claimed_runs"
    made = yield ask(name, rows=rows, now=now, until=lease or now)
    if len(made) < len(rows):
        raise Stale
    runs: dict[tuple[str, str], list[tuple[TaskId, RunId, UUID]]] = {}
    for row in made:
        uuid = codec.as_uuid(row["uuid"])
        assert uuid is not None
        key, task_id = wanted[uuid]
        runs.setdefault(key, []).append((task_id, RunId(row["id"]), uuid))
    if lease is None:
        yield Wake("dispatcher", now)
    yield Change("run", "", "due", facts={"count": len(made)})
    return runs


def _known(
    incoming: Sequence[Incoming], first: dict[tuple[str, str], Incoming], ids: dict[tuple[str, str], int]
) -> Steps[dict[tuple[str, str], str]]:
    """Return the digests of the events that were known before this batch, or earlier in it."""
    digests = {key: one.digest for key, one in first.items() if key in ids}
    old = [key for key in first if key not in ids]
    if old:
        rows = yield ask("read_digests", rows=old)
        digests |= {(row["source"], row["event_id"]): row["digest"] for row in rows}
    return digests
