"""`oncue why`: one verdict for each due time, and an answer also for times that were never due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oncue.app import Oncue
from oncue.definition import Definition, HttpTarget, Misfire
from oncue.engine.clock import Clock
from oncue.store import endings, runs, tasks
from oncue.store.runs import Progress
from tests.cli.conftest import NOBODY, Folder

BEGIN = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)  # a Tuesday
HOURLY = {"cron": "0 * * * *", "zone": "America/New_York"}


class Told:
    """A store in which a clock went its way, hour by hour, and what `oncue why` says of it."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def play(self, play: Callable[[Oncue], Any], **changes: Any) -> None:
        async def work() -> None:
            async with Oncue(f"sqlite:///{self.folder.path}/oncue.db") as oncue:
                definition = Definition("job", HttpTarget(NOBODY), **({"schedule": HOURLY} | changes))
                await oncue.store.write(tasks.apply, [definition], prune=False, actor="test", now=BEGIN)
                await play(oncue)

        asyncio.run(work())

    def why(self, *arguments: str) -> list[dict[str, Any]]:
        times: list[dict[str, Any]] = self.folder.json("why", "job", *arguments)["times"]
        return times

    def verdicts(self) -> dict[str, str]:
        return {one["last_due_at"][11:16]: one["verdict"] for one in self.why("-n", "50")}


@pytest.fixture
def told(folder: Folder) -> Told:
    return Told(folder)


async def fire(oncue: Oncue, now: datetime, *, started: datetime | None = None, state: str = "done") -> None:
    """Let the clock fire at `now`, and one run be carried out."""
    await Clock(oncue.store).step(now)
    begin = started or now
    claimed = await oncue.store.write(runs.claim, now=begin, until=begin + timedelta(hours=9), limit=9)
    for run in claimed:
        if state == "done":
            await oncue.store.write(runs.checkpoint, run, Progress(None, 3, 3, 0), now=begin, until=begin)
        elif state != "running":
            await oncue.store.write(endings.end_run, run, state, reason="HTTP 500", now=begin)


def hours(number: float) -> datetime:
    return BEGIN + timedelta(hours=number)


def test_each_due_time_ends_under_one_verdict(told: Told) -> None:
    async def play(oncue: Oncue) -> None:
        await fire(oncue, hours(1))
        await fire(oncue, hours(2), started=hours(2.5))
        await fire(oncue, hours(6.5))
        await fire(oncue, hours(7), state="failed")
        await fire(oncue, hours(8), state="expired")
        await fire(oncue, hours(9), state="running")
        await fire(oncue, hours(10))
        await oncue.store.write(tasks.pause, "job", reason="release", actor="test", now=hours(10.5))
        await oncue.store.write(tasks.resume, "job", actor="test", now=hours(12.5))

    told.play(play)

    assert told.verdicts() == {
        "09:00": "on time",
        "10:00": "late",
        "13:00": "coalesced",
        "14:00": "caught up",
        "15:00": "failed to resolve",
        "16:00": "expired",
        "17:00": "running",
        "18:00": "skipped",
        "20:00": "skipped",
    }
    assert {one["task_version"] for one in told.why()} == {1}


def test_a_time_that_was_never_due_is_explained(told: Told) -> None:
    async def play(oncue: Oncue) -> None:
        await fire(oncue, hours(1))

    told.play(play, schedule={"cron": "30 2 * * *", "zone": "America/New_York"}, misfire=Misfire(catch_up="none"))

    (one,) = told.why("--at", "2026-11-24T08:00:00+00:00")
    text = told.folder.run("why", "job", "--at", "2026-11-24T08:00:00+00:00").stdout

    assert one["verdict"] == "nothing"
    assert "It was not due then" in text
    assert "2026-11-24" in text


def test_a_time_between_those_of_a_range_is_not_said_to_be_one_of_them(told: Told) -> None:
    async def play(oncue: Oncue) -> None:
        await fire(oncue, hours(6.5))

    told.play(play)

    (due,) = told.why("--at", hours(3).isoformat())
    (between,) = told.why("--at", hours(3.5).isoformat())

    assert (due["verdict"], between["verdict"]) == ("coalesced", "nothing")
