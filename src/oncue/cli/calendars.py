"""`oncue calendars`: lists them; with a subcommand: show, import, set, check and remove one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from oncue import wall
from oncue.adapters.calendars import holidays
from oncue.api.calendars import CalendarShape, all_of, detail_of
from oncue.app import Oncue
from oncue.cli.output import AsJson, print_fields, print_json, print_table, say, show_time
from oncue.cli.session import opened, run
from oncue.definition import Calendar
from oncue.errors import TaskFileError
from oncue.rules import calendar_words
from oncue.rules.calendar_text import check_name, read_dates
from oncue.store import calendars
from oncue.taskfile import calendar_from_json

Name = Annotated[str, typer.Argument(metavar="NAME", help="The calendar's name.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
YEARS: Final = 5  # from this one on, where nobody says
FIRST_YEAR, LAST_YEAR, MOST_YEARS = 1900, 2200, 50
MOST_BYTES: Final = 4 * 1024 * 1024  # of a file
MOST_LINES: Final = 40  # of what changes
SIGNS: Final = {"+": "added", "-": "dropped", "~": "changed"}
group = typer.Typer(
    help="List calendars; with a subcommand: show, import, set, check or remove one.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(group, name="calendars")


def _day_option(name: str, help: str) -> Any:
    return typer.Option(name, parser=_read_day, metavar="DATE", help=help, show_default=False)


def _read_day(text: str | date) -> date:
    if isinstance(text, date):
        return text
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a date: write it as 2026-12-25.') from None


@group.callback()
def list_calendars(context: typer.Context, as_json: AsJson = False) -> None:
    """List calendars; with a subcommand: show, import, set, check or remove one."""
    if context.invoked_subcommand is not None:
        return

    async def work() -> None:
        async with opened() as oncue:
            page = await all_of(oncue)
        if as_json:
            print_json(page)
            return
        rows = [(one.name, one.words, _until(one), one.source, ", ".join(one.tasks)) for one in page.items]
        columns = ("CALENDAR", "HOLDS", "KNOWN UNTIL", "SOURCE", "USED BY")
        print_table(columns, rows, none="No calendars yet: `oncue calendars import gr-holidays --country GR`.")

    run(work)


@group.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one calendar, with its days of this year and the next."""

    async def work() -> None:
        async with opened() as oncue:
            shape = await detail_of(oncue, name)
            calendar = await oncue.store.read(calendars.read, name)
        if as_json:
            print_json(shape)
            return
        print_fields(
            [
                ("calendar", shape.name),
                ("holds", shape.words),
                ("known until", _until(shape)),
                ("source", shape.source),
                ("used by", ", ".join(shape.tasks)),
            ]
        )
        _print_days(calendar, wall.now().year)

    run(work)


@group.command("import")
def import_(
    name: Name,
    country: Annotated[str | None, typer.Option(help="Its code, such as GR.", show_default=False)] = None,
    subdivision: Annotated[str | None, typer.Option(help="A part of it, such as BY.", show_default=False)] = None,
    exchange: Annotated[str | None, typer.Option(help="XNYS, NYSE, XECB, …", show_default=False)] = None,
    file: Annotated[
        Path | None, typer.Option(help="iCalendar, or a date and its name on each line.", show_default=False)
    ] = None,
    first: Annotated[int | None, typer.Option("--from", help="The first year (else this).", show_default=False)] = None,
    last: Annotated[
        int | None, typer.Option("--to", help="The last year (else five years on).", show_default=False)
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Import the holidays of a country, an exchange or a file once: show what changes, then store it."""
    if sum(one is not None for one in (country, exchange, file)) != 1 or (subdivision and not country):
        raise typer.BadParameter("give exactly one of --country (with --subdivision), --exchange and --file.")

    async def work() -> None:
        _checked(lambda: check_name(name))
        if file is not None:
            calendar = _of_file(name, file, first, last)
        else:
            calendar = _of_library(name, country, subdivision, exchange, _years(first, last))
        await _store(calendar, dry_run=dry_run, yes=yes)

    run(work)


@group.command("set")
def set_(
    name: Name,
    weekdays: Annotated[str | None, typer.Option(help="Such as mon-fri.", show_default=False)] = None,
    dates: Annotated[list[date] | None, _day_option("--date", "A day that is in it. May be given again.")] = None,
    without: Annotated[list[date] | None, _day_option("--except", "A day that is not. May be given again.")] = None,
    until: Annotated[date | None, _day_option("--until", "The last day that it is known for.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Write a calendar whole: weekdays, dates, and exceptions."""
    table = {
        "weekdays": weekdays,
        "dates": list(dates or ()),
        "except": list(without or ()),
        "known_until": until,
    }
    given = {key: value for key, value in table.items() if value}

    async def work() -> None:
        await _store(calendar_from_json(name, given), dry_run=dry_run, yes=yes)

    run(work)


@group.command()
def check(
    name: Name, day: Annotated[date, typer.Argument(parser=_read_day, metavar="DATE", help="Such as 2026-12-25.")]
) -> None:
    """Say whether a day is in a calendar, and why."""

    async def work() -> None:
        async with opened() as oncue:
            calendar = await oncue.store.read(calendars.read, name)
        say(calendar_words.explain_day(calendar, day))

    run(work)


@group.command()
def remove(name: Name) -> None:
    """Forget a calendar that no task uses."""

    async def work() -> None:
        async with opened() as oncue:
            await oncue.remove_calendar(name, actor="cli")
        say(f'calendar "{name}" is removed.')

    run(work)


def _of_library(
    name: str, country: str | None, subdivision: str | None, exchange: str | None, years: range
) -> Calendar:
    country, exchange = country and country.upper(), exchange and exchange.upper()
    dates = holidays.read_holidays(years, country=country, exchange=exchange, subdivision=subdivision)
    given = {"--country": country, "--subdivision": subdivision, "--exchange": exchange}
    options = [word for option, value in given.items() if value for word in (option, value)]
    source = f"holidays {holidays.version()} {shlex.join(options)}"
    return Calendar(name, dates=dates, known_until=date(years[-1], 12, 31), source=source)


def _of_file(name: str, file: Path, first: int | None, last: int | None) -> Calendar:
    """Return the calendar of a file; without years, of all that it holds. Raises TaskFileError that names the line."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise TaskFileError(f"{file}: it is larger than {MOST_BYTES // 1024 // 1024} MB. Give a smaller file.")
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TaskFileError(f"{file}: it cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise TaskFileError(f"{file}: it is not text in UTF-8. Save it as such.") from None
    found = _checked(lambda: read_dates(text), place=f"{file}: ")
    years = _years(first or min(found).year, last or max(found).year)
    dates = {day: found[day] for day in sorted(found) if day.year in years}
    if not dates:
        raise TaskFileError(f"{file}: it holds no day of {years[0]} to {years[-1]}. Choose other years.")
    return Calendar(name, dates=dates, known_until=date(years[-1], 12, 31), source=f"file {file.name}")


def _years(first: int | None, last: int | None) -> range:
    begin = first if first is not None else wall.now().year
    end = last if last is not None else max(begin, wall.now().year) + YEARS
    if not FIRST_YEAR <= begin <= end <= LAST_YEAR or end - begin >= MOST_YEARS:
        raise TaskFileError(
            f"{begin} to {end} are no years that can be imported: "
            f"at most {MOST_YEARS} from {FIRST_YEAR} to {LAST_YEAR}, the first of them first."
        )
    return range(begin, end + 1)


def _checked(reading: Callable[[], Any], *, place: str = "") -> Any:
    try:
        return reading()
    except ValueError as error:
        raise TaskFileError(f"{place}{error}") from None


async def _store(calendar: Calendar, *, dry_run: bool, yes: bool) -> None:
    """Show what a calendar will change, then store it."""
    async with opened(may_create=True) as oncue:
        old = {one.name: one for one in await oncue.calendars()}.get(calendar.name)
        planned = await oncue.preview_calendar(calendar)
        _show_plan(old, calendar, planned)
        if dry_run or planned.verdict == "unchanged":
            return
        if not yes and sys.stdin.isatty() and not typer.confirm("Store this?"):
            return
        await _put(oncue, calendar)


async def _put(oncue: Oncue, calendar: Calendar) -> None:
    stored = await oncue.put_calendar(calendar, actor="cli")
    moved = f"; {len(stored.moved)} next time(s) moved" if stored.moved else ""
    say(f'Stored: calendar "{calendar.name}" is {stored.verdict}{moved}.')


def _show_plan(old: Calendar | None, new: Calendar, planned: calendars.Stored) -> None:
    until = f", known until {new.known_until}" if new.known_until else ""
    say(f'calendar "{new.name}": {planned.verdict}: {calendar_words.describe_calendar(new)}{until}')
    lines = calendar_words.day_changes(old, new) if planned.verdict != "unchanged" else []
    for line in lines[:MOST_LINES]:
        say(f"  {line}")
    if len(lines) > MOST_LINES:
        signs = [f"{sum(line[0] == sign for line in lines)} {word}" for sign, word in SIGNS.items()]
        say(f"  … and more: in all {', '.join(signs)}")
    for one in planned.moved:
        times = [show_time(moment) if moment else "never" for moment in (one.old, one.new)]
        say(f'task "{one.task}": next {times[0]} → {times[1]}')


def _until(shape: CalendarShape) -> str:
    if shape.known_until is None:
        return "no end"
    return f"{shape.known_until}{' (ENDS SOON)' if shape.ends_soon else ''}"


def _print_days(calendar: Calendar, year: int) -> None:
    """Print the days of a year and of the next, and say how many there are beside them."""
    days = sorted({*calendar.dates, *calendar.without})
    shown = [day for day in days if day.year in (year, year + 1)]
    say("")
    for day in shown:
        said = "(not in it)" if day in calendar.without else calendar.dates[day]
        say(f"{day} {day:%a}  {said}".rstrip())
    if len(days) > len(shown):
        say(f"{len(days) - len(shown)} more in other years: --json shows them.")
