"""How the due times of two triggers differ over a span: added, dropped, or moved to another time of the same day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from oncue.rules import times

CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a task's due times. `cut_at` is where the comparison ended early, None where it did not."""

    same: int
    added: tuple[datetime, ...]
    dropped: tuple[datetime, ...]
    moved: tuple[tuple[datetime, datetime], ...]
    cut_at: datetime | None = None

    @property
    def is_none(self) -> bool:
        return not (self.added or self.dropped or self.moved or self.cut_at)


def compare(
    before: times.Trigger | None, after: times.Trigger | None, *, start: datetime, end: datetime, limit: int
) -> Difference:
    """Compare the due times in (start, end], at most `limit` different ones of each.

    A dropped and an added time are one that moved if both are on the same local day, each in its own schedule's zone:
    the first dropped of a day goes with the first added of it, and so on. What is left over stays dropped or added.
    """
    old, new = _walk(before, start, end), _walk(after, start, end)
    dropped: list[datetime] = []
    added: list[datetime] = []
    same, cut_at = 0, None
    left, right = next(old, None), next(new, None)
    while (earliest := min((one for one in (left, right) if one is not None), default=None)) is not None:
        if same + len(dropped) + len(added) >= limit:
            cut_at = earliest
            break
        same += left == right
        if left != right:
            (dropped if left == earliest else added).append(earliest)
        if left == earliest:
            left = next(old, None)
        if right == earliest:
            right = next(new, None)
    moved: list[tuple[datetime, datetime]] = []
    if before is not None and after is not None:
        dropped, added, moved = _pair(before, after, dropped, added)
    return Difference(same, tuple(added), tuple(dropped), tuple(moved), cut_at)


def shift_of(difference: Difference, before: ZoneInfo, after: ZoneInfo) -> timedelta | None:
    """Return how far the moved times moved on the clocks of their zones, where it is the same for all of them."""
    shifts = {_wall(new, after) - _wall(old, before) for old, new in difference.moved}
    return shifts.pop() if len(shifts) == 1 else None


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _walk(trigger: times.Trigger | None, start: datetime, end: datetime) -> Iterator[datetime]:
    while trigger is not None:
        found = times.times_between(trigger, start, end, CHUNK)
        yield from found
        if len(found) < CHUNK:
            return
        start = found[-1]


def _pair(
    before: times.Trigger, after: times.Trigger, dropped: list[datetime], added: list[datetime]
) -> tuple[list[datetime], list[datetime], list[tuple[datetime, datetime]]]:
    """Return what stays dropped, what stays added, and what moved within its day."""
    days: dict[date, tuple[list[datetime], list[datetime]]] = defaultdict(lambda: ([], []))
    for moment in dropped:
        days[moment.astimezone(before.zone).date()][0].append(moment)
    for moment in added:
        days[moment.astimezone(after.zone).date()][1].append(moment)
    gone: list[datetime] = []
    fresh: list[datetime] = []
    moved: list[tuple[datetime, datetime]] = []
    for olds, news in days.values():
        count = min(len(olds), len(news))
        moved += zip(olds[:count], news[:count], strict=True)
        gone += olds[count:]
        fresh += news[count:]
    return sorted(gone), sorted(fresh), sorted(moved)
