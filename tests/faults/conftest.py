"""Servers of a test's own, which it may break."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.private_postgres import PrivatePostgres
from tests.faults.private_rabbitmq import PrivateRabbitmq


@pytest.fixture
def private_postgres() -> Iterator[PrivatePostgres]:
    with PrivatePostgres() as server:
        yield server


@pytest.fixture
def private_rabbitmq() -> Iterator[PrivateRabbitmq]:
    with PrivateRabbitmq() as node:
        yield node
