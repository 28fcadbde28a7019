"""`/v1/failures`: dead letters, by the reason that they failed for; requeue them under control, or discard them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from oncue.api import failure_shapes, shapes
from oncue.api.cursor import Cursor, Limit, read_cursor
from oncue.api.page import page_of
from oncue.app import Oncue, RequeueVerb
from oncue.model import DeadLetterState
from oncue.store import failures


class Which(shapes.Body):
    """Which open dead letters: by their ids, or all of a task, or all."""

    ids: Annotated[tuple[UUID, ...], Field(max_length=10_000)] = ()
    task: shapes.Text | None = None
    all: bool = False


class NewRequeue(Which):
    """One goes first; the rest follows at `rate` a second if it arrived.

    `ask` the resolver whether they still qualify.
    """

    rate: Annotated[float | None, Field(gt=0, le=100_000)] = None
    ask: bool = True


class Discard(Which):
    """Close dead letters for good."""

    reason: shapes.Text


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(prefix="/v1/failures", tags=["failures"])
    _add_requeues(router, oncue)
    _add_dead_letters(router, oncue)
    return router


def _add_requeues(router: APIRouter, oncue: Oncue) -> None:
    @router.get("/requeues")
    async def list_requeues(limit: Limit = 50) -> shapes.Page[failure_shapes.RequeueShape]:
        """List requeues, the latest first."""
        found = await oncue.store.read(failures.list_requeues, limit=limit)
        return shapes.Page(items=[failure_shapes.requeue_shape(one) for one in found])

    @router.post("/requeues", status_code=202)
    async def requeue(new: NewRequeue) -> failure_shapes.RequeueShape:
        """Take open dead letters into a requeue. Each can be in one only, so asking twice answers 409."""
        made = await oncue.store.write(
            failures.requeue,
            uuids=new.ids,
            task=new.task,
            everything=new.all,
            rate=new.rate or oncue.config.failures.rate,
            ask_again=new.ask,
            actor="api",
            now=await oncue.now(),
        )
        return failure_shapes.requeue_shape(made)

    @router.get("/requeues/{id}")
    async def show_requeue(id: UUID) -> failure_shapes.RequeueShape:
        """Show one requeue."""
        return failure_shapes.requeue_shape(await oncue.store.read(failures.read_requeue, id))

    @router.post("/requeues/{id}/{verb}")
    async def move_requeue(id: UUID, verb: RequeueVerb) -> failure_shapes.RequeueShape:
        """Pause, resume or cancel a requeue."""
        return failure_shapes.requeue_shape(await oncue.move_requeue(id, verb))


def _add_dead_letters(router: APIRouter, oncue: Oncue) -> None:
    @router.get("")
    async def list_dead_letters(
        task: Annotated[str | None, Query()] = None,
        state: Annotated[DeadLetterState | None, Query()] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> shapes.Page[failure_shapes.DeadLetterShape]:
        """List dead letters, the latest first."""
        before = read_cursor(cursor)
        found = await oncue.store.read(failures.latest, task=task, state=state, before=before, limit=limit + 1)
        return page_of(found, failure_shapes.dead_letter_shape, limit=limit)

    @router.get("/groups")
    async def list_groups() -> shapes.Page[failure_shapes.GroupShape]:
        """Count open dead letters by task, queue and reason."""
        found = await oncue.store.read(failures.groups)
        return shapes.Page(items=failure_shapes.group_shapes(found))

    @router.post("/discard")
    async def discard(discard: Discard) -> failure_shapes.DiscardedShape:
        """Close open dead letters for good."""
        count = await oncue.store.write(
            failures.discard,
            uuids=discard.ids,
            task=discard.task,
            everything=discard.all,
            reason=discard.reason,
            actor="api",
            now=await oncue.now(),
        )
        return failure_shapes.DiscardedShape(discarded=count)

    @router.get("/{id}")
    async def show_dead_letter(id: UUID) -> failure_shapes.DeadLetterDetailShape:
        """Show one dead letter with what it carried."""
        return failure_shapes.dead_letter_detail(await oncue.store.read(failures.read, id))
