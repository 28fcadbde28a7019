"""Reads plain tables (TOML, JSON, variables) into frozen dataclasses by their fields, and writes them back.

One reader for the configuration and for task files, because of its answers: every mistake at once, each as a sentence
with its place and a near word, and no value shown where it may be a secret.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from oncue.rules.durations import LONGEST, SPELLINGS, read_duration, write_duration
from oncue.rules.place import Part, Place

P = TypeVar("P", bound=Part)
T = TypeVar("T")
V = TypeVar("V")
Field = tuple[type, str]


class Spelled(str):
    """A value that came as text alone, from a variable or a flag: numbers, yes and no, and lists are read from it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Mistake:
    """One sentence about one place."""

    place: Place
    text: str


class Wrong(ValueError):
    """Something cannot be read: all of its mistakes."""

    def __init__(self, *mistakes: Mistake) -> None:
        super().__init__("\n".join(mistake.text for mistake in mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Rules:
    """What the fields' types do not say.

    Own readers of fields and own writers of types; names in the file; checks of a whole; what to write where something
    is missing; and values that are given from outside, and do not stand in the table.
    """

    readers: Mapping[Field, Callable[[Any], Any]] = field(default_factory=dict)
    writers: Mapping[type, Callable[[Any], Any]] = field(default_factory=dict)
    names: Mapping[Field, str] = field(default_factory=dict)
    checks: Mapping[type, Callable[[Any], None]] = field(default_factory=dict)
    examples: Mapping[Field, str] = field(default_factory=dict)
    given: Mapping[Field, Any] = field(default_factory=dict)

    def name_of(self, kind: type, field_name: str) -> str:
        return self.names.get((kind, field_name), field_name)

    def keys(self, kind: type) -> dict[str, dataclasses.Field[Any]]:
        """Return the fields of a table by their keys in the file."""
        parts = dataclasses.fields(kind)
        return {self.name_of(kind, one.name): one for one in parts if (kind, one.name) not in self.given}


PLAIN = Rules()


def read(hint: Any, value: Any, *, rules: Rules = PLAIN) -> Any:
    """Return a value as its type says. Raises Wrong, ValueError."""
    arguments = get_args(hint)
    if NoneType in arguments:
        return (
            None if value is None else read(next(one for one in arguments if one is not NoneType), value, rules=rules)
        )
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _read_table(hint, value, rules=rules)
    origin = get_origin(hint)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{shown(value)} is not known.{near(value, arguments)}")
        return str(value)
    if origin is tuple:
        return tuple(each(_list(value), lambda _, item: read(arguments[0], item, rules=rules)).values())
    if origin is dict:
        return plain(table(value))
    if origin is not None:
        return each(table(value).items(), lambda _, item: read(arguments[1], item, rules=rules))
    return _read_scalar(hint, value)


def each(parts: Iterable[tuple[P, V]], reading: Callable[[P, V], T]) -> dict[P, T]:
    """Read all parts of a whole. Raises Wrong with the mistakes of all of them, each below its part's name."""
    good: dict[P, T] = {}
    mistakes: list[Mistake] = []
    for part, value in parts:
        try:
            good[part] = reading(part, value)
        except ValueError as error:
            mistakes += below(part, error)
    if mistakes:
        raise Wrong(*mistakes)
    return good


def below(part: Part, error: ValueError) -> list[Mistake]:
    """Return the mistakes of a part as mistakes of its whole."""
    if isinstance(error, Wrong):
        return [Mistake((part, *mistake.place), mistake.text) for mistake in error.mistakes]
    return [Mistake((part,), str(error))]


def write(value: Any, *, rules: Rules = PLAIN) -> Any:
    """Return a value as `read` takes it; fields that stand at their default are left out."""
    if type(value) in rules.writers:
        return rules.writers[type(value)](value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            name: write(getattr(value, one.name), rules=rules)
            for name, one in rules.keys(type(value)).items()
            if getattr(value, one.name) != _default(one)
        }
    if isinstance(value, timedelta):
        return write_duration(value)
    if isinstance(value, Mapping):
        return {name: write(item, rules=rules) for name, item in value.items()}
    return [write(item, rules=rules) for item in value] if isinstance(value, (list, tuple)) else value


def plain(value: Any) -> Any:
    """Return a value as JSON has it: TOML's own dates and times become text."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, (datetime, date, time)) else value


def near(word: Any, known: Iterable[Any]) -> str:
    """Return what could have been meant, and all that is known, as sentences with a space before each."""
    words = [str(one) for one in known]
    close = difflib.get_close_matches(str(word), words, n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    return f"{hint} Known: {', '.join(words) or 'none'}."


def shown(value: Any) -> str:
    """Return a value as a sentence shows it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def table(value: Any) -> Mapping[str, Any]:
    """Return a value that is a table. Raises ValueError, which does not show the value."""
    if not isinstance(value, Mapping):
        raise ValueError("this is not a table. Write { key = value, ... } or a table of its own in brackets.")
    return value


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers within bounds."""

    def read_whole(value: Any) -> int:
        number: int = read(int, value)
        if not low <= number <= high:
            raise ValueError(f"{number} is out of bounds. Write a whole number from {low} to {high}.")
        return number

    return read_whole


def duration(low: timedelta, high: timedelta = LONGEST) -> Callable[[Any], timedelta]:
    """Return a reader of durations within bounds."""

    def read_bounded(value: Any) -> timedelta:
        found: timedelta = read(timedelta, value)
        if not low <= found <= high:
            limit = f"at least {write_duration(low)}" if found < low else f"at most {write_duration(high)}"
            raise ValueError(f"{write_duration(found)} is out of bounds. Write {limit}.")
        return found

    return read_bounded


def _read_table(kind: type, value: Any, *, rules: Rules) -> Any:
    hints, names = _hints(kind), rules.keys(kind)
    present = {name: item for name, item in table(value).items() if item is not None}

    def reading(name: str, item: Any) -> Any:
        if name not in names:
            raise ValueError(f"there is no such key.{near(name, names)}")
        key = (kind, names[name].name)
        if item is MISSING:
            raise ValueError(f"it is missing. Write {rules.examples.get(key, f'{name} = …')}.")
        return rules.readers[key](item) if key in rules.readers else read(hints[key[1]], item, rules=rules)

    needed = {name: MISSING for name, one in names.items() if name not in present and _default(one) is MISSING}
    good = each([*present.items(), *needed.items()], reading)
    outside = {name: item for (owner, name), item in rules.given.items() if owner is kind}
    made = kind(**{names[name].name: item for name, item in good.items()}, **outside)
    if kind in rules.checks:
        rules.checks[kind](made)
    return made


def _read_scalar(hint: Any, value: Any) -> Any:
    spelled = isinstance(value, Spelled)
    if hint is str:
        if not isinstance(value, str):
            raise ValueError(f"{shown(value)} is not text. Write it in quotes.")
        return str(value)
    if hint is timedelta:
        if isinstance(value, timedelta):
            return value
        if not isinstance(value, str):
            raise ValueError(f"{shown(value)} is not a duration. {SPELLINGS}")
        return read_duration(value)
    if hint is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        value = words.get(str(value).lower(), value) if spelled else value
        if not isinstance(value, bool):
            raise ValueError(f"{shown(value)} is neither true nor false.")
        return value
    if spelled:
        value = _number(value)
    if isinstance(value, bool) or not isinstance(value, int if hint is int else (int, float)):
        raise ValueError(f"{shown(value)} is not a {'whole ' if hint is int else ''}number.")
    return hint(value)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _list(value: Any) -> list[tuple[int, Any]]:
    if isinstance(value, Spelled):
        value = [part.strip() for part in value.strip("[] ").split(",") if part.strip()]
        value = [part.strip("\"'") for part in value]
    if not isinstance(value, (list, tuple)):
        raise ValueError("this is not a list. Write [ ... ].")
    return list(enumerate(value))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _default(one: dataclasses.Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default
