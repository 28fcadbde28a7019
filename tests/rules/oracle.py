"""A second, slow opinion on cron times: minute by minute, from zoneinfo alone, straight from the text of the rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
BEFORE = timedelta(hours=30)


@dataclass(frozen=True)
class Wanted:
    """A cron text together with the sets that it means, made by whoever wrote the text."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    def matches(self, wall: datetime) -> bool:
        if wall.minute not in self.minutes or wall.hour not in self.hours or wall.month not in self.months:
            return False
        by_date, by_weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        day, weekday = self.text.split()[2], self.text.split()[4]
        return (by_date and by_weekday) if day[0] == "*" or weekday[0] == "*" else (by_date or by_weekday)

    @property
    def is_wildcard(self) -> bool:
        return self.text[0] == "*" or self.text.split()[1][0] == "*"

    @property
    def policies(self) -> tuple[str, str]:
        """What the rules say of a gap and of a repeat where the schedule does not."""
        return ("skip", "both") if self.is_wildcard else ("after", "first")


def clock(
    zone: ZoneInfo, start: datetime, end: datetime, *, before: timedelta = BEFORE
) -> list[tuple[datetime, datetime]]:
    """Return each minute from a while before `start` to as long after `end` as (instant, what the clock shows)."""
    instant, shown = (start - before).replace(second=0, microsecond=0), []
    while instant <= end + before:
        shown.append((instant, instant.astimezone(zone).replace(tzinfo=None, fold=0)))
        instant += MINUTE
    return shown


def times_on(
    shown: list[tuple[datetime, datetime]],
    wanted: Wanted,
    after: datetime,
    until: datetime,
    policies: tuple[str, str] | None = None,
) -> list[datetime]:
    """Return the times in (after, until] on a clock that was read minute by minute."""
    gap, repeat = policies or wanted.policies
    first_shown = {wall: instant for instant, wall in reversed(shown)}
    last_shown = {wall: instant for instant, wall in shown}
    found, last = set(), shown[0][1] - MINUTE
    for instant, wall in shown:
        is_copy = {"first": instant == first_shown[wall], "last": instant == last_shown[wall], "both": True}
        if wanted.matches(wall) and is_copy[repeat]:
            found.add(instant)
        if MINUTE < wall - last < timedelta(hours=3) + MINUTE:
            for k in range(1, (wall - last) // MINUTE):
                if wanted.matches(last + k * MINUTE) and gap != "skip":
                    found.add(instant if gap == "after" else instant + (k - 1) * MINUTE)
        last = wall
    return sorted(instant for instant in found if after < instant <= until)


def changes(
    zone: ZoneInfo, first_year: int, last_year: int, *, step: timedelta = timedelta(hours=12)
) -> list[datetime]:
    """Return the instants at which the zone's offset changes, to the minute."""
    found = []
    instant = datetime(first_year, 1, 1, tzinfo=UTC)
    while instant.year <= last_year:
        after = instant + step
        if instant.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            low, high = instant, after
            while high - low > MINUTE:
                middle = low + (high - low) // 2 // MINUTE * MINUTE
                same = middle.astimezone(zone).utcoffset() == instant.astimezone(zone).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            found.append(high)
        instant = after
    return found
