"""What ends together: a run, the slot that it held, its open deliveries, and the dead letter that it was to recover.

Rows are locked in one order, here and in every verb beside this file: task changes, runs, deliveries, tasks, schedules,
dead letters, requeues; several of one kind by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from oncue.model import Attempt, Change, DeadLetterId, DeadLetterState, Lost, NewDeadLetter, Run, RunId, RunState
from oncue.rules import binding, identity, states
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask


def end_run(
    run: Run, state: RunState, *, reason: str | None, now: datetime, letter: NewDeadLetter | None = None
) -> Steps[Lost | None]:
    """End a run that this caller holds by its fence; a dead letter goes in with it.

    Its open deliveries end with it only where it is cancelled: what a run resolved before it failed is still delivered.
    """
    assert states.leads("run", "running", state), f"a run that runs does not become {state}"
    rows = yield ask("end_run", id=run.id, fence=run.fence, state=state, reason=codec.plain_text(reason), now=now)
    if not rows:
        return Lost()
    if state == "cancelled" and rows[0]["open"]:
        yield from cancel_deliveries(run.id, reason=reason, now=now)
    yield from free_slot(run, now=now)
    if letter is not None:
        yield from bury_of_run(run.dead_letter_id, letter, now=now)
    yield from tell_ended([run.id], now=now)
    return None


def cancel_deliveries(run_id: RunId, *, reason: str | None, now: datetime) -> Steps[None]:
    """Cancel the open deliveries of a run, and count them as dropped."""
    yield ask("cancel_deliveries", run_id=run_id, reason=reason, now=now)
    yield ask("drop_open", id=run_id)


def finish_if_settled(run_ids: Sequence[RunId], *, now: datetime) -> Steps[None]:
    """End those runs that are handed over and have no open delivery left."""
    rows = yield ask("finish_settled", ids=list(run_ids), now=now)
    yield from tell_ended([RunId(row["id"]) for row in rows], now=now)


def free_slot(run: Run, *, now: datetime) -> Steps[None]:
    """Free the slot if this run holds it, and wake the next run that waits for it."""
    if run.overlap is None:
        return
    freed = yield ask("free_slot", task_id=run.task_id, run_id=run.id)
    if freed:
        woken = yield ask("wake_next", task_id=run.task_id, now=now)
        if woken:
            yield Wake("dispatcher", now)


def tell_ended(run_ids: Sequence[RunId], *, now: datetime) -> Steps[None]:
    """Settle the dead letters that runs were to recover, and tell that the runs ended."""
    if not run_ids:
        return
    rows = yield ask("read_runs_by_id", ids=sorted(run_ids))
    for run in map(codec.read_run, rows):
        if run.dead_letter_id is not None:
            yield from _settle_requeued(run, now=now)
        late = binding.lateness(run)
        facts = {
            "task": run.task_name,
            "cause": run.kind,
            "late": late.total_seconds() if late is not None else None,
            "sent": run.confirmed,
            "dead": run.dead,
            "dropped": run.dropped,
        }
        yield Change("run", str(run.uuid), run.state, run.reason, facts)


def _settle_requeued(run: Run, *, now: datetime) -> Steps[None]:
    """Say what became of a requeued dead letter: recovered, no longer wanted, or open again.

    A run that is requeued buries its messages one by one, so it has recovered also where some of them are dead.
    """
    assert run.dead_letter_id is not None
    kind = (yield ask("read_requeued", id=run.dead_letter_id))[0]["kind"]
    if run.state == "partial" and kind == "run":
        yield from settle_letter(
            run.dead_letter_id,
            "recovered",
            reason=f"requeued by run {run.uuid}; what failed of it is buried apart",
            now=now,
        )
    elif run.state == "done" and run.confirmed:
        yield from settle_letter(run.dead_letter_id, "recovered", reason=f"requeued by run {run.uuid}", now=now)
    elif run.state == "done":
        yield from settle_letter(run.dead_letter_id, "discarded", reason=run.reason or "no longer qualifies", now=now)
    else:
        yield from settle_letter(run.dead_letter_id, "open", reason=run.reason, now=now)


def settle_letter(
    dead_letter_id: DeadLetterId, state: DeadLetterState, *, reason: str | None, now: datetime
) -> Steps[None]:
    """Write what became of a requeued dead letter, and count it on its requeue. It has a new requeue number then."""
    good = state != "open"
    rows = yield ask(
        "settle_requeued",
        id=dead_letter_id,
        state=state,
        why=None if good else codec.plain_text(reason),
        ended_reason=reason if good else None,
        ended_at=now if good else None,
    )
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


def bury_of_run(requeued_id: DeadLetterId | None, letter: NewDeadLetter, *, now: datetime) -> Steps[None]:
    """Bury what failed in a run. Where the run requeues that very dead letter, its tries are added to it instead."""
    if requeued_id is None:
        yield from bury(letter, now=now)
        return
    requeued = (yield ask("read_requeued", id=requeued_id))[0]
    if requeued["kind"] == "run" and letter.kind == "message":
        yield from bury(letter, now=now, parent_id=requeued_id)
        return
    attempts: list[Attempt] = [*codec.read_attempts(requeued["attempts"]), *letter.attempts]
    yield ask(
        "note_attempts",
        id=requeued_id,
        attempts=codec.write_attempts(attempts),
        reason=codec.plain_text(letter.reason),
        cursor=letter.cursor,
    )
