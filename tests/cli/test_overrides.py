"""Skip, move, restore, pause until: through the command line."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from oncue import wall
from tests.cli.conftest import Folder


@pytest.fixture
def applied(folder: Folder) -> Folder:
    folder.run("apply", "tasks.toml")
    return folder


def due(folder: Folder, count: int = 3) -> list[str]:
    return folder.json("next", "remind", "-n", str(count))["times"]


def test_a_due_time_is_skipped_and_restored_as_it_says_how(applied: Folder) -> None:
    before = due(applied)

    said = applied.run("skip", "remind", before[1], "--reason", "stocktaking").stdout
    skipped = due(applied)
    undo = said.splitlines()[-1].removeprefix("To take it back: oncue ").replace('"', "").split(" ", 2)
    applied.run(*undo)

    assert 'task "remind" will not run at' in said
    assert "stocktaking" in said
    assert skipped[:2] == [before[0], before[2]]
    assert due(applied) == before


def test_a_due_time_is_moved_and_shown_where_it_moved_to(applied: Folder) -> None:
    first, second, _ = due(applied)
    later = (datetime.fromisoformat(first) + timedelta(hours=2)).isoformat()

    said = applied.run("move", "remind", first, "--to", later).stdout

    assert "instead of" in said
    assert [datetime.fromisoformat(one) for one in due(applied)][:2] == [
        datetime.fromisoformat(later),
        datetime.fromisoformat(second),
    ]
    shown = applied.json("show", "remind")
    assert [one["reason"] for one in shown["schedule"]["overrides"]] == ["moved on the command line"]


def test_times_without_an_offset_are_the_readers(applied: Folder) -> None:
    local = datetime.fromisoformat(due(applied)[0]).astimezone().replace(tzinfo=None)

    assert "will not run" in applied.run("skip", "remind", local.isoformat()).stdout


def test_what_is_no_due_time_is_refused_with_the_next_one(applied: Folder) -> None:
    moment = (datetime.fromisoformat(due(applied)[0]) + timedelta(minutes=1)).isoformat()

    said = applied.run("skip", "remind", moment, exit_code=1).stderr

    assert "is no due time of this task. The next one after it is" in said
    assert "has no schedule" in applied.run("skip", "paid", moment, exit_code=1).stderr


def test_a_pause_says_when_it_ends(applied: Folder) -> None:
    until = (wall.now() + timedelta(hours=3)).replace(microsecond=0)

    said = applied.run("pause", "remind", "--until", until.isoformat()).stdout

    assert "is paused until" in said
    assert datetime.fromisoformat(applied.json("show", "remind")["resume_at"]) == until
    assert "until" in applied.run("tasks").stdout
    assert "that is over" in applied.run("pause", "remind", "--until", "2001-01-01", exit_code=1).stderr


def test_a_change_of_the_times_says_which_changes_by_hand_it_drops(applied: Folder) -> None:
    applied.run("skip", "remind", due(applied)[1])
    applied.write("tasks.toml", applied.path.joinpath("tasks.toml").read_text().replace("0 9", "0 8"))

    said = applied.run("apply", "tasks.toml", "--dry-run").stdout

    assert 'task "remind": 1 change(s) by hand (skip, move) are dropped with its old times.' in said


def test_a_time_to_come_that_was_skipped_is_explained(applied: Folder) -> None:
    moment = due(applied)[1]
    applied.run("skip", "remind", moment, "--reason", "stocktaking")

    said = applied.run("why", "remind", "--at", moment).stdout

    assert "stocktaking" in said


def test_a_dry_run_makes_no_store_and_refuses_what_applying_would(folder: Folder) -> None:
    folder.write(
        "bad.toml",
        """
[task.n]
schedule = { cron = "0 9 * * *", only_on = "nosuch" }
target = { http = "http://127.0.0.1:9/" }
""",
    )

    said = folder.run("apply", "bad.toml", "--dry-run", exit_code=1).stderr
    folder.run("apply", "tasks.toml", "--dry-run")

    assert said.startswith('bad.toml:3: [task.n] schedule.only_on: there is no calendar "nosuch".')
    assert not folder.path.joinpath("oncue.db").exists()
