"""What applying task files will change: shown before it is done."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from oncue.definition import Calendar, Definition
from oncue.rules import shape
from oncue.rules.calendar_text import write_calendar
from oncue.taskfile import RULES


@dataclass(frozen=True, slots=True)
class Planned:
    """What applying will do to one task; `details` are its changed fields, old → new, in the words of the task file."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "renamed", "removed"]
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying will change. `left` are tasks that no definition names, and that stay."""

    tasks: tuple[Planned, ...]
    left: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return all(one.verdict == "unchanged" for one in self.tasks)

    def named(self, verdict: str) -> tuple[Planned, ...]:
        return tuple(one for one in self.tasks if one.verdict == verdict)

    def lines(self) -> list[str]:
        """Return the plan as a person reads it: what changes, then the counts."""
        found: list[str] = []
        for one in self.tasks:
            if one.verdict != "unchanged":
                found.append(f"{SIGNS[one.verdict]} {one.name}: {one.verdict}")
                found += [f"    {detail}" for detail in one.details]
        counts: Counter[str] = Counter(one.verdict for one in self.tasks)
        found.append(", ".join(f"{counts[verdict]} {verdict}" for verdict in SIGNS if counts[verdict]) or "No tasks.")
        if self.left:
            found.append(f"Not in the file, and left as they are: {', '.join(self.left)}. --prune removes them.")
        return found


SIGNS: Final = {"created": "+", "changed": "~", "renamed": ">", "removed": "-", "unchanged": " "}


def plan_calendars(old: Mapping[str, Calendar], new: Sequence[Calendar]) -> tuple[Planned, ...]:
    """Return what applying the new calendars over the old ones will change; calendars that no file names stay."""
    planned = []
    for calendar in new:
        before = old.get(calendar.name)
        details = tuple(_differences(write_calendar(before), write_calendar(calendar))) if before else ()
        verdict: Literal["created", "changed", "unchanged"]
        verdict = "created" if before is None else "changed" if details else "unchanged"
        planned.append(Planned(f"calendar {calendar.name}", verdict, details))
    return tuple(planned)


def plan(old: Mapping[str, Definition], new: Sequence[Definition], *, prune: bool = False) -> Plan:
    """Return what applying the new definitions over the old ones will change."""
    rest = dict(old)
    planned: list[Planned] = []
    for definition in new:
        before = rest.pop(definition.name, None) or rest.pop(definition.renamed_from or "", None)
        if before is None:
            planned.append(Planned(definition.name, "created"))
            continue
        details = tuple(_differences(before, definition))
        if before.name != definition.name:
            planned.append(Planned(definition.name, "renamed", (f"name: {before.name} → {definition.name}", *details)))
        else:
            planned.append(Planned(definition.name, "changed" if details else "unchanged", details))
    removed = [Planned(name, "removed") for name in rest] if prune else []
    return Plan((*planned, *removed), () if prune else tuple(rest))


def _differences(old: Any, new: Any) -> Iterator[str]:
    """Yield each field that differs, old → new, in the words of the task file."""
    before, after = (dict(_flat(one, "")) for one in (old, new))
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield f"{path}: {_brief(before.get(path, 'none'))} → {_brief(after.get(path, 'none'))}"


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield each field with its value as text, defaults too: `misfire.grace`, `"10m"`."""
    parts: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, tuple):
        parts = ((f"{place}", shape.write(item, rules=RULES)) for place, item in enumerate(value))
        yield from ((f"{path}[{place}]", _text(item)) for place, item in parts)
        return
    elif type(value) in RULES.writers:
        parts = shape.write(value, rules=RULES).items()
    elif dataclasses.is_dataclass(value):
        keys = RULES.keys(type(value)).items()
        parts = ((name, getattr(value, one.name)) for name, one in keys if one.name != "renamed_from")
    elif value is not None:
        yield path, _text(shape.write(value, rules=RULES))
    for name, item in parts:
        yield from _flat(item, f"{path}.{name}".removeprefix("."))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _brief(text: str) -> str:
    return text if len(text) <= BRIEF else f"{text[:BRIEF]}… ({len(text):,} characters)"


BRIEF: Final = 300  # characters of a value in a plan
