"""Triggers: when a schedule is due. Text in, aware UTC times out, by the one set of time rules.

Each kind has its own file (`cron`, `every`, `rrule`, `at`; what they all answer is in `kinds`), what is composed of
them is a timetable (`composition`, `composed`); what clocks do when they change is in `zones`. Here is what the other
rooms use, the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Final

from oncue.definition import Calendar, Override
from oncue.errors import TriggerError
from oncue.rules.triggers import composed, explanation, kinds, tally, timetable_words, words
from oncue.rules.triggers.at import At
from oncue.rules.triggers.composition import calendar_names, read_schedule
from oncue.rules.triggers.cron import Cron
from oncue.rules.triggers.every import Every
from oncue.rules.triggers.rrule import Rrule
from oncue.rules.triggers.tally import Dropped, Tally
from oncue.rules.triggers.timetable import Timetable

__all__ = [
    "At",
    "Cron",
    "Dropped",
    "Every",
    "Rrule",
    "Tally",
    "Timetable",
    "Trigger",
    "TriggerError",
    "calendar_names",
    "calendars_of",
    "check",
    "count_between",
    "describe",
    "dropped_between",
    "ends_at",
    "explain",
    "explain_wall",
    "kind_of",
    "next_after",
    "note_of",
    "previous_before",
    "read_trigger",
    "starts_at",
    "tally_between",
    "times_between",
]

NO_CALENDARS: Final[Mapping[str, Calendar]] = MappingProxyType({})

Trigger = At | Every | Cron | Rrule | Timetable


def read_trigger(
    spec: Mapping[str, object],
    *,
    anchor: datetime | None = None,
    name: str = "",
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    overrides: Sequence[Override] = (),
) -> Trigger:
    """Return the trigger of a task file's `schedule`.

    `anchor` is where steps without their own begin: the task's creation. `name` is the task's, for `H` in cron texts.
    `calendars` are those that the schedule can name, `overrides` the changes by hand.
    """
    return read_schedule(spec, anchor=anchor, name=name, calendars=calendars, overrides=overrides)


def next_after(trigger: Trigger, after: datetime) -> datetime | None:
    """Return the first time strictly later than `after`, in UTC; none if there is none, or only beyond the search."""
    if isinstance(trigger, Timetable):
        return composed.next_after(trigger, after)
    return kinds.next_after(trigger, after)


def previous_before(trigger: Trigger, before: datetime) -> datetime | None:
    """Return the last time strictly earlier than `before`, in UTC; none if there is none, or only beyond the search."""
    if isinstance(trigger, Timetable):
        return composed.previous_before(trigger, before)
    return kinds.previous_before(trigger, before)


def times_between(trigger: Trigger, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """Return the times in (after, until], the first `limit` of them."""
    walk = composed.walk(trigger, after) if isinstance(trigger, Timetable) else kinds.walk(trigger, after)
    return list(islice(takewhile(lambda moment: moment <= until, walk), limit))


def tally_between(trigger: Trigger, after: datetime, until: datetime) -> Tally:
    """Return how many times lie in (after, until], the first and the last of them.

    The cost does not grow with the count for cron and elapsed steps, also on the days of a calendar; other kinds walk.
    Where that would be too long the count is a lower bound, and says so.
    """
    if isinstance(trigger, Timetable):
        return tally.tally_between(trigger, after, until)
    return Tally(*kinds.count_between(trigger, after, until))


def count_between(trigger: Trigger, after: datetime, until: datetime) -> tuple[int, datetime | None, datetime | None]:
    """Return the count, the first and the last of `tally_between`."""
    found = tally_between(trigger, after, until)
    return found.count, found.first, found.last


def dropped_between(trigger: Trigger, after: datetime, until: datetime) -> list[Dropped]:
    """Return what a calendar, `except` and changes by hand took out of (after, until], at most one for each of them."""
    return tally.dropped_between(trigger, after, until) if isinstance(trigger, Timetable) else []


def check(trigger: Trigger, after: datetime) -> None:
    """Raise TriggerError for a schedule that can never fire. One that has merely ended is not refused."""
    if isinstance(trigger, Timetable):
        composed.check(trigger, after)
    else:
        kinds.check(trigger, after)


def describe(trigger: Trigger) -> str:
    """Return a short sentence that says when a trigger is due."""
    return timetable_words.describe(trigger) if isinstance(trigger, Timetable) else words.describe(trigger)


def note_of(trigger: Trigger, moment: datetime) -> str | None:
    """Say what moved one of a trigger's times: a change of the clocks, a calendar, or a change by hand."""
    if isinstance(trigger, Timetable):
        return timetable_words.note_of(trigger, moment)
    return words.note_of(trigger, moment)


def explain(trigger: Trigger, moment: datetime) -> str:
    """Return a sentence that says why a moment is one of the times, or why it is none."""
    return explanation.explain(_as_timetable(trigger), moment)


def explain_wall(trigger: Trigger, wall: datetime) -> str:
    """Return a sentence that says why a wall time of the trigger's zone is one of the times, or why it is none."""
    return explanation.explain_wall(_as_timetable(trigger), wall)


def kind_of(trigger: Trigger) -> str:
    """Return the kind as a task file writes it: cron, every, at, rrule, or any for several."""
    if isinstance(trigger, Timetable):
        return words.kind_of(trigger.parts[0]) if len(trigger.parts) == 1 else "any"
    return words.kind_of(trigger)


def calendars_of(trigger: Trigger) -> tuple[Calendar, ...]:
    """Return the calendars that a trigger depends on, each once."""
    if not isinstance(trigger, Timetable):
        return ()
    named = {listed.calendar.name: listed.calendar for listed in (*trigger.days.only, *trigger.days.never)}
    return tuple(named.values())


def starts_at(trigger: Trigger) -> datetime | None:
    """Return the moment before which a schedule says that there are no times."""
    return trigger.starts_at if isinstance(trigger, Timetable) else None


def ends_at(trigger: Trigger) -> datetime | None:
    """Return the last moment at which a schedule says that there can be times."""
    return trigger.ends_at if isinstance(trigger, Timetable) else None


def _as_timetable(trigger: Trigger) -> Timetable:
    return trigger if isinstance(trigger, Timetable) else Timetable((trigger,), trigger.zone)
