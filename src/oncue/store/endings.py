"""What ends together: a run, the slot that it held, its open deliveries, and the dead letter that it was to recover."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from oncue.model import Attempt, Change, DeadLetterId, Lost, NewDeadLetter, Run, RunId, RunState, TaskId
from oncue.rules import identity
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask


def end_run(
    run: Run, state: RunState, *, reason: str | None, now: datetime, letter: NewDeadLetter | None = None
) -> Steps[Lost | None]:
    """End a run that this caller holds by its fence; a dead letter goes in with it."""
    rows = yield ask("end_run", id=run.id, fence=run.fence, state=state, reason=reason, now=now)
    if not rows:
        return Lost()
    if letter is not None and run.dead_letter_id is None:
        yield from bury(letter, now=now)
    yield ask("cancel_deliveries", run_id=run.id, reason=reason, now=now)
    yield from free_slot(run.task_id, run.id, now=now)
    yield from tell_ended(run.id, now=now)
    return None


def finish_if_settled(run_ids: Sequence[RunId], *, now: datetime) -> Steps[None]:
    """End those runs that are handed over and have no open delivery left."""
    rows = yield ask("finish_settled", ids=list(run_ids), now=now)
    for row in rows:
        yield from tell_ended(RunId(row["id"]), now=now)


def free_slot(task_id: TaskId, run_id: RunId, *, now: datetime) -> Steps[None]:
    """Free the slot if this run holds it, and wake the next run that waits for it."""
    freed = yield ask("free_slot", task_id=task_id, run_id=run_id)
    if freed:
        woken = yield ask("wake_next", task_id=task_id, now=now)
        if woken:
            yield Wake("dispatcher", now)


def tell_ended(run_id: RunId, *, now: datetime) -> Steps[None]:
    """Settle the dead letter that a run was to recover, and tell that the run ended."""
    rows = yield ask("read_runs_by_id", ids=[run_id])
    run = codec.read_run(rows[0])
    if run.dead_letter_id is not None:
        yield from settle_requeued(run, now=now)
    facts = {
        "task": run.task_name,
        "cause": run.kind,
        "late": (run.started_at - run.due_at).total_seconds() if run.started_at else None,
        "sent": run.confirmed,
        "dead": run.dead,
        "dropped": run.dropped,
    }
    yield Change("run", str(run.uuid), run.state, run.reason, facts)


def settle_requeued(run: Run, *, now: datetime) -> Steps[None]:
    """Say what became of a requeued dead letter: recovered, no longer wanted, or open again."""
    assert run.dead_letter_id is not None
    good = run.state == "done"
    if good and run.confirmed:
        state, reason = "recovered", f"requeued by run {run.uuid}"
    elif good:
        state, reason = "discarded", run.reason or "no longer qualifies"
    else:
        state, reason = "open", None
    rows = yield ask("settle_requeued", id=run.dead_letter_id, state=state, reason=reason, now=now)
    for row in rows:
        yield ask("count_requeued", id=row["requeue_id"], recovered=int(good), failed=int(not good), now=now)
        yield Wake("failures", now)
        yield Change("dead_letter", str(codec.as_uuid(row["uuid"])), state, reason)


def bury(letter: NewDeadLetter, *, now: datetime, parent_id: DeadLetterId | None = None) -> Steps[bool]:
    """Store a dead letter once; answer whether it was new."""
    uuid = identity.dead_letter_uuid(letter.identity)
    rows = yield ask("insert_dead_letter", uuid=uuid, now=now, parent_id=parent_id, **codec.write_dead_letter(letter))
    if rows:
        facts = {"task": letter.task_name, "queue": letter.queue}
        yield Change("dead_letter", str(uuid), "open", letter.reason, facts)
    return bool(rows)


def note_attempts(dead_letter_id: DeadLetterId, attempts: Sequence[Attempt], *, reason: str) -> Steps[None]:
    """Add the failed tries of a requeue to the dead letter that it was for."""
    rows = yield ask("read_dead_letter_attempts", id=dead_letter_id)
    before = codec.read_attempts(rows[0]["attempts"]) if rows else ()
    yield ask("note_attempts", id=dead_letter_id, attempts=codec.write_attempts([*before, *attempts]), reason=reason)
