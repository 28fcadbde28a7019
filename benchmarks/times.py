"""Next times: consecutive calls of `next_after` for common schedules, beside the cron libraries that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from oncue.rules import times

START = datetime(2026, 1, 1, tzinfo=UTC)
ZONE = "Europe/Athens"
CRONS = ("* * * * *", "*/5 * * * *", "0 9 * * mon-fri", "30 2 1 * *")


def run(*, calls: int = 5_000) -> dict[str, Any]:
    """Return calls a second for each cron, by who answers, and the ratio to the slowest."""
    figures: dict[str, Any] = {}
    for cron in CRONS:
        rates = {name: round(measure(cron, calls)) for name, (module, measure) in LIBRARIES.items() if _has(module)}
        slowest = min(rates.values())
        figures[cron] = {"per_second": rates, "ratio": {name: round(rate / slowest, 1) for name, rate in rates.items()}}
    return figures


def _ours(cron: str, calls: int) -> float:
    trigger = times.read_trigger({"cron": cron, "zone": ZONE})
    moment: datetime | None = START

    def step() -> None:
        nonlocal moment
        moment = times.next_after(trigger, moment or START)

    return _rate(step, calls)


def _cronsim(cron: str, calls: int) -> float:
    from cronsim import CronSim

    return _rate(CronSim(cron, START.astimezone(ZoneInfo(ZONE))).__next__, calls)


def _croniter(cron: str, calls: int) -> float:
    from croniter import croniter

    walk = croniter(cron, START.astimezone(ZoneInfo(ZONE)))
    return _rate(lambda: walk.get_next(datetime), calls)


def _rate(step: Callable[[], object], calls: int) -> float:
    for _ in range(100):
        step()
    begun = perf_counter()
    for _ in range(calls):
        step()
    return calls / (perf_counter() - begun)


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


LIBRARIES: dict[str, tuple[str, Callable[[str, int], float]]] = {
    "oncue": ("oncue", _ours),
    "cronsim": ("cronsim", _cronsim),
    "croniter": ("croniter", _croniter),
}
