"""What a person would want to know of the tasks of a store together: crowds at one second, and twins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from oncue.definition import Calendar, Definition
from oncue.rules import times
from oncue.rules.lint import NAMED, SAMPLE, WEEK, Finding

CROWD: Final = 10
CROWDS_TOLD: Final = 3


def together(definitions: Sequence[Definition], calendars: Mapping[str, Calendar], *, now: datetime) -> list[Finding]:
    """Return what is to be said of tasks that share a store."""
    return [*_crowded(definitions, calendars, now=now), *_twins(definitions)]


def _crowded(
    definitions: Sequence[Definition], calendars: Mapping[str, Calendar], *, now: datetime
) -> Iterator[Finding]:
    """Find the seconds of the next week at which the most tasks are due; of one crowd the first time is told."""
    tasks: dict[datetime, list[Definition]] = defaultdict(list)
    for one in definitions:
        spec = one.schedule or {}
        if spec and not {"jitter", "next"} & set(spec) and set(times.calendar_names(spec)) <= set(calendars):
            trigger = times.read_trigger(spec, anchor=now, name=one.name, calendars=calendars)
            for moment in times.times_between(trigger, now, now + WEEK, SAMPLE):
                tasks[moment].append(one)
    told: list[set[str]] = []
    for moment, crowd in sorted(tasks.items(), key=lambda item: (-len(item[1]), item[0])):
        names = {one.name for one in crowd}
        if len(crowd) < CROWD or len(told) == CROWDS_TOLD:
            return
        if any(len(names & known) * 2 > len(names) for known in told):
            continue
        told.append(names)
        listed = ", ".join(one.name for one in crowd[:NAMED])
        text = (
            f"{len(crowd)} tasks are due at one second, first at {moment:%Y-%m-%d %H:%M:%S}Z: {listed} and "
            f"{len(crowd) - NAMED} more. Spread them: write H for a minute that is each task's own, or a jitter."
        )
        yield Finding("crowded-second", "warning", crowd[0].name, text, ("task", crowd[0].name, "schedule"))


def _twins(definitions: Sequence[Definition]) -> Iterator[Finding]:
    """Find tasks that do the same at the same times: one of them was perhaps copied, and not changed."""
    seen: dict[str, str] = {}
    for one in definitions:
        same = seen.setdefault(repr(replace(one, name="", description="", renamed_from=None)), one.name)
        if same != one.name:
            text = f'it does just what "{same}" does, at the same times. Remove one of the two, or change it.'
            yield Finding("same-twice", "warning", one.name, text, ("task", one.name))
