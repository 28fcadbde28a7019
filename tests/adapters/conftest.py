"""A virtual host of our own on the local RabbitMQ."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from uuid import uuid4

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def amqp_url() -> Iterator[str]:
    vhost = f"oncue-test-{uuid4().hex[:12]}"
    rabbitmqctl("add_vhost", vhost)
    rabbitmqctl("set_permissions", "-p", vhost, "guest", ".*", ".*", ".*")
    yield f"amqp://guest:guest@127.0.0.1:5672/{vhost}"
    rabbitmqctl("delete_vhost", vhost)


def rabbitmqctl(*arguments: str) -> None:
    subprocess.run(["rabbitmqctl", *arguments], check=True, capture_output=True, timeout=60)
