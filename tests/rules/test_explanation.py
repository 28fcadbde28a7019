"""Why a moment is or is not a time, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from oncue.definition import Override
from oncue.rules import times
from tests.rules.test_timetable import ATHENS, NEW_YORK, read, utc

NINE: Mapping[str, Any] = {"cron": "0 9 * * *", "zone": ATHENS}
NIGHT: Mapping[str, Any] = {"cron": "30 2 * * *", "zone": NEW_YORK}
EARLY: Mapping[str, Any] = {"cron": "30 1 * * *", "zone": NEW_YORK}


@pytest.mark.parametrize(
    ("spec", "moment", "expected"),
    [
        (NINE, "2026-12-25T09:00+02:00", "09:00 on 2026-12-25 is one of its times."),
        (
            NINE,
            "2026-12-25T09:30:15+02:00",
            "cron names no such time; the nearest are Fri 2026-12-25 09:00 and Sat 2026-12-26 09:00.",
        ),
        (
            {**NINE, "except_on": "holidays"},
            "2026-12-25T09:00+02:00",
            "09:00 on 2026-12-25 is left out: it is Christmas Day in holidays.",
        ),
        (
            {**NINE, "except_on": "holidays"},
            "2027-01-01T09:00+02:00",
            "09:00 on 2027-01-01 is left out: it is a Friday in holidays.",
        ),
        (
            {**NINE, "only_on": "weekdays"},
            "2026-12-26T09:00+02:00",
            "09:00 on 2026-12-26 is left out: it is a Saturday that is not in weekdays.",
        ),
        (
            {**NINE, "only_on": "holidays"},
            "2028-12-25T09:00+02:00",
            "09:00 on 2028-12-25 is left out: it is a Monday that is not in holidays, "
            "which is filled to 2027-12-31 only.",
        ),
        (
            {**NINE, "only_on": "open", "move": "next"},
            "2026-12-25T09:00+02:00",
            "09:00 on 2026-12-25 is moved to Mon 2026-12-28 09:00: it is a Friday that is not in open.",
        ),
        (
            {**NINE, "only_on": "open", "move": "next", "end": "2026-12-26"},
            "2026-12-25T09:00+02:00",
            "09:00 on 2026-12-25 is left out: it is a Friday that is not in open, "
            "and it has no time to move to on the next allowed day.",
        ),
        (
            {"cron": "0 18 L * *", "zone": ATHENS, "only_on": "open", "move": "previous"},
            "2027-01-29T18:00+02:00",
            "18:00 on 2027-01-29 is one of its times: moved from Sun 2027-01-31 by its calendar.",
        ),
        (
            {**NINE, "start": "2026-01-01"},
            "2025-12-31T09:00+02:00",
            "09:00 on 2025-12-31 is before its start, Thu 2026-01-01 00:00.",
        ),
        (
            {**NINE, "end": "2026-12-31T12:00"},
            "2027-01-01T09:00+02:00",
            "09:00 on 2027-01-01 is after its end, Thu 2026-12-31 12:00.",
        ),
        (
            {**NINE, "except": [{"cron": "0 9 * * mon#1"}]},
            "2027-01-04T09:00+02:00",
            '09:00 on 2027-01-04 is left out: except names it ("0 9 * * mon#1").',
        ),
        (
            EARLY,
            "2026-11-01T06:30Z",
            "this is the second 01:30 of 2026-11-01 in America/New_York: it is due at 05:30 UTC.",
        ),
        (
            {**EARLY, "dst": {"repeat": "last"}},
            "2026-11-01T05:30Z",
            "this is the first 01:30 of 2026-11-01 in America/New_York: it is due at 06:30 UTC.",
        ),
        (EARLY, "2026-11-01T05:30Z", "01:30 on 2026-11-01 is one of its times: first of two."),
        (
            {"at": "2026-12-25T09:00:00", "zone": ATHENS},
            "2027-01-04T09:00+02:00",
            "at names no such time; the nearest is Fri 2026-12-25 09:00.",
        ),
        (
            {"cron": "*/30 * * * *", "zone": NEW_YORK},
            "2026-11-01T05:45Z",
            "cron names no such time; the nearest are Sun 2026-11-01 01:30 -0400 and Sun 2026-11-01 01:00 -0500.",
        ),
        (
            {"any": [{"cron": "0 9 * * *"}, {"cron": "0 11 * * *"}]},
            "2026-12-25T10:00Z",
            "any names no such time; the nearest are Fri 2026-12-25 09:00 and Fri 2026-12-25 11:00.",
        ),
    ],
)
def test_a_moment_is_explained(spec: Mapping[str, Any], moment: str, expected: str) -> None:
    assert times.explain(read(spec), utc(moment)) == expected


def test_changes_by_hand_are_explained() -> None:
    moved = Override(utc("2026-12-28T07:00Z"), utc("2026-12-28T10:30Z"), "the fair")
    trigger = read(NINE, moved, Override(utc("2026-12-29T07:00Z")), Override(utc("2026-12-29T08:00Z")))

    assert times.explain(trigger, utc("2026-12-28T07:00Z")) == (
        "09:00 on 2026-12-28 is moved by hand to Mon 2026-12-28 12:30: the fair."
    )
    assert times.explain(trigger, utc("2026-12-28T10:30Z")) == (
        "12:30 on 2026-12-28 is one of its times: moved by hand from Mon 2026-12-28 09:00 (the fair)."
    )
    assert times.explain(trigger, utc("2026-12-29T07:00Z")) == "09:00 on 2026-12-29 is skipped by hand."
    assert times.explain(trigger, utc("2026-12-29T08:00Z")).startswith("cron names no such time; the nearest are")


@pytest.mark.parametrize(
    ("spec", "wall", "expected"),
    [
        (
            NIGHT,
            "2026-03-08T02:30",
            "the clocks of America/New_York skip 02:30 on 2026-03-08: it is made up for at 03:00.",
        ),
        (
            {**NIGHT, "dst": {"gap": "shift"}},
            "2026-03-08T02:30",
            "the clocks of America/New_York skip 02:30 on 2026-03-08: it is made up for at 03:30.",
        ),
        (
            {**NIGHT, "dst": {"gap": "skip"}},
            "2026-03-08T02:30",
            "the clocks of America/New_York skip 02:30 on 2026-03-08, "
            "and this schedule leaves out what the clocks skip.",
        ),
        (
            {**NIGHT, "only_on": "weekdays"},
            "2026-03-08T02:30",
            "the clocks of America/New_York skip 02:30 on 2026-03-08: it is made up for at 03:00, "
            "but 03:00 on 2026-03-08 is left out: it is a Sunday that is not in weekdays.",
        ),
        (
            NIGHT,
            "2026-03-08T02:45",
            "the clocks of America/New_York skip 02:45 on 2026-03-08, and cron names no such time; "
            "the nearest are Sat 2026-03-07 02:30 and Sun 2026-03-08 03:00.",
        ),
        (
            {"cron": "0 9 * * *", "zone": "Pacific/Apia"},
            "2011-12-30T09:00",
            "the clocks of Pacific/Apia skip 09:00 on 2011-12-30, with hours around it: nothing is made up for then.",
        ),
        (
            EARLY,
            "2026-11-01T01:30",
            "the clocks of America/New_York show 01:30 twice on 2026-11-01; the first is one of its times, 05:30 UTC.",
        ),
        (
            {**EARLY, "dst": {"repeat": "last"}},
            "2026-11-01T01:30",
            "the clocks of America/New_York show 01:30 twice on 2026-11-01; the second is one of its times, 06:30 UTC.",
        ),
        (
            {"cron": "*/30 * * * *", "zone": NEW_YORK},
            "2026-11-01T01:30",
            "the clocks of America/New_York show 01:30 twice on 2026-11-01, and both are its times.",
        ),
        (
            NIGHT,
            "2026-11-01T01:31",
            "the clocks of America/New_York show 01:31 twice on 2026-11-01, and neither is one of its times: "
            "cron names no such time; the nearest are Sat 2026-10-31 02:30 and Sun 2026-11-01 02:30.",
        ),
        (NIGHT, "2026-03-08T03:00", "03:00 on 2026-03-08 is one of its times: moved from 02:30."),
        (NIGHT, "2026-03-09T02:30", "02:30 on 2026-03-09 is one of its times."),
    ],
)
def test_a_wall_time_is_explained(spec: Mapping[str, Any], wall: str, expected: str) -> None:
    naive = datetime.fromisoformat(wall).replace(tzinfo=UTC).replace(tzinfo=None)

    assert times.explain_wall(read(spec), naive) == expected
