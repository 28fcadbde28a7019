"""`oncue backfill`, `oncue backfills` and `oncue catch-up`, over a SQLite store."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from oncue.definition import Definition, HttpTarget, Misfire
from oncue.store import schedules, tasks
from oncue.store.base import Store
from oncue.store.sqlite import SqliteDatabase
from tests.cli.conftest import NOBODY, Folder

PAGE = Path(__file__).parents[2] / "docs" / "time.md"
SPAN = ("--from", "2026-03-27T00:00:00Z", "--to", "2026-03-30T06:00:00Z")  # 4 times, a change of clocks between
MARCH = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def applied(folder: Folder) -> Folder:
    folder.run("apply", "tasks.toml")
    return folder


def test_a_backfill_is_shown_before_it_is_made_and_made_only_with_a_yes(applied: Folder) -> None:
    refused = applied.run("backfill", "remind", *SPAN, exit_code=1)
    dry = applied.run("backfill", "remind", *SPAN, "--dry-run")

    assert "--yes" in refused.stderr
    assert refused.stdout == dry.stdout
    assert 'A backfill of task "remind" makes 4 run(s)' in dry.stdout
    assert "Fri 2026-03-27 09:00:00+02:00  2026-03-27T07:00:00Z" in dry.stdout
    assert "Mon 2026-03-30 09:00:00+03:00  2026-03-30T06:00:00Z" in dry.stdout
    assert "as fast as dispatchers take them" in dry.stdout
    assert applied.json("runs")["items"] == applied.json("backfills")["items"] == []


def test_a_backfill_makes_its_runs_and_leaves_the_schedule(applied: Folder) -> None:
    before = applied.json("show", "remind")

    said = applied.run("backfill", "remind", *SPAN, "--yes").stdout

    (listed,) = applied.json("backfills")["items"]
    found = applied.json("runs")["items"]
    assert f"backfill {listed['id']}: 4 run(s) are due." in said
    assert (listed["total"], listed["waiting"], listed["actor"]) == (4, 4, "cli")
    assert {one["cause"] for one in found} == {f"backfill:{listed['id']}:{one['due_at']}" for one in found}
    assert applied.json("show", "remind") == before


def test_a_pace_says_how_long_it_will_take(applied: Folder) -> None:
    said = applied.run("backfill", "remind", *SPAN, "--pace", "30s", "--dry-run").stdout
    plan = applied.json("backfill", "remind", *SPAN, "--pace", "30s", "--dry-run")

    assert "One starts each 30s: the last in 1m30s." in said
    assert (plan["pace_seconds"], plan["takes_seconds"], plan["runs"]) == (30, 90, 4)


def test_marks_of_a_change_of_clocks_are_shown(applied: Folder) -> None:
    applied.write("tasks.toml", (applied.path / "tasks.toml").read_text().replace("0 9 * * *", "30 3 * * *"))
    applied.run("apply", "tasks.toml")

    said = applied.run("backfill", "remind", *SPAN, "--dry-run").stdout

    assert "Sun 2026-03-29 04:00:00+03:00  2026-03-29T01:00:00Z  moved from 03:30" in said


def test_a_long_backfill_shows_its_first_and_its_last_times(applied: Folder) -> None:
    said = applied.run("backfill", "remind", "--from", "2026-01-01", "--to", "2026-02-01", "--dry-run").stdout

    assert "makes 31 run(s)" in said
    assert "… 25 more" in said
    assert len(re.findall(r"^  \w{3} ", said, re.MULTILINE)) == 6


def test_the_same_key_makes_one_backfill(applied: Folder) -> None:
    first = applied.json("backfill", "remind", *SPAN, "--yes", "--key", "march")
    second = applied.json("backfill", "remind", *SPAN, "--key", "march")
    said = applied.run("backfill", "remind", *SPAN, "--key", "march").stdout

    assert (first["duplicate"], second["duplicate"]) == (False, True)
    assert first["id"] == second["id"]
    assert f"this key made backfill {first['id']} before: nothing new." in said
    assert len(applied.json("runs")["items"]) == 4


def test_a_preview_says_what_ran_before(applied: Folder) -> None:
    first = applied.json("backfill", "remind", *SPAN, "--yes")

    said = applied.run("backfill", "remind", *SPAN, "--dry-run").stdout

    assert f"Backfill {first['id']} covered some of this span before" in said


def test_a_paused_task_can_be_backfilled_and_the_preview_says_so(applied: Folder) -> None:
    applied.run("pause", "remind", "--reason", "moving house")

    said = applied.run("backfill", "remind", *SPAN, "--yes").stdout

    assert "The task is paused (moving house)" in said
    assert len(applied.json("runs")["items"]) == 4


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("paid", *SPAN), 'task "paid" has no schedule, so there is nothing to backfill.'),
        (("nobody", *SPAN), 'no task "nobody"'),
        (
            ("remind", "--from", "2026-03-27T08:00:00Z", "--to", "2026-03-27T09:00:00Z"),
            'task "remind" has no due time from 2026-03-27T08:00:00Z to 2026-03-27T09:00:00Z. '
            "The nearest to the beginning: 2026-03-27T07:00:00Z and 2026-03-28T07:00:00Z.",
        ),
        (
            ("remind", "--from", "2026-01-01T00:00:00Z", "--to", "2066-01-01T00:00:00Z"),
            "more than 10,000 due times from 2026-01-01T00:00:00Z to 2066-01-01T00:00:00Z. "
            "Split it: --to 2053-05-18T06:00:00Z first, then --from 2053-05-19T06:00:00Z.",
        ),
        (("remind", *SPAN[2:], "--from", "2027-01-01"), "ends before it begins"),
        (("remind", *SPAN, "--pace", "52w"), "at a pace of 52w, 4 runs take more than a year"),
        (("remind", *SPAN, "--pace", "0s"), "Write how far apart runs start"),
    ],
)
def test_what_cannot_be_backfilled_is_refused_with_a_sentence(
    applied: Folder, given: tuple[str, ...], sentence: str
) -> None:
    refused = applied.run("backfill", *given, "--yes", exit_code=1)

    assert sentence in refused.stderr
    assert applied.json("backfills")["items"] == []


@pytest.mark.parametrize("given", [("--pace", "soon"), ("--to", "soon")])
def test_a_word_that_is_not_understood_is_named(applied: Folder, given: tuple[str, ...]) -> None:
    assert "soon" in applied.run("backfill", "remind", *SPAN, *given, exit_code=2).stderr


def test_a_backfill_is_cancelled_by_its_id(applied: Folder) -> None:
    made = applied.json("backfill", "remind", *SPAN, "--yes")

    table = applied.run("backfills", "--cancel", made["id"], "--reason", "wrong month").stdout

    (listed,) = applied.json("backfills")["items"]
    assert made["id"] in table
    assert (listed["waiting"], listed["cancelled"]) == (0, 4)
    assert {one["reason"] for one in applied.json("runs")["items"]} == {"wrong month"}
    assert "no backfill" in applied.run("backfills", "--cancel", str(UUID(int=1)), exit_code=1).stderr


# --- catch-up -----------------------------------------------------------------------------------------------------


@pytest.fixture
def missed(folder: Folder) -> Iterator[Folder]:
    """A daily report that was down for a week, in UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        folder.run("migrate")
        asyncio.run(_miss(folder.path / "oncue.db"))
        yield folder


async def _miss(path: Path) -> None:
    misfire = Misfire(catch_up="all", max_age=timedelta(days=7), max=3, hold=True)
    schedule: dict[str, Any] = {"cron": "0 9 * * *"}
    report = Definition("report", HttpTarget(NOBODY), schedule=schedule, misfire=misfire)
    store = Store(SqliteDatabase(str(path)))
    await store.write(tasks.apply, [report], prune=False, actor="test", now=MARCH)
    now = datetime(2026, 3, 9, 10, 12, tzinfo=UTC)
    due = await store.read(schedules.upcoming, after=(MARCH, 0), until=now, limit=9)
    await store.write(schedules.record_firings, [schedules.decide(one, now=now) for one in due], now=now)
    await store.close()


def test_what_an_outage_left_is_shown_as_the_page_on_time_shows_it(missed: Folder) -> None:
    found = re.search(r"```\n\$ oncue catch-up\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None

    assert missed.run("catch-up").stdout == found[1]
    assert missed.run("catch-up", "report").stdout == found[1].replace("catch-up --", "catch-up report --")


def test_a_decision_is_shown_first_and_needs_a_yes(missed: Folder) -> None:
    refused = missed.run("catch-up", "--run", exit_code=1)
    both = missed.run("catch-up", "--run", "--drop", exit_code=2)

    assert "would run  2026-03-08 09:00:00Z" in refused.stdout
    assert "--yes" in refused.stderr
    assert "one of --run and --drop" in both.stderr
    assert {one["state"] for one in missed.json("runs")["items"]} == {"held"}


def test_missed_runs_are_let_go_once(missed: Folder) -> None:
    said = missed.run("catch-up", "report", "--run", "--yes").stdout
    again = missed.run("catch-up", "report", "--run", "--yes").stdout

    assert said.endswith("3 missed run(s) are due now.\n")
    assert again == "No missed runs wait for a person.\n"
    assert {one["state"] for one in missed.json("runs")["items"]} == {"due"}


def test_missed_runs_are_dropped_with_the_reason(missed: Folder) -> None:
    decided = missed.json("catch-up", "--drop", "--reason", "too old", "--yes")

    assert decided == {"do": "drop", "runs": 3}
    assert {(one["state"], one["reason"]) for one in missed.json("runs")["items"]} == {("cancelled", "too old")}
    assert missed.json("catch-up")["items"] == []


def test_what_waits_is_told_as_the_api_tells_it(missed: Folder) -> None:
    (one,) = missed.json("catch-up")["items"]

    assert (one["task"], one["runs"], one["since"]) == ("report", 3, "2026-03-09T10:12:00Z")
    assert one["due_times"] == [f"2026-03-0{day}T09:00:00Z" for day in (7, 8, 9)]
    assert [(entry["verdict"], entry["count"]) for entry in one["passed_over"]] == [("missed", 4)]


def test_the_doctor_says_that_a_decision_is_waited_for(missed: Folder) -> None:
    said = missed.run("doctor", exit_code=1).stdout  # no component runs here

    expected = (
        'runs_wait_for_person: 3 missed run(s) of task "report" wait for a decision: see `oncue catch-up report`.'
    )
    assert f"note   {expected}" in said


def test_nothing_that_waits_is_no_error(applied: Folder) -> None:
    assert applied.run("catch-up").stdout == "No missed runs wait for a person.\n"
    assert applied.run("catch-up", "remind", "--run").stdout == "No missed runs wait for a person.\n"
    assert 'no task "nobody"' in applied.run("catch-up", "nobody", exit_code=1).stderr


def test_a_cancel_says_what_it_came_to_and_a_plan_what_is_still_to_come(folder: Folder) -> None:
    folder.run("apply", "tasks.toml")
    soon = datetime.now(UTC) + timedelta(days=3)
    span = ("--from", "2026-01-01T00:00Z", "--to", "2026-01-03T00:00Z")
    made = folder.json("backfill", "remind", *span, "--yes")

    first = folder.run("backfills", "--cancel", made["id"]).stdout
    ahead = folder.run("backfill", "remind", *span[:3], soon.isoformat(), "--dry-run").stdout

    assert f"{made['total']} run(s) of it are cancelled, 0 go on." in first
    assert "of them are still to come: they run now, and are due again then." in ahead
