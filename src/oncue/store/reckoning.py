"""When a schedule is next due is reckoned here wherever it is not fired: as it is made or changed, after a pause, by
other calendars, by a new edition of the zone data, and where a person skips or moves one due time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from oncue.definition import Calendar, Definition
from oncue.model import Change, Json, Schedule, ScheduleState, TaskId, Timing
from oncue.rules import firing, pacing, times
from oncue.rules import followed as rule
from oncue.rules.firing import LedgerEntry
from oncue.store import codec, followed
from oncue.store.base import Steps, Wake, ask
from oncue.store.schedules import decide, note_in_ledger, record_firings
from oncue.zonedata import edition

ANCHORED: Final = ("at", "every", "cron", "rrule", "any", "zone", "anchor", "start")
RANGE: Final = 2_000


def timing_of(definition: Definition, schedule: Json, *, calendars: Mapping[str, Calendar], anchor: datetime) -> Timing:
    """Return what the clock needs of a definition. Raises TriggerError: a calendar is not known."""
    if rule.is_followed(schedule):
        rule.read_followed(schedule)
        return Timing(schedule, anchor, definition.misfire, definition.overlap)
    hashed = definition.name if "H" in str(schedule).replace("HOURLY", "") else ""
    named = times.calendar_names(schedule)
    times.read_trigger(schedule, anchor=anchor, name=hashed, calendars=calendars)
    return Timing(
        schedule, anchor, definition.misfire, definition.overlap, hashed, tuple(calendars[name] for name in named)
    )


def anchor_of(old: Timing, schedule: Json, *, now: datetime) -> datetime:
    """Return where the steps of a changed schedule begin: where they did, unless the steps themselves changed."""
    same = all(old.schedule.get(key) == schedule.get(key) for key in ANCHORED)
    return old.anchor if same else now


def has_same_trigger(old: Timing, new: Timing) -> bool:
    """Say whether two timings are due at the same times, but for what calendars leave out: changes by hand stay."""
    return pacing.trigger_of(old.schedule) == pacing.trigger_of(new.schedule)


def is_due_as_before(old: Timing, new: Timing) -> bool:
    """Say whether two timings are due at the same times, and make as many runs."""
    same = old.calendars == new.calendars and old.schedule.get("max_runs") == new.schedule.get("max_runs")
    return same and has_same_trigger(old, new)


def runs_left(schedule: Schedule | None, timing: Timing) -> int | None:
    """Return how many runs a changed schedule has left; a changed trigger begins to count anew."""
    limit = codec.read_pacing(codec.write_timing(timing)).max_runs
    if limit is None or schedule is None or schedule.runs_left is None:
        return limit
    old = codec.read_timing(schedule.timing)
    if pacing.trigger_of(old.schedule) != pacing.trigger_of(timing.schedule):
        return limit
    made = (codec.read_pacing(schedule.timing).max_runs or 0) - schedule.runs_left
    return max(limit - made, 0)


def write_schedule(schedule: Schedule, *, old: Schedule | None = None, now: datetime) -> Steps[None]:
    """Write a schedule whose trigger is new: it first fires strictly after now; a followed one after its horizon."""
    if codec.read_followed(schedule.timing) is not None:
        yield from _follow(schedule, old, now=now)
        return
    after = max(now, schedule.last_due_at) if schedule.last_due_at else now
    next_at = None if schedule.runs_left == 0 else times.next_after(codec.read_trigger(schedule.timing), after)
    if next_at is None:
        schedule = replace(schedule, state="finished", reason=_ended(schedule))
    yield from _write(replace(schedule, next_at=next_at, since=after))


def _follow(schedule: Schedule, old: Schedule | None, *, now: datetime) -> Steps[None]:
    """Write a schedule that is followed: from the horizon that it has, else from now. Its next time is asked for."""
    was = codec.read_followed(old.timing) if old is not None else None
    if old is None or was is None:
        yield from _write(replace(schedule, since=now))
        yield from followed.begin(schedule.task_id, horizon=now, is_active=schedule.state == "active", now=now)
        return
    following = codec.read_followed(schedule.timing)
    stands = following is not None and following.next == was.next
    yield from _write(replace(schedule, since=old.decided_to, next_at=old.next_at if stands else None))
    yield from followed.go_on(schedule, reach=None, now=now)


def _write(schedule: Schedule) -> Steps[None]:
    yield ask(
        "write_schedule",
        task_id=schedule.task_id,
        task_uuid=schedule.task_uuid,
        task_version=schedule.task_version,
        version=schedule.version,
        state=schedule.state,
        reason=schedule.reason,
        next_at=schedule.next_at,
        last_due_at=schedule.last_due_at,
        timing=schedule.timing,
        since=schedule.since,
        runs_left=schedule.runs_left,
        zone_data=edition(),
    )
    if schedule.next_at is not None:
        yield Wake("clock", schedule.next_at)


def lock(task_id: TaskId) -> Steps[Schedule | None]:
    """Return a task's schedule, which nobody else moves until the end of this transaction."""
    rows = yield ask("lock_schedule", task_id=task_id)
    return codec.read_schedule(rows[0]) if rows else None


def decide_due(task_id: TaskId, *, now: datetime) -> Steps[Schedule | None]:
    """Decide by the old version what is due already, and return the schedule as it stands then."""
    schedule = yield from lock(task_id)
    while schedule is not None and schedule.state == "active" and schedule.next_at and schedule.next_at <= now:
        yield from record_firings([decide(schedule, now=now)], now=now)
        schedule = yield from lock(task_id)
    return schedule


def leave_behind(schedule: Schedule | None, *, now: datetime) -> Steps[None]:
    """Note the due times that a schedule takes with it, and that made no run. A followed one is no longer."""
    if schedule is not None and rule.is_followed(codec.read_timing(schedule.timing).schedule):
        yield from _leave_followed(schedule, now=now)
        return
    if schedule is not None and schedule.state == "active":
        left_out = firing.dropped(schedule, codec.read_trigger(schedule.timing), until=now)
        yield from note_in_ledger(schedule, left_out, now=now)
    if schedule is None or schedule.next_at is None or schedule.next_at > now:
        return
    if schedule.state == "paused":
        entries = passed(schedule, reason=schedule.reason or "paused", now=now)[1]
        yield from note_in_ledger(schedule, entries, now=now)
    elif schedule.state == "stopped":
        reason = f"the schedule was stopped: {schedule.reason}"
        entry = LedgerEntry(schedule.next_at, schedule.next_at, 1, "stopped", reason)
        yield from note_in_ledger(schedule, [entry], now=now)


def _leave_followed(schedule: Schedule, *, now: datetime) -> Steps[None]:
    if schedule.state in ("paused", "stopped"):
        reason = f"{'paused' if schedule.state == 'paused' else 'the schedule was stopped'}: {schedule.reason}"
        verdict: firing.Verdict = "skipped" if schedule.state == "paused" else "stopped"
        entry = rule.passed(schedule, since=schedule.decided_to or now, now=now, verdict=verdict, reason=reason)
        yield from note_in_ledger(schedule, [entry], now=now)
    yield from followed.end(schedule.task_id)


def resume_schedule(schedule: Schedule, *, since: datetime, reason: str, now: datetime) -> Steps[None]:
    """Let a schedule that is paused `since` go on after `now`; the times up to then go into the ledger, and do not run.

    Of a followed one the horizon moves to `now`.
    """
    if codec.read_followed(schedule.timing) is not None:
        yield from _resume_followed(schedule, since=since, reason=reason, now=now)
        return
    next_at, entries = passed(schedule, reason=reason, now=now)
    state, why = ("active", None) if next_at else ("finished", _ended(schedule))
    yield ask(
        "resume_schedule",
        task_id=schedule.task_id,
        state=state,
        reason=why,
        next_at=next_at,
        last_due_at=max((one.last_due_at for one in entries), default=schedule.last_due_at),
        since=now,
        zone_data=edition(),
    )
    yield from note_in_ledger(schedule, entries, now=now)
    if next_at is not None:
        yield Wake("clock", next_at)


def _resume_followed(schedule: Schedule, *, since: datetime, reason: str, now: datetime) -> Steps[None]:
    entry = rule.passed(schedule, since=since, now=now, verdict="skipped", reason=f"paused: {reason}")
    yield ask(
        "resume_schedule",
        task_id=schedule.task_id,
        state="active",
        reason=None,
        next_at=None,
        last_due_at=schedule.last_due_at,
        since=now,
        zone_data=edition(),
    )
    yield from note_in_ledger(schedule, [entry], now=now)
    yield from followed.go_on(replace(schedule, state="active"), reach=now, now=now)


def passed(schedule: Schedule, *, reason: str, now: datetime) -> tuple[datetime | None, list[LedgerEntry]]:
    """Return the next time of a paused schedule after `now`, and the entries for those that the pause passed over."""
    trigger = codec.read_trigger(schedule.timing)
    return firing.pass_over(schedule, trigger, now=now, verdict="skipped", reason=f"paused: {reason}")


def revive(skipped: Sequence[tuple[TaskId, int]], *, now: datetime) -> Steps[None]:
    """Give runs that were skipped, as (task, version), back to their schedules: they were due, and not made.

    Those of an older trigger are not counted by the one that stands now.
    """
    rows = yield ask("give_runs_back", rows=[(*one, count) for one, count in sorted(Counter(skipped).items())])
    for task_id in sorted({TaskId(row["task_id"]) for row in rows}):
        schedule = yield from lock(task_id)
        if schedule is None or schedule.state != "finished" or schedule.reason != firing.ALL_MADE:
            continue
        next_at = times.next_after(codec.read_trigger(schedule.timing), schedule.decided_to or now)
        if next_at is not None:
            yield ask("revive_schedule", task_id=schedule.task_id, next_at=next_at, zone_data=edition())
            yield Wake("clock", next_at)


def reckon(schedule: Schedule, timing: Timing, *, now: datetime) -> Steps[Schedule]:
    """Write a timing with the next time that it has after what is decided."""
    changed = reckoned(schedule, timing, after=schedule.decided_to or now)
    yield from write_reckoned(changed)
    return changed


def reckoned(schedule: Schedule, timing: Timing, *, after: datetime) -> Schedule:
    """Return a schedule by another timing, with the next time that it has after a moment. Raises TriggerError.

    Changes by hand that are over by then are dropped.
    """
    ahead = tuple(one for one in timing.overrides if max(one.due_at, one.moved_to or one.due_at) > after)
    text = codec.write_timing(replace(timing, overrides=ahead))
    next_at = None if schedule.runs_left == 0 else times.next_after(codec.read_trigger(text), after)
    state: ScheduleState = schedule.state
    if state in ("active", "finished"):
        state = "active" if next_at else "finished"
    reason = schedule.reason if state == schedule.state else None if state == "active" else _ended(schedule)
    return replace(schedule, timing=text, next_at=next_at, state=state, reason=reason, version=schedule.version + 1)


def write_reckoned(schedule: Schedule) -> Steps[None]:
    """Write a schedule that was reckoned again; its row is locked."""
    yield ask(
        "reckon_schedule",
        task_id=schedule.task_id,
        task_version=schedule.task_version,
        state=schedule.state,
        reason=schedule.reason,
        next_at=schedule.next_at,
        timing=schedule.timing,
        since=schedule.since,
        runs_left=schedule.runs_left,
        zone_data=edition(),
    )
    if schedule.next_at is not None:
        yield Wake("clock", schedule.next_at)


# --- A new edition of the zone data -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moved:
    """One next time that another edition of the zone data moved."""

    task_id: TaskId
    old: datetime | None
    new: datetime | None


def by_older_zone_data(*, now: datetime, after: int) -> Steps[tuple[list[Schedule], int | None]]:
    """Return schedules to come that were reckoned with an older edition than this process has, of a range of tasks.

    The second is where the next range begins, None after the last.
    """
    rows = yield ask("last_schedule", after_id=after)
    last, up_to = rows[0]["task_id"] if rows else 0, after + RANGE
    rows = yield ask("list_by_older_zone_data", edition=edition(), now=now, after_id=after, up_to_id=up_to)
    return [codec.read_schedule(row) for row in rows], up_to if up_to < last else None


def reckon_again(schedules: Sequence[Schedule], *, now: datetime) -> Steps[list[Moved]]:
    """Reckon next times again with this process's zone data, each once; return which of them moved.

    What is due already stays: it was promised. What was fired is not fired again.
    """
    fresh: list[tuple[object, ...]] = []
    found: dict[TaskId, Moved] = {}
    for schedule in schedules:
        try:
            if codec.read_followed(schedule.timing) is not None:
                fresh.append((schedule.task_id, schedule.version, schedule.next_at))  # its times are no zone's
                continue
            trigger = codec.read_trigger(schedule.timing)
            next_at = times.next_after(trigger, schedule.decided_to or codec.read_timing(schedule.timing).anchor)
        except (ValueError, OverflowError, LookupError, OSError):
            continue  # the clock stops it with its reason when it is due
        fresh.append((schedule.task_id, schedule.version, next_at or schedule.next_at))
        if next_at is not None and next_at != schedule.next_at:
            found[schedule.task_id] = Moved(schedule.task_id, schedule.next_at, next_at)
    rows = yield ask("reckon_again", rows=fresh, zone_data=edition())
    moved = [found[TaskId(row["task_id"])] for row in rows if row["task_id"] in found]
    names = {row["id"]: row["name"] for row in (yield ask("read_task_names", ids=[one.task_id for one in moved]))}
    for one in moved:
        if one.task_id not in names:
            continue
        detail = f"by zone data {edition()}: next due {told(one.new)} instead of {told(one.old)}"
        yield ask("insert_audit", now=now, actor="clock", verb="reckon", subject=names[one.task_id], detail=detail)
        yield Change("schedule", names[one.task_id], "reckoned", detail)
        if one.new is not None:
            yield Wake("clock", one.new)
    return moved


def _ended(schedule: Schedule) -> str:
    return firing.ALL_MADE if schedule.runs_left == 0 else firing.NO_MORE


def told(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}Z" if moment else "never"
