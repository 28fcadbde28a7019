"""Stretches of a zone: found whole, whatever their length, and the same as a finer look finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from oncue.rules.triggers import zones
from tests.rules import oracle

CLOSE_CHANGES = (
    "America/Boa_Vista",
    "America/Noronha",
    "Asia/Gaza",
    "Asia/Hebron",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
)
ODD = (
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Europe/Dublin",
    "Antarctica/Troll",
    "America/Caracas",
)


def stretches(zone: ZoneInfo, start: datetime, end: datetime) -> list[zones.Stretch]:
    found = [zones.stretch_at(zone, start)]
    while found[-1].end < end:
        found.append(zones.stretch_at(zone, found[-1].end))
    return found


@pytest.mark.parametrize("name", CLOSE_CHANGES + ODD)
def test_every_change_of_an_offset_starts_a_stretch(name: str) -> None:
    zone = ZoneInfo(name)
    start, end = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (1970, 2038))

    found = stretches(zone, start, end)

    changed = [later.start for earlier, later in pairwise(found) if earlier.offset != later.offset]
    assert changed == [moment.replace(tzinfo=None) for moment in oracle.changes(zone, 1970, 2037)]
    assert all(earlier.end == later.start for earlier, later in pairwise(found))


def test_a_stretch_knows_its_gap_and_what_its_clock_showed_before() -> None:
    zone = ZoneInfo("America/New_York")

    spring = zones.stretch_at(zone, datetime(2026, 3, 8, 7))  # noqa: DTZ001 - stretches are naive inside
    autumn = zones.stretch_at(zone, datetime(2026, 11, 1, 6))  # noqa: DTZ001

    assert (spring.has_gap, spring.wall_start - spring.left) == (True, timedelta(hours=1))
    assert (autumn.has_gap, autumn.fresh - autumn.wall_start) == (False, timedelta(hours=1))


def test_a_repeat_of_almost_a_day_is_remembered_in_full() -> None:
    zone = ZoneInfo("Pacific/Kwajalein")

    stretch = zones.stretch_at(zone, datetime(1969, 9, 30, 13))  # noqa: DTZ001

    assert stretch.fresh - stretch.wall_start == timedelta(hours=23)
