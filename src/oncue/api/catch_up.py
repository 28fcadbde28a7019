"""`/v1/catch-up`: what a task's `hold` made wait for a person after an outage, and the word that lets it go."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from fastapi import APIRouter

from oncue.api import shapes
from oncue.app import Oncue
from oncue.rules.durations import write_duration
from oncue.store.catch_up import ToCatchUp


class Decision(shapes.Body):
    """What becomes of the missed runs that wait."""

    do: Literal["run", "drop"]
    reason: shapes.Text = "dropped through the API"


class PassedOverShape(shapes.Shape):
    """Due times of the same outage that make no run, whatever is decided."""

    first_due_at: shapes.Time
    last_due_at: shapes.Time
    count: int
    verdict: str
    reason: str


class CatchUpShape(shapes.Shape):
    """The missed runs of one task that wait; `due_times` are the first ten, `words` say how they would go."""

    task: str
    runs: int
    first_due_at: shapes.Time
    last_due_at: shapes.Time
    due_times: list[shapes.Time]
    passed_over: list[PassedOverShape]
    since: shapes.Time
    words: str


class DecidedShape(shapes.Shape):
    """How many runs were let go, or dropped. None where another had decided before."""

    do: Literal["run", "drop"]
    runs: int


def catch_up_shape(one: ToCatchUp) -> CatchUpShape:
    held = one.held
    return CatchUpShape(
        task=held.task_name,
        runs=held.count,
        first_due_at=held.first_due_at,
        last_due_at=held.last_due_at,
        due_times=list(one.due_times),
        passed_over=[
            PassedOverShape(**{name: entry[name] for name in PassedOverShape.model_fields}) for entry in one.passed_over
        ],
        since=held.since,
        words=_words(held.overlap, one.expires),
    )


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(tags=["catch-up"])

    @router.get("/v1/catch-up")
    async def list_missed() -> shapes.Page[CatchUpShape]:
        """List the tasks whose missed runs wait for a person."""
        return shapes.Page(items=[catch_up_shape(one) for one in await oncue.to_catch_up()])

    @router.post("/v1/tasks/{name}/catch-up")
    async def decide(name: str, decision: Decision) -> DecidedShape:
        """Let a task's missed runs go, or drop them. Each is decided once, whoever asks."""
        if decision.do == "run":
            count = await oncue.catch_up(name, actor="api")
        else:
            count = await oncue.drop_missed(name, reason=decision.reason, actor="api")
        return DecidedShape(do=decision.do, runs=count)

    return router


def _words(overlap: str | None, expires: timedelta | None) -> str:
    order = "They run at once, beside each other (overlap is allow)."
    if overlap is not None:
        order = f"They run one after another, by their due times (overlap is {overlap})."
    if expires is None:
        return order
    return f"{order} What is later than its expires of {write_duration(expires)} ends as expired."
