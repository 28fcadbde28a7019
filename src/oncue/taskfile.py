"""Task files: TOML to definitions and calendars, with every mistake at its line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

from oncue.config import Config
from oncue.definition import (
    BrokerTarget,
    Calendar,
    Definition,
    EventResolver,
    HttpTarget,
    Misfire,
    NoResolver,
    Resolver,
    Retry,
    SqlResolver,
    Subscription,
    Target,
)
from oncue.errors import TaskFileError, TriggerError
from oncue.model import Json
from oncue.rules import address, matching, pacing, shape, times
from oncue.rules.calendar_text import read_calendar
from oncue.rules.durations import write_duration
from oncue.rules.followed import SqlNext, is_followed, read_followed
from oncue.rules.place import Place, line_of, read_toml
from oncue.rules.shape import Mistake, Rules, Wrong
from oncue.rules.triggers.days import WEEKDAYS

ENVELOPES: Final = ("json", "celery")
T = TypeVar("T")
KEYS: Final = ("calendar", "task")
NO_CALENDARS: Final[Mapping[str, Calendar]] = {}
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
ANCHOR: Final = datetime(2000, 1, 1, tzinfo=UTC)  # only to read by: a task's own anchor is when it is created
LATER_WORDS: Final = ("cue", "cancel")
TRIGGERS: Final = 'Write schedule = { cron = "0 9 * * *" }, or [[task.NAME.on]] with an event.'
RESOLVERS: Final = 'Write { sql = "select …", source = "app" } or { event = true }.'
TARGETS: Final = 'Write { broker = "main", queue = "…" } or { http = "https://…" }.'


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a task file says: its tasks and its calendars, in its order."""

    definitions: list[Definition]
    calendars: list[Calendar]


def read_task_file(
    path: Path, *, calendars: Mapping[str, Calendar] | None = None, now: datetime | None = None
) -> TaskFile:
    """Return what a file says. Raises TaskFileError with all mistakes of the file.

    With `now`, schedules that have no time left to come by their rule are refused too. With `calendars`, those beside
    the file's own, so is one that refers to any other; else these are taken for days of all kinds.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise TaskFileError(f"{path}: this is not UTF-8 text. Save it as UTF-8.") from None
    except OSError as error:
        raise TaskFileError(f"{path}: it cannot be read: {error.strerror}. Check the path and its rights.") from None
    return read_tasks(text, origin=str(path), calendars=calendars, now=now)


def read_tasks(
    text: str,
    *,
    origin: str = "tasks.toml",
    calendars: Mapping[str, Calendar] | None = None,
    now: datetime | None = None,
) -> TaskFile:
    """Return the tasks of a TOML text. Raises TaskFileError with all mistakes of the text, a line each."""
    own: dict[str, Calendar] = {}

    def reading(key: str, value: Any) -> list[Definition]:
        if key == "calendar":
            own.update(shape.each(shape.table(value).items(), read_calendar))
            return []
        if key != "task":
            raise ValueError(f"there is no such key.{shape.near(key, KEYS)}")
        each_task = partial(
            _read_task, calendars={**(calendars or {}), **own}, knows_all=calendars is not None, now=now
        )
        return list(shape.each(shape.table(value).items(), each_task).values())

    try:
        table = read_toml(text, origin)
    except ValueError as error:
        raise TaskFileError(str(error)) from None
    try:
        definitions = shape.each(sorted(table.items()), reading).get("task", [])  # calendars first
        _check_renames(definitions)
    except Wrong as wrong:
        raise TaskFileError("\n".join(_tell(wrong, origin=origin, text=text))) from None
    return TaskFile(definitions, list(own.values()))


def definition_from_json(
    name: str,
    mapping: Mapping[str, Any],
    *,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    now: datetime | None = None,
) -> Definition:
    """Return a task from the keys of the task file. Raises TaskFileError with all mistakes, a line each."""
    table = {key: value for key, value in mapping.items() if (key, value) != ("name", name)}
    try:
        return _read_task(name, table, calendars=calendars, now=now)
    except RecursionError:
        raise TaskFileError(f"{place_name(('task', name))}: it is nested too deeply. Write it flatter.") from None
    except Wrong as wrong:
        raise _told_at(wrong, "task", name) from None


def calendar_from_json(name: str, mapping: Mapping[str, Any]) -> Calendar:
    """Return a calendar from the keys of the task file. Raises TaskFileError with all mistakes, a line each."""
    try:
        return read_calendar(name, mapping)
    except Wrong as wrong:
        raise _told_at(wrong, "calendar", name) from None
    except ValueError as error:
        raise TaskFileError(f"{place_name(('calendar', name))}: {error}") from None


def _told_at(wrong: Wrong, kind: str, name: str) -> TaskFileError:
    places = [(place_name((kind, name, *one.place)), one.text) for one in wrong.mistakes]
    return TaskFileError("\n".join(f"{place}: {text}" for place, text in places))


def definition_to_json(definition: Definition) -> Json:
    """Return a task in the keys of the task file, durations as text; what stands at its default is left out."""
    table = cast("Json", shape.write(definition, rules=RULES))
    table.pop("resolve", None)
    if definition.resolve != _implied(definition):
        table["resolve"] = shape.write(definition.resolve, rules=RULES)
    return table


def check_references(
    definitions: Iterable[Definition], config: Config, *, envelopes: Sequence[str] = ENVELOPES
) -> None:
    """Raise TaskFileError, a line each, for sources, brokers and envelopes that tasks name and that are not there."""
    sentences: list[str] = []
    for task in definitions:
        if isinstance(task.resolve, SqlResolver) and task.resolve.source not in config.source:
            sentences.append(_unknown(task, "source", name=task.resolve.source, known=config.source))
        following = read_followed(task.schedule).next if task.schedule and is_followed(task.schedule) else None
        if isinstance(following, SqlNext) and following.source not in config.source:
            sentences.append(_unknown(task, "source", name=following.source, known=config.source))
        if not isinstance(task.target, BrokerTarget):
            continue
        if task.target.broker not in config.broker:
            sentences.append(_unknown(task, "broker", name=task.target.broker, known=config.broker))
        if task.target.envelope not in envelopes:
            hint = shape.near(task.target.envelope, envelopes)
            sentences.append(f'task "{task.name}" has no envelope "{task.target.envelope}".{hint}')
        if task.target.envelope == "celery" and not task.target.task:
            sentences.append(f'task "{task.name}": {CELERY}')
    if sentences:
        raise TaskFileError("\n".join(sentences))


def place_name(place: Place) -> str:
    """Return a place as messages show it: `[task.trial-ending] misfire.catch_up`."""
    if len(place) < 2 or place[0] not in KEYS:
        return ".".join(map(str, place))
    inner = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[2:])
    return f"[{place[0]}.{place[1]}] {inner.removeprefix('.')}".rstrip()


def _tell(wrong: Wrong, *, origin: str, text: str) -> list[str]:
    lines = sorted(((line_of(text, one.place), one) for one in wrong.mistakes), key=lambda found: found[0])
    return [f"{origin}:{line}: {place_name(one.place)}: {one.text}" for line, one in lines]


def _read_task(
    name: str,
    value: Any,
    *,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    knows_all: bool = False,
    now: datetime | None,
) -> Definition:
    mistakes: list[Mistake] = []
    if not NAME.fullmatch(name):
        mistakes.append(Mistake((), f"{shape.shown(name)} is not a task's name. {NAMES}"))
    if isinstance(value, Mapping) and not ("schedule" in value or value.get("on")):
        mistakes.append(Mistake((), f"it has no trigger. {TRIGGERS}"))

    reading = partial(_read_schedule, name=name, calendars=calendars, knows_all=knows_all, now=now)
    readers = {**RULES.readers, (Definition, "schedule"): cast("Callable[[Any], Any]", reading)}
    rules = replace(RULES, readers=readers, given={(Definition, "name"): name})
    try:
        definition: Definition = shape.read(Definition, value, rules=rules)
    except Wrong as wrong:
        raise Wrong(*mistakes, *wrong.mistakes) from None
    except ValueError as error:
        raise Wrong(*mistakes, Mistake((), str(error))) from None
    if mistakes := [*mistakes, *_touches_in_vain(definition)]:
        raise Wrong(*mistakes)
    return replace(definition, resolve=_implied(definition)) if value.get("resolve") is None else definition


def _touches_in_vain(definition: Definition) -> Iterator[Mistake]:
    """Yield what does not fit together of a schedule that is followed, its resolver, and the events that touch it."""
    follows = is_followed(definition.schedule)
    if follows and not isinstance(definition.resolve, SqlResolver):
        yield Mistake(("resolve",), f"a followed schedule needs to know who is due when. {DUE}")
    for place, one in enumerate(definition.on):
        if one.do == "touch" and not follows:
            yield Mistake(("on", place, "do"), "only a followed schedule is touched. Write schedule = { next = … }.")
        if one.do == "touch" and one.all:
            yield Mistake(("on", place, "all"), "a touch concerns nobody in particular. Leave it out.")


def _implied(definition: Definition) -> Resolver:
    """Return who is resolved where a task does not say: the event where only events start it, else nobody."""
    return EventResolver() if definition.on and definition.schedule is None else NoResolver()


def _read_schedule(
    value: Any, *, name: str, calendars: Mapping[str, Calendar], knows_all: bool, now: datetime | None
) -> Json:
    spec = cast("Json", shape.plain(shape.table(value)))
    try:
        if is_followed(spec):
            read_followed(spec)
            return spec
        pacing.read_pacing(spec)
        named = times.calendar_names(spec)
        stand_ins = {} if knows_all else {one: Calendar(one, WEEKDAYS) for one in named}
        trigger = times.read_trigger(spec, anchor=ANCHOR, name=name, calendars={**stand_ins, **calendars})
        if now is not None and set(named) <= set(calendars):
            times.check(trigger, now)
    except TriggerError as error:
        field, _, text = str(error).partition(": ")
        if field == "schedule":
            raise ValueError(text) from None
        raise (Wrong(Mistake((field,), text)) if field in spec else ValueError(str(error))) from None
    return spec


def _read_resolver(value: Any) -> Resolver:
    table = shape.table(value)
    if "event" in table:
        if len(table) > 1:
            raise ValueError(f"it says event and more. {RESOLVERS}")
        return (
            EventResolver()
            if shape.each(table.items(), lambda _, item: shape.read(bool, item))["event"]
            else NoResolver()
        )
    if "sql" not in table and "source" not in table:
        raise ValueError(f"it says neither sql nor event. {RESOLVERS}")
    return cast("SqlResolver", shape.read(SqlResolver, table, rules=RULES))


def _read_target(value: Any) -> Target:
    table = shape.table(value)
    if "broker" in table and "http" in table:
        raise ValueError(f"it names both a broker and http. {TARGETS}")
    if "http" in table:
        return cast("HttpTarget", shape.read(HttpTarget, table, rules=RULES))
    if "broker" not in table and "queue" not in table:
        raise ValueError(f"it names neither a broker nor http. {TARGETS}")
    return cast("BrokerTarget", shape.read(BrokerTarget, table, rules=RULES))


def _read_match(value: Any) -> Json:
    pattern = cast("Json", shape.plain(shape.table(value)))
    matching.check_pattern(pattern)
    return pattern


def _read_do(value: Any) -> str:
    if value in LATER_WORDS:
        raise ValueError(f'"{value}" does not work yet. Today it is "fire", "touch", or left out.')
    return cast("str", shape.read(Literal["fire", "touch"], value))


def _read_text(value: Any) -> str:
    text = cast("str", shape.read(str, value))
    if not text.strip():
        raise ValueError("it is empty. Write what it is, or leave the key out.")
    return text


def _read_name(value: Any) -> str:
    text = _read_text(value)
    if not NAME.fullmatch(text):
        raise ValueError(f"{shape.shown(text)} is not a task's name. {NAMES}")
    return text


def _check_misfire(misfire: Misfire) -> None:
    if misfire.max is not None and misfire.catch_up != "all":
        text = f'with catch_up = "{misfire.catch_up}" it says nothing. Write catch_up = "all", or leave it out.'
        raise Wrong(Mistake(("max",), text))


def _check_retry(retry: Retry) -> None:
    if retry.cap < retry.first:
        first, cap = write_duration(retry.first), write_duration(retry.cap)
        raise Wrong(Mistake(("cap",), f"{cap} is shorter than first, which is {first}. Write a longer cap."))


def _check_broker_target(target: BrokerTarget) -> None:
    if target.envelope == "celery" and not target.task:
        raise Wrong(Mistake(("task",), CELERY))


def _check_renames(definitions: Sequence[Definition]) -> None:
    names = {one.name for one in definitions}
    counts = Counter(one.renamed_from for one in definitions)
    mistakes: list[Mistake] = []
    for one in definitions:
        place, origin = ("task", one.name, "renamed_from"), one.renamed_from
        if origin in names:
            mistakes.append(Mistake(place, f'"{origin}" is still in this file. Remove one of the two.'))
        elif origin and counts[origin] > 1:
            mistakes.append(Mistake(place, f'"{origin}" is claimed by {counts[origin]} tasks. Leave it to one.'))
    if mistakes:
        raise Wrong(*mistakes)


def _unknown(task: Definition, kind: str, *, name: str, known: Iterable[str]) -> str:
    listed = ", ".join(sorted(known)) or "none"
    return f'task "{task.name}" has no {kind} "{name}". Known {kind}s: {listed}. Add [{kind}.{name}] to oncue.toml.'


NAMES: Final = (
    "Write small letters, digits, dots, dashes and underscores, at most 100, beginning with a letter or digit."
)
DUE: Final = 'Write resolve = { sql = "select id as key, starts_at as due_at, … from …", source = "app" }.'
CELERY: Final = (
    'the celery envelope needs the name of its worker\'s task. Write task = "module.function" in the target.'
)
MOMENT: Final = timedelta(milliseconds=1)
RULES: Final = Rules(
    readers={
        (Definition, "resolve"): _read_resolver,
        (Definition, "target"): _read_target,
        (Definition, "expires"): shape.duration(MOMENT),
        (Definition, "renamed_from"): _read_name,
        (Subscription, "event"): _read_text,
        (Subscription, "match"): _read_match,
        (Subscription, "do"): _read_do,
        (SqlResolver, "sql"): _read_text,
        (SqlResolver, "source"): _read_text,
        (BrokerTarget, "broker"): _read_text,
        (BrokerTarget, "queue"): _read_text,
        (HttpTarget, "url"): address.read_url,
        (HttpTarget, "headers"): address.read_headers,
        (HttpTarget, "timeout"): shape.duration(MOMENT),
        (HttpTarget, "concurrency"): shape.whole(1, 1000),
        (Misfire, "max"): shape.whole(1, 1000),
        (Retry, "attempts"): shape.whole(1, 100),
        (Retry, "first"): shape.duration(MOMENT),
        (Retry, "cap"): shape.duration(MOMENT),
    },
    writers={EventResolver: lambda _: {"event": True}, NoResolver: lambda _: {"event": False}},
    names={(HttpTarget, "url"): "http"},
    checks={Misfire: _check_misfire, Retry: _check_retry, BrokerTarget: _check_broker_target},
    examples={
        (Definition, "target"): 'target = { broker = "main", queue = "…" } or { http = "https://…" }',
        (Subscription, "event"): 'event = "order.paid"',
        (SqlResolver, "sql"): 'sql = "select id as key from …"',
        (SqlResolver, "source"): 'source = "app", as [source.app] in oncue.toml',
        (BrokerTarget, "broker"): 'broker = "main", as [broker.main] in oncue.toml',
        (BrokerTarget, "queue"): 'queue = "…": where the workers listen',
    },
    given={(Definition, "name"): ""},
)
