"""The `schedule` table of a task file, read into a trigger: one kind alone, or a timetable of several."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import ceil
from typing import Final
from zoneinfo import ZoneInfo

from oncue.definition import Calendar, Override
from oncue.errors import TriggerError
from oncue.rules.triggers import every as steps
from oncue.rules.triggers import kinds, zones
from oncue.rules.triggers.at import read_anchor, read_at, read_moment
from oncue.rules.triggers.cron import Cron, read_cron
from oncue.rules.triggers.days import Days, first_instant, last_instant, read_listed
from oncue.rules.triggers.every import Every
from oncue.rules.triggers.kinds import Kind
from oncue.rules.triggers.rrule import Rrule
from oncue.rules.triggers.rrule_text import read_rrule
from oncue.rules.triggers.timetable import Move, Timetable

KINDS: Final = ("cron", "every", "at", "rrule")
ALONE: Final = (*KINDS, "zone", "anchor", "dialect", "dst")
COMPOSED: Final = ("any", "except", "only_on", "except_on", "move", "start", "end")
READ_ELSEWHERE: Final = ("jitter", "spread", "max_runs")
KNOWN: Final = (*ALONE, *COMPOSED, *READ_ELSEWHERE)
MOST_PARTS: Final = 20
MOST_MOVED_A_DAY: Final = 24


@dataclass(frozen=True, slots=True)
class Setting:
    """What a whole schedule says for its parts: its zone, where steps without an anchor begin, and its task's name."""

    zone: ZoneInfo
    anchor: datetime | None
    name: str
    defaults: Mapping[str, object]


def read_schedule(
    spec: Mapping[str, object],
    *,
    anchor: datetime | None,
    name: str,
    calendars: Mapping[str, Calendar],
    overrides: Sequence[Override],
) -> Kind | Timetable:
    """Return the trigger of a `schedule` table; a kind of its own where nothing is composed."""
    _refuse_unknown("schedule", spec, KNOWN)
    zone = _read_zone(spec)
    starts_at, ends_at = _read_bounds(spec, zone)
    given = {key: spec[key] for key in ("zone", "dialect", "dst") if key in spec}
    if "start" in spec:
        anchor = read_anchor("start", _text("start", spec["start"]), zone)
    setting = Setting(zone, anchor, name, given)
    parts = _read_parts(spec, setting)
    if "dialect" in spec and not any(isinstance(part, Cron) for part in parts):
        raise TriggerError("dialect: it says how a cron is spelled, and there is none. Leave it out.")
    if not overrides and not any(key in spec for key in COMPOSED):
        return parts[0]
    days = Days(
        tuple(read_listed(calendar) for calendar in _find("only_on", spec, calendars)),
        tuple(read_listed(calendar) for calendar in _find("except_on", spec, calendars)),
    )
    moved = {override.due_at.astimezone(UTC): override for override in overrides}
    return Timetable(
        parts=parts,
        zone=zone,
        excluded=_read_list("except", spec["except"], setting) if "except" in spec else (),
        days=days,
        move=_read_move(spec["move"], days, parts) if "move" in spec else None,
        starts_at=starts_at,
        ends_at=ends_at,
        overrides=tuple(moved[due_at] for due_at in sorted(moved)),
    )


def calendar_names(spec: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of the calendars that a schedule refers to, each once."""
    named = [name for key in ("only_on", "except_on") if key in spec for name in _read_names(key, spec[key])]
    return tuple(dict.fromkeys(named))


def most_a_day(kind: Kind) -> int | None:
    """Return the most times that a trigger can have in a day by its text, none if they are more than can move."""
    match kind:
        case Cron():
            pattern = kind.pattern
        case Rrule():
            if kind.is_elapsed:
                return None
            pattern = kind.pattern
        case Every():
            days = 86400 / kind.step.shortest.total_seconds()
            return None if days > MOST_MOVED_A_DAY else ceil(days)
        case _:
            return 1
    most = pattern.seconds.bit_count() * pattern.minutes.bit_count() * pattern.hours.bit_count()
    return most if most <= MOST_MOVED_A_DAY else None


def _read_parts(spec: Mapping[str, object], setting: Setting) -> tuple[Kind, ...]:
    named = [kind for kind in (*KINDS, "any") if kind in spec]
    if len(named) != 1:
        given = f"has both {' and '.join(named)}" if named else "says nothing"
        raise TriggerError(f"schedule: it {given}. Write exactly one of {', '.join(KINDS)}, or any for several.")
    if named == ["any"]:
        return _read_list("any", spec["any"], setting)
    return (_read_kind({key: spec[key] for key in ALONE if key in spec}, setting),)


def _read_list(field: str, value: object, setting: Setting) -> tuple[Kind, ...]:
    """Return the triggers of a list of tables."""
    if not isinstance(value, list | tuple) or not value:
        raise TriggerError(f'{field}: it is not a list of triggers. Write {field} = [{{ cron = "0 9 * * sat" }}].')
    if len(value) > MOST_PARTS:
        raise TriggerError(f"{field}: it has {len(value)} triggers. Write at most {MOST_PARTS}.")
    found = []
    for place, part in enumerate(value, 1):
        try:
            if not isinstance(part, Mapping):
                raise TriggerError(f'{part!r} is not a table. Write it as {{ cron = "0 9 * * sat" }}.')
            _refuse_unknown("schedule", part, ALONE)
            found.append(_read_part(part, setting))
        except TriggerError as error:
            raise TriggerError(f"{field}: in part {place}, {error}") from None
    return tuple(found)


def _read_part(part: Mapping[str, object], setting: Setting) -> Kind:
    """Return one trigger of several. It takes the schedule's `dst` if it goes by clocks at all."""
    given = {**setting.defaults, **part}
    if "dst" in part or "dst" not in given:
        return _read_kind(given, setting)
    plain = _read_kind({key: value for key, value in given.items() if key != "dst"}, setting)
    return _read_kind(given, setting) if kinds.goes_by_clock(plain) else plain


def _read_kind(spec: Mapping[str, object], setting: Setting) -> Kind:
    """Return the trigger of a table that has one kind."""
    named = [kind for kind in KINDS if kind in spec]
    if len(named) != 1:
        given = f"has both {' and '.join(named)}" if named else "says nothing"
        raise TriggerError(f"schedule: it {given}. Write exactly one of {', '.join(KINDS)}.")
    (kind,) = named
    if "dialect" in spec and kind != "cron" and "dialect" not in setting.defaults:
        raise TriggerError(f"dialect: {kind} has no dialect. Leave it out.")
    if "anchor" in spec and kind not in ("every", "rrule"):
        raise TriggerError(f"anchor: {kind} has no anchor. Leave it out.")
    text = _text(kind, spec[kind])
    zone, dst = _read_zone(spec), spec.get("dst")
    if kind == "cron":
        return read_cron(text, zone, name=setting.name, dialect=_text("dialect", spec.get("dialect", "unix")), dst=dst)
    if kind == "at":
        return read_at(text, zone, has_zone="zone" in spec, dst=dst)
    anchor = read_anchor("anchor", _text("anchor", spec["anchor"]), zone) if "anchor" in spec else setting.anchor
    if kind == "rrule":
        return read_rrule(text, zone, anchor=anchor, dst=dst)
    return _read_every(text, zone, anchor, dst)


def _read_zone(spec: Mapping[str, object]) -> ZoneInfo:
    name = spec.get("zone", "UTC")
    if not isinstance(name, str):
        raise TriggerError(f'zone: {name!r} is not text. Write an IANA name, such as "Europe/Athens".')
    return zones.read_zone(name)


def _read_every(text: str, zone: ZoneInfo, anchor: datetime | None, dst: object) -> Every:
    step_text = text
    if text.startswith("R"):
        head, _, rest = text.partition("/")
        anchor_text, slash, step_text = rest.rpartition("/")
        if head != "R" or not slash:
            raise TriggerError(f'every: "{text}" is not a repetition. Write R/<anchor>/<duration>.')
        anchor = read_anchor("every", anchor_text, zone)
    step = steps.read_step(step_text)
    if anchor is None:
        raise TriggerError(
            f'anchor: every = "{text}" has nothing to count from. Write anchor = "2026-01-31T09:00:00Z".'
        )
    return steps.read_every(text, zone, step=step, anchor=anchor, dst=dst)


def _read_bounds(spec: Mapping[str, object], zone: ZoneInfo) -> tuple[datetime | None, datetime | None]:
    """Return the first and the last moment of a schedule; a date alone means that whole day."""
    starts_at = _read_bound("start", spec["start"], zone) if "start" in spec else None
    ends_at = _read_bound("end", spec["end"], zone) if "end" in spec else None
    if starts_at and ends_at and ends_at < starts_at:
        raise TriggerError(f"end: {spec['end']} is before the start, {spec['start']}. Write a later end.")
    return starts_at, ends_at


def _read_bound(field: str, value: object, zone: ZoneInfo) -> datetime:
    text = _text(field, value)
    moment = read_moment(field, text, zone)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return moment
    return first_instant(zone, day) if field == "start" else last_instant(zone, day)


def _find(field: str, spec: Mapping[str, object], calendars: Mapping[str, Calendar]) -> list[Calendar]:
    """Return the calendars that a field names."""
    found = []
    for name in _read_names(field, spec[field]) if field in spec else ():
        if name not in calendars:
            known = ", ".join(sorted(calendars)) or "none"
            raise TriggerError(
                f'{field}: there is no calendar "{name}". Known calendars: {known}. '
                f"Write [calendar.{name}] in the task file, or import one: oncue calendars import {name} --country GR."
            )
        found.append(calendars[name])
    return found


def _read_names(field: str, value: object) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) and name for name in names):
        raise TriggerError(f'{field}: {value!r} names no calendar. Write {field} = "business-days", or a list.')
    if len(names) > MOST_PARTS:
        raise TriggerError(f"{field}: it names {len(names)} calendars. Write at most {MOST_PARTS}.")
    return list(names)


def _read_move(value: object, days: Days, parts: Sequence[Kind]) -> Move:
    if value not in ("next", "previous"):
        raise TriggerError(f'move: {value!r} is not a way to move. Write "next" or "previous".')
    if not (days.only or days.never):
        raise TriggerError('move: there is no calendar to move by. Add only_on = "business-days", or leave move out.')
    most = [most_a_day(kind) for kind in parts]
    if None in most or sum(count or 0 for count in most) > MOST_MOVED_A_DAY:
        raise TriggerError(
            f"move: the schedule can be due more than {MOST_MOVED_A_DAY} times a day, and all of a holiday's times "
            "would crowd into the day after. Leave move out, or write a schedule that is due at most hourly."
        )
    return value


def _refuse_unknown(field: str, spec: Mapping[str, object], known: Sequence[str]) -> None:
    for key in spec:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f'Did you mean "{near[0]}"?' if near else f"Known keys: {', '.join(known)}."
            raise TriggerError(f'{field}: there is no key "{key}". {hint}')


def _text(field: str, value: object) -> str:
    """Return a value as text; TOML knows dates and times of its own."""
    if isinstance(value, datetime | date) and field in ("at", "anchor", "start", "end"):
        return value.isoformat()
    if not isinstance(value, str):
        raise TriggerError(f"{field}: {value!r} is not text. Write it in quotes.")
    if not value.strip():
        raise TriggerError(f"{field}: it is empty. Write when the task is due.")
    return value.strip()
