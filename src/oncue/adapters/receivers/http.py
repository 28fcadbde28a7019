"""Posts messages to a URL that answers: one request a message, its id the same over every try."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final
from weakref import WeakValueDictionary

import aiohttp
from multidict import CIMultiDict

from oncue.definition import HttpTarget
from oncue.errors import OncueError
from oncue.model import Confirmed, Message, Outcome, Refused, Unknown, Unreachable

QUOTED: Final = 200
READ: Final = 64 * 1024
BODY_WITHIN: Final = 1.0  # seconds: the status is known already, and counts
LONGEST_WAIT: Final = timedelta(days=1)
GONE: Final = 410
WAITS: Final = (429, 503)
HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
REFERENCE: Final = ("env:", "file:")
NO_URL: Final = "its URL cannot be used: give one such as https://shop.example/hooks"


def _as_it_is(text: str) -> str:
    return text


class HttpReceiver:
    """Follows no redirects and no proxies; 2xx confirms. Keeps connections open between pages.

    `read_secret` returns what a header's `env:NAME` or `file:/path` stands for, or raises an OncueError.
    """

    def __init__(self, *, connections: int = 200, read_secret: Callable[[str], str] = _as_it_is) -> None:
        self._connections = connections
        self._read_secret = read_secret
        self._session: aiohttp.ClientSession | None = None
        self._rooms: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = WeakValueDictionary()

    async def send(self, messages: Sequence[Message], *, target: HttpTarget) -> list[Outcome]:
        """Return one outcome a message, in their order; at most the target's concurrency are in flight."""
        try:
            headers = {
                name: self._read_secret(value) if value.startswith(REFERENCE) else value
                for name, value in target.headers.items()
            }
        except OncueError as error:
            return [Unreachable(f"a header of the target cannot be read: {error}") for _ in messages]
        room = self._room(target)

        async def one(message: Message) -> Outcome:
            async with room:
                return await self._post(message, target, headers=headers)

        return list(await asyncio.gather(*(one(message) for message in messages)))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _room(self, target: HttpTarget) -> asyncio.Semaphore:
        """Return what all sends to a target share while any of them is under way."""
        key = (target.url, target.concurrency)
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = asyncio.Semaphore(target.concurrency)
        return room

    async def _post(self, message: Message, target: HttpTarget, *, headers: Mapping[str, str]) -> Outcome:
        sent = CIMultiDict({"Content-Type": message.content_type, "User-Agent": "Oncue", "Accept-Encoding": "identity"})
        sent.update({name: str(value) for name, value in message.headers.items()})
        sent.update(headers)
        for name, value in sent.items():
            if not HEADER.fullmatch(name) or not _is_printable(value):
                return Refused(f"the header {name!r} cannot be sent: it holds what headers cannot hold", again=False)
        begun: list[bool] = []
        try:
            async with self._open().post(
                target.url,
                data=message.body,
                headers=sent,
                timeout=aiohttp.ClientTimeout(total=target.timeout.total_seconds()),
                allow_redirects=False,
                trace_request_ctx=begun,
            ) as reply:
                return _outcome(reply.status, reply.headers, await _text(reply))
        except (ValueError, aiohttp.NonHttpUrlClientError):  # their words hold the URL
            return Refused(NO_URL, again=False)
        except TimeoutError:
            limit = f"{target.timeout.total_seconds():g} s"
            return Unknown(f"no answer within {limit}") if begun else _unreachable(target, f"no connection in {limit}")
        except (aiohttp.ClientError, OSError) as error:
            if not begun:
                return _unreachable(target, _one_line(error))
            return Unknown(f"the connection ended before an answer: {_one_line(error)}")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, ttl_dns_cache=10)
            tracing = aiohttp.TraceConfig()
            tracing.on_request_headers_sent.append(_mark)
            self._session = aiohttp.ClientSession(
                connector=connector,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trace_configs=[tracing],
            )
        return self._session


async def _mark(_session: aiohttp.ClientSession, context: Any, _what: aiohttp.TraceRequestHeadersSentParams) -> None:
    """Note that a request is on its way: from here on nobody knows whether it arrived."""
    context.trace_request_ctx.append(True)


async def _text(reply: aiohttp.ClientResponse) -> str:
    """Return how a body begins. One that ends is read to its end, so that its connection can be kept."""
    body = bytearray()
    with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout(BODY_WITHIN):
            while len(body) < READ and (part := await reply.content.read(READ)):
                body += part
    if reply.headers.get("Content-Encoding", "identity") != "identity":
        return ""
    text = body[:READ].decode("utf-8", "replace")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:QUOTED]


def _outcome(status: int, headers: Mapping[str, str], text: str) -> Outcome:
    if 200 <= status < 300:
        return Confirmed()
    if 300 <= status < 400:
        return Refused(f"HTTP {status}: redirects are not followed; give the URL that it leads to")
    reason = f"HTTP {status}: {text}" if text else f"HTTP {status}"
    return Refused(reason, again=status != GONE, retry_after=_retry_after(headers) if status in WAITS else None)


def _retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Return what Retry-After asks for: seconds, or a date counted from the reply's own."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), LONGEST_WAIT.total_seconds()))
    try:
        wanted = parsedate_to_datetime(text)
        replied = parsedate_to_datetime(headers.get("Date", ""))
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(_aware(wanted) - _aware(replied), timedelta()), LONGEST_WAIT)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _unreachable(target: HttpTarget, words: str) -> Unreachable:
    """Name the host alone: users, paths and queries of URLs may be secrets."""
    host = re.split(r"[/?#]", re.sub(r"^.*@", "", target.url.partition("://")[2], flags=re.DOTALL))[0]
    return Unreachable(f"{host} cannot be reached: {words}")


def _is_printable(value: str) -> bool:
    return all(letter.isprintable() or letter == "\t" for letter in value)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
