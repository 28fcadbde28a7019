"""What `oncue simulate --against` prints: the due times that two task files do not share, grouped by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from oncue.api.shapes import Shape, Time
from oncue.cli.ahead import Known, is_timed, read_trigger, with_calendars
from oncue.definition import Definition
from oncue.engine.simulation import Span
from oncue.rules import comparing, times
from oncue.rules.comparing import Difference
from oncue.rules.durations import write_duration
from oncue.rules.followed import is_followed
from oncue.rules.triggers.zones import read_zone
from oncue.taskfile import TaskFile

SAME = Difference(0, (), (), ())


@dataclass(frozen=True, slots=True)
class Compared:
    """One task of two files. A zone is None where that file has no such schedule."""

    name: str
    verdict: str
    difference: Difference
    old_zone: ZoneInfo | None
    new_zone: ZoneInfo | None


class MovedShape(Shape):
    """A due time that is at another time of the same day now."""

    old: Time
    new: Time


class TaskDifferenceShape(Shape):
    """How the due times of one task differ: counts, and the first few of each kind.

    `verdict` is added or removed where only one file has the schedule, else changed. `shift_seconds` is set where all
    that moved did so by the same time on the clock. `cut_at` is where the comparison ended, by the limit.
    """

    task: str
    verdict: str
    old_zone: str | None
    new_zone: str | None
    same: int
    added: int
    dropped: int
    moved: int
    shift_seconds: float | None
    added_examples: list[Time]
    dropped_examples: list[Time]
    moved_examples: list[MovedShape]
    cut_at: Time | None


class AgainstShape(Shape):
    """How the due times of two task files differ, over (start, end]. Tasks that agree are only counted.

    Those of `not_compared` read their times from data.
    """

    new_file: str
    old_file: str
    start: Time
    end: Time
    differs: bool
    added: int
    dropped: int
    moved: int
    unchanged_tasks: int
    tasks: list[TaskDifferenceShape]
    not_compared: list[str]


@dataclass(frozen=True, slots=True)
class Timed:
    """A task of one file with its trigger."""

    definition: Definition
    trigger: times.Trigger


def compare_files(new: TaskFile, old: TaskFile, *, known: Known, span: Span, limit: int) -> list[Compared]:
    """Compare the due times of each task that has a schedule in either file, by name; at most `limit` of each."""
    before = _timed(old, known, span[0])
    found: list[Compared] = []
    for name, timed in _timed(new, known, span[0]).items():
        earlier = before.pop(name, None) or before.pop(timed.definition.renamed_from or "", None)
        found.append(_compare(earlier, timed, span=span, limit=limit))
    found += [_compare(timed, None, span=span, limit=limit) for timed in before.values()]
    return found


def followed_in(*files: TaskFile) -> list[str]:
    """Return the tasks whose times are read from data: they cannot be compared."""
    return sorted({one.name for file in files for one in file.definitions if is_followed(one.schedule)})


def shape_of(
    found: Sequence[Compared], *, files: tuple[str, str], span: Span, examples: int, not_compared: list[str]
) -> AgainstShape:
    """Return what is printed; `files` are the new and the old."""
    differing = [one for one in found if one.verdict != "unchanged"]
    return AgainstShape(
        new_file=files[0],
        old_file=files[1],
        start=span[0],
        end=span[1],
        differs=any(not one.difference.is_none for one in differing),
        added=sum(len(one.difference.added) for one in differing),
        dropped=sum(len(one.difference.dropped) for one in differing),
        moved=sum(len(one.difference.moved) for one in differing),
        unchanged_tasks=len(found) - len(differing),
        tasks=[_task_shape(one, examples) for one in differing],
        not_compared=not_compared,
    )


def lines_of(shape: AgainstShape) -> list[str]:
    """Return the difference as a person reads it."""
    lines = [f"{shape.new_file} against {shape.old_file}, due after {_utc(shape.start)} and up to {_utc(shape.end)}"]
    for task in shape.tasks:
        lines += ["", *_task_lines(task)]
    counts = {"added": shape.added, "dropped": shape.dropped, "moved": shape.moved}
    told = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    left_out = [f"Not compared: {name}: its times are read from data." for name in shape.not_compared]
    return [*lines, "", *left_out, f"{told or 'No due time differs'}; {shape.unchanged_tasks} task(s) unchanged."]


def _timed(file: TaskFile, known: Known, start: datetime) -> dict[str, Timed]:
    calendars = with_calendars(file, known)
    return {
        one.name: Timed(one, read_trigger(one, calendars, anchor=start)) for one in file.definitions if is_timed(one)
    }


def _compare(old: Timed | None, new: Timed | None, *, span: Span, limit: int) -> Compared:
    before, after = (one.trigger if one is not None else None for one in (old, new))
    name = " (was ".join(dict.fromkeys(one.definition.name for one in (new, old) if one is not None))
    name += ")" if "(" in name else ""
    zones = (before.zone if before else None, after.zone if after else None)
    if before == after:
        return Compared(name, "unchanged", SAME, *zones)
    found = comparing.compare(before, after, start=span[0], end=span[1], limit=limit)
    verdict = "added" if before is None else "removed" if after is None else "changed"
    if verdict == "changed" and found.is_none:
        verdict = "unchanged"
    return Compared(name, verdict, found, *zones)


def _task_shape(one: Compared, examples: int) -> TaskDifferenceShape:
    found, shift = one.difference, None
    if one.old_zone is not None and one.new_zone is not None:
        shift = comparing.shift_of(found, one.old_zone, one.new_zone)
    return TaskDifferenceShape(
        task=one.name,
        verdict=one.verdict,
        old_zone=one.old_zone.key if one.old_zone else None,
        new_zone=one.new_zone.key if one.new_zone else None,
        same=found.same,
        added=len(found.added),
        dropped=len(found.dropped),
        moved=len(found.moved),
        shift_seconds=shift.total_seconds() if shift is not None else None,
        added_examples=list(found.added[:examples]),
        dropped_examples=list(found.dropped[:examples]),
        moved_examples=[MovedShape(old=old, new=new) for old, new in found.moved[:examples]],
        cut_at=found.cut_at,
    )


def _task_lines(task: TaskDifferenceShape) -> list[str]:
    sign, what = {"added": ("+", " (new schedule)"), "removed": ("-", " (no schedule any more)")}.get(
        task.verdict, ("~", "")
    )
    shift = f", each by {_shift(task.shift_seconds)} on the clock" if task.shift_seconds is not None else ""
    counts = {"added": task.added, "dropped": task.dropped, f"moved{shift}": task.moved, "as before": task.same}
    told = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    lines = [f"{sign} {task.task}{what}: {told or 'no due time in this span'}"]
    old_zone, new_zone = task.old_zone or "UTC", task.new_zone or "UTC"
    lines += [f"    added    {_local(moment, new_zone)}" for moment in task.added_examples]
    lines += _more(task.added, len(task.added_examples), "added")
    lines += [f"    dropped  {_local(moment, old_zone)}" for moment in task.dropped_examples]
    lines += _more(task.dropped, len(task.dropped_examples), "dropped")
    lines += [f"    moved    {_local(one.old, old_zone)} → {_local(one.new, new_zone)}" for one in task.moved_examples]
    lines += _more(task.moved, len(task.moved_examples), "moved")
    if task.cut_at is not None:
        lines.append(f"    compared only to {_utc(task.cut_at)}: --limit goes further")
    return lines


def _more(count: int, shown: int, words: str) -> list[str]:
    return [f"    … and {count - shown:,} more {words}"] if count > shown else []


def _shift(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{write_duration(timedelta(seconds=abs(seconds)))}"


def _local(moment: datetime, zone: str) -> str:
    local = moment.astimezone(read_zone(zone))
    return f"{local:%a} {local.isoformat(' ')}"


def _utc(moment: datetime) -> str:
    return f"{moment.isoformat().removesuffix('+00:00')}Z"
