"""What the PostgreSQL driver raises, as the store tells of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import pytest

from oncue.errors import StoreUnavailable
from oncue.store import tasks
from oncue.store.base import Store
from oncue.store.postgres import PostgresDatabase

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (asyncpg.InternalClientError("cannot switch to state 12"), "cannot switch to state 12"),
        (TimeoutError(), "did not answer in time"),
    ],
)
async def test_a_connection_that_was_cut_or_is_stuck_is_a_store_that_cannot_be_reached(
    raised: Exception, told: str
) -> None:
    def acquire(**_: Any) -> Any:
        raise raised

    database = PostgresDatabase("postgresql://nobody@localhost/none")
    database._pool = cast("Any", SimpleNamespace(acquire=acquire))

    with pytest.raises(StoreUnavailable, match=told):
        await Store(database).read(tasks.fingerprint)
