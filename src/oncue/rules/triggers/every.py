"""Steps from an anchor: `5m`, `1h30m`, `PT5M`, `P1D`, `P1M` or `R/<anchor>/<duration>`.

Years, months, weeks and days follow the wall, and are counted from the anchor's wall time; what stands behind the T is
elapsed time. The k-th time is always computed from the anchor, so nothing drifts.
"""

from __future__ import annotations

import re
from calendar import monthrange
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules.triggers.placing import CALENDAR, WILDCARD, Placing, read_placing, refuse_placing
from oncue.rules.triggers.zones import first_shown, place_wall

TICK: Final = timedelta(microseconds=1)
SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(days=366 * 100)
SHORT: Final = re.compile(r"(?:(\d{1,6})w)?(?:(\d{1,6})d)?(?:(\d{1,7})h)?(?:(\d{1,9})m)?(?:(\d{1,10})s)?", re.ASCII)
ISO: Final = re.compile(
    r"P(?:(\d{1,4})Y)?(?:(\d{1,5})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?"
    r"(?:T(?:(\d{1,7})H)?(?:(\d{1,9})M)?(?:(\d{1,10}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
REMEDY: Final = 'Write for example "5m", "1h30m", "PT5M", "P1D" or "P1M".'


@dataclass(frozen=True, slots=True)
class Step:
    """A duration: `months` and `days` on the wall, then `elapsed`."""

    months: int
    days: int
    elapsed: timedelta

    @property
    def is_elapsed(self) -> bool:
        return not (self.months or self.days)

    @property
    def shortest(self) -> timedelta:
        """A lower bound of the time between one step and the next."""
        return timedelta(days=28 * self.months + self.days) + self.elapsed


@dataclass(frozen=True, slots=True)
class Every:
    """The times anchor, anchor + step, anchor + 2 steps, ... with the anchor's wall time read in the zone.

    `wall` is an anchor that was written without an offset. It is placed as all the others are, where an instant stands.
    """

    text: str
    zone: ZoneInfo
    step: Step
    anchor: datetime
    wall: datetime | None = None
    placing: Placing = CALENDAR


def read_step(text: str) -> Step:
    """Return the step that a short or an ISO 8601 duration means."""
    if (short := SHORT.fullmatch(text)) and text:
        weeks, days, hours, minutes, seconds = (int(part or 0) for part in short.groups())
        step = Step(0, 7 * weeks + days, timedelta(hours=hours, minutes=minutes, seconds=seconds))
    elif (iso := ISO.fullmatch(text.upper())) and text[-1:] not in "PpTt":
        years, months, weeks, days, hours, minutes = (int(part or 0) for part in iso.groups()[:6])
        elapsed = timedelta(hours=hours, minutes=minutes, seconds=float(iso[7] or 0))
        step = Step(12 * years + months, 7 * weeks + days, elapsed)
    else:
        raise TriggerError(f'every: "{text}" is not a duration. {REMEDY}')
    if not SHORTEST <= step.shortest <= LONGEST:
        raise TriggerError(f'every: "{text}" is not between one second and a hundred years. {REMEDY}')
    return step


def read_every(text: str, zone: ZoneInfo, *, step: Step, anchor: datetime, dst: object = None) -> Every:
    """Return the times of a step from an anchor, one of `at.read_anchor`."""
    wall = anchor.replace(tzinfo=None) if anchor.tzinfo is zone else None
    if step.is_elapsed:
        refuse_placing(dst, f'every = "{text}"')
        return Every(text, zone, step, anchor.astimezone(UTC), wall, WILDCARD)
    return Every(text, zone, step, anchor.astimezone(UTC), wall, read_placing(dst, CALENDAR))


def next_step(every: Every, after: datetime) -> datetime | None:
    """Return the first time later than `after`."""
    if every.step.is_elapsed:
        return every.anchor + max((after - every.anchor) // every.step.elapsed + 1, 0) * every.step.elapsed
    for k in count(_steps_to(every, after)):
        for moment in _kth(every, k):
            if moment > after:
                return moment
    return None


def last_step(every: Every, before: datetime) -> datetime | None:
    """Return the last time earlier than `before`."""
    if every.step.is_elapsed:
        steps = (before - TICK - every.anchor) // every.step.elapsed
        return every.anchor + steps * every.step.elapsed if steps >= 0 else None
    for k in range(_steps_to(every, before) + 5, -1, -1):
        with suppress(OverflowError):  # the end of the calendar
            for moment in reversed(_kth(every, k)):
                if moment < before:
                    return moment
    return None


def count_steps(every: Every, after: datetime, until: datetime) -> int | None:
    """Return how many times lie in (after, until], none if only a walk can tell."""
    if not every.step.is_elapsed:
        return None
    up_to = (until - every.anchor) // every.step.elapsed + 1
    return max(up_to, 0) - max((after - every.anchor) // every.step.elapsed + 1, 0)


def walls_in(every: Every, low: datetime, high: datetime) -> list[datetime]:
    """Return the wall times in [low, high) that it counts by, none if a part of its step is elapsed time."""
    if every.step.elapsed:
        return []
    walls = (_wall(every, k) for k in count(_steps_to(every, first_shown(low, every.zone))))
    return [wall for wall in takewhile(lambda wall: wall < high, walls) if wall >= low]


def _steps_to(every: Every, moment: datetime) -> int:
    """Return a step that is surely not later than `moment`, and at most a few steps before it."""
    high = max(int((moment - every.anchor) / every.step.shortest) - 2, 0)
    if not every.step.months:
        return high
    wall, low = moment.astimezone(every.zone).replace(tzinfo=None), 0
    while low < high:
        k = (low + high + 1) // 2
        low, high = (k, high) if _wall(every, k) + k * every.step.elapsed <= wall else (low, k - 1)
    return max(low - 2, 0)


def _kth(every: Every, k: int) -> tuple[datetime, ...]:
    """Return the moments of the k-th step: one, but where clocks change."""
    if k == 0 and every.wall is None:
        return (every.anchor,)
    placed = place_wall(_wall(every, k), every.zone, every.placing)
    return tuple(moment + k * every.step.elapsed for moment in placed) if every.step.elapsed else placed


def anchor_wall(every: Every) -> datetime:
    """Return the wall time that steps are counted from."""
    return every.wall or every.anchor.astimezone(every.zone).replace(tzinfo=None, fold=0)


def _wall(every: Every, k: int) -> datetime:
    wall = anchor_wall(every)
    year, month = divmod(wall.year * 12 + wall.month - 1 + k * every.step.months, 12)
    if year > date.max.year:
        raise OverflowError
    day = min(wall.day, monthrange(year, month + 1)[1])
    return wall.replace(year, month + 1, day) + timedelta(days=k * every.step.days)
