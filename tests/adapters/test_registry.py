"""The one place that makes adapters: each by the words of the configuration, once, and closed with the others."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from oncue.adapters import registry
from oncue.adapters.registry import Adapters
from oncue.config import BrokerConfig, Config, DispatcherConfig, SourceConfig
from oncue.definition import HttpTarget
from oncue.errors import ResolveError, TargetError
from oncue.model import Unreachable
from oncue.testing.conformance.receivers import make_message

pytestmark = pytest.mark.anyio


class Recorder:
    """Stands for an adapter of another package: keeps what it was made by, and whether it was closed."""

    made: ClassVar[list[Recorder]] = []

    def __init__(self, *arguments: object, **options: object) -> None:
        self.arguments, self.options, self.is_closed = arguments, options, False
        Recorder.made.append(self)

    async def close(self) -> None:
        self.is_closed = True
        if self.arguments[0] == "bad":
            raise OSError("its connection is gone")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    Recorder.made.clear()
    place = f"{__name__}:Recorder"
    monkeypatch.setattr(registry, "_entry_points", lambda kind: {"their": place})
    return Recorder.made


def make_adapters(**dispatcher: Any) -> Adapters:
    config = Config(
        source={"app": SourceConfig("their://app")},
        broker={name: BrokerConfig("their://main") for name in ("bad", "main")},
        dispatcher=DispatcherConfig(**dispatcher),
    )
    return Adapters(config, environ={"SET": "value"})


async def test_an_adapter_is_made_once(recorded: list[Recorder]) -> None:
    adapters = make_adapters()

    assert adapters.broker("main") is adapters.broker("main")
    assert adapters.receiver() is adapters.receiver()
    assert adapters.envelope("json") is adapters.envelope("json")
    assert len(recorded) == 1


async def test_adapters_of_others_get_the_timeouts_of_the_configuration(recorded: list[Recorder]) -> None:
    adapters = make_adapters(resolve_timeout=timedelta(seconds=3), confirm_timeout=timedelta(seconds=4))

    adapters.source("app")
    adapters.broker("main")

    assert [(one.arguments, one.options) for one in recorded] == [
        (("app", "their://app"), {"timeout": timedelta(seconds=3)}),
        (("main", "their://main"), {"confirm_within": 4.0}),
    ]


async def test_all_are_closed_where_one_fails(recorded: list[Recorder]) -> None:
    adapters = make_adapters()
    for name in ("main", "bad"):
        adapters.broker(name)
    adapters.source("app")

    with pytest.raises(OSError, match="gone"):
        await adapters.close()

    assert [one.is_closed for one in recorded] == [True, True, True]


async def test_a_source_gives_up_after_the_resolve_timeout_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "shop.db").touch()
    config = Config(
        source={"app": SourceConfig(f"sqlite:///{tmp_path / 'shop.db'}")},
        dispatcher=DispatcherConfig(resolve_timeout=timedelta(milliseconds=50)),
    )
    query = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) as key from n"

    with pytest.raises(ResolveError, match="50 ms"):
        await Adapters(config).source("app").page(query, {}, cursor=None, limit=1)


async def test_a_header_that_refers_to_nothing_is_named(recorded: list[Recorder]) -> None:
    adapters = make_adapters()
    target = HttpTarget("http://127.0.0.1:1/", headers={"Authorization": "env:UNSET"})

    (outcome,) = await adapters.receiver().send([make_message()], target=target)

    assert isinstance(outcome, Unreachable)
    assert "UNSET is not set" in outcome.reason
    await adapters.close()


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        ("source", "crm", r'no source "crm". Known sources: app. Add \[source.crm\] to oncue.toml.'),
        ("broker", "rabbit", r'no broker "rabbit". Known brokers: bad, main. Add \[broker.rabbit\] to oncue.toml.'),
        ("envelope", "celry", r'no envelope "celry". Known envelopes: celery, json'),
    ],
)
async def test_what_is_not_known_is_named_with_what_is(kind: str, name: str, sentence: str) -> None:
    with pytest.raises(TargetError, match=sentence):
        getattr(make_adapters(), kind)(name)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("kafka://localhost", 'a broker of the kind "kafka" is not known. Known: amqp://, amqps://'),
        ("localhost", 'a broker of the kind "localhost" is not known'),
        ("amqp://guest:secret-word@localhost:port/", r"\[broker.main\]"),
    ],
)
async def test_a_broker_with_a_url_that_says_nothing_is_a_target_error(url: str, sentence: str) -> None:
    adapters = Adapters(Config(broker={"main": BrokerConfig(url)}))

    with pytest.raises(TargetError, match=sentence) as raised:
        adapters.broker("main")

    assert "secret-word" not in str(raised.value)


async def test_a_client_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("oncue.adapters.brokers.amqp")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pika", None)
    adapters = Adapters(Config(broker={"main": BrokerConfig("amqp://localhost/")}))

    with pytest.raises(TargetError, match=r"pip install 'oncue\[rabbitmq\]'"):
        adapters.broker("main")
