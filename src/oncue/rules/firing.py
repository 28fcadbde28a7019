"""What the clock does about one schedule that is due: which of its times run, which do not and why, and what is next.

The cost is bounded whatever was missed: at most RUNS_AT_ONCE runs, and counts instead of lists for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, assert_never

from oncue.definition import Misfire, Overlap
from oncue.model import Schedule, ScheduleState
from oncue.rules import pacing, times
from oncue.rules.durations import write_duration
from oncue.rules.pacing import Pacing

RUNS_AT_ONCE = 100
NO_MORE = "no further times"
ALL_MADE = "all runs of its max_runs were made"
TICK = timedelta(microseconds=1)
Verdict = Literal["coalesced", "missed", "skipped", "stopped"]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A due time that a firing turns into a run.

    `starts_at` is its moment after jitter, None without; its messages are spread up to `spread_until`. A `held` one
    waits for a person.
    """

    due_at: datetime
    previous_due_at: datetime | None = None
    caught_up: bool = False
    starts_at: datetime | None = None
    spread_until: datetime | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Due times that made no run, under one verdict: `count` of them from `first_due_at` to `last_due_at`."""

    first_due_at: datetime
    last_due_at: datetime
    count: int
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Firing:
    """What the clock decided about one schedule: its runs, what made no run, and where the schedule stands next."""

    schedule: Schedule
    runs: tuple[PlannedRun, ...]
    ledger: tuple[LedgerEntry, ...]
    next_at: datetime | None
    last_due_at: datetime | None
    state: ScheduleState
    reason: str | None = None
    runs_left: int | None = None


def decide(
    schedule: Schedule, trigger: times.Trigger, misfire: Misfire, *, now: datetime, pace: Pacing = pacing.NONE
) -> Firing:
    """Return what becomes of every due time up to `now`. The schedule must be due."""
    due = schedule.next_at
    assert due is not None
    following = times.next_after(trigger, due)
    if now - due <= misfire.grace and (following is None or following > now):
        fired = _move(schedule, [PlannedRun(due, schedule.last_due_at)], [], next_at=following, last_due_at=due)
    else:
        fired = _decide_many(schedule, trigger, misfire, now=now)
    # Paced before it is limited: the last of its max_runs starts as far from the next due time as any other.
    fired = _limited(_paced(fired, pace, now=now))
    left_out = dropped(schedule, trigger, until=fired.last_due_at or due)
    return replace(fired, ledger=(*fired.ledger, *left_out)) if left_out else fired


def stop(schedule: Schedule, reason: str) -> Firing:
    """Return the firing that stops a schedule whose rule can no longer be followed; its next time stays."""
    return Firing(
        schedule, (), (), schedule.next_at, schedule.last_due_at, "stopped", reason, runs_left=schedule.runs_left
    )


def pass_over(
    schedule: Schedule, trigger: times.Trigger, *, now: datetime, verdict: Verdict, reason: str
) -> tuple[datetime | None, list[LedgerEntry]]:
    """Return the next time after `now`, and the ledger entries for the due times that it leaves behind."""
    entry = None
    if schedule.next_at is not None and schedule.next_at <= now:
        known = _Times(trigger, schedule.next_at)
        entry = known.entry(schedule.next_at - TICK, now, verdict=verdict, reason=reason)
    return times.next_after(trigger, now), [*([entry] if entry else []), *dropped(schedule, trigger, until=now)]


def dropped(schedule: Schedule, trigger: times.Trigger, *, until: datetime) -> list[LedgerEntry]:
    """Return the ledger entries for times up to `until` that a calendar, `except` or a person left out."""
    after = schedule.decided_to
    if not isinstance(trigger, times.Timetable) or after is None:
        return []
    found = times.dropped_between(trigger, after, until)
    return [
        LedgerEntry(one.first, one.last, one.count, "skipped", _at_least(one.reason, one.is_exact)) for one in found
    ]


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

    def latest(self, count: int, after: datetime, until: datetime) -> datetime:
        """Return the moment in [after, until) behind which the latest `count` of the times up to `until` lie."""
        moment = until + TICK
        for _ in range(count):
            moment = self.last_until(moment - TICK)
            if moment <= max(after, self.due):
                break
        return max(moment - TICK, after)

    def entry(self, after: datetime, until: datetime, *, verdict: Verdict, reason: str) -> LedgerEntry | None:
        """Return the ledger entry for the times in (after, until], None where there are none."""
        if after >= until or until < self.due:
            return None
        tally = times.tally_between(self.trigger, max(after, self.due), until)
        count, first, last = tally.count, tally.first, tally.last
        if after < self.due:
            count, first, last = count + 1, self.due, last or self.due
        if first is None or last is None:
            return None
        return LedgerEntry(first, last, count, verdict, _at_least(reason, tally.is_exact))


def _decide_many(schedule: Schedule, trigger: times.Trigger, misfire: Misfire, *, now: datetime) -> Firing:
    due = schedule.next_at
    assert due is not None
    known = _Times(trigger, due)
    before_due, before_on_time = due - TICK, max(due, now - misfire.grace) - TICK
    on_time = known.between(before_on_time, now, RUNS_AT_ONCE)
    # What is held for a person is not done yet: no time that is on time stands for it.
    covered = bool(on_time) and not misfire.hold
    missed, ledger = _catch_up(known, misfire, after=before_due, until=before_on_time, covered=covered, now=now)
    covers = covered and any(entry.verdict == "coalesced" for entry in ledger)
    runs = [PlannedRun(moment, caught_up=True, held=misfire.hold) for moment in missed]
    # A time that runs in the place of missed ones waits its turn as they would: overlap must not skip it.
    runs += [PlannedRun(at, caught_up=covers and at == on_time[0]) for at in on_time[: RUNS_AT_ONCE - len(runs)]]
    cut_short = len(runs) == RUNS_AT_ONCE
    last = runs[-1].due_at if cut_short else known.last_until(now)
    following = times.next_after(trigger, last if cut_short else now)
    planned, previous = [], schedule.last_due_at
    for run in runs:
        planned.append(replace(run, previous_due_at=previous))
        previous = run.due_at
    return _move(schedule, planned, ledger, next_at=following, last_due_at=last)


def _catch_up(
    known: _Times, misfire: Misfire, *, after: datetime, until: datetime, covered: bool, now: datetime
) -> tuple[list[datetime], list[LedgerEntry]]:
    """Return the times that run, and the ledger entries for those that do not, of the missed ones in (after, until].

    They are `covered` where a later time, which is on time, runs in the place of the latest.
    """
    if after >= until:
        return [], []
    oldest = min(max(now - misfire.max_age - TICK, after), until)
    entries = [known.entry(after, oldest, verdict="missed", reason=_too_old(misfire))]
    runs: list[datetime] = []
    match misfire.catch_up:
        case "none":
            entries.append(known.entry(oldest, until, verdict="missed", reason="missed by more than its grace"))
        case "all":
            first = known.latest(misfire.max, oldest, until) if misfire.max else oldest
            reason = f"only the latest {misfire.max} missed times are caught up"
            entries.append(known.entry(oldest, first, verdict="missed", reason=reason))
            runs = known.between(first, until, RUNS_AT_ONCE)
        case "latest":
            latest = known.last_until(until)
            runs = [latest] if not covered and latest > oldest else []
            rest = latest - TICK if runs else until
            entries.append(known.entry(oldest, rest, verdict="coalesced", reason="a later time ran in its place"))
        case _:
            assert_never(misfire.catch_up)
    return runs, [entry for entry in entries if entry]


def _at_least(reason: str, is_exact: bool) -> str:
    return reason if is_exact else f"{reason} (they are at least so many: counting was cut short)"


def _too_old(misfire: Misfire) -> str:
    return f"missed by more than {write_duration(misfire.max_age)}, the age that is caught up"


def _move(
    schedule: Schedule,
    runs: Sequence[PlannedRun],
    ledger: Sequence[LedgerEntry],
    *,
    next_at: datetime | None,
    last_due_at: datetime,
) -> Firing:
    fired = Firing(schedule, tuple(runs), tuple(ledger), next_at, last_due_at, "active", runs_left=schedule.runs_left)
    return fired if next_at is not None else replace(fired, state="finished", reason=NO_MORE)


def _limited(fired: Firing) -> Firing:
    """Make no more runs than the schedule has left; with the last of them it is finished."""
    left = fired.schedule.runs_left
    if left is None:
        return fired
    runs = fired.runs[:left]
    if len(runs) < left:
        return replace(fired, runs_left=left - len(runs))
    last = runs[-1].due_at if runs else fired.last_due_at
    ledger = tuple(entry for entry in fired.ledger if last is None or entry.first_due_at <= last)
    return replace(
        fired, runs=runs, ledger=ledger, next_at=None, last_due_at=last, state="finished", reason=ALL_MADE, runs_left=0
    )


def _paced(fired: Firing, pace: Pacing, *, now: datetime) -> Firing:
    """Say when runs start after jitter, and by when their messages are out. What is caught up starts at once."""
    if not fired.runs or not (pace.jitter or pace.spread):
        return fired
    task = fired.schedule.task_uuid
    ends = [*(run.due_at for run in fired.runs[1:]), fired.next_at]
    paced = []
    for run, following in zip(fired.runs, ends, strict=True):
        moment = None if run.caught_up else pacing.starts_at(pace, task, run.due_at, following=following)
        begin, end = (now, fired.next_at) if run.caught_up else (moment or run.due_at, following)
        paced.append(replace(run, starts_at=moment, spread_until=pacing.spread_until(pace, begin, following=end)))
    return replace(fired, runs=tuple(paced))


Admission = Literal["claim", "queue", "skip", "replace"]


def admit(overlap: Overlap | None, *, slot_taken: bool, caught_up: bool, one_waits: bool) -> Admission:
    """Say what a run that wants its task's slot does: caught-up runs always wait their turn, others by the policy.

    So do the windows of followed schedules, each of which concerns others than the one before it.
    `replace` means: wait, and ask the run in the slot to end at its next page.
    """
    if overlap in (None, "allow") or not slot_taken:
        return "claim"
    if caught_up:
        return "queue"
    if overlap == "queue":
        return "skip" if one_waits else "queue"
    return "replace" if overlap == "replace" else "skip"
