"""Properties of composed schedules, and a second opinion that filters, moves and joins by hand, day by day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st

from oncue.definition import Calendar, Override
from oncue.rules import times
from tests.rules.drawing import ODD_ZONES, changes_of, moments_near_changes, thorough, triggers

TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class Daily:
    """A cron at some minutes of some hours on some weekdays, and what it means."""

    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]

    @property
    def spec(self) -> dict[str, str]:
        minutes, hours = (",".join(map(str, sorted(numbers))) for numbers in (self.minutes, self.hours))
        weekdays = ",".join(NAMES[day] for day in sorted(self.weekdays))
        return {"cron": f"{minutes} {hours} * * {weekdays}"}

    def walls(self, first: date, last: date) -> list[datetime]:
        days = [first + k * DAY for k in range((last - first).days + 1)]
        return [
            datetime.combine(day, time(hour, minute))
            for day in days
            if day.weekday() in self.weekdays
            for hour in sorted(self.hours)
            for minute in sorted(self.minutes)
        ]


def place(wall: datetime, zone: ZoneInfo) -> datetime | None:
    """Return where a fixed cron is due for a wall time: the first copy, or the first instant after a gap."""
    instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    shown = instant.astimezone(zone).replace(tzinfo=None, fold=0)
    if shown == wall:
        return instant
    if shown - wall >= timedelta(hours=3):
        return None
    while (instant - MINUTE).astimezone(zone).replace(tzinfo=None) >= wall:
        instant -= MINUTE
    return instant


def is_on(calendar: Calendar, day: date) -> bool:
    return (NAMES[day.weekday()] in calendar.weekdays or day in calendar.dates) and day not in calendar.without


@dataclass(frozen=True)
class Composed:
    """A composed schedule as drawn: its text, and the same in values."""

    zone: str
    parts: tuple[Daily, ...]
    excluded: tuple[Daily, ...] = ()
    only: tuple[Calendar, ...] = ()
    never: tuple[Calendar, ...] = ()
    move: str | None = None
    start: datetime | None = None
    end: datetime | None = None

    def read(self, overrides: Iterable[Override] = ()) -> times.Trigger:
        spec: dict[str, Any] = {"zone": self.zone, "any": [part.spec for part in self.parts]}
        calendars = {calendar.name: calendar for calendar in (*self.only, *self.never)}
        if self.excluded:
            spec["except"] = [part.spec for part in self.excluded]
        if self.only:
            spec["only_on"] = [calendar.name for calendar in self.only]
        if self.never:
            spec["except_on"] = [calendar.name for calendar in self.never]
        if self.move:
            spec["move"] = self.move
        for key, moment in (("start", self.start), ("end", self.end)):
            if moment:
                spec[key] = moment.isoformat()
        return times.read_trigger(spec, calendars=calendars, overrides=tuple(overrides))

    def is_allowed(self, day: date) -> bool:
        return all(is_on(one, day) for one in self.only) and not any(is_on(one, day) for one in self.never)

    def exists(self, moment: datetime, excluded: set[datetime]) -> bool:
        within = (self.start is None or self.start <= moment) and (self.end is None or moment <= self.end)
        return within and moment not in excluded

    def times(self, after: datetime, until: datetime) -> list[datetime]:
        """Return the times in (after, until], from the words of the rules alone."""
        zone, first, last = ZoneInfo(self.zone), after.date() - 40 * DAY, until.date() + 40 * DAY
        excluded = {place(wall, zone) for part in self.excluded for wall in part.walls(first, last)}
        found = set()
        for part in self.parts:
            for wall in part.walls(first, last):
                moment = place(wall, zone)
                if moment is None or not self.exists(moment, excluded):
                    continue
                day = moment.astimezone(zone).date()
                if not self.is_allowed(day):
                    moment = self.moved(wall, day, zone)
                if moment is not None and self.exists(moment, excluded):
                    found.add(moment)
        return sorted(moment for moment in found if after < moment <= until)

    def moved(self, wall: datetime, day: date, zone: ZoneInfo) -> datetime | None:
        if self.move is None:
            return None
        step = DAY if self.move == "next" else -DAY
        for _ in range(40):
            day += step
            if self.is_allowed(day):
                return place(datetime.combine(day, wall.time()), zone)
        return None


@st.composite
def dailies(draw: st.DrawFn) -> Daily:
    hours = draw(st.sets(st.sampled_from([0, 1, 2, 2, 3, 9, 23]), min_size=1, max_size=2))
    minutes = draw(st.sets(st.sampled_from([0, 15, 30, 45, 59]), min_size=1, max_size=2))
    weekdays = draw(st.one_of(st.just(set(range(7))), st.sets(st.integers(0, 6), min_size=1, max_size=3)))
    return Daily(frozenset(minutes), frozenset(hours), frozenset(weekdays))


@st.composite
def calendars(draw: st.DrawFn, name: str, around: date, *, most: int = 7) -> Calendar:
    near = st.integers(-20, 20).map(lambda days: around + days * DAY)
    weekdays = draw(st.sets(st.sampled_from(NAMES), max_size=most))
    dates = draw(st.lists(near, max_size=6))
    return Calendar(name, tuple(weekdays), dict.fromkeys(dates, ""), tuple(draw(st.lists(near, max_size=4))))


@st.composite
def composed(draw: st.DrawFn) -> tuple[Composed, datetime]:
    zone, after = draw(moments_near_changes())
    after = after.replace(microsecond=0)
    day = after.date()
    only = tuple(draw(calendars(f"only-{k}", day)) for k in range(draw(st.integers(0, 2))))
    never = tuple(draw(calendars(f"never-{k}", day, most=3)) for k in range(draw(st.integers(0, 1))))
    near = st.one_of(st.none(), st.integers(-9 * 1440, 9 * 1440).map(lambda minutes: after + minutes * MINUTE))
    start, end = draw(near), draw(near)
    assume(start is None or end is None or start <= end)
    parts = tuple(draw(st.lists(dailies(), min_size=1, max_size=3)))
    excluded = tuple(draw(st.lists(dailies(), max_size=2)))
    move = draw(st.sampled_from([None, "next", "previous"])) if only or never else None
    return Composed(zone, parts, excluded, only, never, move, start, end), after


def back(trigger: times.Trigger, until: datetime, after: datetime) -> list[datetime]:
    """Return the times in (after, until], found from behind."""
    found = []
    moment = times.previous_before(trigger, until + TICK)
    while moment is not None and moment > after:
        found.append(moment)
        moment = times.previous_before(trigger, moment)
    return found[::-1]


@thorough(250)
@given(composed(), st.integers(0, 12))
def test_composed_times_are_those_of_the_rules_applied_day_by_day(drawn: tuple[Composed, datetime], days: int) -> None:
    schedule, after = drawn
    until = after + days * DAY
    expected = schedule.times(after, until)
    trigger = schedule.read()

    try:
        found = times.times_between(trigger, after, until, 5000)
        found_back = back(trigger, until, after)
    except times.TriggerError as error:
        assume(not str(error).startswith("except: it takes away more than"))
        raise

    assert found == expected
    assert found_back == expected
    tally = times.tally_between(trigger, after, until)
    ends = (expected[0], expected[-1]) if expected else (None, None)
    assert tally == times.Tally(len(expected), *ends)
    for moment in expected:
        assert times.next_after(trigger, moment - TICK) == moment


@thorough(100)
@given(composed(), st.data())
def test_changes_by_hand_take_out_and_put_in_exactly_what_they_name(
    drawn: tuple[Composed, datetime], data: st.DataObject
) -> None:
    schedule, after = drawn
    until = after + 10 * DAY
    plain = schedule.times(after - 20 * DAY, until + 20 * DAY)
    assume(plain)
    named = data.draw(st.lists(st.sampled_from([*plain, after]), max_size=5, unique=True))
    targets = st.one_of(st.none(), st.sampled_from(plain), st.integers(0, 9 * 1440).map(lambda k: after + k * MINUTE))
    overrides = [Override(due_at, data.draw(targets)) for due_at in named]
    trigger = schedule.read(overrides)

    found = times.times_between(trigger, after, until, 5000)

    valid = [override for override in overrides if override.due_at in plain]
    kept = set(plain) - {override.due_at for override in valid}
    kept |= {override.moved_to for override in valid if override.moved_to}
    expected = sorted(moment for moment in kept if after < moment <= until)
    assert found == expected
    assert back(trigger, until, after) == expected
    assert times.tally_between(trigger, after, until).count == len(expected)


@thorough(60)
@given(composed(), st.integers(0, 12))
def test_what_calendars_and_exclusions_drop_is_what_is_missing(drawn: tuple[Composed, datetime], days: int) -> None:
    schedule, after = drawn
    schedule = replace(schedule, move=None)
    until = after + days * DAY
    bare = replace(schedule, excluded=(), only=(), never=()).times(after, until)
    on_days = replace(schedule, excluded=()).times(after, until)

    found = {dropped.reason.split()[0]: dropped for dropped in times.dropped_between(schedule.read(), after, until)}

    for word, missing in (
        ("left", sorted(set(bare) - set(on_days))),
        ("excluded", sorted(set(on_days) - set(schedule.times(after, until)))),
    ):
        dropped = found.get(word)
        told = dropped and (dropped.count, dropped.first, dropped.last, dropped.is_exact)
        assert told == ((len(missing), missing[0], missing[-1], True) if missing else None)


@st.composite
def any_kinds(draw: st.DrawFn) -> tuple[times.Timetable, datetime]:
    """Draw a timetable of triggers of every kind."""
    zone, after = draw(moments_near_changes())
    near = after.date()
    parts = draw(st.lists(triggers(), min_size=1, max_size=3))
    excluded = draw(st.lists(triggers(), max_size=2))
    cals = [draw(calendars(f"c{k}", near)) for k in range(draw(st.integers(0, 2)))]
    spec: dict[str, Any] = {"cron": "0 9 * * *", "zone": zone}
    if cals:
        spec["only_on"] = [cal.name for cal in cals]
    table = times.read_trigger({**spec, "start": "1900-01-01"}, calendars={cal.name: cal for cal in cals})
    assert isinstance(table, times.Timetable)
    return replace(table, parts=tuple(parts), excluded=tuple(excluded)), after


@thorough(150)
@given(any_kinds(), st.integers(1, 3 * 86400))
def test_a_timetable_of_any_kinds_is_the_set_of_what_its_kinds_name(
    drawn: tuple[times.Timetable, datetime], seconds: int
) -> None:
    table, after = drawn
    until = after + timedelta(seconds=seconds)
    listed = [times.times_between(kind, after, until, 1500) for kind in (*table.parts, *table.excluded)]
    assume(all(len(found) < 1500 for found in listed))
    named = {moment for found in listed[: len(table.parts)] for moment in found}
    gone = {moment for found in listed[len(table.parts) :] for moment in found}
    only = [listed.calendar for listed in table.days.only]
    zone = table.zone
    expected = sorted(m for m in named - gone if all(is_on(one, m.astimezone(zone).date()) for one in only))
    try:
        found = times.times_between(table, after, until, 5000)
        found_back = back(table, until, after)
    except times.TriggerError as error:
        assume(not str(error).startswith("except: it takes away more than"))
        raise

    assert found == expected
    assert all(moment.tzinfo is UTC for moment in found)
    assert all(later > earlier for earlier, later in pairwise([after, *found]))
    if expected:
        assert times.tally_between(table, after, until) == times.Tally(len(expected), expected[0], expected[-1])
    assert found_back == expected


RHYTHMS = (
    *({"cron": text} for text in ("* * * * *", "*/5 * * * *", "30 * * * *", "15 0,2,12 * * *", "30 2 * * sun")),
    *({"cron": text, "dst": {"gap": "shift", "repeat": "last"}} for text in ("*/15 1-3 * * *", "30 1,2 * * *")),
    *({"every": step, "anchor": "2026-01-01T00:30:00Z"} for step in ("5m", "90s", "1h", "PT36H", "P1D", "P1DT1H")),
    {"every": "7m", "anchor": "2026-01-01T00:00:00.5Z"},
    {"rrule": "DTSTART=20260101T013000;FREQ=DAILY;BYHOUR=1,2,12"},
    {"rrule": "DTSTART=20260101T013000;FREQ=HOURLY;RDATE=20261101T013100,20260308T033300"},
    {"at": "2026-11-01T01:30:00", "dst": {"repeat": "both"}},
)
GONE = (
    "* * * * *",
    "* * * * sat,sun",
    "* 1-22 * * *",
    "*/5 * * * *",
    "* * 1,8 * *",
    "0,30 1,2,3,12 * * *",
    "15-45 2 * * *",
    "* * * * * sun",
    "0-59 0-59 0-23 * * *",
)


@thorough(100)
@given(
    st.lists(st.sampled_from(RHYTHMS), min_size=1, max_size=3),
    st.lists(st.sampled_from(GONE), min_size=1, max_size=2),
    st.lists(st.sampled_from(["America/New_York", "UTC", "Australia/Lord_Howe"]), min_size=5, max_size=5),
    st.sampled_from(["2026-03-08", "2026-11-01", "2026-04-04", "2026-10-03", "2026-06-14"]),
)
def test_what_is_leapt_over_is_excluded_and_no_more(
    parts: list[dict[str, Any]], gone: list[str], zones: list[str], day: str
) -> None:
    middle = datetime.fromisoformat(f"{day}T06:00:00+00:00")
    after, until = middle - 2 * DAY, middle + 2 * DAY
    any_of = [{**part, "zone": zone} for part, zone in zip(parts, zones, strict=False)]
    except_of = [{"cron": text, "zone": zone} for text, zone in zip(gone, reversed(zones), strict=False)]
    table = times.read_trigger({"any": any_of, "except": except_of, "zone": zones[0]})
    listed = [set(times.times_between(times.read_trigger(one), after, until, 500_000)) for one in any_of]
    excluded = [times.read_trigger(one) for one in except_of]

    try:
        found, found_back = times.times_between(table, after, until, 500_000), back(table, until, after)
    except times.TriggerError as error:
        assume(not str(error).startswith("except: it takes away more than"))
        raise

    expected = sorted(m for m in set().union(*listed) if all(times.next_after(one, m - TICK) != m for one in excluded))
    assert found == expected
    assert found_back == expected


@thorough(60)
@given(st.sampled_from(ODD_ZONES), st.data())
def test_a_day_is_what_the_clock_shows_from_its_first_instant_to_its_last(zone: str, data: st.DataObject) -> None:
    around = data.draw(st.sampled_from(changes_of(zone) or [datetime(2026, 3, 8, 7, tzinfo=UTC)]))
    day = around.date() + data.draw(st.integers(-2, 2)) * DAY
    info = ZoneInfo(zone)
    begin = datetime.combine(day, time(), UTC) - 2 * DAY
    minutes = [begin + k * MINUTE for k in range(4 * 1440)]
    shown = [moment for moment in minutes if moment.astimezone(info).date() == day]
    bounds = {"start": day.isoformat(), "end": day.isoformat()}
    assume(shown)
    trigger = times.read_trigger({"cron": "* * * * *", "zone": zone, **bounds})

    found = times.times_between(trigger, begin, begin + 5 * DAY, 5000)

    assert found[0] == shown[0]
    assert found[-1] == shown[-1]
