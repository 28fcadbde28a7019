"""`oncue simulate`: what the engine will do with a task file over a span of time, or how the times of two differ."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from oncue import wall
from oncue.cli import against, simulated
from oncue.cli.ahead import ask_store, is_timed, with_calendars
from oncue.cli.output import AsJson, print_json, say
from oncue.cli.session import fail
from oncue.cli.when import moment_option, read_moment
from oncue.definition import Definition
from oncue.engine.simulation import Scenario, Simulated, Span, Tell, simulate
from oncue.errors import OncueError
from oncue.observe.log import set_up_logging
from oncue.rules.durations import read_duration
from oncue.store.base import Store
from oncue.store.sqlite import MEMORY, SqliteDatabase
from oncue.taskfile import read_task_file

DAY = timedelta(days=1)
FIRINGS = 10_000
COMPARED = 100_000
TOLD_EVERY = 2.0


def simulate_(
    file: Annotated[Path, typer.Argument(help="A task file.")],
    start: Annotated[datetime | None, moment_option("The tasks are applied then (else now).", "--from")] = None,
    end: Annotated[datetime | None, moment_option("The last due time (else a day later).", "--to")] = None,
    outage: Annotated[list[str] | None, typer.Option(metavar="FROM/TO", help="Oncue is down then. Repeat it.")] = None,
    slow: Annotated[list[str] | None, typer.Option(metavar="TASK=5m", help="How long runs take. Repeat it.")] = None,
    other: Annotated[Path | None, typer.Option("--against", help="Only compare due times with this file.")] = None,
    check: Annotated[bool, typer.Option("--check", help="With --against: exit 1 where they differ.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many firings (else 10,000).")] = None,
    examples: Annotated[int, typer.Option(min=0, help="With --against: examples of each kind.")] = 3,
    summary: Annotated[bool, typer.Option("--summary", help="Leave the single firings out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what would happen with a task file, by the real engine on a moved clock. Nothing is sent."""
    span = _read_span(start, end)
    if check and other is None:
        _refuse("--check compares: name the other file with --against.")
    if other is not None and (outage or slow):
        _refuse("--against compares due times, which neither --outage nor --slow changes: leave them out.")
    try:
        new = read_task_file(file, now=span[0])
        known = ask_store(new.definitions)
        if other is not None:
            old = read_task_file(other, now=span[0])
            found = against.compare_files(new, old, known=known, span=span, limit=limit or COMPARED)
            left_out, names = against.followed_in(new, old), (str(file), str(other))
            compared = against.shape_of(found, files=names, span=span, examples=examples, not_compared=left_out)
            print_json(compared) if as_json else say("\n".join(against.lines_of(compared)))
            raise typer.Exit(int(check and compared.differs))
        outages = tuple(_read_outage(text, end=span[1]) for text in outage or ())
        slowness = dict(read_slow(text, new.definitions) for text in slow or ())
        calendars = with_calendars(new, known)
        scenario = Scenario(*span, outages, slowness, limit or FIRINGS, tuple(calendars.values()), known.uuids)
        shape = _simulate(new.definitions, scenario)
    except OncueError as error:
        fail(error)
    print_json(shape) if as_json else say("\n".join(simulated.lines_of(shape, with_firings=not summary)))


def _read_span(start: datetime | None, end: datetime | None) -> Span:
    start = start or wall.now().replace(microsecond=0)
    end = end or start + DAY
    if end <= start:
        _refuse("--to is not later than --from: give a span of time.")
    return start, end


def _simulate(definitions: Sequence[Definition], scenario: Scenario) -> simulated.SimulationShape:
    return simulated.shape_of(definitions, scenario, asyncio.run(_play(definitions, scenario)))


async def _play(definitions: Sequence[Definition], scenario: Scenario) -> Simulated:
    """Simulate in a store of its own, in memory. The tasks may name sources and brokers that are not there."""
    set_up_logging("text", "error")
    store = Store(SqliteDatabase(MEMORY))
    try:
        await store.database.migrate()
        return await simulate(store, list(filter(is_timed, definitions)), scenario, tell=_progress(scenario))
    finally:
        await store.close()


def _progress(scenario: Scenario) -> Tell:
    """Return what says on standard error how far it is, where it takes its time."""
    told = wall.monotonic()

    def tell(moment: datetime, count: int) -> None:
        nonlocal told
        if wall.monotonic() - told > TOLD_EVERY:
            told = wall.monotonic()
            done = (moment - scenario.start) / (scenario.end - scenario.start)
            typer.echo(f"simulated to {moment:%Y-%m-%d %H:%M:%S}Z ({done:.0%}): {count:,} runs", err=True)

    return tell


def _read_outage(text: str, *, end: datetime) -> Span:
    first, slash, last = text.partition("/")
    if not slash:
        _refuse(f'--outage "{text}" is no span: write FROM/TO, such as 2026-03-08T01:00Z/2026-03-08T03:00Z.')
    begins, ends = read_moment(first), read_moment(last)
    if ends <= begins:
        _refuse(f'--outage "{text}" ends before it begins: write the earlier time first.')
    if ends > end:
        _refuse(f'--outage "{text}" ends after --to: move --to behind it, to see what is made of what it missed.')
    return begins, ends


def read_slow(text: str, definitions: Sequence[Definition]) -> tuple[str, timedelta]:
    """Return what `--slow` says: a task of the file, and how long its runs take. Ends the command with exit 2."""
    name, equals, duration = text.partition("=")
    if not equals:
        _refuse(f'--slow "{text}" names no duration: write TASK=DURATION, such as report=5m.')
    known = [one.name for one in definitions]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f'Did you mean "{near[0]}"?' if near else f"Known tasks: {', '.join(known)}."
        _refuse(f'--slow: there is no task "{name}". {hint}')
    try:
        return name, read_duration(duration)
    except ValueError as error:
        _refuse(f"--slow {name}: {error}")


def _refuse(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(2)
