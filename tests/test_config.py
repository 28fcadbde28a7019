"""The configuration: what wins over what, what is refused and how, and that no password shows."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from oncue.config import BrokerConfig, Config, hidden, load_config, read_listen, resolve_reference
from oncue.errors import ConfigError

FULL = """
store = "postgresql://oncue:hush@localhost/oncue"

[source.app]
url = "env:APP_DATABASE_URL"

[broker.main]
url = "amqp://guest:hush@localhost/"
dead_letters = ["celery.dead"]

[api]
listen = "0.0.0.0:80"

[ingest]
in_flight = 10

[clock]
batch = 50
ahead = "500ms"

[dispatcher]
lease = "1m"
page = 100

[watch]
retention = "7d"

[failures]
rate = 5

[log]
format = "json"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(text: str, environ: dict[str, str] | None = None, flags: dict[str, Any] | None = None) -> list[str]:
    """Return the lines of the error that a file's text, variables and flags are refused with."""
    Path("oncue.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(None, environ or {}, flags or {})
    return str(caught.value).splitlines()


def test_without_a_file_all_settings_are_at_their_default(folder: Path) -> None:
    config = load_config(None, {}, {})

    assert config == Config()
    assert config.store == "sqlite:///oncue.db"
    assert config.api.listen == "127.0.0.1:8040"
    assert config.dispatcher.lease == timedelta(seconds=30)


def test_every_default_is_within_its_bounds(folder: Path) -> None:
    parts = {name: getattr(Config(), name) for name in ("api", "ingest", "clock", "dispatcher", "watch", "failures")}
    flags = {f"{name}.{one.name}": getattr(part, one.name) for name, part in parts.items() for one in fields(part)}

    assert load_config(None, {}, flags) == Config()


def test_a_file_is_read(folder: Path) -> None:
    (folder / "oncue.toml").write_text(FULL, encoding="utf-8")

    config = load_config(None, {"APP_DATABASE_URL": "sqlite:///app.db"}, {})

    assert config.source["app"].url == "sqlite:///app.db"
    assert config.broker["main"] == BrokerConfig("amqp://guest:hush@localhost/", ("celery.dead",))
    assert config.clock.ahead == timedelta(milliseconds=500)
    assert config.dispatcher.page == 100
    assert config.dispatcher.runs == 16
    assert config.failures.rate == 5.0
    assert config.log.format == "json"


def test_variables_win_over_the_file_and_flags_over_both(folder: Path) -> None:
    (folder / "oncue.toml").write_text(FULL, encoding="utf-8")
    environ = {
        "APP_DATABASE_URL": "sqlite:///app.db",
        "ONCUE_STORE": "sqlite:///variable.db",
        "ONCUE_DISPATCHER__LEASE": "5s",
        "ONCUE_DISPATCHER__PAGE": "7",
        "ONCUE_FAILURES__RATE": "0.5",
        "ONCUE_BROKER__MAIN__DEAD_LETTERS": "a.dead, b.dead",
        "ONCUE_BROKER__OTHER__URL": "amqp://other/",
    }

    config = load_config(None, environ, {"store": "sqlite:///flag.db", "api.listen": "[::1]:9000", "log.level": None})

    assert config.store == "sqlite:///flag.db"
    assert config.api.listen == "[::1]:9000"
    assert config.log.level == "info"
    assert config.dispatcher.lease == timedelta(seconds=5)
    assert config.dispatcher.page == 7
    assert config.failures.rate == 0.5
    assert config.broker["main"].url == "amqp://guest:hush@localhost/"
    assert config.broker["main"].dead_letters == ("a.dead", "b.dead")
    assert config.broker["other"].url == "amqp://other/"


def test_a_variable_reaches_a_name_with_dashes_and_capitals(folder: Path) -> None:
    (folder / "oncue.toml").write_text('[broker.Main-Queue]\nurl = "amqp://a/"\n', encoding="utf-8")

    config = load_config(None, {"ONCUE_BROKER__MAIN_QUEUE__URL": "amqp://b/"}, {})

    assert config.broker == {"Main-Queue": BrokerConfig("amqp://b/")}


def test_variables_that_are_no_settings_are_left_alone(folder: Path) -> None:
    environ = {"ONCUE_CONFIG": "x", "ONCUE_CRASH": "y", "ONCUE_TEST_POSTGRES": "z", "ONCUE_BENCH_N": "1", "HOME": "/"}

    assert load_config(None, environ, {}) == Config()


def test_a_file_that_is_asked_for_must_be_there(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"other\.toml: there is no such file"):
        load_config(folder / "other.toml", {}, {})


REFUSED = [
    ('store = "sqlite:///a.db"\nstroe = 1', 'oncue.toml:2: stroe: there is no such key. Did you mean "store"?'),
    ("[dispatchr]\npage = 1", 'oncue.toml:1: dispatchr: there is no such key. Did you mean "dispatcher"?'),
    ("[dispatcher]\npge = 1", 'oncue.toml:2: [dispatcher] pge: there is no such key. Did you mean "page"?'),
    ("[dispatcher]\npage = 0", "oncue.toml:2: [dispatcher] page: 0 is out of bounds. Write a whole number from 1 to 1"),
    ("[dispatcher]\npage = 1001", "oncue.toml:2: [dispatcher] page: 1001 is out of bounds."),
    ("[dispatcher]\npage = true", "oncue.toml:2: [dispatcher] page: true is not a whole number."),
    ('[dispatcher]\npage = "100"', 'oncue.toml:2: [dispatcher] page: "100" is not a whole number.'),
    ("[dispatcher]\npage = 1.5", "oncue.toml:2: [dispatcher] page: 1.5 is not a whole number."),
    ("[clock]\nbatch = 501", "oncue.toml:2: [clock] batch: 501 is out of bounds. Write a whole number from 1 to 500."),
    ('[dispatcher]\nlease = "999ms"', "oncue.toml:2: [dispatcher] lease: 999ms is out of bounds. Write at least 1s."),
    ("[dispatcher]\nlease = 30", "oncue.toml:2: [dispatcher] lease: 30 is not a duration. Write for example"),
    ('[dispatcher]\nlease = "-1s"', 'oncue.toml:2: [dispatcher] lease: "-1s" is not a duration.'),
    ("[failures]\nrate = 0", "oncue.toml:2: [failures] rate: 0 is out of bounds. Write messages a second: above 0"),
    ("[failures]\nrate = nan", "oncue.toml:2: [failures] rate: nan is out of bounds."),
    ('[api]\nlisten = "8040"', 'oncue.toml:2: [api] listen: "8040" is not a host and a port.'),
    ('[api]\nlisten = "::1:8040"', 'oncue.toml:2: [api] listen: "::1:8040" is not a host and a port.'),
    ('[api]\nlisten = "a:70000"', 'oncue.toml:2: [api] listen: "a:70000" has no port from 0 to 65535.'),
    ('[log]\nlevel = "wanring"', 'oncue.toml:2: [log] level: "wanring" is not known. Did you mean "warning"? Known:'),
    ("[source.app]\n", 'oncue.toml:1: [source.app] url: it is missing. Write url = "postgresql://user@host/name".'),
    ("[broker.main]\nurl = 5", "oncue.toml:2: [broker.main] url: this is not text."),
    ('[broker.main]\nurl = "hush"', "oncue.toml:2: [broker.main] url: this is not a URL. Write scheme://"),
    ('[broker.main]\nurl = "env:HUSH"', "oncue.toml:2: [broker.main] url: the variable HUSH is not set. Set it"),
    ('[broker.main]\nurl = "file:/no/such"', "oncue.toml:2: [broker.main] url: the file /no/such cannot be read: No"),
    ('[broker]\nmain = "amqp://a:hush@b/"', "oncue.toml:2: [broker.main]: this is not a table."),
    ('store = ["amqp://a:hush@b/"]', "oncue.toml:1: store: this is not text."),
    (
        '[broker.main]\nurl = "amqp://a/"\ndead_letters = "a"',
        "oncue.toml:3: [broker.main] dead_letters: this is not a li",
    ),
    (
        '[broker.main]\nurl = "amqp://a/"\ndead_letters = ["a", 5]',
        "oncue.toml:3: [broker.main] dead_letters.1: 5 is not text.",
    ),
    ("store = oops", "oncue.toml:1:9: this is not TOML: invalid value."),
    ('store = "a', "oncue.toml: at its end: this is not TOML:"),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_a_wrong_file_is_refused_with_its_place_and_the_remedy(folder: Path, text: str, sentence: str) -> None:
    [line] = refusal(text)

    assert line.startswith(sentence)
    assert "hush" not in line
    assert line.endswith(".")


def test_all_mistakes_are_told_at_once_each_by_who_gave_it(folder: Path) -> None:
    lines = refusal("[dispatcher]\npage = 0", {"ONCUE_DISPATCHER__RUNS": "many"}, {"api.listen": "x"})

    assert [line.split(": ")[0] for line in lines] == ["oncue.toml:2", "ONCUE_DISPATCHER__RUNS", "--listen"]


def test_a_variable_with_a_wrong_name_is_refused(folder: Path) -> None:
    [line] = refusal("", {"ONCUE_STROE": "sqlite:///a.db"})

    assert line.startswith('ONCUE_STROE: there is no such key. Did you mean "store"?')


def test_secrets_are_read_by_reference(folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text("amqp://u:hush@host/\n", encoding="utf-8")
    (folder / "oncue.toml").write_text(f'store = "env:STORE"\n[broker.main]\nurl = "file:{secret}"\n', encoding="utf-8")

    config = load_config(None, {"STORE": "postgresql://u:hush@host/db"}, {})

    assert config.store == "postgresql://u:hush@host/db"
    assert config.broker["main"].url == "amqp://u:hush@host/"


def test_a_reference_that_leads_nowhere_names_the_setting_and_the_remedy(folder: Path) -> None:
    (folder / "empty").touch()

    with pytest.raises(ConfigError, match=r"^\[api\] key: the variable KEY is not set\. Set it"):
        resolve_reference("env:KEY", {"KEY": ""}, "[api] key")
    with pytest.raises(ConfigError, match=r"^\[api\] key: the file empty is empty\. Write"):
        resolve_reference("file:empty", {}, "[api] key")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://guest:hush@localhost/", "amqp://guest:***@localhost/"),
        ("amqp://guest:hu/sh@1@localhost/", "amqp://guest:***@localhost/"),
        ("redis://:hush@localhost/0", "redis://:***@localhost/0"),
        ("postgresql://host/db?user=a&password=hush&x=1", "postgresql://host/db?user=a&password=***&x=1"),
        ("postgresql://user@host:5432/db", "postgresql://user@host:5432/db"),
        ("sqlite:///oncue.db", "sqlite:///oncue.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert hidden(url) == shown


def test_a_configuration_never_shows_a_password() -> None:
    config = Config(store="postgresql://u:hush@h/d", broker={"main": BrokerConfig("amqp://u:hush@h/")})

    assert "hush" not in repr(config)
    assert "hush" not in f"{config} {config.broker}"
    assert "amqp://u:***@h/" in repr(config)


def test_a_host_and_a_port_are_read() -> None:
    assert read_listen("127.0.0.1:8040") == ("127.0.0.1", 8040)
    assert read_listen("[::1]:0") == ("::1", 0)


def test_the_page_shows_every_setting_at_its_default(folder: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text(encoding="utf-8")
    (folder / "oncue.toml").write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")

    config = load_config(None, {}, {})

    assert replace(config, source={}, broker={}) == Config()
    assert set(config.source) == {"app"}
    assert set(config.broker) == {"main"}
