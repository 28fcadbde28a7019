"""`/healthz`, `/readyz`, `/metrics`: for whoever watches over processes."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from oncue.api import shapes
from oncue.app import Oncue
from oncue.errors import SchemaError, StoreUnavailable
from oncue.observe.metrics import CONTENT_TYPE

FRESH = timedelta(seconds=5)


def routes(oncue: Oncue) -> APIRouter:
    """Return the routes over one Oncue."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def is_alive() -> dict[str, str]:
        """Say that the process lives; nothing else is asked."""
        return {"status": "alive"}

    @router.get("/readyz")
    async def is_ready() -> JSONResponse:
        """Say whether requests can be served: 503 while the store cannot be used, or a drain is under way.

        What is wrong elsewhere (late, stopped, silent) is named in `problems`, and does not take this process out.
        """
        body: dict[str, Any] = {"ready": False, "reasons": [], "problems": []}
        try:
            await oncue.store.database.migrate(only_check=True)
            _, problems = await oncue.examine()
            body["problems"] = [shapes.problem_shape(one).model_dump(mode="json") for one in problems]
        except (StoreUnavailable, SchemaError) as error:
            body["reasons"].append(str(error))
        if oncue.loop.is_stopping:
            body["reasons"].append("this process is draining.")
        body["ready"] = not body["reasons"]
        return JSONResponse(body, 200 if body["ready"] else 503)

    @router.get("/metrics", response_class=Response)
    async def show_metrics() -> Response:
        """Return the metrics in the text format of Prometheus."""
        if oncue.metrics.is_older_than(FRESH):
            # Without the store, what this process counted itself is still worth having.
            with contextlib.suppress(StoreUnavailable):
                oncue.metrics.see(*await oncue.examine())
        return Response(oncue.metrics.render(), media_type=CONTENT_TYPE)

    return router
