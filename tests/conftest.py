"""What every test can ask for: databases and brokers of its own, names that nobody else uses, child processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings

from tests import missing, services
from tests.processes import StartProcess, processes


def pytest_configure() -> None:
    """Keep the settings of whoever runs the tests out of them."""
    for name in [name for name in os.environ if name.startswith("ONCUE_") and not name.startswith("ONCUE_TEST_")]:
        del os.environ[name]


# How long an example takes is for benchmarks: tests also run on machines that are busy.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# Before any test module imports them: a failure in a public suite is to show its values, too.
pytest.register_assert_rewrite("oncue.testing.conformance")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Name what was missing in one line below all others."""
    yield
    if line := missing.closing_line(terminalreporter.getreports("skipped")):
        terminalreporter.write_line(line + (": fails with CI=true" if missing.is_ci() else ""), yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session of CI in which something was missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if missing.is_ci() and reporter and missing.closing_line(reporter.getreports("skipped")):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def unique_name() -> Callable[[str], str]:
    """Return a function that makes a name of its own from a word, for queues, keys and subjects on shared services."""
    return lambda word: f"{word}-{uuid4().hex[:12]}"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite store of the test's own, not made yet."""
    return f"sqlite:///{tmp_path / 'oncue.db'}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[services.Postgres]:
    """The server, for a test that needs several databases, or one made from a template."""
    with services.postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: services.Postgres) -> Iterator[str]:
    """An empty database of the test's own."""
    url = postgres_server.make_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Each kind of store in turn, empty."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(scope="session")
def amqp_url() -> Iterator[str]:
    """RabbitMQ, in a virtual host of the session's own where that can be had: use unique names all the same."""
    with services.rabbitmq() as url:
        yield url


@pytest.fixture(scope="session")
def redis_url() -> str:
    """Redis, shared with others: use unique names."""
    return services.redis()


@pytest.fixture(scope="session")
def nats_url() -> str:
    """NATS, shared with others: use unique names."""
    return services.nats()


@pytest.fixture
def start_process(tmp_path: Path) -> Iterator[StartProcess]:
    """Return a function that starts a child process; all of them are gone when the test ends."""
    with processes(tmp_path) as start:
        yield start
