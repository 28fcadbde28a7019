"""Verbs on one due time to come: skip it, move it, take that back. A schedule keeps such changes in its timing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from oncue.definition import Override
from oncue.errors import Conflict
from oncue.model import Schedule, Timing
from oncue.rules import firing, times
from oncue.rules.followed import is_followed
from oncue.store import changing, codec, reckoning
from oncue.store.base import Steps, ask
from oncue.store.reckoning import decide_due, told
from oncue.store.tasks import read


def skip(name: str, due_at: datetime, *, reason: str, actor: str, now: datetime) -> Steps[Schedule]:
    """Leave out one due time to come. Raises NotFound, Conflict."""
    change = Override(due_at, None, reason)
    return (yield from _override(name, change, verb="skip", actor=actor, now=now))


def move(name: str, due_at: datetime, *, to: datetime, reason: str, actor: str, now: datetime) -> Steps[Schedule]:
    """Let one due time to come run at another moment instead. Raises NotFound, Conflict."""
    return (yield from _override(name, Override(due_at, to, reason), verb="move", actor=actor, now=now))


def _override(name: str, change: Override, *, verb: str, actor: str, now: datetime) -> Steps[Schedule]:
    schedule = yield from _schedule_to_change(name, now=now)
    changed = yield from _apply(schedule, change, now=now)
    to = f" to {change.moved_to:%Y-%m-%d %H:%M:%S}Z" if change.moved_to else ""
    detail = f"{change.due_at:%Y-%m-%d %H:%M:%S}Z{to}: {change.reason}"
    yield ask("insert_audit", now=now, actor=actor, verb=verb, subject=name, detail=detail)
    return changed


def restore(name: str, due_at: datetime, *, actor: str, now: datetime) -> Steps[Schedule]:
    """Take back that a due time was skipped or moved. Raises NotFound, Conflict."""
    schedule = yield from _schedule_to_change(name, now=now)
    changed = yield from _take_back(schedule, due_at, now=now)
    detail = f"{due_at:%Y-%m-%d %H:%M:%S}Z as scheduled"
    yield ask("insert_audit", now=now, actor=actor, verb="restore", subject=name, detail=detail)
    return changed


def _schedule_to_change(name: str, *, now: datetime) -> Steps[Schedule]:
    yield from changing.begin(now=now)
    task = yield from read(name)
    schedule = yield from decide_due(task.id, now=now)
    if schedule is None:
        raise Conflict(f'task "{name}" has no schedule: it has no due times to skip or move.')
    if is_followed(codec.read_timing(schedule.timing).schedule):
        raise Conflict(f'task "{name}" follows data: to skip or move one of its times, change the data.')
    return schedule


def _apply(schedule: Schedule, change: Override, *, now: datetime) -> Steps[Schedule]:
    """Skip or move one of a schedule's due times to come. Raises Conflict: it is none, or is over."""
    timing = codec.read_timing(schedule.timing)
    _refuse_over(timing, change.due_at, decided=max(now, schedule.decided_to or now))
    plain = replace(timing, overrides=tuple(one for one in timing.overrides if one.due_at != change.due_at))
    _check_override(schedule, timing, change, now=now)
    return (yield from reckoning.reckon(schedule, replace(plain, overrides=(*plain.overrides, change)), now=now))


def _take_back(schedule: Schedule, due_at: datetime, *, now: datetime) -> Steps[Schedule]:
    """Take back that a due time was skipped or moved. Raises Conflict: it was not, or it is over."""
    timing = codec.read_timing(schedule.timing)
    kept = tuple(one for one in timing.overrides if one.due_at != due_at)
    if len(kept) == len(timing.overrides):
        _refuse_moved(timing, due_at)
        raise Conflict(f"{told(due_at)} was neither skipped nor moved: there is nothing to take back.")
    decided = max(now, schedule.decided_to or now)
    _refuse_over(timing, due_at, decided=decided)
    if due_at <= decided:
        raise Conflict(f"{told(due_at)} is over: fire the task by hand, or backfill that time.")
    return (yield from reckoning.reckon(schedule, replace(timing, overrides=kept), now=now))


def _check_override(schedule: Schedule, timing: Timing, change: Override, *, now: datetime) -> None:
    trigger = codec.read_trigger(codec.write_timing(replace(timing, overrides=())))
    decided = max(now, schedule.decided_to or now)
    if change.due_at <= decided:
        raise Conflict(f"{told(change.due_at)} is over: only a due time to come can be skipped or moved.")
    near = times.next_after(trigger, max(change.due_at, decided) - firing.TICK)
    if near != change.due_at:
        _refuse_moved(timing, change.due_at)
        hint = f"The next one after it is {told(near)}." if near else "There is none after it."
        raise Conflict(f"{told(change.due_at)} is no due time of this task. {hint}")
    if change.moved_to is not None and change.moved_to <= decided:
        raise Conflict(f"it cannot be moved to {told(change.moved_to)}: that is over. To run it now: `oncue fire`.")
    if change.moved_to == change.due_at:
        raise Conflict(f"{told(change.due_at)} is when it is due already: there is nothing to move.")


def _refuse_moved(timing: Timing, moment: datetime) -> None:
    """Raise Conflict for a moment that a time was moved to: changes go by the time as scheduled."""
    for one in timing.overrides:
        if one.moved_to == moment:
            raise Conflict(f"{told(moment)} is where {told(one.due_at)} was moved to: give {told(one.due_at)}.")


def _refuse_over(timing: Timing, due_at: datetime, *, decided: datetime) -> None:
    """Raise Conflict for a due time that was moved to a moment which is over: it has run there."""
    for one in timing.overrides:
        if one.due_at == due_at and one.moved_to is not None and one.moved_to <= decided:
            raise Conflict(f"{told(due_at)} was moved to {told(one.moved_to)}, which is over.")
