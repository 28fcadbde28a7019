"""`oncue next` and the times of `oncue show`: in the schedule's zone, the reader's and UTC."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Folder
from tests.cli.test_simulate import FOLLOWED, task

SPRING = ("--after", "2026-03-07T12:00:00-05:00", "-n", "2")
NIGHT = ("--cron", "30 2 * * *", "--zone", "America/New_York")


def test_times_stand_in_the_zone_of_the_schedule_of_the_reader_and_in_utc(folder: Folder) -> None:
    said = folder.run("next", *NIGHT, *SPRING).stdout.splitlines()

    assert said[0] == "At 02:30, every day, America/New_York time."
    assert said[2].split() == ["America/New_York", "Europe/Athens", "(yours)", "UTC"]
    assert (
        "Sun 2026-03-08 03:00:00-04:00  Sun 2026-03-08 09:00:00+02:00  2026-03-08T07:00:00Z  moved from 02:30" in said
    )
    assert "Mon 2026-03-09 02:30:00-04:00  Mon 2026-03-09 08:30:00+02:00  2026-03-09T06:30:00Z" in said


def test_the_readers_zone_is_left_out_where_it_is_the_schedules(folder: Folder) -> None:
    said = folder.run("next", "--cron", "30 2 * * *", "--zone", "Europe/Athens", *SPRING).stdout

    assert "(yours)" not in said


def test_a_schedule_in_utc_is_shown_to_a_reader_elsewhere_in_their_zone(folder: Folder) -> None:
    said = folder.run("next", "--cron", "30 2 * * *", *SPRING).stdout.splitlines()

    assert said[2].split() == ["UTC", "Europe/Athens", "(yours)"]
    assert said[3] == "Sun 2026-03-08 02:30:00+00:00  Sun 2026-03-08 04:30:00+02:00"


def test_json_has_the_times_and_nothing_else(folder: Folder) -> None:
    assert folder.json("next", *NIGHT, *SPRING) == {"times": ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--dst", "gap=skip"), ["2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z"]),
        (("--dst", "gap=shift,repeat=last"), ["2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"]),
        (("--start", "2026-03-09"), ["2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z"]),
        (("--end", "2026-03-08"), ["2026-03-08T07:00:00Z"]),
    ],
)
def test_bounds_and_changes_of_clocks_are_given_on_the_spot(
    folder: Folder, options: tuple[str, ...], expected: list[str]
) -> None:
    assert folder.json("next", *NIGHT, *options, *SPRING) == {"times": expected}


def test_a_cron_is_read_in_its_dialect(folder: Folder) -> None:
    aws = folder.json(
        "next", "--cron", "cron(0 9 ? * 2 *)", "--dialect", "aws", "--after", "2026-03-07T00:00Z", "-n", "1"
    )

    assert aws == {"times": ["2026-03-09T09:00:00Z"]}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((*NIGHT, "--dst", "skip"), "gap=skip,repeat=both"),
        ((*NIGHT, "--dst", "gap=never"), "Write one of after, skip, shift"),
        ((*NIGHT, "--file", "tasks.toml"), "--file"),
        (("remind", "--dst", "gap=skip"), "has its own"),
        (("remind", "--file", "none.toml"), "cannot be read"),
        (("other", "--file", "tasks.toml"), 'no task "other". Its tasks: remind, paid.'),
        (("paid", "--file", "tasks.toml"), "has no schedule"),
    ],
)
def test_what_is_not_understood_is_refused(folder: Folder, options: tuple[str, ...], sentence: str) -> None:
    said = folder.run("next", *options, exit_code=2)

    assert sentence in said.stderr


def test_a_task_of_a_file_is_shown_before_it_is_applied(folder: Folder) -> None:
    calendar = '[calendar.closed]\ndates = ["2026-12-25"]\nknown_until = 2026-12-31\n'
    schedule = '{ cron = "0 9 * * *", zone = "UTC", except_on = "closed" }'
    folder.write("new.toml", calendar + task("daily", schedule))

    said = folder.run("next", "daily", "--file", "new.toml", "--after", "2026-12-24T00:00Z", "-n", "2").stdout

    assert "Thu 2026-12-24 09:00:00+00:00" in said
    assert "Sat 2026-12-26 09:00:00+00:00" in said
    assert "12-25" not in said
    assert 'Calendar "closed" is known until 2026-12-31' in said
    assert not folder.path.joinpath("oncue.db").exists()


def test_a_calendar_that_is_nowhere_is_named(folder: Folder) -> None:
    folder.write("new.toml", task("daily", '{ cron = "0 9 * * *", except_on = "closed" }'))

    said = folder.run("next", "daily", "--file", "new.toml", exit_code=2)

    assert 'calendar "closed" is neither in the file nor in the store' in said.stderr


def test_show_prints_the_next_three_times_the_same_way(folder: Folder) -> None:
    folder.write("new.toml", task("night", '{ cron = "30 2 * * *", zone = "America/New_York" }'))
    folder.run("apply", "new.toml")

    shown = folder.run("show", "night").stdout
    table = folder.run("next", "night", "-n", "3").stdout.splitlines()[2:]

    assert len(table) == 4
    assert all(line in shown for line in table)


def test_a_schedule_that_is_read_from_data_says_so(folder: Folder) -> None:
    folder.write("new.toml", FOLLOWED.replace('"app"', '"shop"'))
    folder.run("apply", "new.toml")

    of_file = folder.run("next", "trial", "--file", "new.toml").stdout
    stored = folder.run("next", "trial").stdout

    assert stored.startswith(of_file.rstrip())
    assert "Horizon:" in stored
    assert stored.startswith("Followed: the next time is read by a query from shop.")
    assert "None is known now" in stored
    assert folder.json("next", "trial") == {"times": []}
    assert "trial" in folder.run("show", "trial").stdout
    assert folder.run("lint", "new.toml").stdout == "Nothing to say.\n"


def test_a_paused_task_says_that_its_times_do_not_run(folder: Folder) -> None:
    folder.run("apply", "tasks.toml")
    folder.run("pause", "remind", "--reason", "moving")

    said = folder.run("next", "remind").stdout

    assert "It is paused (moving): none of them runs until that is over." in said


def test_a_task_with_few_runs_left_is_shown_no_more_than_those(folder: Folder) -> None:
    folder.write("new.toml", task("twice", '{ cron = "0 9 * * *", max_runs = 2 }'))
    folder.run("apply", "new.toml")

    assert len(folder.json("next", "twice")["times"]) == 2
    assert "No further times." in folder.run("next", "twice").stdout
