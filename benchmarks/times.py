"""Next times: the rate for common crons beside other libraries, the worst single answer, and what bombs cost.

The rates of one cron are taken in turns, and the best round of each counts, so that a busy machine disturbs all alike.
A single answer is timed by the processor, with nothing remembered from earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter, process_time
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from oncue.errors import TriggerError
from oncue.rules import times
from oncue.rules.triggers import pace, pattern, rrule, zones

START = datetime(2026, 1, 1, tzinfo=UTC)
ZONE = "Europe/Athens"
CRONS = ("* * * * *", "*/5 * * * *", "0 * * * *", "0 9 * * *", "0 9 * * mon-fri", "30 2 1 * *", "0 0 1 1 *")
ROUNDS = 5
REMEMBERED = (
    zones._stretches,
    pattern.month_of,
    pattern._weekday_days,
    pace._comb,
    pace._minutes_of,
    pace._folded,
    rrule._number_in,
    rrule._end_of_count,
)

SPARSE: dict[str, tuple[dict[str, object], datetime]] = {
    "29 Feb from 2096": ({"cron": "0 0 29 2 *"}, datetime(2096, 2, 29, 0, 0, 1, tzinfo=UTC)),
    "29 Feb on a Monday": ({"cron": "0 0 29 2 */7"}, START),
    "the fifth Friday of February": ({"cron": "0 0 * 2 5#5"}, START),
    "L-30": ({"cron": "0 0 L-30 * *"}, START),
    "H": ({"cron": "H H H H *"}, START),
    "never but in the gap": (
        {"cron": "0 30 2 ? 3 SUN#2 1970-2199", "dialect": "quartz", "dst": {"gap": "skip"}},
        START,
    ),
    "29 Feb on a Sunday by rule": (
        {"rrule": "DTSTART=20200101T000000;FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU"},
        datetime(2033, 1, 1, tzinfo=UTC),
    ),
    "day 366 on a Monday": ({"rrule": "DTSTART=20200101T000000;FREQ=YEARLY;BYYEARDAY=366;BYDAY=MO"}, START),
    "week 53": ({"rrule": "DTSTART=20200101T000000;FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;BYMONTHDAY=28"}, START),
    "places in a year of minutes": (
        {"rrule": "DTSTART=20200101T000000;FREQ=YEARLY;BYDAY=SU,MO,TU,WE,TH,FR,SA;BYHOUR=0,1,2,3;BYSETPOS=-1,366"},
        START,
    ),
    "every thousandth year": ({"rrule": "DTSTART=20200101T000000;FREQ=YEARLY;INTERVAL=1000"}, START),
    "every thousandth month, on Friday the 31st": (
        {"rrule": "DTSTART=20200101T000000;FREQ=MONTHLY;INTERVAL=1000;BYMONTHDAY=31;BYDAY=FR"},
        START,
    ),
    "every 997th minute, Mondays at 03:07": (
        {"rrule": "DTSTART=20200101T003000;FREQ=MINUTELY;INTERVAL=997;BYDAY=MO;BYHOUR=3;BYMINUTE=7"},
        START,
    ),
    "COUNT of days": ({"rrule": "DTSTART=20000101T003000;FREQ=DAILY;COUNT=10000"}, START),
    "COUNT of minutes": ({"rrule": "DTSTART=20000101T003000;FREQ=MINUTELY;COUNT=10000"}, START),
    "COUNT of last workdays": (
        {"rrule": "DTSTART=20000101T003000;FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=10000"},
        START,
    ),
    "months from a hundred years ago": ({"every": "P1M", "anchor": "1926-01-31T02:30:00"}, START),
    "months, days and hours": ({"every": "P1M2DT3H", "anchor": "1926-01-31T02:30:00"}, START),
}
"""Legal schedules whose next time is far away, or costly to find."""

EXCLUDED = ",".join(f"{START + timedelta(days=k):%Y%m%dT%H%M%S}" for k in range(550))
BOMBS: dict[str, dict[str, object]] = {
    "30 February": {"cron": "0 0 30 2 *"},
    "29 February 2100": {"cron": "0 0 0 29 2 ? 2100", "dialect": "quartz"},
    "every second": {"cron": "* * * * * *"},
    "a million items": {"cron": ",".join(["0"] * 1_000_000) + " * * * *"},
    "as many items as fit": {"cron": ",".join(["*"] * 490) + " * * * *"},
    "a long text": {"cron": "9" * 10_000_000},
    "many fields": {"cron": "* " * 1_000_000},
    "a huge step": {"cron": f"*/{10**9} * * * *"},
    "a huge range": {"cron": f"0-{10**9} * * * *"},
    "a tiny step": {"every": "PT0.000001S", "anchor": "2026-01-01T00:00:00Z"},
    "an endless step": {"every": "P9999Y", "anchor": "2026-01-01T00:00:00Z"},
    "a step with many digits": {"every": "9" * 1_000_000 + "s", "anchor": "2026-01-01T00:00:00Z"},
    "empty by construction": {"rrule": "DTSTART=20220101T090000;FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=3;BYSETPOS=3"},
    "an odd hour every second hour": {"rrule": "DTSTART=20220101T000000;FREQ=HOURLY;INTERVAL=2;BYHOUR=1"},
    "an odd minute every second minute": {"rrule": "DTSTART=20220101T000000;FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1"},
    "a place that no day has": {"rrule": "DTSTART=20220101T000000;FREQ=DAILY;BYHOUR=1,2;BYSETPOS=300"},
    "a place that no week has": {"rrule": "DTSTART=20220101T000000;FREQ=WEEKLY;BYMONTHDAY=13;BYSETPOS=2"},
    "all minutes of a year": {
        "rrule": "DTSTART=20220101T000000;FREQ=YEARLY;BYDAY=SU,MO,TU,WE,TH,FR,SA;BYHOUR="
        + ",".join(map(str, range(24))) + ";BYMINUTE=" + ",".join(map(str, range(60))) + ";BYSETPOS=-1,1,200"
    },
    "deep minutes": {
        "rrule": "DTSTART=19000101T000000;FREQ=MINUTELY;INTERVAL=991;BYMONTHDAY=13;BYDAY=FR;BYHOUR=3;BYMINUTE=7"
    },
    "30 February by rule": {"rrule": "DTSTART=19000101T000000;FREQ=YEARLY;INTERVAL=1000;BYMONTH=2;BYMONTHDAY=30"},
    "a billion times": {"rrule": "DTSTART=20220101T000000;FREQ=MINUTELY;COUNT=1000000000"},
    "ten thousand years": {"rrule": "DTSTART=20220101T000000;FREQ=YEARLY;COUNT=10000"},
    "ten thousand seconds": {"rrule": "DTSTART=20220101T000000;FREQ=SECONDLY;COUNT=10000"},
    "a hundred thousand exceptions": {
        "rrule": "FREQ=DAILY;DTSTART=20260101T000000;EXDATE=" + ",".join(["20260101T000000"] * 100_000)
    },
    "as many exceptions as fit": {"rrule": f"DTSTART=20260101T000000;FREQ=DAILY;EXDATE={EXCLUDED}"},
    "as many exceptions as fit, and a COUNT": {
        "rrule": f"DTSTART=20260101T000000;FREQ=DAILY;COUNT=9999;EXDATE={EXCLUDED}"
    },
    "always in the gap": {
        "rrule": "DTSTART=20200101T023000;FREQ=YEARLY;BYMONTH=3;BYDAY=2SU",
        "zone": "America/New_York",
        "dst": {"gap": "skip"},
    },
}  # fmt: skip
"""What somebody may send to make a clock busy. Each is refused, or answered at once."""


def run(*, calls: int = 5_000) -> dict[str, Any]:
    """Return the rates and their ratios to croniter, the dearest answers, and the cost of each bomb."""
    figures: dict[str, Any] = {cron: _compared(cron, calls) for cron in CRONS}
    figures["ratio to croniter, the least"] = min(figures[cron]["ratio to croniter"] for cron in CRONS)
    single = {name: _dearest(spec, after) for name, (spec, after) in SPARSE.items()}
    figures["single answer, ms"] = single | {"the worst": max(single.values())}
    bombs = {name: _read_and_ask(spec) for name, spec in BOMBS.items()}
    figures["bomb, ms"] = bombs | {"the worst": max(bombs.values())}
    return figures


def defuse(spec: dict[str, object]) -> list[datetime] | None:
    """Read a schedule, check it and ask for its next five times; none if it is refused."""
    try:
        trigger = times.read_trigger({"zone": ZONE, **spec}, name="bomb")
        times.check(trigger, START)
    except TriggerError:
        return None
    return times.times_between(trigger, START, datetime.max.replace(tzinfo=UTC), 5)


def _compared(cron: str, calls: int) -> dict[str, Any]:
    steps = {"oncue": _ours, "cronsim": _cronsim, "croniter": _croniter}
    rates = dict.fromkeys(steps, 0.0)
    for _ in range(ROUNDS):
        for name, step in steps.items():
            rates[name] = max(rates[name], _rate(step(cron), calls // ROUNDS))
    ratio = round(rates["oncue"] / rates["croniter"], 1)
    return {**{f"{name} per second": round(rate) for name, rate in rates.items()}, "ratio to croniter": ratio}


def _ours(cron: str) -> Iterator[datetime]:
    trigger = times.read_trigger({"cron": cron, "zone": ZONE})
    moment: datetime | None = START
    while (moment := times.next_after(trigger, moment)) is not None:
        yield moment


def _cronsim(cron: str) -> Iterator[datetime]:
    return CronSim(cron, START.astimezone(ZoneInfo(ZONE)))


def _croniter(cron: str) -> Iterator[datetime]:
    walk = croniter(cron, START.astimezone(ZoneInfo(ZONE)))
    while True:
        yield walk.get_next(datetime)


def _rate(walk: Iterator[datetime], calls: int) -> float:
    begun = perf_counter()
    for _ in range(calls):
        next(walk)
    return calls / (perf_counter() - begun)


def _dearest(spec: dict[str, object], after: datetime) -> float:
    trigger = times.read_trigger({"zone": ZONE, **spec}, name="some task")
    return max(_milliseconds(lambda ask=ask: ask(trigger, after)) for ask in (times.next_after, times.previous_before))


def _read_and_ask(spec: dict[str, object]) -> float:
    return _milliseconds(lambda: defuse(spec))


def _milliseconds(ask: Callable[[], object]) -> float:
    """Return the least time of three that an answer takes while nothing is remembered."""
    taken = []
    for _ in range(3):
        for cached in REMEMBERED:
            cached.cache_clear()
        begun = process_time()
        ask()
        taken.append(process_time() - begun)
    return round(min(taken) * 1000, 2)
