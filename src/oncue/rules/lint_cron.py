"""Cron texts that are read as something else than they say, and what else depends on how a schedule is written."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from oncue.rules import times
from oncue.rules.triggers import zones
from oncue.rules.triggers.cron import Cron
from oncue.rules.triggers.dialect import MACROS
from oncue.rules.triggers.kinds import Kind
from oncue.rules.triggers.pattern import Pattern
from oncue.rules.triggers.words import MONTH_NAMES

YEAR: Final = timedelta(days=366)
ALL_HOURS: Final = (1 << 24) - 1
ALL_MINUTES: Final = (1 << 60) - 1
ALL_MONTHS: Final = (1 << 13) - 2
ALL_DAYS: Final = (1 << 32) - 2
ALL_WEEKDAYS: Final = (1 << 7) - 1
NOT_LEAP: Final = 2027

Told = tuple[str, Literal["warning", "note"], str]


def findings(cron: Cron, dialect: str) -> Iterator[Told]:
    """Yield code, severity and text of what is to be said of a cron text."""
    pattern = cron.pattern
    yield from _either(cron.text, pattern)
    yield from _short_months(pattern)
    yield from _uneven(cron.text, pattern)
    yield from _whole_hour(cron.text, pattern)
    yield from _at_minute_zero(cron.text, pattern, dialect)


def follows_the_wall(kind: Kind) -> bool:
    """Say whether another zone would give another rhythm: not where it is elapsed time, or the same in every hour."""
    match kind:
        case Cron(pattern=pattern):
            return (
                pattern.hours != ALL_HOURS
                or not _has_all_days(pattern)
                or pattern.months != ALL_MONTHS
                or pattern.weekdays != ALL_WEEKDAYS
            )
        case times.Every():
            return not kind.step.is_elapsed
        case times.Rrule():
            return not (kind.is_elapsed or "Z;" in kind.text.upper())
        case _:
            return False


def changes_its_clocks(zone: ZoneInfo, now: datetime) -> bool:
    """Say whether a zone changes its offset within a year."""
    start = now.astimezone(UTC).replace(tzinfo=None)
    stretch = zones.stretch_at(zone, start)
    while stretch.end < start + YEAR:
        following = zones.stretch_at(zone, stretch.end)
        if following.offset != stretch.offset:
            return True
        stretch = following
    return False


def _either(text: str, pattern: Pattern) -> Iterator[Told]:
    if pattern.is_either and not _has_all_days(pattern) and pattern.weekdays != ALL_WEEKDAYS:
        yield (
            "either-day",
            "warning",
            f'"{text}" names days of the month and weekdays: it runs on either, not only where both fit. '
            "Write * for the one that is not meant.",
        )


def _short_months(pattern: Pattern) -> Iterator[Told]:
    first = (pattern.days & -pattern.days).bit_length() - 1
    if first < 29 or pattern.special is not None or pattern.is_either:
        return
    months = [month for month in range(1, 13) if pattern.months >> month & 1]
    short = [month for month in months if monthrange(NOT_LEAP, month)[1] < first]
    if short and len(short) < len(months):
        names = ", ".join(MONTH_NAMES[month - 1] for month in short)
        yield "skips-months", "warning", f"day {first} is not in each month: none in {names}. Write L for the last day."


def _uneven(text: str, pattern: Pattern) -> Iterator[Told]:
    fields = (("second", pattern.seconds, 60), ("minute", pattern.minutes, 60), ("hour", pattern.hours, 24))
    for name, mask, size in fields:
        step = _step(mask, size)
        if step and size % step and f"*/{step}" in text:
            last = mask.bit_length() - 1
            yield (
                "uneven-step",
                "warning",
                f'"*/{step}" begins anew at {name} 0: after {name} {last} the next is {size - last} {name}s later, '
                f"not {step}. Write a step that divides {size}, or every.",
            )
    step = _step(pattern.days >> 1, 31)
    if step and f"*/{step}" in text:
        yield (
            "uneven-step",
            "warning",
            f'"*/{step}" begins anew with each month: its last day and the next first are not {step} days apart. '
            f'Write every = "{step}d" to keep the step.',
        )


def _step(mask: int, size: int) -> int:
    """Return n where the mask is what `*/n` names, else 0."""
    numbers = [bit for bit in range(size) if mask >> bit & 1]
    if len(numbers) < 2 or numbers[0]:
        return 0
    return numbers[1] if numbers[1] > 1 and numbers == list(range(0, size, numbers[1])) else 0


def _whole_hour(text: str, pattern: Pattern) -> Iterator[Told]:
    if pattern.seconds.bit_count() > 1 and pattern.minutes.bit_count() == 1:
        count = pattern.seconds.bit_count()
        yield (
            "burst",
            "warning",
            f'"{text}" runs {count} times within its minute: the first of six fields is the second. '
            "Write 0 there to run once.",
        )
    elif pattern.minutes == ALL_MINUTES and pattern.hours.bit_count() == 1:
        yield (
            "burst",
            "warning",
            f'"{text}" runs in each minute of its hour, 60 times. Write 0 for the minute to run once.',
        )


def _at_minute_zero(text: str, pattern: Pattern, dialect: str) -> Iterator[Told]:
    is_hourly = pattern.hours == ALL_HOURS and pattern.minutes == 1 and pattern.seconds == 1
    if is_hourly or text.strip().lower() in MACROS:
        yield (
            "on-the-hour",
            "note",
            f'"{text}" is due at minute 0, as most hourly tasks in the world. '
            f"Write H for a minute of its own{_hashed(text, pattern, dialect)}, where the minute does not matter.",
        )


def _hashed(text: str, pattern: Pattern, dialect: str) -> str:
    """Return, as an example, a unix text with `H` for its minute, and for its hour where it names one."""
    if dialect != "unix":
        return ""
    fields = MACROS.get(text.strip().lower(), text).split()
    minute = len(fields) - 5
    fields[minute] = "H"
    if pattern.hours != ALL_HOURS:
        fields[minute + 1] = "H"
    return f', such as "{" ".join(fields)}"'


def _has_all_days(pattern: Pattern) -> bool:
    return pattern.days == ALL_DAYS
