"""The one place that makes adapters, by the words of the configuration, and keeps them. A new one is a line here.

Other packages add theirs through the entry points `oncue.sources`, `oncue.brokers` and `oncue.envelopes`: a source is
made by `(name, url, timeout=…)`, a broker by `(name, url, confirm_within=…)` in seconds, an envelope by `()`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar, cast

from oncue.adapters.base import Broker, Envelope, Receiver, Source
from oncue.adapters.resolvers.python import PythonNext
from oncue.config import Config, resolve_reference
from oncue.errors import ConfigError, TargetError

T = TypeVar("T")

SOURCES: Final = {
    "sqlite": "oncue.adapters.databases:SqliteSource",
    "postgresql": "oncue.adapters.databases:PostgresSource",
    "postgres": "oncue.adapters.databases:PostgresSource",
}
BROKERS: Final = {
    "amqp": "oncue.adapters.brokers.amqp:AmqpBroker",
    "amqps": "oncue.adapters.brokers.amqp:AmqpBroker",
}
ENVELOPES: Final = {
    "json": "oncue.adapters.envelopes.json:JsonEnvelope",
    "celery": "oncue.adapters.envelopes.celery:CeleryEnvelope",
}
EXTRAS: Final = {"amqp": "rabbitmq", "amqps": "rabbitmq"}


class Adapters:
    """Makes each adapter on first use and keeps it until closed. `environ` is what headers may refer to."""

    def __init__(self, config: Config, *, environ: Mapping[str, str] = os.environ) -> None:
        self._config = config
        self._environ = environ
        self._made: dict[tuple[str, str], Any] = {}

    def source(self, name: str) -> Source:
        """Return the source that the configuration names. Raises TargetError."""
        settings = self._config.source.get(name)
        if settings is None:
            raise _unknown("source", name, list(self._config.source))

        def make() -> Source:
            timeout = self._config.dispatcher.resolve_timeout
            return cast("Source", _class_of("source", SOURCES, settings.url)(name, settings.url, timeout=timeout))

        return self._keep("source", name, make)

    def python(self, place: str) -> PythonNext:
        """Return what calls `module:name` for a followed schedule's next time."""
        timeout = self._config.dispatcher.resolve_timeout
        return self._keep("python", place, lambda: PythonNext(place, timeout=timeout))

    def broker(self, name: str) -> Broker:
        """Return the broker that the configuration names. Raises TargetError."""
        settings = self._config.broker.get(name)
        if settings is None:
            raise _unknown("broker", name, list(self._config.broker))

        def make() -> Broker:
            within = self._config.dispatcher.confirm_timeout.total_seconds()
            return cast("Broker", _class_of("broker", BROKERS, settings.url)(name, settings.url, confirm_within=within))

        return self._keep("broker", name, make)

    def receiver(self) -> Receiver:
        def make() -> Receiver:
            from oncue.adapters.receivers.http import HttpReceiver

            return HttpReceiver(read_secret=self._read_secret)

        return self._keep("receiver", "http", make)

    def envelope(self, name: str) -> Envelope:
        """Return an envelope by name. Raises TargetError."""
        known = known_of("envelope", ENVELOPES)
        if name not in known:
            raise TargetError(f'no envelope "{name}". Known envelopes: {", ".join(sorted(known))}.')
        return self._keep("envelope", name, lambda: cast("Envelope", load(known[name])()))

    async def close(self) -> None:
        """Close all of them, the others too where one fails."""
        async with AsyncExitStack() as closing:
            for adapter in self._made.values():
                if hasattr(adapter, "close"):
                    closing.push_async_callback(adapter.close)
            self._made.clear()

    def _read_secret(self, text: str) -> str:
        return resolve_reference(text, self._environ, "target.headers")

    def _keep(self, kind: str, name: str, make: Callable[[], T]) -> T:
        if (kind, name) not in self._made:
            try:
                self._made[kind, name] = make()
            except ConfigError as error:
                raise TargetError(f"[{kind}.{name}] {error}") from None
        return cast("T", self._made[kind, name])


@cache
def _entry_points(kind: str) -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=f"oncue.{kind}s")}


def known_of(kind: str, ours: dict[str, str]) -> dict[str, str]:
    """Return all implementations of a seam by name: ours, and those of other packages."""
    return {**_entry_points(kind), **ours}


def load(place: str) -> Any:
    """Return what `module:name` stands for."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _class_of(kind: str, ours: dict[str, str], url: str) -> Any:
    scheme, _, rest = url.partition("://")
    known = known_of(kind, ours)
    if not rest or scheme not in known:
        schemes = ", ".join(f"{name}://" for name in sorted(known))
        raise TargetError(f'a {kind} of the kind "{scheme}" is not known. Known: {schemes}.')
    try:
        return load(known[scheme])
    except ImportError as error:
        extra = EXTRAS.get(scheme, scheme)
        raise TargetError(f"{scheme}:// needs its client ({error.name}): pip install 'oncue[{extra}]'.") from error


def _unknown(kind: str, name: str, known: list[str]) -> TargetError:
    listed = ", ".join(sorted(known)) or "none"
    return TargetError(f'no {kind} "{name}". Known {kind}s: {listed}. Add [{kind}.{name}] to oncue.toml.')
