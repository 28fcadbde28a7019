"""`POST /v1/events`: CloudEvents over HTTP, structured, binary and batched. Plain ASGI: this is the hot way in.

202 is answered only when what the event caused is durable.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from oncue import crash
from oncue.api import cloudevents, problems
from oncue.api.cloudevents import Unsupported
from oncue.api.sound import LIMIT
from oncue.app import Oncue
from oncue.errors import Conflict, InvalidEvent, OncueError
from oncue.model import Change, Event

BEFORE_REPLY = crash.point("api.before_reply")
WAITING: Final = 2000


class TooLarge(Exception):
    """The body is larger than may be read."""


class Events:
    """The endpoint. About `waiting` events wait for their commit at once; further ones are turned away with 429.

    A batch larger than that is taken where nothing else waits: else it never could be.
    """

    def __init__(self, oncue: Oncue, *, waiting: int = WAITING) -> None:
        self._oncue = oncue
        self._waiting = self._room = waiting

    async def post(self, request: Request) -> Response:
        """Take events in."""
        if request.headers.get("content-encoding", "identity") != "identity":
            return problems.problem(415, "unsupported_media_type", "bodies are not taken compressed: send them plain.")
        try:
            body = await read_body(request)
            found = cloudevents.read(request.headers, body, now=self._oncue.loop.now())
        except TooLarge:
            detail = (
                f"the body is larger than {LIMIT // 1024} KB: send fewer events at once, or a reference to the data."
            )
            return problems.problem(413, "content_too_large", detail)
        except Unsupported as error:
            return problems.problem(415, "unsupported_media_type", str(error))
        except InvalidEvent as error:
            self._oncue.metrics.count(Change("event", "", "refused"))
            return problems.of(error)
        except ClientDisconnect:
            return Response(status_code=400)
        if len(found) > self._room and self._room < self._waiting:
            detail = "more events wait than can be taken now: send this again in a moment."
            return problems.problem(429, "too_many_requests", detail)
        self._room -= len(found)
        try:
            return await self._accept(found, is_batch=cloudevents.is_batch(request.headers))
        finally:
            self._room += len(found)

    async def _accept(self, found: list[Event], *, is_batch: bool) -> Response:
        answers = await asyncio.gather(*(self._oncue.emit(event) for event in found), return_exceptions=True)
        shown: list[dict[str, Any]] = []
        failed: list[tuple[int, OncueError]] = []
        for place, (event, answer) in enumerate(zip(found, answers, strict=True)):
            if isinstance(answer, OncueError):
                failed.append((place, answer))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                runs = [str(made.uuid) for made in answer.runs]
                shown.append({"id": event.id, "duplicate": answer.verdict == "duplicate", "runs": runs})
        BEFORE_REPLY()
        if failed:
            return _refuse(failed, is_batch=is_batch)
        return JSONResponse(shown if is_batch else shown[0], 202)


async def read_body(request: Request) -> bytes:
    """Return the body; stop reading, with TooLarge, where it is larger than may be."""
    if int(request.headers.get("content-length") or 0) > LIMIT:
        raise TooLarge
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LIMIT:
            raise TooLarge
    return bytes(body)


def _refuse(failed: list[tuple[int, OncueError]], *, is_batch: bool) -> Response:
    """Answer for the worst of a batch: one that sending again helps before one that it does not."""
    _, worst = min(failed, key=lambda one: isinstance(one[1], Conflict | InvalidEvent))
    answer = problems.of(worst)
    if not is_batch:
        return answer
    errors = [{"pointer": f"/{place}", "detail": str(error)} for place, error in failed]
    code = next(code for kind, _, code in problems.CODES if isinstance(worst, kind))
    detail = f"{len(failed)} of the batch were not taken: {worst} All others are durable; sending all again is safe."
    return problems.problem(answer.status_code, code, detail, errors=errors)
