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


def clock(
    zone: ZoneInfo, start: datetime, end: datetime, *, before: timedelta = BEFORE
) -> list[tuple[datetime, datetime]]:
    """Return each minute from a while before `start` to `end` as (instant, what the clock shows)."""
    instant, shown = (start - before).replace(second=0, microsecond=0), []
    while instant <= end:
        shown.append((instant, instant.astimezone(zone).replace(tzinfo=None, fold=0)))
        instant += MINUTE
    return shown


def times_on(shown: list[tuple[datetime, datetime]], wanted: Wanted, after: datetime) -> list[datetime]:
    """Return the times later than `after` on a clock that was read minute by minute."""
    found, seen, last = [], set(), shown[0][1] - MINUTE
    for instant, wall in shown:
        if wanted.is_wildcard:
            fires = wanted.matches(wall)
        else:
            fires = wall not in seen and wanted.matches(wall)
            if MINUTE < wall - last < timedelta(hours=3) + MINUTE:
                skipped = range(1, (wall - last) // MINUTE)
                fires = fires or any(
                    wanted.matches(last + k * MINUTE) and last + k * MINUTE not in seen for k in skipped
                )
            seen.add(wall)
        if fires and instant > after:
            found.append(instant)
        last = wall
    return found


def changes(zone: ZoneInfo, first_year: int, last_year: int) -> list[datetime]:
    """Return the instants at which the zone's offset changes, to the minute."""
    found, step = [], timedelta(hours=12)
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
