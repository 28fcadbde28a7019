"""`oncue simulate`: what the engine would do, seen through the command."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import NOBODY, Folder

HOUR = ("--from", "2026-03-07T12:00Z", "--to", "2026-03-07T13:00Z")


def task(name: str, schedule: str, *settings: str) -> str:
    lines = [f"[task.{name}]", f"schedule = {schedule}", f'target = {{ http = "{NOBODY}" }}', *settings]
    return "\n".join(lines) + "\n"


EVERY_TEN = '{ cron = "*/10 * * * *" }'


def firings(shape: Any, name: str) -> list[tuple[str, str, str | None]]:
    """Return (due, verdict, started) of one task, times as HH:MM."""
    return [
        (one["due_at"][11:16], one["verdict"], one["started_at"] and one["started_at"][11:16])
        for one in shape["firings"]
        if one["task"] == name
    ]


def simulate(folder: Folder, text: str, *options: str) -> Any:
    folder.write("sim.toml", text)
    return folder.json("simulate", "sim.toml", *options)


def test_each_due_time_runs_at_its_moment_and_nothing_is_stored(folder: Folder) -> None:
    shape = simulate(folder, task("ten", EVERY_TEN), *HOUR)

    due = [f"12:{minute}" for minute in (10, 20, 30, 40, 50)] + ["13:00"]
    assert firings(shape, "ten") == [(at, "on time", at) for at in due]
    assert shape["tasks"][0]["next_at"] == "2026-03-07T13:10:00Z"
    assert not folder.path.joinpath("oncue.db").exists()


def test_sources_and_brokers_that_are_not_configured_are_not_asked_for(folder: Folder) -> None:
    text = task("ten", EVERY_TEN).replace(f'{{ http = "{NOBODY}" }}', '{ broker = "none", queue = "q" }')

    shape = simulate(folder, text + 'resolve = { sql = "select 1 as key", source = "nowhere" }\n', *HOUR)

    assert shape["tasks"][0]["verdicts"] == {"on time": 6}


def test_an_outage_is_decided_by_the_misfire_policy(folder: Folder) -> None:
    text = (
        task("latest", EVERY_TEN)
        + task("none", EVERY_TEN, 'misfire = { catch_up = "none" }')
        + task("all", EVERY_TEN, 'misfire = { catch_up = "all" }')
    )

    shape = simulate(folder, text, *HOUR, "--outage", "2026-03-07T12:05Z/2026-03-07T12:45Z")

    after = [("12:50", "on time", "12:50"), ("13:00", "on time", "13:00")]
    assert firings(shape, "latest") == [("12:30", "coalesced", None), ("12:40", "caught up", "12:45"), *after]
    assert firings(shape, "none") == [("12:40", "missed", None), *after]
    assert firings(shape, "all") == [(f"12:{at}", "caught up", "12:45") for at in (10, 20, 30, 40)] + after
    coalesced = next(one for one in shape["firings"] if one["verdict"] == "coalesced")
    assert (coalesced["count"], coalesced["first_due_at"]) == (3, "2026-03-07T12:10:00Z")


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", [("12:10", "on time", "12:10"), ("12:20", "skipped", None), ("12:30", "on time", "12:30")]),
        ("queue", [("12:10", "on time", "12:10"), ("12:20", "late", "12:25"), ("12:30", "late", "12:40")]),
        (
            "replace",
            [("12:10", "cancelled", "12:10"), ("12:20", "cancelled", "12:20"), ("12:30", "cancelled", "12:30")],
        ),
        ("allow", [("12:10", "on time", "12:10"), ("12:20", "on time", "12:20"), ("12:30", "on time", "12:30")]),
    ],
)
def test_a_slow_run_meets_the_next_by_the_overlap_policy(folder: Folder, overlap: str, expected: object) -> None:
    shape = simulate(folder, task("ten", EVERY_TEN, f'overlap = "{overlap}"'), *HOUR, "--slow", "ten=15m")

    assert firings(shape, "ten")[:3] == expected


def test_a_run_that_an_outage_interrupts_begins_again_after_it(folder: Folder) -> None:
    span = ("--from", "2026-03-07T12:00Z", "--to", "2026-03-07T12:59Z")

    shape = simulate(
        folder,
        task("hourly", '{ cron = "5 * * * *" }'),
        *span,
        "--slow",
        "hourly=10m",
        "--outage",
        "2026-03-07T12:10Z/2026-03-07T12:30Z",
    )

    assert [(one["started_at"], one["ended_at"]) for one in shape["firings"]] == [
        ("2026-03-07T12:05:00Z", "2026-03-07T12:40:00Z")
    ]


def test_a_run_that_waits_too_long_expires(folder: Folder) -> None:
    text = task("ten", EVERY_TEN, 'overlap = "queue"', 'expires = "3m"')

    shape = simulate(folder, text, *HOUR, "--slow", "ten=15m")

    assert firings(shape, "ten")[:2] == [("12:10", "on time", "12:10"), ("12:20", "expired", None)]


def test_a_time_that_a_change_of_clocks_moves_is_marked_in_its_zone_with_utc_beside(folder: Folder) -> None:
    folder.write("sim.toml", task("night", '{ cron = "30 2 * * *", zone = "America/New_York" }'))

    said = folder.run(
        "simulate", "sim.toml", "--from", "2026-03-08T00:00-05:00", "--to", "2026-03-09T00:00-04:00"
    ).stdout

    assert "Sun 2026-03-08 03:00:00-04:00  2026-03-08T07:00:00Z" in said
    assert "on time: moved from 02:30" in said


def test_tasks_that_only_events_start_are_named_as_not_simulated(folder: Folder) -> None:
    said = folder.run("simulate", "tasks.toml", *HOUR).stdout

    assert "Not simulated: paid: only events start it." in said


FOLLOWED = """[task.trial]
schedule = { next = { sql = "select min(ends_at) from trial where ends_at > :after", source = "app" } }
resolve = { sql = "select id as key, ends_at as due_at from trial", source = "app" }
target = { http = "http://127.0.0.1:9/" }
"""


def test_a_schedule_that_is_read_from_data_is_named_as_not_simulated_and_not_compared(folder: Folder) -> None:
    folder.write("sim.toml", FOLLOWED)

    said = folder.run("simulate", "sim.toml", *HOUR).stdout
    compared = folder.run("simulate", "sim.toml", *HOUR, "--against", "sim.toml", "--check").stdout

    assert "Not simulated: trial: its times are read from data." in said
    assert "Not compared: trial: its times are read from data." in compared


def test_a_schedule_that_ends_is_finished_in_the_summary(folder: Folder) -> None:
    shape = simulate(folder, task("once", '{ at = "2026-03-07T12:30Z" }'), *HOUR)

    summary = shape["tasks"][0]
    assert (summary["ran"], summary["state"], summary["next_at"]) == (1, "finished", None)


def test_a_simulation_that_is_cut_says_where_and_how_to_go_on(folder: Folder) -> None:
    folder.write("sim.toml", task("ten", EVERY_TEN))

    said = folder.run("simulate", "sim.toml", *HOUR, "--limit", "2").stdout
    shape = folder.json("simulate", "sim.toml", *HOUR, "--limit", "2")
    whole = folder.json("simulate", "sim.toml", *HOUR, "--limit", "6")

    assert "Cut after 2 firings, at 2026-03-07T12:20:00Z: raise --limit, or go on with --from" in said
    assert (len(shape["firings"]), shape["cut_at"]) == (2, "2026-03-07T12:20:00Z")
    assert (len(whole["firings"]), whole["cut_at"]) == (6, None)


def test_the_load_counts_the_runs_that_start_in_each_minute(folder: Folder) -> None:
    text = "".join(task(f"t{number}", EVERY_TEN) for number in range(3)) + task("half", '{ cron = "*/30 * * * *" }')

    load = simulate(folder, text, *HOUR)["load"]

    assert (load["runs"], load["minutes"]) == (20, 60)
    assert [(one["at"][11:16], one["runs"]) for one in load["busiest"]][:3] == [
        ("12:30", 4),
        ("13:00", 4),
        ("12:10", 3),
    ]
    assert load["bands"] == [
        {"least": 0, "most": 0, "minutes": 54},
        {"least": 2, "most": 3, "minutes": 4},
        {"least": 4, "most": 7, "minutes": 2},
    ]


def test_a_long_simulation_says_on_standard_error_how_far_it_is(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oncue.cli.simulate.TOLD_EVERY", -1.0)
    folder.write("sim.toml", task("ten", EVERY_TEN))

    said = folder.run("simulate", "sim.toml", *HOUR)

    assert said.stderr.splitlines()[0] == "simulated to 2026-03-07 12:10:00Z (17%): 1 runs"
    assert "simulated" not in said.stdout


def test_the_summary_can_stand_without_the_firings(folder: Folder) -> None:
    folder.write("sim.toml", task("ten", EVERY_TEN))

    said = folder.run("simulate", "sim.toml", *HOUR, "--summary").stdout

    assert "6 on time" in said
    assert "12:10:00" not in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--to", "2026-03-07T11:00Z"), "not later than --from"),
        (("--check",), "--against"),
        (("--outage", "2026-03-07T12:10Z"), "FROM/TO"),
        (("--outage", "2026-03-07T12:20Z/2026-03-07T12:10Z"), "earlier time first"),
        (("--outage", "2026-03-07T12:20Z/2026-03-08T12:10Z"), "after --to"),
        (("--slow", "ten"), "TASK=DURATION"),
        (("--slow", "tem=5m"), 'Did you mean "ten"?'),
        (("--slow", "ten=soon"), "not a duration"),
        (("--against", "sim.toml", "--slow", "ten=5m"), "leave them out"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_a_sentence(
    folder: Folder, options: tuple[str, ...], sentence: str
) -> None:
    folder.write("sim.toml", task("ten", EVERY_TEN))

    said = folder.run("simulate", "sim.toml", *HOUR, *options, exit_code=2)

    assert sentence in said.stderr
    assert said.stdout == ""


def test_a_task_file_with_a_mistake_is_answered_with_its_line(folder: Folder) -> None:
    folder.write("sim.toml", task("ten", '{ cron = "61 * * * *" }'))

    said = folder.run("simulate", "sim.toml", *HOUR, exit_code=1)

    assert "sim.toml:2: [task.ten] schedule.cron" in said.stderr


def test_a_calendar_of_the_file_leaves_days_out(folder: Folder) -> None:
    calendar = '[calendar.closed]\ndates = ["2026-03-08"]\n'
    text = calendar + task("daily", '{ cron = "0 9 * * *", except_on = "closed" }')

    shape = simulate(folder, text, "--from", "2026-03-07T00:00Z", "--to", "2026-03-10T00:00Z")

    assert [one["due_at"] for one in shape["firings"] if one["started_at"]] == [
        "2026-03-07T09:00:00Z",
        "2026-03-09T09:00:00Z",
    ]


def test_jitter_is_the_same_each_time_and_no_lateness(folder: Folder) -> None:
    text = task("ten", '{ cron = "*/10 * * * *", jitter = "5m" }')

    once, again = simulate(folder, text, *HOUR), simulate(folder, text, *HOUR)

    assert once == again
    begun = once["firings"][:5]  # the sixth is due at the end, and would start after it
    assert {one["late_seconds"] for one in begun} == {0}
    assert len({one["started_at"][15:] for one in begun}) == 5


def test_jitter_is_that_of_the_task_where_the_store_has_it(folder: Folder) -> None:
    text = task("ten", '{ cron = "*/10 * * * *", jitter = "5m" }')
    before = simulate(folder, text, *HOUR)
    folder.run("apply", "sim.toml")

    after, again = simulate(folder, text, *HOUR), simulate(folder, text, *HOUR)

    assert before != after == again


def test_a_schedule_makes_no_more_runs_than_its_max_runs(folder: Folder) -> None:
    shape = simulate(folder, task("ten", '{ cron = "*/10 * * * *", max_runs = 2 }'), *HOUR)

    assert firings(shape, "ten") == [("12:10", "on time", "12:10"), ("12:20", "on time", "12:20")]
    assert shape["tasks"][0]["state"] == "finished"


def test_what_is_held_for_a_person_waits(folder: Folder) -> None:
    text = task("ten", EVERY_TEN, "misfire = { hold = true }")

    shape = simulate(folder, text, *HOUR, "--outage", "2026-03-07T12:05Z/2026-03-07T12:45Z")

    assert ("12:40", "held", None) in firings(shape, "ten")
