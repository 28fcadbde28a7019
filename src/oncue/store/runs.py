"""The dispatcher's verbs on runs: claim under a lease, renew, checkpoint a page, give back, end. And the readers'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from oncue.errors import Conflict, NotFound
from oncue.model import Change, Delivery, Key, Lost, NewDeadLetter, NewDelivery, Run, RunId, RunState, TaskId
from oncue.rules import firing, identity
from oncue.store import codec, reckoning
from oncue.store.base import Row, Steps, Wake, ask
from oncue.store.endings import bury_of_run, cancel_deliveries, end_run, free_slot, tell_ended
from oncue.store.followed import horizon_of, note_handed_over

REPLACED = "replaced by a later run"


@dataclass(frozen=True, slots=True)
class Progress:
    """What one page came to: how many entities were resolved, confirmed, dropped; which messages stay open or are dead.

    `cursor` is where the next page starts; None means that this was the last. `handed_over` are those of a followed
    schedule's window, by key and due time.
    """

    cursor: str | None
    resolved: int
    confirmed: int
    dropped: int
    open: tuple[NewDelivery, ...] = ()
    dead: tuple[NewDeadLetter, ...] = ()
    reason: str | None = None
    handed_over: tuple[tuple[Key, datetime], ...] = ()


def claim(*, now: datetime, until: datetime, limit: int) -> Steps[list[Run]]:
    """Claim up to `limit` runs until `until`. A run that finds its task's slot taken is queued or skipped instead."""
    picked = yield ask("pick_runs", now=now, limit=limit)
    if not picked:
        return []
    claimed = yield from _admit(picked, now=now)
    if not claimed:
        return []
    yield ask("claim_runs", ids=claimed, now=now, until=until)
    rows = yield ask("read_runs_by_id", ids=claimed)
    return [codec.read_run(row) for row in rows]


def _admit(picked: Sequence[Row], *, now: datetime) -> Steps[list[int]]:
    """Decide who gets its task's slot: one run a task and claim, in the order of their due times."""
    claimed = [row["id"] for row in picked if row["overlap"] is None]
    slotted = sorted(
        (row for row in picked if row["overlap"]), key=lambda row: (codec.as_time(row["due_at"]), row["id"])
    )
    if not slotted:
        return claimed
    task_ids = sorted({row["task_id"] for row in slotted})
    slots = {row["id"]: row["slot"] for row in (yield ask("lock_slots", ids=task_ids))}
    waiting = {row["task_id"] for row in (yield ask("read_queued", ids=task_ids))}
    taken: list[tuple[int, int]] = []
    moved: list[tuple[int, str, str | None, datetime | None]] = []
    for row in slotted:
        task_id, holder = row["task_id"], slots.get(row["task_id"])
        is_taken = holder is not None and holder != row["id"]
        admission = firing.admit(
            row["overlap"], slot_taken=is_taken, caught_up=bool(row["takes_turns"]), one_waits=task_id in waiting
        )
        if admission == "claim":
            claimed.append(row["id"])
            taken.append((task_id, row["id"]))
            slots[task_id] = row["id"]
        elif admission == "skip":
            moved.append((row["id"], "skipped", "an earlier run is still handing over", now))
        else:
            moved.append((row["id"], "queued", "waits for an earlier run to hand over", None))
            waiting.add(task_id)
    if taken:
        yield ask("take_slots", rows=taken)
    if moved:
        yield ask("move_waiting", rows=moved)
        yield from _tell_skipped(slotted, {run_id for run_id, state, _, _ in moved if state == "skipped"}, now=now)
    return claimed


def _tell_skipped(rows: Sequence[Row], skipped: set[int], *, now: datetime) -> Steps[None]:
    """Tell that runs were skipped, and give them back to schedules that count them."""
    if skipped:
        made = [(TaskId(row["task_id"]), row["task_version"]) for row in rows if row["id"] in skipped]
        yield from reckoning.revive(made, now=now)
        yield from tell_ended([RunId(run_id) for run_id in sorted(skipped)], now=now)


def renew(run: Run, *, until: datetime) -> Steps[str | Lost | None]:
    """Hold a run longer. Answer Lost if somebody else holds it, or the reason why it is asked to stop.

    Somebody asked for it, or a later run of its task waits to replace it: not one that was caught up, those take turns.
    """
    rows = yield ask("renew_run", id=run.id, fence=run.fence, until=until, replaced=REPLACED)
    if not rows:
        return Lost()
    reason: str | None = rows[0]["stop_reason"]
    return reason


def checkpoint(run: Run, progress: Progress, *, now: datetime, until: datetime) -> Steps[RunState | Lost]:
    """Write one page under the fence: cursor, counts, deliveries, dead letters. Answer the run's state after it."""
    rows = yield ask(
        "checkpoint_run",
        id=run.id,
        fence=run.fence,
        cursor=progress.cursor,
        resolved=progress.resolved,
        confirmed=progress.confirmed,
        dropped=progress.dropped,
        dead=len(progress.dead),
        open=len(progress.open),
        until=until,
    )
    if not rows:
        return Lost()
    yield from note_handed_over(run.task_id, progress.handed_over)
    if progress.open:
        yield ask("insert_deliveries", rows=[_delivery(run, delivery, now) for delivery in progress.open])
        yield Wake("dispatcher", min(delivery.ready_at for delivery in progress.open))
    for letter in progress.dead:
        yield from bury_of_run(run.dead_letter_id, letter, now=now)
    if _is_stopped(rows[0], is_last=progress.cursor is None):
        yield from end_run(run, "cancelled", reason=rows[0]["stop_reason"], now=now)
        return "cancelled"
    if progress.cursor is not None:
        return "running"
    return (yield from _hand_over(run, rows[0], reason=progress.reason, now=now))


def _is_stopped(row: Row, *, is_last: bool) -> bool:
    """Say whether a run that was asked to stop still can: after its last page, only open deliveries can be stopped."""
    if is_last and (not row["open"] or row["stop_reason"] == REPLACED):
        return False
    return row["stop_reason"] is not None


def _hand_over(run: Run, row: Row, *, reason: str | None, now: datetime) -> Steps[RunState]:
    """The last page is out: free the slot, and end the run unless deliveries are still open."""
    if row["open"]:
        yield ask("settle_run", id=run.id)
        yield from free_slot(run, now=now)
        return "settling"
    state: RunState = "partial" if row["dead"] else "done"
    yield from end_run(run, state, reason=reason, now=now)
    return state


def _delivery(run: Run, delivery: NewDelivery, now: datetime) -> tuple[object, ...]:
    return (
        run.id,
        delivery.message_id,
        codec.write_json(delivery.key),
        codec.write_json(delivery.data),
        delivery.requeue,
        delivery.ready_at,
        delivery.counted,
        codec.write_attempts(delivery.attempts),
        now,
    )


def give_back(run: Run, *, ready_at: datetime, counted: bool, reason: str | None) -> Steps[Lost | None]:
    """Let others have a run at `ready_at`; uncounted where the attempt was not the run's fault."""
    rows = yield ask(
        "give_back_run",
        id=run.id,
        fence=run.fence,
        ready_at=ready_at,
        uncount=int(not counted),
        reason=codec.plain_text(reason),
    )
    if not rows:
        return Lost()
    yield Wake("dispatcher", ready_at)
    return None


def fire(
    task_id: TaskId, task_uuid: UUID, task_version: int, *, key: str, due_at: datetime, now: datetime
) -> Steps[tuple[UUID, bool]]:
    """Make a run by hand. The same key again answers the run that it made before, and False."""
    cause = identity.manual_cause(key)
    uuid = identity.run_uuid(task_uuid, cause)
    rows = yield ask(
        "insert_run",
        previous_due_at=(yield from horizon_of(task_id)),
        uuid=uuid,
        task_id=task_id,
        task_version=task_version,
        cause=cause,
        due_at=due_at,
        now=now,
        dead_letter_id=None,
        cursor=None,
        event_id=None,
    )
    if rows:
        yield Wake("dispatcher", now)
        yield Change("run", str(uuid), "due", facts={"count": 1})
    return uuid, bool(rows)


def cancel(uuid: UUID, *, reason: str, now: datetime) -> Steps[str]:
    """End a run that waits, or ask the one that runs to end at its next page; answer what was done."""
    yield ask("lock_run", uuid=uuid)
    run = yield from read(uuid)
    match run.state:
        case "due" | "queued" | "held":
            yield ask("cancel_waiting_run", id=run.id, reason=reason, now=now)
            yield from free_slot(run, now=now)
        case "settling":
            yield from cancel_deliveries(run.id, reason=reason, now=now)
            yield ask("cancel_settling_run", id=run.id, reason=reason, now=now)
        case "running":
            yield ask("ask_to_stop", id=run.id, reason=reason)
            yield Wake("dispatcher", now)
            return "ends at its next page"
        case _:
            raise Conflict(f"run {uuid} is {run.state}: only a run that has not ended can be cancelled.")
    yield from tell_ended([run.id], now=now)
    return "cancelled"


def read(uuid: UUID) -> Steps[Run]:
    """Return a run by its public id. Raises NotFound."""
    rows = yield ask("read_run_by_uuid", uuid=uuid)
    if not rows:
        raise NotFound(f"no run {uuid}. `oncue runs` lists the latest.")
    return codec.read_run(rows[0])


def by_id(ids: Sequence[int]) -> Steps[dict[int, Run]]:
    rows = yield ask("read_runs_by_id", ids=list(ids))
    return {row["id"]: codec.read_run(row) for row in rows}


def latest(*, task_id: int | None, state: str | None, before: int | None, limit: int) -> Steps[list[Run]]:
    """Return the latest runs first; `before` is the id that the last page ended with."""
    name = "list_runs" if task_id is None else "list_runs_of_task"
    parameters = {"state": state, "before": before or 2**62, "limit": limit}
    if task_id is not None:
        parameters["task_id"] = task_id
    rows = yield ask(name, **parameters)
    return [codec.read_run(row) for row in rows]


def deliveries(run_id: RunId, *, limit: int) -> Steps[list[Delivery]]:
    rows = yield ask("list_deliveries", run_id=run_id, limit=limit)
    return [codec.read_delivery(row) for row in rows]


def next_ready() -> Steps[datetime | None]:
    """Return when the next run or delivery can be claimed."""
    rows = yield ask("next_ready")
    return min((at for row in rows if (at := codec.as_time(row["ready_at"]))), default=None)
