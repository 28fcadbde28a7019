"""The configuration: `oncue.toml`, then `ONCUE_*` variables, then flags. Read once, at the start of a process.

Secrets stand by reference: `env:NAME` or `file:/path`. No message, and no `repr`, shows a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, cast

from oncue.errors import ConfigError
from oncue.rules import shape
from oncue.rules.place import Place, line_of, read_toml

FILE: Final = "oncue.toml"
PREFIX: Final = "ONCUE_"
NOT_SETTINGS: Final = ("ONCUE_CONFIG", "ONCUE_CRASH", "ONCUE_TEST_", "ONCUE_BENCH_")
PASSWORD: Final = re.compile(
    r"(://[^:/?#@\s]*:).*@|([?&](?:password|passwd|pwd|secret|token|api_?key|key|signature|sig)=)[^&\s]*", re.IGNORECASE
)
NO_FLAGS: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """A database that resolvers read."""

    url: str

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A broker that entities go to. `dead_letters` are queues to drain; the team declares them."""

    url: str
    dead_letters: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class ApiConfig:
    listen: str = "127.0.0.1:8040"


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """Above `in_flight` events at once, runs are recorded as due and left to the dispatchers."""

    listen: str = "127.0.0.1:8041"
    in_flight: int = 1000


@dataclass(frozen=True, slots=True)
class ClockConfig:
    """Schedules are claimed `batch` at a time; due times are prefetched `ahead`."""

    batch: int = 500
    ahead: timedelta = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class DispatcherConfig:
    """`page` entities go together; `runs` and `deliveries` are carried out at once."""

    lease: timedelta = timedelta(seconds=30)
    page: int = 1000
    runs: int = 16
    deliveries: int = 100
    resolve_timeout: timedelta = timedelta(seconds=30)
    confirm_timeout: timedelta = timedelta(seconds=10)
    drain: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class WatchConfig:
    """Looks `every` so often for runs that are `overdue`; deletes what ended longer ago than `retention`."""

    every: timedelta = timedelta(seconds=10)
    overdue: timedelta = timedelta(seconds=30)
    retention: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class FailuresConfig:
    """Requeues go back at `rate` messages a second, where they name no rate of their own."""

    rate: float = 50.0


@dataclass(frozen=True, slots=True)
class LogConfig:
    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class Config:
    """All settings. Made by `load_config`, or in Python: `Config(store="sqlite:///app.db")`."""

    store: str = "sqlite:///oncue.db"
    source: Mapping[str, SourceConfig] = field(default_factory=dict)
    broker: Mapping[str, BrokerConfig] = field(default_factory=dict)
    api: ApiConfig = ApiConfig()
    ingest: IngestConfig = IngestConfig()
    clock: ClockConfig = ClockConfig()
    dispatcher: DispatcherConfig = DispatcherConfig()
    watch: WatchConfig = WatchConfig()
    failures: FailuresConfig = FailuresConfig()
    log: LogConfig = LogConfig()

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where each setting was given, for messages: the file's text, and the names of variables and flags by place."""

    file: str
    text: str
    names: dict[Place, str]

    def tell(self, mistake: shape.Mistake) -> str:
        place = mistake.place
        for length in range(len(place), 0, -1):
            if place[:length] in self.names:
                return f"{self.names[place[:length]]}: {mistake.text}"
        line = f":{line_of(self.text, place)}" if self.text else ""
        return f"{self.file}{line}: {setting_name(place)}: {mistake.text}"


def load_config(
    path: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] = NO_FLAGS,
) -> Config:
    """Return the settings of the file, the variables and the flags, the later over the earlier. Raises ConfigError.

    Without a path `oncue.toml` in the working folder is read if it is there. A flag goes by the setting's name
    (`{"store": …, "api.listen": …}`); one that is None was not given.
    """
    text = _read_text(path)
    try:
        table = shape.plain(read_toml(text, str(path or FILE)))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    origin = _Origin(str(path or FILE), text, {})
    for name, value in environ.items():
        if name.startswith(PREFIX) and not name.startswith(NOT_SETTINGS):
            place = tuple(name.removeprefix(PREFIX).lower().split("__"))
            _put(table, origin, place=place, given_by=name, value=shape.Spelled(value))
    for name, value in flags.items():
        if value is not None:
            given = shape.Spelled(value) if isinstance(value, str) else value
            option = f"--{name.rpartition('.')[2].replace('_', '-')}"
            _put(table, origin, place=tuple(name.split(".")), given_by=option, value=given)
    try:
        return cast("Config", shape.read(Config, table, rules=_rules(environ)))
    except shape.Wrong as wrong:
        raise ConfigError("\n".join(origin.tell(mistake) for mistake in wrong.mistakes)) from None


def resolve_reference(text: str, environ: Mapping[str, str], place: str) -> str:
    """Return what `env:NAME` or `file:/path` stands for; other text is returned as it is. Raises ConfigError."""
    try:
        return _resolve(text, environ)
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from None


def hidden(url: str) -> str:
    """Return a URL with stars for its password, fit for messages."""
    return PASSWORD.sub(lambda found: f"{found[1]}***@" if found[1] else f"{found[2]}***", url)


def read_listen(text: str) -> tuple[str, int]:
    """Return the host and the port of `127.0.0.1:8040` or `[::1]:8040`; port 0 is any free one. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or (":" in host and "[" not in text):
        raise ValueError(f'"{text}" is not a host and a port. Write for example "127.0.0.1:8040" or "[::1]:8040".')
    if not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > 65535:
        raise ValueError(f'"{text}" has no port from 0 to 65535. Write for example "127.0.0.1:8040".')
    return host, int(port)


def setting_name(place: Place) -> str:
    """Return a setting as the documentation writes it: `[broker.main] url`."""
    *tables, name = (str(part) for part in place)
    if len(place) == 1:
        return name
    if place[0] in ("source", "broker") and len(place) == 2:
        return f"[{place[0]}.{place[1]}]"
    depth = 2 if place[0] in ("source", "broker") else 1
    return f"[{'.'.join(tables[:depth])}] {'.'.join([*tables[depth:], name])}"


def _read_text(path: Path | None) -> str:
    file = path or Path(FILE)
    if path is None and not file.exists():
        return ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file. Write it, or leave --config and ONCUE_CONFIG out.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: this is not UTF-8 text. Save it as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{file}: it cannot be read: {error.strerror}. Check the path and its rights.") from None


def _put(table: dict[str, Any], origin: _Origin, *, place: Place, given_by: str, value: Any) -> None:
    """Put a value over what the file says. `MAIN_QUEUE` in a variable is `Main-Queue` where the file has that."""
    spelled: list[str] = []
    for part in map(str, place):
        if spelled:
            inner = table.get(spelled[-1])
            table[spelled[-1]] = inner if isinstance(inner, dict) else {}
            table = table[spelled[-1]]
        spelled.append(next((key for key in table if key.lower().replace("-", "_") == part), part))
    table[spelled[-1]] = value
    origin.names[tuple(spelled)] = given_by


def _resolve(text: str, environ: Mapping[str, str]) -> str:
    kind, _, name = text.partition(":")
    if kind == "env":
        if not environ.get(name):
            raise ValueError(f"the variable {name} is not set. Set it, or write the URL itself.")
        return environ[name].strip()
    if kind == "file":
        try:
            value = Path(name.removeprefix("//")).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise ValueError(f"the file {name} cannot be read: {reason}. Check the path and its rights.") from None
        if not value:
            raise ValueError(f"the file {name} is empty. Write the URL into it.")
        return value
    return text


def _rules(environ: Mapping[str, str]) -> shape.Rules:
    def url(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError('this is not text. Write a URL in quotes, or "env:NAME" or "file:/path".')
        resolved = _resolve(value, environ)
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://.", resolved):
            raise ValueError('this is not a URL. Write scheme://user@host/name, or "env:NAME" or "file:/path".')
        return resolved

    urls = {(Config, "store"): url, (SourceConfig, "url"): url, (BrokerConfig, "url"): url}
    examples = {
        (SourceConfig, "url"): 'url = "postgresql://user@host/name"',
        (BrokerConfig, "url"): 'url = "amqp://user@host/"',
    }
    return shape.Rules(readers={**BOUNDS, **urls}, examples=examples)


def _listen(value: Any) -> str:
    text = shape.read(str, value)
    read_listen(text)
    return cast("str", text)


def _rate(value: Any) -> float:
    rate: float = shape.read(float, value)
    if not 0 < rate <= 100_000:
        raise ValueError(f"{rate:g} is out of bounds. Write messages a second: above 0, at most 100000.")
    return rate


def _show(part: Any) -> str:
    values = ((one.name, getattr(part, one.name)) for one in fields(part))
    shown = (f"{name}={hidden(value) if isinstance(value, str) else value!r}" for name, value in values)
    return f"{type(part).__name__}({', '.join(shown)})"


SECOND: Final = timedelta(seconds=1)
MOMENT: Final = timedelta(milliseconds=1)
BOUNDS: Final[Mapping[shape.Field, Callable[[Any], Any]]] = {
    (ApiConfig, "listen"): _listen,
    (IngestConfig, "listen"): _listen,
    (IngestConfig, "in_flight"): shape.whole(0, 1_000_000),
    (ClockConfig, "batch"): shape.whole(1, 500),
    (ClockConfig, "ahead"): shape.duration(timedelta(0), timedelta(minutes=10)),
    (DispatcherConfig, "lease"): shape.duration(SECOND, timedelta(hours=1)),
    (DispatcherConfig, "page"): shape.whole(1, 1000),
    (DispatcherConfig, "runs"): shape.whole(1, 10_000),
    (DispatcherConfig, "deliveries"): shape.whole(1, 10_000),
    (DispatcherConfig, "resolve_timeout"): shape.duration(MOMENT),
    (DispatcherConfig, "confirm_timeout"): shape.duration(MOMENT),
    (DispatcherConfig, "drain"): shape.duration(timedelta(0)),
    (WatchConfig, "every"): shape.duration(timedelta(milliseconds=100)),
    (WatchConfig, "overdue"): shape.duration(timedelta(0)),
    (WatchConfig, "retention"): shape.duration(SECOND),
    (FailuresConfig, "rate"): _rate,
}
