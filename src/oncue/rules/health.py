"""What is wrong, in sentences that say what to do: for the watch's alerts, for `oncue doctor` and for `/readyz`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from oncue.definition import Calendar
from oncue.rules import calendar_words

NEEDED = ("clock", "dispatcher")
NAMED = 3  # tasks that use a calendar


@dataclass(frozen=True, slots=True)
class Signs:
    """What was seen at one moment: ages of the oldest things that wait, and who was last heard of when.

    `calendars` are those that end soon or have ended, each with the tasks that use it; `editions` say which zone data
    each living component reads: (name, place, edition).
    """

    oldest_schedule: datetime | None
    oldest_run: datetime | None
    stopped: tuple[tuple[str, str], ...]
    held: Sequence[tuple[str, str, datetime]]
    dead_letters: int
    schedules: int
    seen: Sequence[tuple[str, str, datetime]]
    calendars: Sequence[tuple[Calendar, Sequence[str]]] = ()
    editions: Sequence[tuple[str, str, str]] = ()
    to_catch_up: Sequence[tuple[str, int]] = ()
    unanswered: Sequence[tuple[str, str, datetime]] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """`code` names the kind; `urgent` ones mean that work is not being done now."""

    code: str
    subject: str
    text: str
    urgent: bool = True


def problems(signs: Signs, *, now: datetime, overdue: timedelta, silent: timedelta) -> list[Problem]:
    """Return what is wrong now, most urgent first."""
    found = [*_silent(signs, now=now, silent=silent), *_late(signs, now=now, overdue=overdue)]
    for name, reason, since in signs.held:
        text = f'a run of task "{name}" has been tried in vain for {_seconds(now - since)}: {reason.rstrip(".")}.'
        found.append(Problem("runs_held", name, text))
    for name, reason, since in signs.unanswered:
        text = f'the next time of task "{name}" cannot be read for {_seconds(now - since)}: {reason.rstrip(".")}.'
        found.append(Problem("next_unanswered", name, text))
    for name, reason in signs.stopped:
        text = f'the schedule of task "{name}" is stopped: {reason}. Mend the task file and apply it again.'
        found.append(Problem("schedule_stopped", name, text))
    for name, count in signs.to_catch_up:
        text = f'{count} missed run(s) of task "{name}" wait for a decision: see `oncue catch-up {name}`.'
        found.append(Problem("runs_wait_for_person", name, text, urgent=False))
    found += _ended_calendars(signs, now=now)
    found += _behind(signs)
    if signs.dead_letters:
        text = f"{signs.dead_letters} dead letter(s) wait for a decision: see `oncue failures list`."
        found.append(Problem("dead_letters", "", text, urgent=False))
    return found


def _silent(signs: Signs, *, now: datetime, silent: timedelta) -> list[Problem]:
    alive = {name for name, _, seen_at in signs.seen if now - seen_at <= silent}
    found = [
        Problem(
            "component_silent", f"{name} {place}", f"{name} on {place} has not been heard of since {seen_at:%H:%M:%S}Z."
        )
        for name, place, seen_at in signs.seen
        if name not in alive
    ]
    for name in NEEDED:
        if name not in alive and (signs.schedules or signs.oldest_run):
            found.append(Problem("component_missing", name, f"no {name} is running: start one with `oncue {name}`."))
    return found


def _late(signs: Signs, *, now: datetime, overdue: timedelta) -> list[Problem]:
    found = []
    if signs.oldest_schedule is not None and now - signs.oldest_schedule > overdue:
        late = _seconds(now - signs.oldest_schedule)
        found.append(
            Problem("schedules_overdue", "", f"a schedule is {late} overdue: no clock keeps up with the store.")
        )
    if signs.oldest_run is not None and now - signs.oldest_run > overdue:
        late = _seconds(now - signs.oldest_run)
        found.append(
            Problem("runs_overdue", "", f"a run has been ready for {late}: no dispatcher keeps up with the store.")
        )
    return found


def _ended_calendars(signs: Signs, *, now: datetime) -> list[Problem]:
    found = []
    for calendar, users in signs.calendars:
        left = calendar_words.days_left(calendar, now.date())
        if left is None or left > calendar_words.ENDS_SOON or not users:
            continue
        names = ", ".join(users[:NAMED]) + (" and more" if len(users) > NAMED else "")
        what, until = f'calendar "{calendar.name}"', calendar.known_until
        use = f"{'task' if len(users) == 1 else 'tasks'} {names} {'uses' if len(users) == 1 else 'use'} it"
        state = f"is known until {until}, {_in_days(left)}"
        if left < 0:
            state = f"was known until {until}, and no later day is in it"
        text = f"{what} {state}; {use}: {calendar_words.how_to_continue(calendar)}."
        found.append(Problem("calendar_ends", calendar.name, text, urgent=left < 0))
    return sorted(found, key=lambda problem: not problem.urgent)


def _in_days(count: int) -> str:
    return "today" if count == 0 else "in 1 day" if count == 1 else f"in {count} days"


def _behind(signs: Signs) -> list[Problem]:
    """Name the processes that read older zone data than others do: the same schedule means another time to them."""
    known = [(place, name, edition) for name, place, edition in signs.editions if edition[:1].isdecimal()]
    newest = max((edition for _, _, edition in known), default="")
    found = []
    for (place, edition), parts in groupby(
        sorted(known, key=lambda one: (one[0], one[2])), lambda one: (one[0], one[2])
    ):
        if edition < newest:
            names = ", ".join(name for _, name, _ in parts)
            text = f"{names} on {place} reads zone data {edition}, others {newest}: upgrade its tzdata and restart it."
            found.append(Problem("zone_data_behind", place, text, urgent=False))
    return found


def _seconds(age: timedelta) -> str:
    return f"{age.total_seconds():.0f} s"
