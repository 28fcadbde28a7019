"""What the clock does about one schedule that is due: which of its times run, which do not and why, and what is next.

The cost is bounded whatever was missed: at most RUNS_AT_ONCE runs, and counts instead of lists for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, assert_never

from oncue.definition import Misfire, Overlap
from oncue.model import Firing, LedgerEntry, PlannedRun, Schedule, Verdict
from oncue.rules import times

RUNS_AT_ONCE = 100
TICK = timedelta(microseconds=1)


def decide(schedule: Schedule, trigger: times.Trigger, misfire: Misfire, *, now: datetime) -> Firing:
    """Return what becomes of every due time up to `now`. The schedule must be due."""
    due = schedule.next_at
    assert due is not None
    following = times.next_after(trigger, due)
    if now - due <= misfire.grace and (following is None or following > now):
        return _move(schedule, (PlannedRun(due, schedule.last_due_at),), (), next_at=following, last_due_at=due)
    return _decide_many(schedule, trigger, misfire, now=now)


def stop(schedule: Schedule, reason: str) -> Firing:
    """Return the firing that stops a schedule whose rule can no longer be followed; its next time stays."""
    return Firing(schedule, (), (), schedule.next_at, schedule.last_due_at, "stopped", reason)


def pass_over(
    schedule: Schedule, trigger: times.Trigger, *, now: datetime, verdict: Verdict, reason: str
) -> tuple[datetime | None, LedgerEntry | None]:
    """Return the next time after `now`, and the ledger entry for the due times that it leaves behind."""
    entry = None
    if schedule.next_at is not None and schedule.next_at <= now:
        known = _Times(trigger, schedule.next_at)
        entry = known.entry(schedule.next_at - TICK, now, verdict=verdict, reason=reason)
    return times.next_after(trigger, now), entry


@dataclass(frozen=True, slots=True)
class _Times:
    """The times of a trigger from `due` on. `due` is one of them whatever the trigger says now: it was promised.

    A new edition of the zones can move all others meanwhile.
    """

    trigger: times.Trigger
    due: datetime

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """Return the times in (after, until], the first `limit` of them."""
        if after >= self.due:
            return times.times_between(self.trigger, after, until, limit)
        if until < self.due or limit < 1:
            return []
        return [self.due, *times.times_between(self.trigger, self.due, until, limit - 1)]

    def last_until(self, until: datetime) -> datetime:
        """Return the last time up to `until`, which is not earlier than `due`."""
        last = times.previous_before(self.trigger, until + TICK)
        return self.due if last is None else max(last, self.due)

    def entry(self, after: datetime, until: datetime, *, verdict: Verdict, reason: str) -> LedgerEntry | None:
        """Return the ledger entry for the times in (after, until], None where there are none."""
        if after >= until or until < self.due:
            return None
        count, first, last = times.count_between(self.trigger, max(after, self.due), until)
        if after < self.due:
            count, first, last = count + 1, self.due, last or self.due
        return LedgerEntry(first, last, count, verdict, reason) if first is not None and last is not None else None


def _decide_many(schedule: Schedule, trigger: times.Trigger, misfire: Misfire, *, now: datetime) -> Firing:
    due = schedule.next_at
    assert due is not None
    known = _Times(trigger, due)
    before_due, before_on_time = due - TICK, max(due, now - misfire.grace) - TICK
    on_time = known.between(before_on_time, now, RUNS_AT_ONCE)
    runs, ledger = _catch_up(known, misfire, after=before_due, until=before_on_time, on_time=bool(on_time), now=now)
    covers = any(entry.verdict == "coalesced" for entry in ledger)
    # A time that runs in the place of missed ones waits its turn as they would: overlap must not skip it.
    runs += [(moment, covers and moment == on_time[0]) for moment in on_time[: RUNS_AT_ONCE - len(runs)]]
    cut_short = len(runs) == RUNS_AT_ONCE
    last = runs[-1][0] if cut_short else known.last_until(now)
    following = times.next_after(trigger, last if cut_short else now)
    planned, previous = [], schedule.last_due_at
    for moment, caught_up in runs:
        planned.append(PlannedRun(moment, previous, caught_up))
        previous = moment
    return _move(schedule, tuple(planned), tuple(ledger), next_at=following, last_due_at=last)


def _catch_up(
    known: _Times, misfire: Misfire, *, after: datetime, until: datetime, on_time: bool, now: datetime
) -> tuple[list[tuple[datetime, bool]], list[LedgerEntry]]:
    """Return the runs and the ledger entries for the missed times in (after, until]."""
    if after >= until:
        return [], []
    oldest = min(max(now - misfire.max_age - TICK, after), until)
    entries = [known.entry(after, oldest, verdict="missed", reason=_too_old(misfire))]
    runs: list[datetime] = []
    match misfire.catch_up:
        case "none":
            entries.append(known.entry(oldest, until, verdict="missed", reason="missed by more than its grace"))
        case "all":
            runs = known.between(oldest, until, RUNS_AT_ONCE)
        case "latest":
            latest = known.last_until(until)
            runs = [latest] if not on_time and latest > oldest else []
            rest = latest - TICK if runs else until
            entries.append(known.entry(oldest, rest, verdict="coalesced", reason="a later time ran in its place"))
        case _:
            assert_never(misfire.catch_up)
    return [(moment, True) for moment in runs], [entry for entry in entries if entry]


def _too_old(misfire: Misfire) -> str:
    return f"missed by more than {misfire.max_age}, the age that is caught up"


def _move(
    schedule: Schedule,
    runs: tuple[PlannedRun, ...],
    ledger: tuple[LedgerEntry, ...],
    *,
    next_at: datetime | None,
    last_due_at: datetime,
) -> Firing:
    if next_at is None:
        return Firing(schedule, runs, ledger, None, last_due_at, "finished", "no further times")
    return Firing(schedule, runs, ledger, next_at, last_due_at, "active")


Admission = Literal["claim", "queue", "skip", "replace"]


def admit(overlap: Overlap | None, *, slot_taken: bool, caught_up: bool, one_waits: bool) -> Admission:
    """Say what a run that wants its task's slot does: caught-up runs always wait their turn, others by the policy.

    `replace` means: wait, and ask the run in the slot to end at its next page.
    """
    if overlap in (None, "allow") or not slot_taken:
        return "claim"
    if caught_up:
        return "queue"
    if overlap == "queue":
        return "skip" if one_waits else "queue"
    return "replace" if overlap == "replace" else "skip"
