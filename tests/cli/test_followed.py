"""Followed tasks at the command line and through the API's own shapes: what is shown of them, and why."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from oncue.app import Oncue
from oncue.cli.session import read_config
from oncue.engine.clock import Clock
from oncue.store import followed
from tests.cli.conftest import NOBODY, Folder

FOLLOWED = f"""
[task.remind]
schedule = {{ next = {{ sql = "select min(starts_at) from visit where starts_at > :after", source = "shop" }} }}
resolve = {{ sql = "select id as key, starts_at as due_at from visit", source = "shop" }}
target = {{ http = "{NOBODY}" }}

[[task.remind.on]]
event = "visit.moved"
do = "touch"
"""
TOMORROW = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)


@pytest.fixture
def applied(folder: Folder) -> Folder:
    shop(folder, "create table visit (id text primary key, starts_at text)")
    shop(folder, f"insert into visit values ('v1', '{TOMORROW.isoformat()}')")
    folder.write("tasks.toml", FOLLOWED)
    folder.run("apply", "tasks.toml")
    return folder


def shop(folder: Folder, sql: str) -> None:
    with closing(sqlite3.connect(folder.path / "shop.db")) as connection, connection:
        connection.execute(sql)


def let_the_clock_ask() -> None:
    """Let a clock take a step, and what it asks be answered."""

    async def work() -> None:
        async with Oncue(read_config()) as oncue:
            now = await oncue.now()
            clock = Clock(oncue.store, follow=oncue.follow)
            await clock.step(now)
            await oncue.follow.idle()
            await clock.step(await oncue.now())

    asyncio.run(work())


def test_next_shows_what_is_known_and_what_the_data_answers_now(applied: Folder) -> None:
    fresh = applied.run("next", "remind").stdout
    let_the_clock_ask()
    asked = applied.run("next", "remind").stdout
    as_json = applied.json("next", "remind")

    assert "Followed: the next time is read by a query from shop." in fresh
    assert "It has not been asked yet." in fresh
    assert "Asked now, it answers: " in fresh
    assert "Last asked: " in asked
    assert "Horizon: " in asked
    assert as_json == {"times": [TOMORROW.isoformat().replace("+00:00", "Z")]}


def test_next_says_that_the_data_cannot_be_asked(applied: Folder) -> None:
    shop(applied, "drop table visit")
    let_the_clock_ask()

    said = applied.run("next", "remind").stdout

    assert "It cannot be asked since " in said
    assert 'Asked now, it fails: source "shop"' in said
    assert "no such table: visit" in said


def test_show_and_its_json_say_where_it_stands(applied: Folder) -> None:
    let_the_clock_ask()

    said = applied.run("show", "remind").stdout
    schedule = applied.json("show", "remind")["schedule"]
    listed = applied.json("tasks")["items"][0]["schedule"]

    assert "Followed: the next time is read by a query from shop. On visit.moved." in said
    assert "Horizon: " in said
    assert datetime.fromisoformat(schedule["next_at"]) == TOMORROW
    assert datetime.fromisoformat(schedule["followed"]["answer_at"]) == TOMORROW
    assert schedule["followed"]["reason"] is None
    assert listed == schedule


def test_preview_shows_the_window_from_the_horizon(applied: Folder) -> None:
    now = applied.run("preview", "remind").stdout
    then = applied.run("preview", "remind", "--at", TOMORROW.isoformat()).stdout

    assert "Nobody would be resolved" in now
    assert "v1" in then
    assert "1 message(s)" in then


def test_why_says_what_became_of_a_moment(applied: Folder) -> None:
    nothing = applied.run("why", "remind").stdout
    applied.run("pause", "remind", "--reason", "holidays")
    applied.run("resume", "remind")
    paused = applied.run("why", "remind").stdout

    assert "has not been due yet" in nothing
    assert "whoever was due since" in paused
    assert "did not run: paused: holidays" in paused


def test_why_finds_the_window_that_a_moment_fell_into(applied: Folder) -> None:
    applied.run("fire", "remind", "--at", TOMORROW.isoformat())

    said = applied.run("why", "remind", "--at", (TOMORROW - timedelta(hours=3)).isoformat()).stdout

    assert "was fired by hand" in said


def test_its_times_cannot_be_skipped_moved_or_backfilled(applied: Folder) -> None:
    skipped = applied.run("skip", "remind", TOMORROW.isoformat(), exit_code=1).output
    yesterday = (TOMORROW - timedelta(days=2)).isoformat()
    filled = applied.run("backfill", "remind", "--from", yesterday, "--to", TOMORROW.isoformat(), exit_code=1).output

    assert "follows data: to skip or move one of its times, change the data" in skipped
    assert "follows its data" in filled


def test_doctor_tells_of_data_that_cannot_be_asked(applied: Folder) -> None:
    shop(applied, "drop table visit")
    let_the_clock_ask()

    said = applied.run("doctor", exit_code=1).output

    assert 'the next time of task "remind" cannot be read for' in said


def test_a_source_that_is_not_configured_is_refused_when_it_is_applied(folder: Folder) -> None:
    folder.write("tasks.toml", FOLLOWED.replace(':after", source = "shop"', ':after", source = "crm"'))

    refused = folder.run("apply", "tasks.toml", exit_code=1).output

    assert 'task "remind" has no source "crm"' in refused


def test_nothing_of_it_is_left_when_it_is_removed(applied: Folder) -> None:
    applied.write("tasks.toml", f'[task.other]\ntarget = {{ http = "{NOBODY}" }}\nschedule = {{ every = "1h" }}\n')
    applied.run("apply", "tasks.toml", "--prune", "--yes")

    async def left() -> object:
        async with Oncue(read_config()) as oncue:
            return await oncue.store.read(followed.next_ready)

    assert asyncio.run(left()) is None
