"""The dispatcher's verbs on single messages that were not confirmed at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from oncue.model import Attempt, Delivery, DeliveryState, NewDeadLetter, Run, RunId
from oncue.rules import states
from oncue.store import codec
from oncue.store.base import Steps, Wake, ask
from oncue.store.endings import bury_of_run, finish_if_settled


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of one claimed delivery. `waiting` gives it back until `ready_at`, the try counted or not."""

    delivery: Delivery
    state: DeliveryState
    reason: str | None
    ready_at: datetime
    counted: bool
    attempts: tuple[Attempt, ...]
    letter: NewDeadLetter | None = None


def claim(*, now: datetime, until: datetime, limit: int) -> Steps[list[tuple[Delivery, Run]]]:
    """Claim up to `limit` deliveries until `until`, each with its run."""
    rows = yield ask("claim_deliveries", now=now, until=until, limit=limit)
    claimed = [codec.read_delivery(row) for row in rows]
    if not claimed:
        return []
    found = yield ask("read_runs_by_id", ids=sorted({delivery.run_id for delivery in claimed}))
    runs = {row["id"]: codec.read_run(row) for row in found}
    return [(delivery, runs[delivery.run_id]) for delivery in claimed]


def renew(held: Sequence[Delivery], *, until: datetime) -> Steps[int]:
    """Hold claimed deliveries longer; answer how many this caller still held."""
    rows = yield ask("renew_deliveries", rows=[(one.id, one.fence) for one in held], until=until)
    return len(rows)


def settle(settled: Sequence[Settled], *, now: datetime) -> Steps[int]:
    """Write what became of claimed deliveries, count it on their runs, and end the runs that have none left.

    Answer how many this caller still held.
    """
    runs = yield ask("lock_runs", ids=sorted({one.delivery.run_id for one in settled}))
    requeued = {row["id"]: row["dead_letter_id"] for row in runs}
    rows = yield ask("settle_deliveries", rows=[_row(one, now) for one in settled])
    held = {row["id"] for row in rows}
    kept = [one for one in settled if one.delivery.id in held]
    for one in kept:
        if one.letter is not None:
            yield from bury_of_run(requeued[one.delivery.run_id], one.letter, now=now)
    if counts := _counts(kept):
        yield ask("count_settled", rows=counts)
        yield from finish_if_settled([RunId(int(row[0])) for row in counts], now=now)
    if again := [one.ready_at for one in kept if one.state == "waiting"]:
        yield Wake("dispatcher", min(again))
    return len(kept)


def _row(one: Settled, now: datetime) -> tuple[object, ...]:
    over = one.state != "waiting"
    assert states.leads("delivery", "sending", one.state), f"a delivery that is sent does not become {one.state}"
    delivery, reason = one.delivery, codec.plain_text(one.reason)
    attempts = delivery.attempts if one.counted else delivery.attempts - 1
    errors = codec.write_attempts(one.attempts)
    return delivery.id, delivery.fence, one.state, reason, one.ready_at, attempts, errors, now if over else None


def _counts(kept: Sequence[Settled]) -> list[tuple[int, int, int, int, int]]:
    """Return (run, closed, confirmed, dead, dropped) for each run."""
    totals: dict[int, Counter[str]] = {}
    for one in kept:
        if one.state != "waiting":
            totals.setdefault(one.delivery.run_id, Counter())[one.state] += 1
    return [
        (
            run_id,
            sum(ended.values()),
            ended["delivered"],
            ended["dead"],
            sum(ended.values()) - ended["delivered"] - ended["dead"],
        )
        for run_id, ended in sorted(totals.items())
    ]
