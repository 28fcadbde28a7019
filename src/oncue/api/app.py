"""The HTTP API over one Oncue: what is mounted where, and what no request gets past."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oncue.api import backfills, calendars, catch_up, events, failures, health, overrides, problems, runs, tasks
from oncue.api.cloudevents import BATCH, STRUCTURED
from oncue.api.sound import LIMIT
from oncue.app import Oncue

SAFE: Final = ("GET", "HEAD", "OPTIONS")
EVENT: Final = {
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string"},
        "source": {"type": "string"},
        "type": {"type": "string"},
        "subject": {"type": "string"},
        "time": {"type": "string", "format": "date-time"},
        "data": {},
    },
}


def create_app(oncue: Oncue) -> FastAPI:
    """Return the whole API."""
    app = create_events_app(oncue)
    every = (tasks, overrides, runs, failures, backfills, catch_up, calendars)
    for routes in (module.routes for module in every):
        app.include_router(routes(oncue))
    return app


def create_events_app(oncue: Oncue) -> FastAPI:
    """Return what `oncue ingest` serves: events, and its health."""
    app = create_health_app(oncue)
    _add_events(app, events.Events(oncue))
    return app


def create_health_app(oncue: Oncue) -> FastAPI:
    """Return what any component can serve: health and metrics."""
    app = FastAPI(title="Oncue", version="1", docs_url=None, redoc_url=None, redirect_slashes=False)
    problems.install(app)
    app.include_router(health.routes(oncue))
    app.add_middleware(Guard)
    return app


def _add_events(app: FastAPI, endpoint: events.Events) -> None:
    """Mount the events' own endpoint, past FastAPI, and describe it in the OpenAPI page beside the others."""

    async def post(request: Request) -> Response:
        return await endpoint.post(request)

    app.router.routes.append(Route("/v1/events", post, methods=["POST"]))
    described = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            page = described()
            page.setdefault("paths", {})["/v1/events"] = {"post": _describe_events()}
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to add to the page


def _describe_events() -> dict[str, Any]:
    accepted = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "duplicate": {"type": "boolean"},
            "runs": {"type": "array", "items": {"type": "string", "format": "uuid"}},
        },
    }
    refused: dict[str, Any] = {"content": {"application/problem+json": {}}}
    return {
        "tags": ["events"],
        "summary": "Take events in: one, or a batch",
        "operationId": "post_events",
        "requestBody": {
            "required": True,
            "content": {
                STRUCTURED: {"schema": EVENT},
                BATCH: {"schema": {"type": "array", "items": EVENT}},
                "application/json": {"schema": {}},
            },
        },
        "responses": {
            "202": {
                "description": "Durable, with all that it caused",
                "content": {
                    "application/json": {"schema": {"oneOf": [accepted, {"type": "array", "items": accepted}]}}
                },
            },
            "409": {"description": "The id was used for another content", **refused},
            "413": {"description": "Larger than 256 KB", **refused},
            "415": {"description": "Not a form that events come in", **refused},
            "422": {"description": "Not a CloudEvent, or too old", **refused},
            "429": {"description": "Too many wait: send it again", **refused},
            "503": {"description": "The store is down: send it again", **refused},
        },
    }


class Guard:
    """Turns away what no route should see: bodies over the limit, and writes that a web page of elsewhere sends."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["method"] not in SAFE and _is_of_elsewhere(headers):
            detail = "this request comes from a web page of another host; the API takes none of those."
            await problems.problem(403, "forbidden", detail)(scope, receive, send)
        elif "\0" in scope["path"] or b"%00" in scope["query_string"]:
            await problems.problem(422, "invalid_request", "the address holds a NUL character.")(scope, receive, send)
        elif _length(headers) > LIMIT:
            detail = f"the body is larger than {LIMIT // 1024} KB."
            await problems.problem(413, "content_too_large", detail)(scope, receive, send)
        else:
            await self._app(scope, _bounded(receive), send)


def _is_of_elsewhere(headers: Headers) -> bool:
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isdecimal() else 0


def _bounded(receive: Receive) -> Receive:
    """Cut a body that says nothing of its length where it passes the limit: what is left is no JSON, or refused."""
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > LIMIT + 65536:
            return {"type": "http.disconnect"}
        return message

    return bounded
