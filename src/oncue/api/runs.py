"""`/v1/runs`: what ran, how each ended and why; and cancel."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from oncue.api import shapes
from oncue.api.cursor import Cursor, Limit, read_cursor
from oncue.api.page import page_of
from oncue.app import Oncue
from oncue.model import RunState
from oncue.store import runs, tasks

DELIVERIES = 100


class Cancel(shapes.Body):
    """Why a run is cancelled."""

    reason: shapes.Text = "cancelled through the API"


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(prefix="/v1/runs", tags=["runs"])

    @router.get("")
    async def list_runs(
        task: Annotated[str | None, Query()] = None,
        state: Annotated[RunState | None, Query()] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> shapes.Page[shapes.RunShape]:
        """List runs, the latest first."""
        task_id = None if task is None else (await oncue.store.read(tasks.read, task)).id
        before = read_cursor(cursor)
        found = await oncue.store.read(runs.latest, task_id=task_id, state=state, before=before, limit=limit + 1)
        return page_of(found, shapes.run_shape, limit=limit)

    @router.get("/{id}")
    async def show_run(id: UUID) -> shapes.RunDetailShape:
        """Show one run with its deliveries."""
        run = await oncue.store.read(runs.read, id)
        return shapes.run_detail(run, await oncue.store.read(runs.deliveries, run.id, limit=DELIVERIES))

    @router.post("/{id}/cancel", status_code=202)
    async def cancel_run(id: UUID, cancel: Cancel | None = None) -> shapes.CancelledShape:
        """End a run: at once where it waits, at its next page where it is being handed over."""
        outcome = await oncue.cancel(id, reason=(cancel or Cancel()).reason)
        return shapes.CancelledShape(run=id, outcome=outcome)

    return router
