"""`oncue simulate --against`: which due times two task files do not share."""

from __future__ import annotations

from typing import Any

from tests.cli.conftest import Folder
from tests.cli.test_simulate import task

SPAN = ("--from", "2026-03-02T00:00Z", "--to", "2026-03-09T00:00Z")
OLD = (
    task("night", '{ cron = "0 2 * * *" }')
    + task("day", '{ cron = "0 12 * * *" }')
    + task("gone", '{ at = "2026-03-03T00:00Z" }')
)
NEW = (
    task("night", '{ cron = "0 3 * * *" }')
    + task("day", '{ cron = "0 12 * * mon-fri" }')
    + task("fresh", '{ cron = "0 6,18 * * sun" }')
)


def against(folder: Folder, new: str, old: str, *options: str, exit_code: int = 0) -> Any:
    folder.write("new.toml", new)
    folder.write("old.toml", old)
    return folder.json("simulate", "new.toml", "--against", "old.toml", *SPAN, *options, exit_code=exit_code)


def counts(shape: Any) -> dict[str, tuple[str, int, int, int, int]]:
    return {
        one["task"]: (one["verdict"], one["same"], one["added"], one["dropped"], one["moved"]) for one in shape["tasks"]
    }


def test_due_times_are_added_dropped_and_moved(folder: Folder) -> None:
    shape = against(folder, NEW, OLD)

    assert counts(shape) == {
        "night": ("changed", 0, 0, 0, 7),
        "day": ("changed", 5, 0, 2, 0),
        "fresh": ("added", 0, 2, 0, 0),
        "gone": ("removed", 0, 0, 1, 0),
    }
    assert (shape["added"], shape["dropped"], shape["moved"], shape["differs"]) == (2, 3, 7, True)
    assert shape["tasks"][0]["shift_seconds"] == 3600
    assert shape["tasks"][0]["moved_examples"][0] == {"old": "2026-03-02T02:00:00Z", "new": "2026-03-02T03:00:00Z"}


def test_the_report_groups_by_task_and_is_short(folder: Folder) -> None:
    against(folder, NEW, OLD)

    said = folder.run("simulate", "new.toml", "--against", "old.toml", *SPAN, "--examples", "1").stdout

    assert said.splitlines() == [
        "new.toml against old.toml, due after 2026-03-02T00:00:00Z and up to 2026-03-09T00:00:00Z",
        "",
        "~ night: 7 moved, each by +1h on the clock",
        "    moved    Mon 2026-03-02 02:00:00+00:00 → Mon 2026-03-02 03:00:00+00:00",
        "    … and 6 more moved",
        "",
        "~ day: 2 dropped, 5 as before",
        "    dropped  Sat 2026-03-07 12:00:00+00:00",
        "    … and 1 more dropped",
        "",
        "+ fresh (new schedule): 2 added",
        "    added    Sun 2026-03-08 06:00:00+00:00",
        "    … and 1 more added",
        "",
        "- gone (no schedule any more): 1 dropped",
        "    dropped  Tue 2026-03-03 00:00:00+00:00",
        "",
        "2 added, 3 dropped, 7 moved; 0 task(s) unchanged.",
    ]


def test_check_fails_where_something_differs_and_only_there(folder: Folder) -> None:
    against(folder, NEW, OLD, "--check", exit_code=1)
    spelled = OLD.replace("0 12 * * *", "0 12 * * 0-7")

    shape = against(folder, spelled, OLD, "--check")

    assert (shape["differs"], shape["unchanged_tasks"], shape["tasks"]) == (False, 3, [])


def test_a_task_that_is_renamed_is_compared_with_what_it_was(folder: Folder) -> None:
    old, new = task("night", '{ cron = "0 2 * * *" }'), task("dusk", '{ cron = "0 2 * * *" }', 'renamed_from = "night"')

    assert against(folder, new, old)["differs"] is False


def test_a_time_moves_within_the_day_of_its_own_zone(folder: Folder) -> None:
    old = task("late", '{ cron = "30 23 * * *", zone = "America/New_York" }')
    new = task("late", '{ cron = "30 0 * * *", zone = "America/New_York" }')

    shape = against(folder, new, old)

    moved = shape["tasks"][0]["moved_examples"][0]
    assert moved == {"old": "2026-03-03T04:30:00Z", "new": "2026-03-02T05:30:00Z"}


def test_a_comparison_that_is_cut_says_so_and_does_not_pass_the_check(folder: Folder) -> None:
    old, new = task("often", '{ cron = "* * * * *" }'), task("often", '{ every = "1m" }')
    whole = against(folder, new, old, "--check")

    shape = against(folder, new, old, "--check", "--limit", "10", exit_code=1)

    assert whole["differs"] is False
    assert shape["tasks"][0]["cut_at"] == "2026-03-02T00:11:00Z"
