"""What a backfill runs: the due times of a span, one after another or each with its own turn. Nothing else moves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from oncue.definition import Definition
from oncue.errors import Conflict
from oncue.model import Schedule
from oncue.rules import times
from oncue.rules.durations import write_duration
from oncue.rules.identity import time_text

MOST: Final = 10_000
LONGEST: Final = timedelta(days=366)
TICK: Final = timedelta(microseconds=1)


def check(definition: Definition, schedule: Schedule | None) -> None:
    """Raise Conflict for a task that has no due times of its own."""
    if schedule is None:
        raise Conflict(f'task "{definition.name}" has no schedule, so there is nothing to backfill. {BY_HAND}')
    if "next" in (definition.schedule or {}):
        raise Conflict(
            f'task "{definition.name}" follows its data, and has no due times of its own to backfill: '
            f"whoever is late is found by its lookback. {BY_HAND}"
        )


def due_times(trigger: times.Trigger, first: datetime, last: datetime, *, name: str) -> tuple[datetime, ...]:
    """Return the due times from `first` to `last`, both inclusive. Raises Conflict: there are none, or over MOST."""
    if first > last:
        raise Conflict(f"a backfill from {time_text(first)} to {time_text(last)} ends before it begins.")
    found = times.times_between(trigger, first - TICK, last, MOST + 1)
    if not found:
        span = f"from {time_text(first)} to {time_text(last)}"
        raise Conflict(f'task "{name}" has no due time {span}. {_around(trigger, first)}')
    if len(found) > MOST:
        raise Conflict(
            f'task "{name}" has more than {MOST:,} due times from {time_text(first)} to {time_text(last)}. '
            f"Split it: --to {time_text(found[MOST - 1])} first, then --from {time_text(found[MOST])}."
        )
    return tuple(found)


def check_pace(count: int, pace: timedelta | None) -> None:
    """Raise Conflict for a pace that is none, or that takes more than a year."""
    if pace is None:
        return
    if pace <= timedelta():
        raise Conflict(f"a pace of {pace} is none. Write how far apart runs start, such as 30s, or leave it out.")
    if pace > LONGEST / count:
        raise Conflict(
            f"at a pace of {write_duration(pace)}, {count:,} runs take more than a year: split the backfill."
        )


def duration(count: int, pace: timedelta | None) -> timedelta:
    """Return how long after the first run the last has its turn."""
    total: timedelta = (count - 1) * (pace or timedelta())
    return total


def pace_words(count: int, pace: timedelta | None) -> str:
    """Say how fast the runs of a backfill go."""
    if pace is None:
        return (
            "All of them are ready at once, and go as fast as dispatchers take them; what comes due meanwhile waits "
            "behind them. --pace 30s starts one each 30 s."
        )
    return f"One starts each {write_duration(pace)}: the last in {write_duration(duration(count, pace))}."


def _around(trigger: times.Trigger, moment: datetime) -> str:
    before, after = times.previous_before(trigger, moment), times.next_after(trigger, moment)
    near = " and ".join(time_text(one) for one in (before, after) if one)
    return f"The nearest to the beginning: {near}." if near else "It has none at all."


BY_HAND: Final = "To run it once: oncue fire TASK --at TIME."
