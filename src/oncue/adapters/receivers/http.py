"""Posts messages to a URL that answers: one request a message, its id the same over every try."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from oncue.model import Confirmed, HttpTarget, Message, Outcome, Refused, Unknown, Unreachable

QUOTED = 200
READ = 64 * 1024
GONE = 410


class HttpReceiver:
    """Follows no redirects and no proxies; 2xx confirms. Keeps connections open between pages."""

    def __init__(self, *, connections: int = 200) -> None:
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def send(self, messages: Sequence[Message], *, target: HttpTarget) -> list[Outcome]:
        """Return one outcome a message, in their order; at most the target's concurrency are in flight."""
        room = asyncio.Semaphore(target.concurrency)

        async def one(message: Message) -> Outcome:
            async with room:
                return await self._post(message, target)

        return list(await asyncio.gather(*(one(message) for message in messages)))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(self, message: Message, target: HttpTarget) -> Outcome:
        headers = {"Content-Type": message.content_type, "User-Agent": "Oncue", **message.headers, **target.headers}
        timeout = aiohttp.ClientTimeout(total=target.timeout.total_seconds())
        try:
            async with self._open().post(
                target.url, data=message.body, headers=headers, timeout=timeout, allow_redirects=False
            ) as reply:
                body = await reply.content.read(READ) if reply.status >= 300 else b""
                return _outcome(reply.status, reply.headers, body)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Unreachable(f"{_place(target.url)} cannot be reached: {_one_line(error)}")
        except TimeoutError:
            return Unknown(f"no answer within {target.timeout.total_seconds():g} s")
        except aiohttp.InvalidURL:
            return Refused(f"{target.url!r} is not a URL: give one such as https://shop.example/hooks.", again=False)
        except (aiohttp.ClientError, OSError) as error:
            return Unknown(f"the connection ended before an answer: {_one_line(error)}")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, ttl_dns_cache=10)
            self._session = aiohttp.ClientSession(
                connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        return self._session


def _outcome(status: int, headers: Mapping[str, Any], body: bytes) -> Outcome:
    if 200 <= status < 300:
        return Confirmed()
    if 300 <= status < 400:
        return Refused(f"HTTP {status}: redirects are not followed; give the URL that it leads to")
    text = " ".join(body.decode("utf-8", "replace").split())[:QUOTED]
    reason = f"HTTP {status}: {text}" if text else f"HTTP {status}"
    return Refused(reason, again=status != GONE, retry_after=_retry_after(headers))


def _retry_after(headers: Mapping[str, Any]) -> timedelta | None:
    """Return what Retry-After asks for: seconds, or a date counted from the reply's own."""
    text = str(headers.get("Retry-After", "")).strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text), 86_400))
    try:
        wanted = parsedate_to_datetime(text)
        sent = parsedate_to_datetime(str(headers.get("Date", "")))
    except (TypeError, ValueError):
        return None
    return max(_aware(wanted) - _aware(sent), timedelta())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _place(url: str) -> str:
    return url.split("?")[0].rpartition("@")[2]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
