"""What changes of clocks will do to a schedule in the next two years: times that are moved, skipped or doubled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from oncue.rules import times
from oncue.rules.triggers import kinds, zones
from oncue.rules.triggers.kinds import Kind
from oncue.rules.triggers.zones import Stretch

AHEAD: Final = timedelta(days=730)
TICK: Final = timedelta(microseconds=1)

What = Literal["moved", "skipped", "doubled", "first"]


@dataclass(frozen=True, slots=True)
class Change:
    """What one change of clocks does to a schedule: the wall times that it is about, and when it runs instead."""

    what: What
    zone: str
    on: str
    walls: tuple[str, ...]
    runs_at: str = ""


def changes(trigger: times.Trigger, spec: Mapping[str, Any], *, now: datetime) -> Iterator[Change]:
    """Yield what happens at each change of clocks that matters to the schedule, in the two years after `now`.

    Where a schedule says `dst`, somebody has thought of it.
    """
    for kind, own in zip(parts_of(trigger), spec.get("any", [spec]), strict=True):
        if "dst" in spec or "dst" in own:
            continue
        for stretch in _turns(kind.zone, now):
            change = _gap(kind, stretch) if stretch.wall_start > stretch.left else _repeat(kind, stretch)
            if change is not None and _is_due_around(trigger, stretch):
                yield change


def parts_of(trigger: times.Trigger) -> tuple[Kind, ...]:
    """Return the triggers that a schedule is composed of."""
    return trigger.parts if isinstance(trigger, times.Timetable) else (trigger,)


def _turns(zone: ZoneInfo, now: datetime) -> Iterator[Stretch]:
    """Yield the stretches that begin with a change of the offset."""
    start = now.astimezone(UTC).replace(tzinfo=None)
    stretch = zones.stretch_at(zone, start)
    while stretch.end < start + AHEAD:
        stretch = zones.stretch_at(zone, stretch.end)
        if stretch.left != stretch.wall_start:
            yield stretch


def _is_due_around(trigger: times.Trigger, stretch: Stretch) -> bool:
    """Say whether a schedule with calendars and bounds is due on the day at all."""
    if not isinstance(trigger, times.Timetable):
        return True
    start = stretch.start.replace(tzinfo=UTC)
    return trigger.is_within(start) and min(stretch.left, stretch.wall_start).date() in trigger.days


def _gap(kind: Kind, stretch: Stretch) -> Change | None:
    planned = kinds.walls_in(kind, stretch.left, stretch.wall_start)
    if not planned:
        return None
    walls, at = tuple(map(_shown, planned)), stretch.start.replace(tzinfo=UTC)
    if stretch.has_gap and kind.placing.gap != "skip":
        runs_at = kinds.next_after(kind, at - TICK)
        local = runs_at.astimezone(kind.zone) if runs_at is not None else planned[0]
        return Change("moved", kind.zone.key, f"{local:%Y-%m-%d}", walls, _shown(local))
    if _leaves_a_hole(kind, planned, at):
        return Change("skipped", kind.zone.key, f"{planned[0]:%Y-%m-%d}", walls)
    return None


def _leaves_a_hole(kind: Kind, planned: list[datetime], at: datetime) -> bool:
    """Say whether the time without these is longer than the schedule's usual steps: a rhythm goes on over a gap."""
    before, after = kinds.previous_before(kind, at), kinds.next_after(kind, at - TICK)
    if before is None or after is None:
        return True
    steps = planned[0] - _wall(before, kind.zone), _wall(after, kind.zone) - planned[-1]
    return after - before > max(steps)


def _repeat(kind: Kind, stretch: Stretch) -> Change | None:
    planned = kinds.walls_in(kind, stretch.wall_start, stretch.left)
    if not planned:
        return None
    walls, on = tuple(map(_shown, planned)), f"{planned[0]:%Y-%m-%d}"
    if kind.placing.repeat != "both":
        return Change("first", kind.zone.key, on, walls)
    return Change("doubled", kind.zone.key, on, walls) if _stands_apart(kind, planned, stretch) else None


def _stands_apart(kind: Kind, planned: list[datetime], stretch: Stretch) -> bool:
    """Say whether the schedule rests around these longer than the repeat lasts: then twice is once too often."""
    start, length = stretch.start.replace(tzinfo=UTC), stretch.left - stretch.wall_start
    before, after = kinds.previous_before(kind, start - length), kinds.next_after(kind, start + length - TICK)
    if before is None or after is None:
        return True
    return max(planned[0] - _wall(before, kind.zone), _wall(after, kind.zone) - planned[-1]) > length


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _shown(wall: datetime) -> str:
    return f"{wall:%H:%M:%S}".removesuffix(":00")
