"""What the property tests draw from: zones, moments near changes of clocks, and schedules of every kind.

With ONCUE_TEST_DEEP set they draw anew each time and forty times as much; run those with `--timeout 0`.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from oncue.rules import times
from oncue.rules.triggers.zones import OF_THE_HOST
from tests.rules import oracle

DEEP = bool(os.environ.get("ONCUE_TEST_DEEP"))
ALL_ZONES = tuple(sorted(available_timezones() - OF_THE_HOST))
ODD_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Europe/Lisbon",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Pacific/Kwajalein",
    "UTC",
)
POLICIES = [(gap, repeat) for gap in ("after", "skip", "shift") for repeat in ("first", "last", "both")]


def thorough(examples: int) -> settings:
    return settings(
        max_examples=examples * (40 if DEEP else 1),
        derandomize=not DEEP,
        deadline=None,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )


@cache
def changes_of(zone: str) -> list[datetime]:
    """Return when a zone's clocks change; not where an offset has seconds, which no walk by minutes can follow."""
    local, found = ZoneInfo(zone), oracle.changes(ZoneInfo(zone), 1970, 2037, step=timedelta(days=2))
    return [
        moment
        for moment in found
        if not any((moment + around).astimezone(local).second for around in (timedelta(hours=-1), timedelta(hours=1)))
    ]


def dst_of(policies: tuple[str, str] | None) -> dict[str, object]:
    return {"dst": dict(zip(("gap", "repeat"), policies, strict=True))} if policies else {}


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """Draw a cron field and the set that it means."""
    everything = range(low, high + 1)
    kind = draw(st.sampled_from(["star", "star", "step", "one", "list", "range", "range step", "from"]))
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, max(1, (high - low) // 2)))
    match kind:
        case "star":
            return "*", frozenset(everything)
        case "step":
            return f"*/{step}", frozenset(everything[::step])
        case "one":
            return str(first), frozenset({first})
        case "list":
            chosen = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
            return ",".join(map(str, chosen)), frozenset(chosen)
        case "range":
            return f"{first}-{last}", frozenset(range(first, last + 1))
        case "range step":
            return f"{first}-{last}/{step}", frozenset(range(first, last + 1, step))
        case _:
            return f"{first}/{step}", frozenset(range(first, high + 1, step))


@st.composite
def wanted_crons(draw: st.DrawFn) -> oracle.Wanted:
    minute, hour = draw(fields(0, 59)), draw(fields(0, 23))
    day, month, weekday = draw(fields(1, 31)), draw(fields(1, 12)), draw(fields(0, 6))
    if draw(st.booleans()):
        day, month, weekday = [("*", frozenset(range(low, 32))) for low in (1, 1, 0)]
    if draw(st.booleans()):
        hour = draw(st.sampled_from([("2", {2}), ("0", {0}), ("1-3", {1, 2, 3}), ("23,0", {0, 23})]))
    parts = (minute, hour, day, month, weekday)
    return oracle.Wanted(" ".join(part[0] for part in parts), *(frozenset(part[1]) for part in parts))


@st.composite
def moments_near_changes(draw: st.DrawFn, zones: tuple[str, ...] = ODD_ZONES) -> tuple[str, datetime]:
    zone = draw(st.sampled_from(zones))
    around = draw(st.sampled_from(changes_of(zone) or [datetime(2026, 3, 8, 7, tzinfo=UTC)]))
    return zone, around + timedelta(seconds=draw(st.integers(-26 * 3600, 8 * 3600)))


def walls(first_year: int, last_year: int) -> st.SearchStrategy[datetime]:
    first, last = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (first_year, last_year))
    return st.datetimes(first, last)


def policies() -> st.SearchStrategy[tuple[str, str] | None]:
    return st.sampled_from([None, None, *POLICIES])


def triggers() -> st.SearchStrategy[times.Trigger]:
    """Draw a schedule of any kind, with or without a `dst`, in an odd zone."""
    crons = wanted_crons().map(lambda wanted: {"cron": wanted.text})
    years = wanted_crons().map(
        lambda wanted: {"cron": f"0 {' '.join(wanted.text.split()[:2])} ? * 2-6 1990/3", "dialect": "quartz"}
    )
    every = st.sampled_from(["P1D", "P7D", "P1M", "P3M", "P1Y", "P1DT12H", "P1M2DT3H", "P2W"])
    anchors = st.one_of(walls(1965, 2037).map(lambda wall: wall.isoformat()), spring_and_autumn())
    steps = st.builds(lambda step, anchor: {"every": step, "anchor": anchor}, every, anchors)
    rules = rule_texts(("YEARLY", "MONTHLY", "WEEKLY", "DAILY")).map(lambda text: {"rrule": text})
    at = spring_and_autumn().map(lambda wall: {"at": wall})
    placed = st.builds(lambda spec, dst: {**spec, **dst_of(dst)}, st.one_of(crons, years, steps, rules, at), policies())
    elapsed = st.builds(
        lambda step, anchor: {"every": step, "anchor": anchor},
        st.sampled_from(["1s", "7m", "1h30m", "PT168H"]),
        anchors,
    )
    paced = rule_texts(("HOURLY", "MINUTELY")).map(lambda text: {"rrule": text})
    specs = st.one_of(placed, placed, elapsed, paced)
    return st.builds(lambda spec, zone: times.read_trigger({**spec, "zone": zone}), specs, st.sampled_from(ODD_ZONES))


def spring_and_autumn() -> st.SearchStrategy[str]:
    """Draw wall times that are skipped or repeated in many zones."""
    days = st.sampled_from(["2026-03-08", "2026-03-29", "2026-10-25", "2026-11-01", "2025-10-05", "2025-04-06"])
    return st.builds(
        lambda day, hour, minute: f"{day}T{hour:02}:{minute:02}:00", days, st.integers(0, 3), st.integers(0, 59)
    )


def numbers(low: int, high: int, most: int = 3) -> st.SearchStrategy[str]:
    return st.sets(st.integers(low, high), min_size=1, max_size=most).map(lambda some: ",".join(map(str, some)))


def places(low: int, high: int, most: int = 3) -> st.SearchStrategy[str]:
    either = st.one_of(st.integers(low, high), st.integers(-high, -low))
    return st.sets(either, min_size=1, max_size=most).map(lambda some: ",".join(map(str, some)))


@st.composite
def rule_texts(
    draw: st.DrawFn,
    frequencies: tuple[str, ...] = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"),
    *,
    is_plain: bool = False,
) -> str:
    """Draw a calendar rule; a plain one has no end and nothing that dateutil reads in another way."""
    start = draw(walls(1990, 2030)).replace(microsecond=0)
    freq = draw(st.sampled_from(frequencies))
    parts = [f"DTSTART={start:%Y%m%dT%H%M%S}", f"FREQ={freq}"]
    often, seldom = st.booleans(), st.sampled_from([True, False, False])
    if draw(often):
        parts.append(f"INTERVAL={draw(st.sampled_from([1, 2, 3, 4, 5, 7, 13, 24, 36, 90]))}")
    drawn = {
        "BYMONTH": numbers(1, 12),
        "BYHOUR": numbers(0, 23),
        "BYMINUTE": numbers(0, 59),
        "BYSECOND": numbers(0, 59, 2),
    }
    drawn["BYMONTHDAY"] = places(1, 31)
    if freq not in ("HOURLY", "MINUTELY"):
        drawn["BYYEARDAY"] = places(1, 366, 20)
    if freq == "YEARLY":
        drawn["BYWEEKNO"] = places(1, 51)
    parts += [f"{name}={draw(values)}" for name, values in drawn.items() if draw(seldom)]
    names = [part.partition("=")[0] for part in parts]
    if draw(seldom):
        days = draw(st.sets(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1, max_size=4))
        if freq in ("MONTHLY", "YEARLY") and "BYWEEKNO" not in names and draw(often):
            high = 5 if freq == "MONTHLY" or "BYMONTH" in names else 53
            days = {f"{draw(places(1, high, 1))}{day}" for day in days}
        parts.append(f"BYDAY={','.join(sorted(days))}")
    if freq not in ("HOURLY", "MINUTELY") and any(name.startswith("BY") for name in names) and draw(seldom):
        parts.append(f"BYSETPOS={draw(places(1, 4))}")
    if draw(seldom):
        parts.append(f"WKST={draw(st.sampled_from(['MO', 'SU', 'TH']))}")
    if not is_plain:
        parts += draw(ends_and_exceptions(start))
    return ";".join(parts)


@st.composite
def ends_and_exceptions(draw: st.DrawFn, start: datetime) -> list[str]:
    ends = ["COUNT=7", "COUNT=1000", "UNTIL=20310101T000000Z", "UNTIL=20281231", "UNTIL=20290325T023000"]
    parts = [draw(st.sampled_from(ends))] if draw(st.booleans()) else []
    near = st.integers(0, 40).map(lambda days: f"{start + timedelta(days=days):%Y%m%dT%H%M%S}")
    for name in ("EXDATE", "RDATE"):
        if draw(st.sampled_from([True, False, False])):
            moments = draw(st.lists(near, min_size=1, max_size=3))
            parts.append(f"{name}={','.join(moment + draw(st.sampled_from(['', 'Z'])) for moment in moments)}")
    return parts
