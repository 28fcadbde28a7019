"""Both databases pass the suite that every store passes."""

from __future__ import annotations

import pytest

from oncue.testing.conformance.stores import StoreConformance

pytestmark = pytest.mark.anyio


class TestStores(StoreConformance):
    """On SQLite and on PostgreSQL."""
