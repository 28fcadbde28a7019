"""`/v1/calendars`: what there is, store, remove."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Response

from oncue.api import shapes, sound
from oncue.app import Oncue
from oncue.definition import Calendar
from oncue.errors import TaskFileError
from oncue.model import Json
from oncue.rules import calendar_words
from oncue.rules.calendar_text import write_calendar
from oncue.store import calendars
from oncue.taskfile import calendar_from_json


class CalendarShape(shapes.Shape):
    """A calendar in words, with the tasks that use it. `ends_soon` within 60 days before its end, and after it."""

    name: str
    words: str
    known_until: date | None
    ends_soon: bool
    source: str
    tasks: list[str]


class CalendarDetailShape(CalendarShape):
    """A calendar with its definition, as it would stand in a task file."""

    definition: Json


class RetimedShape(shapes.Shape):
    """A task whose next time a calendar moves."""

    task: str
    old: shapes.Time | None
    new: shapes.Time | None


class StoredShape(shapes.Shape):
    """What storing a calendar comes to, with the tasks whose next times it moves."""

    name: str
    verdict: Literal["created", "changed", "unchanged"]
    moved: list[RetimedShape]


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(prefix="/v1/calendars", tags=["calendars"])

    @router.get("")
    async def list_calendars() -> shapes.Page[CalendarShape]:
        """List all calendars, by name."""
        return await all_of(oncue)

    @router.get("/{name}")
    async def show_calendar(name: str) -> CalendarDetailShape:
        """Show one calendar with its days."""
        return await detail_of(oncue, name)

    @router.put("/{name}")
    async def put_calendar(name: str, calendar: Annotated[dict[str, Any], Body()], response: Response) -> StoredShape:
        """Store a calendar as the body says, in the keys of a task file, and reckon again the tasks that use it."""
        try:
            sound.check(calendar)
        except sound.Unsound as error:
            raise TaskFileError(str(error)) from None
        read = calendar_from_json(name, calendar)
        stored = await oncue.put_calendar(read, actor="api")
        response.status_code = 201 if stored.verdict == "created" else 200
        return stored_shape(read, stored)

    @router.delete("/{name}", status_code=204)
    async def remove_calendar(name: str) -> None:
        """Forget a calendar that no task uses."""
        await oncue.remove_calendar(name, actor="api")

    return router


async def all_of(oncue: Oncue) -> shapes.Page[CalendarShape]:
    """Return all calendars as they are listed."""
    today = (await oncue.now()).date()
    found = [
        CalendarShape(**_fields(calendar, await oncue.store.read(calendars.users_of, calendar.name), today))
        for calendar in await oncue.calendars()
    ]
    return shapes.Page(items=found)


async def detail_of(oncue: Oncue, name: str) -> CalendarDetailShape:
    """Return one calendar as it is shown. Raises NotFound."""
    calendar = await oncue.store.read(calendars.read, name)
    users = await oncue.store.read(calendars.users_of, name)
    fields = _fields(calendar, users, (await oncue.now()).date())
    return CalendarDetailShape(**fields, definition=write_calendar(calendar))


def stored_shape(calendar: Calendar, stored: calendars.Stored) -> StoredShape:
    moved = [RetimedShape(task=one.task, old=one.old, new=one.new) for one in stored.moved]
    return StoredShape(name=calendar.name, verdict=stored.verdict, moved=moved)


def _fields(calendar: Calendar, users: Sequence[str], today: date) -> dict[str, Any]:
    left = calendar_words.days_left(calendar, today)
    return {
        "name": calendar.name,
        "words": calendar_words.describe_calendar(calendar),
        "known_until": calendar.known_until,
        "ends_soon": left is not None and left <= calendar_words.ENDS_SOON,
        "source": calendar.source,
        "tasks": list(users),
    }
