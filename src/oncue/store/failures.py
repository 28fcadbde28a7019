"""Verbs on dead letters and requeues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid4

from oncue.errors import Conflict, NotFound
from oncue.model import Change, DeadLetter, DeadLetterId, NewDeadLetter, Requeue, RequeueId, RequeueState
from oncue.rules import identity, states
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask
from oncue.store.endings import bury, settle_letter


def record(letters: Sequence[NewDeadLetter], *, now: datetime) -> Steps[int]:
    """Store dead letters read from a broker; each once. One that was requeued before opens a child of that one."""
    new = 0
    for letter in letters:
        parent = None
        if letter.message_id is not None:
            rows = yield ask("read_parent", message_id=letter.message_id)
            parent = DeadLetterId(rows[0]["id"]) if rows else None
        new += yield from bury(letter, now=now, parent_id=parent)
    return new


def read(uuid: UUID) -> Steps[DeadLetter]:
    """Return a dead letter by its public id. Raises NotFound."""
    rows = yield ask("read_dead_letter", uuid=uuid)
    if not rows:
        raise NotFound(f"no dead letter {uuid}. `oncue failures list` shows them.")
    return codec.read_dead_letter(rows[0])


def by_id(dead_letter_id: DeadLetterId) -> Steps[DeadLetter]:
    rows = yield ask("read_dead_letter_by_id", id=dead_letter_id)
    return codec.read_dead_letter(rows[0])


def latest(*, task: str | None, state: str | None, before: int | None, limit: int) -> Steps[list[DeadLetter]]:
    """Return the latest dead letters first, of one task and in one state where given."""
    rows = yield ask("list_dead_letters", task=task, state=state, before=before or 2**62, limit=limit)
    return [codec.read_dead_letter(row) for row in rows]


def groups() -> Steps[list[tuple[str | None, str | None, str, int]]]:
    """Return open dead letters as (task, queue, reason, count), most first."""
    rows = yield ask("group_dead_letters")
    return [(row["task_name"], row["queue"], row["reason"], row["count"]) for row in rows]


def find_open(*, uuids: Sequence[UUID], task: str | None, everything: bool, limit: int) -> Steps[list[int]]:
    """Return the ids of open dead letters: those named, or all of a task, or all."""
    if uuids:
        rows = yield ask("find_open_by_uuid", ids=list(uuids))
    elif task is not None or everything:
        rows = yield ask("find_open", task=task, limit=limit)
    else:
        raise Conflict("say which dead letters: give their ids, a task, or all.")
    return [row["id"] for row in rows]


def requeue(
    *,
    uuids: Sequence[UUID] = (),
    task: str | None = None,
    everything: bool = False,
    rate: float,
    ask_again: bool,
    actor: str,
    now: datetime,
) -> Steps[Requeue]:
    """Take open dead letters into a new requeue; each can be in one only. Raises Conflict where none is open."""
    ids = yield from find_open(uuids=uuids, task=task, everything=everything, limit=100_000)
    rows = yield ask("insert_requeue", uuid=uuid4(), rate=rate, ask=ask_again, total=len(ids), actor=actor, now=now)
    made = codec.read_requeue(rows[0])
    taken = yield ask("take_into_requeue", ids=ids, requeue_id=made.id)
    if not taken:
        raise Conflict("none of these dead letters is open: they are requeued, recovered or discarded already.")
    yield ask("size_requeue", id=made.id, total=len(taken))
    yield ask(
        "insert_audit",
        now=now,
        actor=actor,
        verb="requeue",
        subject=str(made.uuid),
        detail=f"{len(taken)} dead letters",
    )
    yield Change("requeue", str(made.uuid), "canary", facts={"total": len(taken)})
    yield Wake("failures", now)
    return (yield from read_requeue(made.uuid))


def discard(
    *,
    uuids: Sequence[UUID] = (),
    task: str | None = None,
    everything: bool = False,
    reason: str,
    actor: str,
    now: datetime,
) -> Steps[int]:
    """Close open dead letters for good, with a reason; answer how many."""
    ids = yield from find_open(uuids=uuids, task=task, everything=everything, limit=100_000)
    rows = yield ask("discard_dead_letters", ids=ids, reason=reason, now=now)
    for row in rows:
        yield Change("dead_letter", str(codec.as_uuid(row["uuid"])), "discarded", reason)
    detail = f"{len(rows)} dead letters: {reason}"
    yield ask("insert_audit", now=now, actor=actor, verb="discard", subject="dead letters", detail=detail)
    return len(rows)


def read_requeue(uuid: UUID) -> Steps[Requeue]:
    rows = yield ask("read_requeue", uuid=uuid)
    if not rows:
        raise NotFound(f"no requeue {uuid}. `oncue failures requeues` lists them.")
    return codec.read_requeue(rows[0])


def requeue_by_id(requeue_id: RequeueId) -> Steps[Requeue]:
    rows = yield ask("read_requeue_by_id", id=requeue_id)
    return codec.read_requeue(rows[0])


def list_requeues(*, limit: int) -> Steps[list[Requeue]]:
    rows = yield ask("list_requeues", limit=limit)
    return [codec.read_requeue(row) for row in rows]


def ready_requeues(*, now: datetime, limit: int) -> Steps[list[Requeue]]:
    """Return requeues that may send now."""
    rows = yield ask("ready_requeues", now=now, limit=limit)
    return [codec.read_requeue(row) for row in rows]


def next_requeue() -> Steps[datetime | None]:
    rows = yield ask("next_requeue")
    return codec.as_time(rows[0]["ready_at"]) if rows else None


def send_requeued(
    made: Requeue, *, count: int, state: RequeueState, ready_at: datetime, now: datetime
) -> Steps[list[DeadLetter]]:
    """Send `count` more dead letters of a requeue: a run each where a task is known. Answer the strangers among them.

    Settled by one row: of two processes, the one that finds `sent` as it read it goes on, the other gets nothing.
    """
    moved = yield ask("advance_requeue", id=made.id, seen=made.sent, count=count, state=state, ready_at=ready_at)
    if not moved:
        return []
    rows = yield ask("next_requeued", requeue_id=made.id, limit=count)
    letters = [codec.read_dead_letter(row) for row in rows]
    yield ask("mark_sent", ids=[letter.id for letter in letters], now=now)
    strangers: list[DeadLetter] = []
    for letter in letters:
        if letter.what.task_id is None:
            strangers.append(letter)
        else:
            yield from _make_run(made, letter, now=now)
    if len(strangers) < len(letters):
        yield Wake("dispatcher", now)
    return strangers


def _make_run(made: Requeue, letter: DeadLetter, *, now: datetime) -> Steps[None]:
    task = (yield ask("read_task_identity", id=letter.what.task_id))[0]
    task_uuid = codec.as_uuid(task["uuid"])
    assert task_uuid is not None
    cause = identity.requeue_cause(made.uuid, letter.uuid)
    origin = yield ask("read_run_origin", id=letter.what.run_id)
    yield ask(
        "insert_run",
        uuid=identity.run_uuid(task_uuid, cause),
        task_id=letter.what.task_id,
        task_version=letter.what.task_version or task["version"],
        cause=cause,
        due_at=codec.as_time(origin[0]["due_at"]) if origin else now,
        previous_due_at=codec.as_time(origin[0]["previous_due_at"]) if origin else None,
        now=now,
        dead_letter_id=letter.id,
        cursor=letter.what.cursor,
        event_id=origin[0]["event_id"] if origin else None,
    )


def retake_strangers(*, before: datetime, now: datetime, limit: int) -> Steps[list[DeadLetter]]:
    """Take strangers again that were given out before `before` and never settled: whoever was to publish them died."""
    rows = yield ask("retake_strangers", before=before, now=now, limit=limit)
    return [codec.read_dead_letter(row) for row in rows]


def settle_stranger(letter: DeadLetter, *, error: str | None, now: datetime) -> Steps[None]:
    """Say what became of a dead letter that the failure handler published itself."""
    if error is None:
        reason = "published again to the queue that it failed in"
        yield from settle_letter(letter.id, "recovered", reason=reason, now=now)
    else:
        yield from settle_letter(letter.id, "open", reason=error, now=now)


def move_requeue(
    made: Requeue, state: RequeueState, *, reason: str | None, ready_at: datetime, now: datetime
) -> Steps[bool]:
    """Move a requeue; one that ends gives back what it has not sent. Answer False where it has moved already.

    Raises Conflict where no move leads there.
    """
    if made.state in states.ends("requeue") or (state != made.state and not states.leads("requeue", made.state, state)):
        raise Conflict(f"requeue {made.uuid} is {made.state}: it cannot become {state}.")
    over = state in states.ends("requeue")
    ended_at = now if over else None
    rows = yield ask(
        "move_requeue",
        id=made.id,
        seen=made.state,
        state=state,
        reason=reason,
        ready_at=ready_at,
        ended_at=ended_at,
    )
    if not rows:
        return False
    if over:
        yield ask("release_unsent", requeue_id=made.id)
    if state != made.state:
        yield Change("requeue", str(made.uuid), state, reason)
    yield Wake("failures", ready_at)
    return True
