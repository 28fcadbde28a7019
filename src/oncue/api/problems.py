"""Every error as problem+json (RFC 9457): ours, the framework's, and what nobody expected."""

from __future__ import annotations

import http
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from oncue.errors import (
    ConfigError,
    Conflict,
    InvalidEvent,
    NotFound,
    OncueError,
    ResolveError,
    SchemaError,
    StoreUnavailable,
    TargetError,
    TaskFileError,
    TriggerError,
)

DOCS: Final = "https://github.com/oncue/oncue/blob/main/docs/errors.md"
CODES: Final[tuple[tuple[type[OncueError], int, str], ...]] = (
    (NotFound, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (InvalidEvent, 422, "invalid_event"),
    (TriggerError, 422, "trigger_error"),
    (TaskFileError, 422, "task_file_error"),
    (TargetError, 422, "target_error"),
    (ResolveError, 502, "resolve_error"),
    (ConfigError, 500, "config_error"),
    (SchemaError, 503, "schema_error"),
    (StoreUnavailable, 503, "store_unavailable"),
)
RETRY_AFTER: Final = {503: "2", 429: "1"}


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return one error as problem+json; `errors` point at places in the body."""
    body: dict[str, Any] = {
        "type": f"{DOCS}#{code}",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    if errors:
        body["errors"] = list(errors)
    again = {"Retry-After": RETRY_AFTER[status]} if status in RETRY_AFTER else {}
    return JSONResponse(body, status, {**again, **(headers or {})}, media_type="application/problem+json")


def of(error: OncueError) -> JSONResponse:
    """Return one of our errors as a problem."""
    for kind, status, code in CODES:
        if isinstance(error, kind):
            return problem(status, code, str(error))
    return problem(500, "failed", str(error))


def install(app: FastAPI) -> None:
    """Make an app answer all errors as problems."""

    @app.exception_handler(OncueError)
    async def ours(_: Request, error: OncueError) -> JSONResponse:
        return of(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        errors = [{"pointer": _pointer(one["loc"]), "detail": one["msg"]} for one in error.errors()]
        first = errors[0] if errors else {"pointer": "", "detail": "not valid"}
        return problem(422, "invalid_request", f"{first['pointer']}: {first['detail']}", errors=errors)

    @app.exception_handler(HTTPException)
    async def by_framework(request: Request, error: HTTPException) -> JSONResponse:
        code = http.HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
        detail = f"{request.method} {request.url.path}: {str(error.detail).lower()}. /openapi.json lists what there is."
        return problem(error.status_code, code, detail, headers=error.headers)

    @app.exception_handler(Exception)
    async def unexpected(_: Request, _error: Exception) -> JSONResponse:
        return problem(500, "failed", "something failed that should not: the log has it.")


def _pointer(location: Sequence[Any]) -> str:
    return "/" + "/".join(str(part) for part in location)
