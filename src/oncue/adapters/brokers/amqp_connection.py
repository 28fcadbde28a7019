"""One connection to a RabbitMQ, as coroutines over pika's callbacks: opened when asked for, opened again after a loss.

Chosen for its speed in confirmed publishing (`benchmarks/amqp.py`); `amqp.py` is the only reader of this file.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.adapters.utils.connection_workflow import (
    AMQPConnectorException,
)
from pika.exceptions import AMQPError, ChannelClosedByBroker, ConnectionClosed

from oncue.errors import AdapterError, ConfigError

FAILURES = (AMQPError, AMQPConnectorException, OSError)
FAREWELL = 2.0  # seconds

# pika logs what we answer for; without this, a process that has set up no logging would see it on its stderr.
logging.getLogger("pika").addHandler(logging.NullHandler())


class AmqpConnection:
    """A connection that opens itself. Losing it fails what is under way at once; the next `channel` opens another.

    `within` is how long the broker may take for a connection, or for the answer to one method.
    """

    def __init__(self, name: str, url: str, *, purpose: str, within: float = 5.0) -> None:
        self._name = name
        self._url = url
        self._within = within
        self._parameters = read_url(name, url, purpose=purpose, within=within)
        self._opening: asyncio.Future[Any] | None = None
        self._connection: Any = None
        self._blocked: str | None = None
        self._unblocked = asyncio.Event()

    @property
    def blocked(self) -> str | None:
        """Why the broker takes no messages now (low memory, full disk); None while it does."""
        return self._blocked

    async def channel(self) -> Any:
        """Open a channel, and the connection where there is none. Raises AdapterError with the broker's words."""
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        connection = channel = None
        try:
            async with asyncio.timeout(self._within):
                connection = await self._open()
                channel = connection.channel(on_open_callback=lambda channel: settle(opened, channel))
                channel.add_on_close_callback(lambda _, error: fail(opened, error))
                return await opened
        except FAILURES as error:
            raise self._failure(error, connection) from error
        except asyncio.CancelledError:
            if channel is not None and channel.connection.is_open and not channel.is_closed:
                channel.close()
            raise

    async def call(self, channel: Any, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call one of a channel's methods and return the broker's answer.

        Raises AdapterError; its cause is pika's error when the broker closed the channel instead.
        """
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        channel.add_on_close_callback(lambda _, error: fail(answered, error))
        try:
            async with asyncio.timeout(self._within):
                method(*arguments, callback=lambda frame: settle(answered, frame), **named)
                return await answered
        except FAILURES as error:
            raise self._failure(error, channel.connection) from error

    async def wait_unblocked(self) -> None:
        """Return once the broker takes messages, or the connection that was blocked is gone."""
        while self._blocked is not None:
            self._unblocked.clear()
            await self._unblocked.wait()

    def drop(self, connection: Any, reason: str) -> None:
        """Cut a connection without a farewell, for it no longer answers. What is under way on it fails at once."""
        self._forget(connection)
        if not connection.is_closed:
            # pika's public close() waits for the broker's answer, for ever; this is what its own heartbeat does.
            connection._terminate_stream(AMQPError(reason))

    async def close(self) -> None:
        """Say farewell and close, or cut the connection when no answer comes in time."""
        if self._opening is not None:
            await asyncio.wait({self._opening}, timeout=self._within)  # an attempt under way cannot be called off
        connection = self._connection
        if connection is None or connection.is_closed:
            return
        if self._blocked is not None:
            self.drop(connection, "closed while blocked")  # the broker would not read a farewell
            return
        self._forget(connection)
        closed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        connection.add_on_close_callback(lambda *_: settle(closed, None))
        try:
            async with asyncio.timeout(FAREWELL):
                if connection.is_open:
                    connection.close()
                await closed
        except TimeoutError:
            self.drop(connection, "closed")

    def explain(self, error: BaseException) -> str:
        """Return what ended a channel, on one line and without credentials: the broker's words, or how it was lost."""
        words = self._hide(words_of(error))
        return words if is_refusal(error) else f"connection lost: {words}"

    async def _open(self) -> Any:
        """Return the open connection. All who ask meanwhile share one attempt, which outlives any of them."""
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._opening is None or self._opening.done():
            opening = self._opening = asyncio.get_running_loop().create_future()
            AsyncioConnection(
                self._parameters,
                on_open_callback=lambda connection: self._on_open(connection, opening),
                on_open_error_callback=lambda _, error: fail(opening, error),
                on_close_callback=lambda connection, _: self._forget(connection),
            )
        return await asyncio.shield(self._opening)

    def _on_open(self, connection: Any, opening: asyncio.Future[Any]) -> None:
        connection.add_on_connection_blocked_callback(self._on_blocked)
        connection.add_on_connection_unblocked_callback(self._on_unblocked)
        self._connection, self._blocked = connection, None
        settle(opening, connection)

    def _failure(self, error: BaseException, connection: Any) -> AdapterError:
        """Return what to raise for an error, cutting a connection that did not answer (unless it is only blocked)."""
        where = f"{self._parameters.host}:{self._parameters.port}"
        if connection is None and not isinstance(error, TimeoutError):
            return AdapterError(f'broker "{self._name}": no connection to {where}: {self._hide(words_of(error))}')
        if not isinstance(error, TimeoutError):
            return AdapterError(f'broker "{self._name}": {self.explain(error)}')
        if self._blocked is not None:
            return AdapterError(f'broker "{self._name}" blocks publishers: {self._blocked}')
        if connection is not None:
            self.drop(connection, "it does not answer")
        return AdapterError(f'broker "{self._name}": no answer from {where} within {self._within:g} s')

    def _hide(self, text: str) -> str:
        """Return `text` without this connection's password, and without any user and password before an @."""
        password = urlsplit(self._url).password or ""
        for secret in sorted({password, unquote(password)}, key=len, reverse=True):
            if len(secret) > 3:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
        return re.sub(r"//[^/@\s]+@", "//***@", text)

    def _forget(self, connection: Any) -> None:
        if connection is self._connection:
            self._connection = self._blocked = None
            self._unblocked.set()

    def _on_blocked(self, connection: Any, frame: Any) -> None:
        if connection is self._connection:
            self._blocked = str(frame.method.reason or "no reason given")

    def _on_unblocked(self, connection: Any, _: Any) -> None:
        if connection is self._connection:
            self._blocked = None
            self._unblocked.set()


def settle(future: asyncio.Future[Any], value: Any) -> None:
    """Give a future its value, unless it is over."""
    if not future.done():
        future.set_result(value)


def fail(future: asyncio.Future[Any], error: BaseException) -> None:
    """Give a future its error, unless it is over."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # marks it as seen: nobody may be waiting any more


def read_url(name: str, url: str, *, purpose: str, within: float) -> Any:
    """Return pika's parameters of a URL. Raises ConfigError, which does not repeat it: it holds a password."""
    try:
        if urlsplit(url).scheme not in ("amqp", "amqps"):
            raise ValueError
        parameters = pika.URLParameters(url)
    except (ValueError, TypeError):
        raise ConfigError(
            f"[broker.{name}] url cannot be read. Write amqp://user:password@host:port/vhost, with special characters "
            "percent-encoded (amqps:// for TLS)."
        ) from None
    # As Celery reads it: `//` at the end is the virtual host `/`, which pika takes for one without a name.
    parameters.virtual_host = unquote(urlsplit(url).path[1:]) or "/"
    parameters.socket_timeout = parameters.stack_timeout = within
    parameters.client_properties = {"connection_name": f"oncue {name} ({purpose})"}
    return parameters


def is_refusal(error: BaseException | None, *codes: int) -> bool:
    """Say whether the broker closed the channel on purpose, with one of `codes` if any are given."""
    return isinstance(error, ChannelClosedByBroker) and (not codes or error.reply_code in codes)


def words_of(error: BaseException) -> str:
    """Return the innermost words of pika's nested errors, on one line."""
    while (inner := _inner(error)) is not None:
        error = inner
    if isinstance(error, ChannelClosedByBroker | ConnectionClosed):
        text = f"{error.reply_code} {error.reply_text}"
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror
    else:
        text = " ".join(str(part) for part in error.args if part) or type(error).__name__
    text = re.sub(r"^\w+: \((\d{3})\) '(.*)'$", r"\1 \2", text)  # pika gives some of its errors as another one's repr
    return " ".join(text.split())


def _inner(error: BaseException) -> BaseException | None:
    nested = getattr(error, "exceptions", None) or [getattr(error, "exception", None), *error.args[:1]]
    found = [one for one in nested if isinstance(one, BaseException)]
    return found[-1] if found else None
