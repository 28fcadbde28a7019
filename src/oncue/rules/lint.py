"""What a person would want to know of a task before it is applied: schedules that are allowed, and probably not meant.

Each check is a function that yields findings on one task. What tasks do together is in `lint_together`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, Literal

from oncue.definition import Calendar, Definition
from oncue.rules import lint_clocks, lint_cron, pacing, times
from oncue.rules.durations import write_duration
from oncue.rules.followed import is_followed
from oncue.rules.lint_clocks import parts_of
from oncue.rules.place import Place

Severity = Literal["error", "warning", "note"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
SAMPLE: Final = 200
NAMED: Final = 3
FLOOD: Final = 500
FAR: Final = timedelta(days=400)
WEEK: Final = timedelta(days=7)
DAY: Final = timedelta(days=1)
MINUTE: Final = timedelta(minutes=1)
HORIZON: Final = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at, with its remedy. `place` is where in the task file it stands."""

    code: str
    severity: Severity
    task: str
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Subject:
    """One task with a schedule: its next times, the shortest step between them, and how long its runs take."""

    definition: Definition
    trigger: times.Trigger
    now: datetime
    ahead: tuple[datetime, ...]
    step: timedelta | None
    takes: timedelta | None

    def found(self, code: str, severity: Severity, text: str, *keys: str) -> Finding:
        """Return a finding that stands at a key of the task, else at its schedule."""
        return Finding(code, severity, self.definition.name, text, ("task", self.definition.name, *(keys or SCHEDULE)))


SCHEDULE: Final = ("schedule",)


def examine(
    definition: Definition, calendars: Mapping[str, Calendar], *, now: datetime, takes: timedelta | None = None
) -> list[Finding]:
    """Return what is to be said of one task. `takes` is how long its runs take on average."""
    if definition.schedule is None or is_followed(definition.schedule):
        return []
    missing = [name for name in times.calendar_names(definition.schedule) if name not in calendars]
    if missing:
        return [_unknown_calendar(definition, name) for name in missing]
    trigger = times.read_trigger(definition.schedule, anchor=now, name=definition.name, calendars=calendars)
    ahead = tuple(times.times_between(trigger, now, now.replace(year=now.year + 20), SAMPLE))
    step = min((later - earlier for earlier, later in pairwise(ahead)), default=None)
    subject = Subject(definition, trigger, now, ahead, step, takes)
    if not ahead:
        return list(_over(subject))
    return [finding for check in CHECKS for finding in check(subject)]


def _unknown_calendar(definition: Definition, name: str) -> Finding:
    text = f'calendar "{name}" is neither in these files nor in the store. Write [calendar.{name}], or import it.'
    return Finding("unknown-calendar", "error", definition.name, text, ("task", definition.name, "schedule"))


def _over(subject: Subject) -> Iterator[Finding]:
    try:
        times.check(subject.trigger, subject.now)
    except times.TriggerError as error:
        yield subject.found("never-fires", "error", str(error).removeprefix("schedule: "))
        return
    last = times.previous_before(subject.trigger, subject.now)
    if last is None:
        yield subject.found("never-fires", "error", "it has no time at all, past or to come. Write when it is due.")
    else:
        text = f"it never fires again: its last time was {_shown(subject, last)}. Remove it, or give it a new schedule."
        yield subject.found("never-fires-again", "warning", text)


def _far(subject: Subject) -> Iterator[Finding]:
    if subject.ahead[0] - subject.now > FAR:
        text = f"it is not due for more than a year: first at {_shown(subject, subject.ahead[0])}. Is that meant?"
        yield subject.found("far-away", "note", text)


def _clocks(subject: Subject) -> Iterator[Finding]:
    by_kind: dict[str, list[lint_clocks.Change]] = defaultdict(list)
    for change in lint_clocks.changes(subject.trigger, subject.definition.schedule or {}, now=subject.now):
        by_kind[change.what].append(change)
    for kind, found in by_kind.items():
        code, severity, text, remedy = CLOCKS[kind]
        first, again = found[0], sorted({one.on for one in found[1:]} - {found[0].on})
        walls = " and ".join(first.walls[:NAMED]) + (
            f" and {len(first.walls) - NAMED} more" if first.walls[NAMED:] else ""
        )
        told = text.format(walls=walls, on=first.on, zone=first.zone, at=first.runs_at)
        also = f"; the same on {' and '.join(again)}" if again else ""
        yield subject.found(code, severity, f"{told}{also}. {remedy}")


CLOCKS: Final[Mapping[str, tuple[str, Severity, str, str]]] = {
    "moved": (
        "in-a-gap",
        "warning",
        "on {on}, {walls} is skipped by the clocks of {zone}, so it runs at {at}",
        "Choose a time at which clocks do not change, if that matters.",
    ),
    "skipped": (
        "lost-in-a-gap",
        "warning",
        "on {on}, {walls} is skipped by the clocks of {zone}, and what a cron with * misses so is not made up for",
        "Name the minutes (0,30 instead of */30) to have it run at the change.",
    ),
    "doubled": (
        "runs-twice",
        "warning",
        "on {on}, the clocks of {zone} show {walls} twice, and a cron with * runs both times",
        "Name the minutes (0,30 instead of */30) to have it run once.",
    ),
    "first": (
        "in-a-repeat",
        "note",
        "on {on}, the clocks of {zone} show {walls} twice; it runs the first time only",
        "Nothing is to be done if that is meant.",
    ),
}


def _zone(subject: Subject) -> Iterator[Finding]:
    spec = subject.definition.schedule or {}
    parts = zip(parts_of(subject.trigger), spec.get("any", [spec]), strict=True)
    if "zone" in spec or not any(lint_cron.follows_the_wall(kind) and "zone" not in own for kind, own in parts):
        return
    text = 'no zone is given, so its times are in UTC. Write zone = "UTC" if that is meant, else your own.'
    yield subject.found("no-zone", "note", text)


def _cron(subject: Subject) -> Iterator[Finding]:
    spec = subject.definition.schedule or {}
    for kind, own in zip(parts_of(subject.trigger), spec.get("any", [spec]), strict=True):
        if isinstance(kind, times.Cron):
            dialect = own.get("dialect", spec.get("dialect", "unix"))
            for code, severity, text in lint_cron.findings(kind, dialect):
                yield subject.found(code, severity, text, "schedule", "any" if "any" in spec else "cron")


def _drifts(subject: Subject) -> Iterator[Finding]:
    for kind in parts_of(subject.trigger):
        if isinstance(kind, times.Every) and kind.step.is_elapsed:
            yield from _drift(subject, kind)


def _drift(subject: Subject, kind: times.Every) -> Iterator[Finding]:
    step, zone = kind.step.elapsed, kind.zone
    if step % DAY == timedelta() and lint_cron.changes_its_clocks(zone, subject.now):
        days = step // DAY
        text = (
            f'"{kind.text}" is elapsed time: its time of day is another after the clocks of {zone.key} change. '
            f'Write every = "{days}d" to keep the time of day.'
        )
        yield subject.found("drifts", "warning", text, "schedule", "every")
    elif DAY % step and step % DAY:
        text = f'"{kind.text}" does not divide a day, so its times of day are others each day. A cron keeps them.'
        yield subject.found("drifts", "note", text, "schedule", "every")


def _slow(subject: Subject) -> Iterator[Finding]:
    takes, step = subject.takes, subject.step
    if takes is None or step is None or takes <= step:
        return
    runs, due = write_duration(_rounded(takes)), write_duration(step)
    many = -(-takes // step)
    what = {
        "skip": f"{many - 1} of {many} are skipped",
        "queue": "it stays behind, and all but one that waits are skipped",
        "replace": "each is replaced before it ends",
        "allow": f"about {many} run at once",
    }[subject.definition.overlap]
    text = f"its runs take {runs} and are due each {due}: {what}. Let it be due less often."
    yield subject.found("slower-than-due", "warning", text)


def _unbounded(subject: Subject) -> Iterator[Finding]:
    definition, step = subject.definition, subject.step
    if definition.overlap == "allow" and definition.expires is None and step is not None and step <= MINUTE:
        text = (
            f'overlap = "allow" and due each {write_duration(step)}: while its target cannot be reached, runs pile up, '
            'and all go out at once after. Write expires = "5m", or another overlap.'
        )
        yield subject.found("unbounded", "warning", text, "overlap")


def _misfire(subject: Subject) -> Iterator[Finding]:
    misfire, step = subject.definition.misfire, subject.step
    grace, max_age = misfire.grace, misfire.max_age
    if step is None:
        return
    if grace > step:
        text = (
            f"grace {write_duration(grace)} is longer than the {write_duration(step)} from one time to the next: after "
            f"an outage, up to {grace // step + 1} times count as on time, and each makes a run. Write a shorter grace."
        )
        yield subject.found("grace-covers-several", "warning", text, "misfire", "grace")
    count = times.count_between(subject.trigger, subject.now, subject.now + max_age)[0]
    if misfire.catch_up == "all" and misfire.max is None and count > FLOOD:
        text = (
            f"after an outage of {write_duration(max_age)}, {count:,} runs are made up for. "
            'Write catch_up = "latest", or a misfire.max.'
        )
        yield subject.found("catch-up-flood", "warning", text, "misfire", "catch_up")
    if misfire.catch_up != "none" and step >= WEEK and max_age < step:
        text = (
            f"it is due each {step.days} days or more, and a time that was missed is not caught up after "
            f"{write_duration(max_age)}. Write a longer misfire.max_age if that must not be."
        )
        yield subject.found("may-be-lost", "note", text, "misfire", "max_age")


def _pace(subject: Subject) -> Iterator[Finding]:
    pace = pacing.read_pacing(subject.definition.schedule or {})
    for key, wanted in (("jitter", pace.jitter), ("spread", pace.spread)):
        if subject.step is not None and wanted >= subject.step:
            text = (
                f"{key} {write_duration(wanted)} reaches the next time, {write_duration(subject.step)} later, and is "
                f"cut short there. Write a shorter {key}."
            )
            yield subject.found("pace-too-long", "warning", text, "schedule", key)
    expires = subject.definition.expires
    if expires is not None and expires < pace.jitter:
        text = (
            f"expires {write_duration(expires)} is shorter than jitter {write_duration(pace.jitter)}, and counts from "
            "the due time: some runs expire before they start. Write a longer expires."
        )
        yield subject.found("expires-within-jitter", "warning", text, "expires")


def _calendars(subject: Subject) -> Iterator[Finding]:
    today = subject.now.astimezone(subject.trigger.zone).date()
    for calendar in times.calendars_of(subject.trigger):
        if calendar.known_until is not None and calendar.known_until < today + HORIZON:
            text = (
                f'calendar "{calendar.name}" is known until {calendar.known_until}, and what comes after is not its '
                f"own: import it again, oncue calendars import {calendar.name}."
            )
            yield subject.found("calendar-ends", "warning", text)
    spec = subject.definition.schedule or {}
    dropped = times.dropped_between(subject.trigger, subject.now, subject.now + lint_clocks.AHEAD)
    if "except" in spec and not any("except" in one.reason for one in dropped):
        text = (
            "except takes nothing out in the next two years: it excludes the very times that it names, and none of "
            'them is due. For whole days write except_on, or "* * 25 12 *".'
        )
        yield subject.found("excludes-nothing", "warning", text, "schedule", "except")


def _expires(subject: Subject) -> Iterator[Finding]:
    expires, grace = subject.definition.expires, subject.definition.misfire.grace
    if expires is not None and expires < grace:
        text = (
            f"expires {write_duration(expires)} is shorter than misfire.grace {write_duration(grace)}: a run that is "
            f'still on time by its grace can be too late. Write misfire.grace = "{write_duration(expires)}" or less.'
        )
        yield subject.found("expires-within-grace", "warning", text, "expires")


CHECKS: Final[tuple[Callable[[Subject], Iterator[Finding]], ...]] = (
    _far,
    _clocks,
    _zone,
    _cron,
    _drifts,
    _slow,
    _unbounded,
    _misfire,
    _expires,
    _pace,
    _calendars,
)


def _shown(subject: Subject, moment: datetime) -> str:
    return moment.astimezone(subject.trigger.zone).isoformat(" ", "seconds")


def _rounded(duration: timedelta) -> timedelta:
    return timedelta(seconds=round(duration.total_seconds(), 1))
