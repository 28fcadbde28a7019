"""The one place that makes adapters, by the words of the configuration, and keeps them. A new one is a line here.

Other packages add theirs through the entry points `oncue.sources`, `oncue.brokers` and `oncue.envelopes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar, cast

from oncue.adapters.base import Broker, Envelope, Receiver, Source
from oncue.config import Config
from oncue.errors import TargetError

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
    """Makes each adapter on first use and keeps it until closed."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._made: dict[tuple[str, str], Any] = {}

    def source(self, name: str) -> Source:
        """Return the source that the configuration names. Raises TargetError."""
        settings = self._config.source.get(name)
        if settings is None:
            raise _unknown("source", name, list(self._config.source))
        source: Source = self._keep("source", name, lambda: _make("source", SOURCES, settings.url)(name, settings.url))
        return source

    def broker(self, name: str) -> Broker:
        """Return the broker that the configuration names. Raises TargetError."""
        settings = self._config.broker.get(name)
        if settings is None:
            raise _unknown("broker", name, list(self._config.broker))
        within = self._config.dispatcher.confirm_timeout.total_seconds()
        broker: Broker = self._keep(
            "broker",
            name,
            lambda: _make("broker", BROKERS, settings.url)(name, settings.url, confirm_within=within),
        )
        return broker

    def receiver(self) -> Receiver:
        def make() -> Receiver:
            from oncue.adapters.receivers.http import HttpReceiver

            return HttpReceiver()

        return self._keep("receiver", "http", make)

    def envelope(self, name: str) -> Envelope:
        """Return an envelope by name. Raises TargetError."""
        known = known_of("envelope", ENVELOPES)
        if name not in known:
            raise TargetError(f'no envelope "{name}". Known envelopes: {", ".join(sorted(known))}.')
        return self._keep("envelope", name, lambda: cast("Envelope", load(known[name])()))

    async def close(self) -> None:
        for adapter in self._made.values():
            if hasattr(adapter, "close"):
                await adapter.close()
        self._made.clear()

    def _keep(self, kind: str, name: str, make: Callable[[], T]) -> T:
        if (kind, name) not in self._made:
            self._made[kind, name] = make()
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


def _make(kind: str, ours: dict[str, str], url: str) -> Any:
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
