"""Services for tests: those that answer at their usual addresses are used, with databases and names of our own.

Each can be named in the environment instead: ONCUE_TEST_POSTGRES_URL, ONCUE_TEST_AMQP_URL, ONCUE_TEST_REDIS_URL,
ONCUE_TEST_NATS_URL. PostgreSQL is otherwise started privately.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.faults.private_postgres import PrivatePostgres
from tests.missing import Missing

POSTGRES = (
    "postgresql://postgres@127.0.0.1:5432/postgres",
    f"postgresql://{getpass.getuser()}@127.0.0.1:5432/postgres",
)
AMQP = "amqp://guest:guest@127.0.0.1:5672/%2F"
REDIS = "redis://127.0.0.1:6379/0"
NATS = "nats://127.0.0.1:4222"


class Postgres:
    """A PostgreSQL server in which we may make databases."""

    def __init__(self, url: str, portal: BlockingPortal, connection: Any) -> None:
        self._url, self._portal, self._connection = url, portal, connection

    def make_database(self, *, template: str = "template0") -> str:
        """Make a database with a random name, and return its URL."""
        name = f"oncue_test_{uuid4().hex[:12]}"
        self._execute(f'create database "{name}" template "{template}"')
        return urlsplit(self._url)._replace(path=f"/{name}").geturl()

    def drop_database(self, url: str) -> None:
        """Drop a database, whoever is still connected to it."""
        self._execute(f'drop database if exists "{urlsplit(url).path[1:]}" with (force)')

    def _execute(self, statement: str) -> None:
        self._portal.call(self._connection.execute, statement)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """Use the PostgreSQL that answers and lets us make databases; start a private one otherwise."""
    try:
        import asyncpg
    except ImportError:
        raise Missing("PostgreSQL", "pip install 'oncue[postgres]'") from None

    with contextlib.ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal("asyncio"))

        async def connect(url: str) -> Any:
            try:
                connection = await asyncpg.connect(url, timeout=10)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                return None
            if await connection.fetchval("select rolcreatedb or rolsuper from pg_roles where rolname = current_user"):
                return connection
            return await connection.close()

        named = os.environ.get("ONCUE_TEST_POSTGRES_URL")
        for url in (named,) if named else POSTGRES:
            if connection := portal.call(connect, url):
                break
        else:
            if named:
                raise Missing("PostgreSQL", "ONCUE_TEST_POSTGRES_URL lets us make no database")
            url = stack.enter_context(PrivatePostgres(fsync=False)).url
            connection = portal.call(connect, url)
        stack.callback(portal.call, connection.close)
        yield Postgres(url, portal, connection)


@contextlib.contextmanager
def rabbitmq() -> Iterator[str]:
    """Use the RabbitMQ that answers, in a virtual host of our own where we may make one. Yields its URL."""
    url = os.environ.get("ONCUE_TEST_AMQP_URL")
    if not _lets_in(url or AMQP):
        raise Missing("RabbitMQ", "apt-get install rabbitmq-server, start it, or name one in ONCUE_TEST_AMQP_URL")
    vhost = f"oncue-test-{uuid4().hex[:12]}"
    if url or not _rabbitmqctl("add_vhost", vhost):
        yield url or AMQP
        return
    try:
        _rabbitmqctl("set_permissions", "-p", vhost, "guest", ".*", ".*", ".*")
        yield urlsplit(AMQP)._replace(path=f"/{vhost}").geturl()
    finally:
        _rabbitmqctl("delete_vhost", vhost)


def redis() -> str:
    """Return the URL of the Redis that answers. Its keys are shared: use unique names."""
    url = os.environ.get("ONCUE_TEST_REDIS_URL", REDIS)
    if not _says(url, b"PING\r\n", answer=b"+PONG"):
        raise Missing("Redis", "apt-get install redis-server, start it, or name one in ONCUE_TEST_REDIS_URL")
    return url


def nats() -> str:
    """Return the URL of the NATS server that answers. Its subjects are shared: use unique names."""
    url = os.environ.get("ONCUE_TEST_NATS_URL", NATS)
    if not _says(url, b"", answer=b"INFO "):
        raise Missing("NATS", "apt-get install nats-server, start it with -js, or name one in ONCUE_TEST_NATS_URL")
    return url


def _lets_in(url: str) -> bool:
    try:
        import pika
    except ImportError:
        raise Missing("RabbitMQ", "pip install 'oncue[rabbitmq]'") from None
    try:
        pika.BlockingConnection(pika.URLParameters(url)).close()
    except (OSError, pika.exceptions.AMQPError):
        return False
    return True


def _rabbitmqctl(*arguments: str) -> bool:
    """Return whether the node did as told: only root may tell it, and only on its own machine."""
    if os.geteuid() != 0 or not shutil.which("rabbitmqctl"):
        return False
    return subprocess.run(["rabbitmqctl", *arguments], capture_output=True, timeout=60).returncode == 0


def _says(url: str, greeting: bytes, *, answer: bytes) -> bool:
    address = urlsplit(url)
    try:
        with socket.create_connection((address.hostname, address.port), timeout=5) as line:
            line.sendall(greeting)
            return line.recv(len(answer)) == answer
    except OSError:
        return False
