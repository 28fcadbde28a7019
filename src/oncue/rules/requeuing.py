"""How a requeue goes on: one message first, the rest at its rate, and a stop when what comes back is worse."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from oncue.model import Requeue, RequeueState

TICK = timedelta(seconds=1)
WORST = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """Send `count` more and be in `state`; look again at `ready_at`."""

    count: int
    state: RequeueState
    ready_at: datetime
    reason: str | None = None


def plan(requeue: Requeue, *, now: datetime) -> Plan:
    """Return what a requeue does now."""
    settled = requeue.recovered + requeue.failed
    if settled >= requeue.total:
        return Plan(0, "done", now, _tally(requeue))
    if requeue.state == "canary":
        return _plan_canary(requeue, settled, now=now)
    judged, failed = settled - requeue.forgiven, requeue.failed - requeue.forgiven
    if judged >= 10 and failed > WORST * judged:
        return Plan(
            0, "paused", now, f"more than half came back: {_tally(requeue)}; resume it when the cause is mended"
        )
    left = requeue.total - requeue.sent
    if not left:
        return Plan(0, requeue.state, now + TICK)
    each = max(1, int(requeue.rate))
    return Plan(min(left, each), "running", now + TICK * max(1.0, 1 / requeue.rate))


def _plan_canary(requeue: Requeue, settled: int, *, now: datetime) -> Plan:
    if requeue.sent == 0:
        return Plan(1, "canary", now + TICK)
    if settled == 0:
        return Plan(0, "canary", now + TICK)
    if requeue.failed:
        return Plan(0, "stopped", now, f"the first one came back: {_tally(requeue)}; mend the cause and requeue again")
    return Plan(0, "running", now)


def _tally(requeue: Requeue) -> str:
    return f"{requeue.recovered} recovered, {requeue.failed} failed of {requeue.total}"
