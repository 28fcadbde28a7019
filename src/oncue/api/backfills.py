"""`/v1/backfills`, and how a task's are asked for: plan, make, follow, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BeforeValidator, ConfigDict, Field

from oncue.api import shapes
from oncue.api.cursor import Cursor, Limit, read_cursor
from oncue.api.page import page_of
from oncue.api.tasks import IdempotencyKey
from oncue.app import Oncue
from oncue.rules import backfilling, times
from oncue.rules.durations import SPELLINGS, read_duration
from oncue.store import backfills, codec
from oncue.store.backfills import Backfill, Planned

SHOWN = 3  # due times at either end of a plan
WAITING = ("due", "queued", "held")
RUNNING = ("running", "settling")
FAILED = ("failed", "partial", "expired")


def _duration(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        raise ValueError(f"it is not a duration. {SPELLINGS}")
    return read_duration(value) if isinstance(value, str) else value


class NewBackfill(shapes.Body):
    """The due times to run, both ends inclusive; one run starts each `pace`. With `dry_run` nothing is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False)

    first: Annotated[shapes.Moment, Field(alias="from")]
    last: Annotated[shapes.Moment, Field(alias="to")]
    pace: Annotated[timedelta | None, BeforeValidator(_duration, json_schema_input_type=str | None)] = None
    dry_run: bool = False
    key: shapes.Text | None = None


class Cancel(shapes.Body):
    """Why a backfill is cancelled."""

    reason: shapes.Text = "the backfill was cancelled through the API"


class PlannedTimeShape(shapes.Shape):
    """One due time: in UTC, as the clocks of its schedule's zone show it, and what a change of clocks did to it."""

    due_at: shapes.Time
    local: str
    note: str | None


class BackfillPlanShape(shapes.Shape):
    """What a backfill would make. `times` are the first and the last few; `ran` counts the schedule's own runs of them.

    `to_come` counts those that are still to come, and `before` are earlier backfills that covered some of the span.
    """

    task: str
    zone: str
    runs: int
    first_due_at: shapes.Time
    last_due_at: shapes.Time
    times: list[PlannedTimeShape]
    pace_seconds: float
    takes_seconds: float
    words: str
    ran: dict[str, int]
    to_come: int
    before: list[UUID]
    paused: str | None


class BackfillShape(shapes.Shape):
    """A backfill and its progress; `failed` holds partial and expired runs too, `deleted` those past keeping."""

    id: UUID
    task: str
    task_version: int
    first_due_at: shapes.Time
    last_due_at: shapes.Time
    total: int
    waiting: int
    running: int
    done: int
    failed: int
    cancelled: int
    deleted: int
    actor: str
    created_at: shapes.Time


class AskedBackfillShape(BackfillShape):
    """A backfill that was asked for; `duplicate` where the key had made it before."""

    duplicate: bool


def plan_shape(planned: Planned, *, pace: timedelta | None, now: datetime) -> BackfillPlanShape:
    trigger = codec.read_trigger(planned.schedule.timing)
    moments = planned.moments
    shown = moments if len(moments) <= 2 * SHOWN else (*moments[:SHOWN], *moments[-SHOWN:])
    task = planned.task
    return BackfillPlanShape(
        task=task.name,
        zone=trigger.zone.key,
        runs=len(moments),
        first_due_at=moments[0],
        last_due_at=moments[-1],
        times=[_time_shape(trigger, moment) for moment in shown],
        pace_seconds=(pace or timedelta()).total_seconds(),
        takes_seconds=backfilling.duration(len(moments), pace).total_seconds(),
        words=backfilling.pace_words(len(moments), pace),
        ran=dict(planned.ran),
        to_come=sum(moment > now for moment in moments),
        before=list(planned.before),
        paused=task.reason if task.state == "paused" else None,
    )


def backfill_shape(backfill: Backfill) -> BackfillShape:
    return BackfillShape(**_fields(backfill))


def asked_shape(backfill: Backfill, *, is_new: bool) -> AskedBackfillShape:
    return AskedBackfillShape(**_fields(backfill), duplicate=not is_new)


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(tags=["backfills"])
    _add_asking(router, oncue)
    _add_following(router, oncue)
    return router


def _add_asking(router: APIRouter, oncue: Oncue) -> None:
    @router.post("/v1/tasks/{name}/backfill", status_code=202)
    async def backfill_task(
        name: str, new: NewBackfill, response: Response, idempotency_key: IdempotencyKey = None
    ) -> AskedBackfillShape | BackfillPlanShape:
        """Make a run for each due time of a span, beside the schedule. The same key again answers the same backfill."""
        if new.dry_run:
            planned = await oncue.plan_backfill(name, new.first, new.last)
            backfilling.check_pace(len(planned.moments), new.pace)
            response.status_code = 200
            return plan_shape(planned, pace=new.pace, now=await oncue.now())
        key = new.key or idempotency_key
        made, is_new = await oncue.backfill(name, new.first, new.last, pace=new.pace, key=key, actor="api")
        return asked_shape(made, is_new=is_new)


def _add_following(router: APIRouter, oncue: Oncue) -> None:
    @router.get("/v1/backfills")
    async def list_backfills(cursor: Cursor = None, limit: Limit = 50) -> shapes.Page[BackfillShape]:
        """List backfills with their progress, the latest first."""
        found = await oncue.backfills(before=read_cursor(cursor), limit=limit + 1)
        return page_of(found, backfill_shape, limit=limit)

    @router.get("/v1/backfills/{id}")
    async def show_backfill(id: UUID) -> BackfillShape:
        """Show one backfill with its progress."""
        return backfill_shape(await oncue.store.read(backfills.read, id))

    @router.post("/v1/backfills/{id}/cancel", status_code=202)
    async def cancel_backfill(id: UUID, cancel: Cancel | None = None) -> BackfillShape:
        """End what waits of a backfill; what runs goes on."""
        return backfill_shape(await oncue.cancel_backfill(id, reason=(cancel or Cancel()).reason, actor="api"))


def _time_shape(trigger: times.Trigger, moment: datetime) -> PlannedTimeShape:
    local = moment.astimezone(trigger.zone)
    return PlannedTimeShape(
        due_at=moment, local=f"{local:%a} {local.isoformat(' ')}", note=times.note_of(trigger, moment)
    )


def _fields(backfill: Backfill) -> dict[str, Any]:
    same = ("task_version", "first_due_at", "last_due_at", "total", "actor", "created_at")
    return {
        "id": backfill.uuid,
        "task": backfill.task_name,
        "waiting": _count(backfill, WAITING),
        "running": _count(backfill, RUNNING),
        "done": _count(backfill, ("done",)),
        "failed": _count(backfill, FAILED),
        "cancelled": _count(backfill, ("cancelled",)),
        "deleted": backfill.total - sum(backfill.states.values()),
    } | {name: getattr(backfill, name) for name in same}


def _count(backfill: Backfill, states: Sequence[str]) -> int:
    return sum(backfill.states.get(state, 0) for state in states)
