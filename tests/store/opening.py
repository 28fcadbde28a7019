"""A store from its URL."""

from __future__ import annotations

from oncue.store.base import Store
from oncue.store.postgres import PostgresDatabase
from oncue.store.sqlite import SqliteDatabase


def open_store(url: str) -> Store:
    """Return a store on the database that a URL names."""
    if url.startswith("sqlite:///"):
        return Store(SqliteDatabase(url.removeprefix("sqlite:///")))
    return Store(PostgresDatabase(url))
