"""`/v1/tasks/{name}/skip`, `/move`, `/restore`: one due time to come, left out or at another moment."""

from __future__ import annotations

from fastapi import APIRouter

from oncue.api import shapes
from oncue.api.tasks import task_of
from oncue.app import Oncue


class Skip(shapes.Body):
    """The due time to leave out, and why."""

    due_at: shapes.Moment
    reason: shapes.Text


class Move(shapes.Body):
    """The due time to move, where to, and why."""

    due_at: shapes.Moment
    to: shapes.Moment
    reason: shapes.Text


class Restore(shapes.Body):
    """The due time that is to be as scheduled again."""

    due_at: shapes.Moment


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @router.post("/{name}/skip")
    async def skip_time(name: str, skip: Skip) -> shapes.TaskShape:
        """Leave out one due time to come."""
        await oncue.skip(name, skip.due_at, reason=skip.reason, actor="api")
        return await task_of(oncue, name)

    @router.post("/{name}/move")
    async def move_time(name: str, move: Move) -> shapes.TaskShape:
        """Let one due time to come run at another moment instead."""
        await oncue.move(name, move.due_at, to=move.to, reason=move.reason, actor="api")
        return await task_of(oncue, name)

    @router.post("/{name}/restore")
    async def restore_time(name: str, restore: Restore) -> shapes.TaskShape:
        """Take back that a due time was skipped or moved."""
        await oncue.restore(name, restore.due_at, actor="api")
        return await task_of(oncue, name)

    return router
