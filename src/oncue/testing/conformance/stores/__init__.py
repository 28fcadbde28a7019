"""What every `Store` promises: each verb, its races that one process can show, and the whole table of moves.

Subclass `StoreConformance` with two fixtures: `store`, on an empty database that is migrated, and `empty_store`, on one
that is not.
"""

from __future__ import annotations

from oncue.testing.conformance.stores.backfills import BackfillConformance
from oncue.testing.conformance.stores.calendars import CalendarConformance
from oncue.testing.conformance.stores.deliveries import DeliveryConformance
from oncue.testing.conformance.stores.events import EventConformance
from oncue.testing.conformance.stores.failures import FailureConformance
from oncue.testing.conformance.stores.followed import FollowedConformance
from oncue.testing.conformance.stores.holds import HoldConformance
from oncue.testing.conformance.stores.late_rows import LateRowsConformance
from oncue.testing.conformance.stores.moves import MoveConformance
from oncue.testing.conformance.stores.overlap import OverlapConformance
from oncue.testing.conformance.stores.runs import RunConformance
from oncue.testing.conformance.stores.schedules import ScheduleConformance
from oncue.testing.conformance.stores.tasks import TaskConformance
from oncue.testing.conformance.stores.upkeep import UpkeepConformance


class StoreConformance(
    TaskConformance,
    ScheduleConformance,
    FollowedConformance,
    LateRowsConformance,
    CalendarConformance,
    RunConformance,
    OverlapConformance,
    BackfillConformance,
    HoldConformance,
    DeliveryConformance,
    FailureConformance,
    EventConformance,
    UpkeepConformance,
    MoveConformance,
):
    """All of it."""
