"""Both databases pass the suite that every store passes."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("oncue.testing.conformance.stores")

from oncue.testing.conformance.stores import StoreConformance  # noqa: E402

pytestmark = pytest.mark.anyio


class TestStores(StoreConformance):
    """On SQLite and on PostgreSQL."""
