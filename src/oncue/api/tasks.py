"""`/v1/tasks`: what there is, apply, preview, fire, pause, resume."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Response

from oncue.api import shapes, sound
from oncue.app import Oncue
from oncue.errors import TaskFileError
from oncue.rules import times
from oncue.store import codec, followed, tasks
from oncue.taskfile import definition_from_json

IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=200)]


FOREVER = datetime.max.replace(tzinfo=UTC)


class Fire(shapes.Body):
    """What to fire a task with; `key` is what makes asking twice safe, as the header `Idempotency-Key` does."""

    due_at: shapes.Moment | None = None
    key: shapes.Text | None = None


class Pause(shapes.Body):
    """Why a task is paused, and until when; without an end, until it is resumed."""

    reason: shapes.Text
    until: shapes.Moment | None = None


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
    _add_reading(router, oncue)
    _add_writing(router, oncue)
    return router


def _add_reading(router: APIRouter, oncue: Oncue) -> None:
    @router.get("")
    async def list_tasks() -> shapes.Page[shapes.TaskShape]:
        """List all tasks, by name."""
        schedules = await oncue.store.read(tasks.schedules)
        of = await oncue.store.read(followed.every)
        every = await oncue.tasks()
        return shapes.Page(items=[shapes.task_shape(task, schedules.get(task.id), of.get(task.id)) for task in every])

    @router.get("/{name}")
    async def show_task(name: str) -> shapes.TaskShape:
        """Show one task."""
        return await task_of(oncue, name)

    @router.get("/{name}/next")
    async def show_next(
        name: str, n: Annotated[int, Query(ge=1, le=1000)] = 10, after: shapes.Moment | None = None
    ) -> shapes.NextShape:
        """Show when a task is due next; none where it has no schedule."""
        return shapes.NextShape(times=await next_of(oncue, name, after=after, count=n))

    @router.get("/{name}/preview")
    async def preview_task(
        name: str, due_at: shapes.Moment | None = None, n: Annotated[int, Query(ge=1, le=1000)] = 20
    ) -> shapes.PreviewShape:
        """Show who would be resolved now, and the exact messages. Nothing is sent."""
        task = await oncue.store.read(tasks.read, name)
        return shapes.preview_shape(task, await oncue.preview(name, due_at=due_at, limit=n))


def _add_writing(router: APIRouter, oncue: Oncue) -> None:
    @router.put("/{name}")
    async def apply_task(
        name: str, definition: Annotated[dict[str, Any], Body()], response: Response
    ) -> shapes.AppliedShape:
        """Make a task as this definition says, in the form of a task file. The same again changes nothing."""
        _check_sound(definition)
        if definition.get("name", name) != name:
            raise TaskFileError(f'the body names task "{definition["name"]}", the path "{name}": make them the same.')
        known = {calendar.name: calendar for calendar in await oncue.calendars()}
        read = definition_from_json(name, definition, calendars=known, now=await oncue.now())
        applied = (await oncue.apply([read], actor="api"))[0]
        response.status_code = 201 if applied.verdict == "created" else 200
        return shapes.AppliedShape(name=applied.name, verdict=applied.verdict, version=applied.version)

    @router.post("/{name}/fire", status_code=202)
    async def fire_task(
        name: str, fire: Fire | None = None, idempotency_key: IdempotencyKey = None
    ) -> shapes.FiredShape:
        """Make a run now, beside the schedule. The same key again answers the same run."""
        asked = fire or Fire()
        uuid, is_new = await oncue.fire(name, key=asked.key or idempotency_key, due_at=asked.due_at)
        return shapes.FiredShape(run=uuid, duplicate=not is_new)

    @router.post("/{name}/pause")
    async def pause_task(name: str, pause: Pause) -> shapes.TaskShape:
        """Stop a task's triggers until it is resumed. Asking twice is safe."""
        await oncue.pause(name, reason=pause.reason, until=pause.until, actor="api")
        return await task_of(oncue, name)

    @router.post("/{name}/resume")
    async def resume_task(name: str) -> shapes.TaskShape:
        """Let a task's triggers work again."""
        await oncue.resume(name, actor="api")
        return await task_of(oncue, name)


def _check_sound(definition: dict[str, Any]) -> None:
    try:
        sound.check(definition)
    except sound.Unsound as error:
        raise TaskFileError(str(error)) from None


async def task_of(oncue: Oncue, name: str) -> shapes.TaskShape:
    """Return one task as it is shown. Raises NotFound."""
    task = await oncue.store.read(tasks.read, name)
    schedule = await oncue.store.read(tasks.schedule_of, task.id)
    return shapes.task_shape(task, schedule, await oncue.store.read(followed.of, task.id))


async def next_of(oncue: Oncue, name: str, *, after: datetime | None, count: int) -> list[datetime]:
    """Return the next times of a stored task. Raises NotFound."""
    task = await oncue.store.read(tasks.read, name)
    schedule = await oncue.store.read(tasks.schedule_of, task.id)
    if schedule is None:
        return []
    start = after or await oncue.now()
    if codec.read_followed(schedule.timing) is not None:
        return [schedule.next_at] if schedule.next_at is not None and schedule.next_at > start else []
    return times.times_between(codec.read_trigger(schedule.timing), start, FOREVER, count)
