"""What changes of clocks will do to a schedule in the next two years: times that are moved, skipped or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from oncue.model import Json
from oncue.rules import times, zones

AHEAD: Final = timedelta(days=730)
TICK: Final = timedelta(microseconds=1)
MOST: Final = 10_000

Kind = Literal["moved", "skipped", "doubled", "first"]


@dataclass(frozen=True, slots=True)
class Change:
    """What one change of clocks does to a schedule: the wall times that it is about, and when it runs instead."""

    kind: Kind
    on: str
    walls: tuple[str, ...]
    runs_at: str = ""


def changes(trigger: times.Trigger, spec: Json, *, now: datetime, name: str) -> Iterator[Change]:
    """Yield what happens at each change of clocks that matters to the schedule, in the two years after `now`."""
    if "dst" in spec:
        return
    plain = times.read_trigger({**spec, "zone": "UTC"}, anchor=now, name=name) if "cron" in spec else None
    for stretch in _turns(trigger.zone, now):
        if stretch.wall_start > stretch.left:
            yield from _gap(trigger, plain, stretch)
        else:
            yield from _repeat(trigger, plain, stretch)


def _turns(zone: ZoneInfo, now: datetime) -> Iterator[zones.Stretch]:
    """Yield the stretches that begin with a change of the offset."""
    start = now.astimezone(UTC).replace(tzinfo=None)
    stretch = zones.stretch_at(zone, start)
    while stretch.end < start + AHEAD:
        stretch = zones.stretch_at(zone, stretch.end)
        if stretch.left != stretch.wall_start:
            yield stretch


def _gap(trigger: times.Trigger, plain: times.Trigger | None, stretch: zones.Stretch) -> Iterator[Change]:
    at = stretch.start.replace(tzinfo=UTC)
    length = stretch.wall_start - stretch.left
    for moment in times.times_between(trigger, at - TICK, at + length, MOST):
        note = times.note_of(trigger, moment) or ""
        if note.startswith("moved from "):
            local = moment.astimezone(trigger.zone)
            yield Change("moved", f"{local:%Y-%m-%d}", (note.removeprefix("moved from "),), _wall(local))
            return
    if plain is not None:
        left, shown = (wall.replace(tzinfo=UTC) for wall in (stretch.left, stretch.wall_start))
        planned = times.times_between(plain, left - TICK, shown - TICK, MOST)
        if planned and _leaves_a_hole(plain, planned, length=length):
            yield Change("skipped", f"{left:%Y-%m-%d}", tuple(map(_wall, planned)))


def _leaves_a_hole(plain: times.Trigger, planned: list[datetime], *, length: timedelta) -> bool:
    """Say whether the time without these is longer than the schedule's usual steps: a rhythm goes on over a gap."""
    before, after = times.previous_before(plain, planned[0]), times.next_after(plain, planned[-1])
    if before is None or after is None:
        return True
    return after - before - length > max(planned[0] - before, after - planned[-1])


def _repeat(trigger: times.Trigger, plain: times.Trigger | None, stretch: zones.Stretch) -> Iterator[Change]:
    at, length = stretch.start.replace(tzinfo=UTC), stretch.left - stretch.wall_start
    found = times.times_between(trigger, at - length - TICK, at + length - TICK, MOST)
    marks = [(moment.astimezone(trigger.zone), times.note_of(trigger, moment)) for moment in found]
    firsts = [local for local, mark in marks if mark == "first of two"]
    seconds = [local for local, mark in marks if mark == "second of two"]
    if not firsts:
        return
    walls = tuple(map(_wall, firsts))
    if not seconds:
        if not _is_elapsed(trigger):
            yield Change("first", f"{firsts[0]:%Y-%m-%d}", walls)
    elif plain is not None and _stands_apart(plain, firsts, length=length):
        yield Change("doubled", f"{firsts[0]:%Y-%m-%d}", walls)


def _stands_apart(plain: times.Trigger, firsts: list[datetime], *, length: timedelta) -> bool:
    """Say whether the schedule rests around these longer than the repeat lasts: then twice is once too often."""
    first, last = (local.replace(tzinfo=UTC, fold=0) for local in (firsts[0], firsts[-1]))
    before, after = times.previous_before(plain, first), times.next_after(plain, last)
    return before is None or after is None or first - before > length or after - last > length


def _is_elapsed(trigger: times.Trigger) -> bool:
    match trigger:
        case times.Every():
            return trigger.step.is_elapsed
        case times.Rrule():
            return trigger.is_elapsed
        case times.At():
            return trigger.wall is None
        case _:
            return False


def _wall(local: datetime) -> str:
    return f"{local:%H:%M:%S}".removesuffix(":00")
