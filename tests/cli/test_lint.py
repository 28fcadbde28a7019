"""`oncue lint`: findings with their places, and how it ends."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from oncue import wall
from oncue.store.sqlite import write_time
from tests.cli.conftest import Folder
from tests.cli.test_simulate import task

AT = ("--at", "2026-02-01T00:00Z")
GAP = task("night", '{ cron = "30 2 * * *", zone = "America/New_York" }')
HOURLY = task("hourly", '{ cron = "@hourly" }')


def test_a_finding_names_file_line_severity_and_remedy(folder: Folder) -> None:
    folder.write("a.toml", "\n" + HOURLY + GAP)

    said = folder.run("lint", "a.toml", *AT).stdout.splitlines()

    assert said[0].startswith('a.toml:3: note: [task.hourly] schedule.cron: "@hourly" is due at minute 0')
    assert said[0].endswith("(on-the-hour)")
    assert said[1].startswith("a.toml:6: warning: [task.night] schedule: on 2026-03-08, 02:30 is skipped")
    assert said[-1] == "1 warning(s), 1 note(s)."


def test_a_file_with_nothing_to_say_ends_well(folder: Folder) -> None:
    folder.write("a.toml", task("quiet", '{ cron = "7 9 * * *", zone = "UTC" }'))

    assert folder.run("lint", "a.toml", *AT, "--strict").stdout == "Nothing to say.\n"


@pytest.mark.parametrize(
    ("text", "options", "exit_code"),
    [
        (GAP, (), 0),
        (GAP, ("--strict",), 1),
        (GAP, ("--strict", "--ignore", "in-a-gap"), 0),
        (HOURLY, ("--strict",), 0),
        (task("never", '{ cron = "0 9 30 2 *" }'), (), 1),
        (task("broken", '{ cron = "61 * * * *" }'), (), 1),
    ],
)
def test_errors_fail_and_warnings_only_where_strict(
    folder: Folder, text: str, options: tuple[str, ...], exit_code: int
) -> None:
    folder.write("a.toml", text)

    folder.run("lint", "a.toml", *AT, *options, exit_code=exit_code)


def test_a_file_that_cannot_be_read_is_a_finding_and_the_others_are_still_looked_at(folder: Folder) -> None:
    folder.write("a.toml", task("broken", '{ cron = "61 * * * *" }'))
    folder.write("b.toml", HOURLY)

    shape = folder.json("lint", "a.toml", "b.toml", "none.toml", *AT, exit_code=1)

    told = [(one["file"], one["line"], one["code"], one["severity"]) for one in shape["findings"]]
    assert told == [
        ("a.toml", 2, "unreadable", "error"),
        ("none.toml", None, "unreadable", "error"),
        ("b.toml", 2, "on-the-hour", "note"),
    ]
    assert shape["counts"] == {"error": 2, "warning": 0, "note": 1}


def test_run_times_come_from_the_store_or_from_the_command_line(folder: Folder) -> None:
    folder.write("a.toml", task("often", '{ cron = "* * * * *" }'))
    before = folder.json("lint", "a.toml", *AT)
    said = folder.json("lint", "a.toml", *AT, "--slow", "often=5m")

    assert [one["code"] for one in before["findings"]] == []
    assert [one["code"] for one in said["findings"]] == ["slower-than-due"]
    assert not folder.path.joinpath("oncue.db").exists()


def test_run_times_of_the_store_are_averaged(folder: Folder) -> None:
    folder.write("a.toml", task("often", '{ cron = "* * * * *" }'))
    folder.run("apply", "a.toml")
    folder.run("fire", "often")
    now = wall.now()
    with closing(sqlite3.connect(folder.path / "oncue.db")) as connection, connection:
        connection.execute(
            "update runs set state = 'done', started_at = ?, ended_at = ?",
            (write_time(now), write_time(now + timedelta(minutes=3))),
        )

    said = folder.json("lint", "a.toml", *AT)

    assert "take 3m and are due each 1m: 2 of 3 are skipped" in said["findings"][0]["text"]


def test_tasks_of_several_files_are_looked_at_together(folder: Folder) -> None:
    folder.write("a.toml", task("one", '{ cron = "7 9 * * *", zone = "UTC" }'))
    folder.write("b.toml", task("two", '{ cron = "7 9 * * *", zone = "UTC" }'))

    shape = folder.json("lint", "a.toml", "b.toml", *AT)

    assert [(one["file"], one["code"], one["task"]) for one in shape["findings"]] == [("b.toml", "same-twice", "two")]
