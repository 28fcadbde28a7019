"""`oncue lint`: what a person would want to know of task files before they are applied."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from oncue import wall
from oncue.api.shapes import Shape
from oncue.cli.ahead import ask_store
from oncue.cli.output import AsJson, print_json, say
from oncue.cli.session import fail
from oncue.cli.simulate import read_slow
from oncue.cli.when import moment_option
from oncue.definition import Calendar
from oncue.errors import OncueError, TaskFileError
from oncue.rules import lint, lint_together
from oncue.rules.place import line_of
from oncue.taskfile import TaskFile, place_name, read_task_file


class FindingShape(Shape):
    """One finding: its place is `file`, `line` and `key`. A file that cannot be read is one, too, of no task."""

    code: str
    severity: str
    task: str | None
    text: str
    file: str
    line: int | None
    key: str | None


class LintShape(Shape):
    """All findings of the files, in their order, and how many there are of each severity."""

    findings: list[FindingShape]
    counts: dict[str, int]


def lint_(
    files: Annotated[list[Path], typer.Argument(help="Task files.")],
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 for warnings too, not for errors only.")] = False,
    ignore: Annotated[list[str] | None, typer.Option(metavar="CODE", help="Leave findings out. Repeat it.")] = None,
    slow: Annotated[list[str] | None, typer.Option(metavar="TASK=5m", help="How long runs take. Repeat it.")] = None,
    at: Annotated[datetime | None, moment_option("Look ahead from then (else now).")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is probably not meant in task files: schedules that never fire, crowd, drift or meet clock changes."""
    now = at or wall.now().replace(microsecond=0)
    read: dict[Path, TaskFile] = {}
    found: list[FindingShape] = []
    for file in files:
        try:
            read[file] = read_task_file(file)
        except TaskFileError as error:
            found += [_unreadable(line, file) for line in str(error).splitlines()]
    definitions = [definition for each in read.values() for definition in each.definitions]
    known = ask_store(definitions)
    takes = dict(known.took) | dict(read_slow(text, definitions) for text in slow or ())
    calendars = dict(known.calendars) | {one.name: one for each in read.values() for one in each.calendars}
    try:
        found += _findings(read, takes, calendars, now=now)
    except OncueError as error:  # a calendar that is not sound: no task is to blame
        fail(error)
    if wrong := [code for code in ignore or () if code not in lint.CODES]:
        fail(NotFound(f"--ignore {wrong[0]}: there is no such finding.{near(wrong[0], lint.CODES)}"))
    shape = _shape([one for one in found if one.code not in (ignore or ())])
    print_json(shape) if as_json else say("\n".join(_lines(shape)))
    raise typer.Exit(int(bool(shape.counts["error"] or (strict and shape.counts["warning"]))))


def _findings(
    read: Mapping[Path, TaskFile],
    takes: Mapping[str, timedelta],
    calendars: Mapping[str, Calendar],
    *,
    now: datetime,
) -> list[FindingShape]:
    """Return the findings file by file; what tasks do together is looked for over all files."""
    definitions = [definition for each in read.values() for definition in each.definitions]
    shared = lint_together.together(definitions, calendars, now=now)
    found: list[FindingShape] = []
    for file, own in read.items():
        text, names = file.read_text(encoding="utf-8-sig"), {one.name for one in own.definitions}
        told = [
            finding
            for one in own.definitions
            for finding in lint.examine(one, calendars, now=now, takes=takes.get(one.name))
        ]
        told += [finding for finding in shared if finding.task in names]
        shapes = [_finding_shape(finding, file, text) for finding in told]
        found += sorted(shapes, key=lambda one: one.line or 0)
    return found


def _finding_shape(finding: lint.Finding, file: Path, text: str) -> FindingShape:
    return FindingShape(
        code=finding.code,
        severity=finding.severity,
        task=finding.task,
        text=finding.text,
        file=str(file),
        line=line_of(text, finding.place),
        key=place_name(finding.place),
    )


def _unreadable(line: str, file: Path) -> FindingShape:
    """Return the finding for one mistake that reading the file came to: `tasks.toml:12: [task.a] schedule: …`."""
    rest = line.removeprefix(f"{file}:")
    number, _, text = rest.partition(":")
    has_line = number.strip().isdigit()
    return FindingShape(
        code="unreadable",
        severity="error",
        task=None,
        text=(text if has_line else rest).strip(),
        file=str(file),
        line=int(number) if has_line else None,
        key=None,
    )


def _shape(found: list[FindingShape]) -> LintShape:
    counts: dict[str, int] = {severity: sum(one.severity == severity for one in found) for severity in lint.SEVERITIES}
    return LintShape(findings=found, counts=counts)


def _lines(shape: LintShape) -> list[str]:
    lines = []
    for one in shape.findings:
        place = f"{one.file}:{one.line}" if one.line is not None else one.file
        key = f"{one.key}: " if one.key else ""
        lines.append(f"{place}: {one.severity}: {key}{one.text} ({one.code})")
    told = ", ".join(f"{count} {severity}(s)" for severity, count in shape.counts.items() if count)
    return [*lines, f"{told}." if told else "Nothing to say."]
