"""Who is due in the window of a followed schedule's run: read by (due_at, key), less whom another run handed over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from oncue.adapters.base import Source
from oncue.adapters.resolvers.moments import read_moment
from oncue.definition import Definition
from oncue.errors import ResolveError, TriggerError
from oncue.model import DeadLetter, Entity, Json, Key, Page, Run, RunId, Task, TaskId
from oncue.rules import binding, identity
from oncue.rules.followed import NEVER, Span, is_followed
from oncue.store import followed
from oncue.store.base import Store

KINDS: Final = ("schedule", "manual", "backfill", "requeue")


def is_window(definition: Definition, run: Run) -> bool:
    """Say whether a run takes whoever is due in its window, from `previous_due_at` to `due_at`; an event's does not."""
    return is_followed(definition.schedule) and run.event is None and run.kind in KINDS


async def read(
    store: Store, source: Source, sql: str, bound: Mapping[str, Any], *, run: Run, cursor: str | None, limit: int
) -> Page:
    """Return a page of a run's window. Raises ResolveError.

    Only runs by the schedule leave out who was handed over: a person who fires or requeues asks for it again.
    """
    if run.previous_due_at is None:
        raise ResolveError("the run has no window: fire the task again.")
    span = (run.previous_due_at, run.due_at)
    if run.kind == "schedule":
        return await unhanded(store, source, sql, bound, task_id=run.task_id, span=span, cursor=cursor, limit=limit)
    return await source.window(sql, bound, after=span[0], until=span[1], cursor=cursor, limit=limit)


async def unhanded(
    store: Store,
    source: Source,
    sql: str,
    bound: Mapping[str, Any],
    *,
    task_id: TaskId,
    span: Span,
    cursor: str | None,
    limit: int,
) -> Page:
    """Return a page of those in a span who were not handed over yet. Raises ResolveError."""
    page = await source.window(sql, bound, after=span[0], until=span[1], cursor=cursor, limit=limit)
    known = await store.read(followed.handed_over, task_id, told(page))
    if not known:
        return page
    fresh = {key for key, due in told(page) if (str(key), due) not in known}
    return replace(
        page,
        entities=tuple(entity for entity in page.entities if entity.key in fresh),
        rejected=tuple(one for one in page.rejected if one[0] in fresh),
        dues={key: due for key, due in page.dues.items() if key in fresh},
    )


def told(page: Page) -> tuple[tuple[Key, datetime], ...]:
    """Return who is on a page, and when they are due. A due time that cannot be read counts as one that never comes."""
    return tuple((key, due or NEVER) for key, due in page.dues.items())


def ids(task: Task, entities: Iterable[Entity]) -> dict[Key, UUID]:
    """Return the message ids of entities that are followed: by task, key and due time, whichever run sends them."""
    return {entity.key: identity.followed_uuid(task.uuid, entity.key, due_of(entity.data)) for entity in entities}


def still_due(found: Iterable[Entity], asked: Mapping[Key, Json]) -> list[Entity]:
    """Return those that are due when they were; `asked` is their data as it was then."""
    return [entity for entity in found if due_of(entity.data) == due_of(asked[entity.key])]


def is_of_window(task: Task, letter: DeadLetter) -> bool:
    """Say whether a dead letter was an entity of a window, and not of an event's run of the same task."""
    key, data = letter.what.key, letter.what.data or {}
    if not is_followed(task.definition.schedule) or key is None or "due_at" not in data:
        return False
    return letter.what.message_id == identity.followed_uuid(task.uuid, key, due_of(data))


def due_of(data: Json) -> datetime:
    """Return when an entity is due; one whose time cannot be read never is."""
    try:
        return read_moment(data.get("due_at"))
    except ValueError:
        return NEVER


def hypothetical(task: Task, due_at: datetime, *, previous_due_at: datetime | None, now: datetime) -> Run:
    """Return a run that is nowhere: what a preview is made with."""
    cause = identity.manual_cause("preview")
    return Run(
        id=RunId(0),
        uuid=identity.run_uuid(task.uuid, cause),
        task_id=task.id,
        task_name=task.name,
        task_version=task.version,
        cause=cause,
        due_at=due_at,
        ready_at=now,
        state="due",
        reason=None,
        attempts=1,
        fence=0,
        overlap=None,
        caught_up=False,
        asked_at=now,
        started_at=None,
        ended_at=None,
        cursor=None,
        previous_due_at=previous_due_at,
        event=None,
        dead_letter_id=None,
        stop_reason=None,
    )


def bound_of(run: Run, definition: Definition) -> dict[str, Any]:
    """Return what a query may refer to. Raises ResolveError."""
    try:
        return binding.parameters(run, definition)
    except TriggerError as error:
        raise ResolveError(str(error)) from error
