"""Chaos: real processes, over stores of the test's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.team import Team
from tests.faults.private_postgres import PrivatePostgres
from tests.faults.private_rabbitmq import PrivateRabbitmq
from tests.processes import StartProcess

MakeTeam = Callable[..., Awaitable[Team]]


@pytest.fixture
def make_team(tmp_path: Path, start_process: StartProcess) -> MakeTeam:
    """Return a function that makes a team over a store."""

    async def make(store: str, **options: Any) -> Team:
        return await Team.open(store, tmp_path, start_process, **options)

    return make


@pytest.fixture
def private_postgres() -> Iterator[PrivatePostgres]:
    with PrivatePostgres() as server:
        yield server


@pytest.fixture
def private_rabbitmq() -> Iterator[PrivateRabbitmq]:
    with PrivateRabbitmq() as node:
        yield node
