"""Commands over a SQLite store: what they say, and how they end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from oncue import wall
from oncue.store.sqlite import write_time
from tests.cli.conftest import Folder

NOBODYS = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def applied(folder: Folder) -> Folder:
    folder.run("apply", "tasks.toml")
    return folder


def test_apply_shows_what_will_change_then_changes_it(folder: Folder) -> None:
    dry = folder.run("apply", "tasks.toml", "--dry-run").stdout
    first = folder.run("apply", "tasks.toml").stdout
    folder.write("tasks.toml", folder.path.joinpath("tasks.toml").read_text().replace("0 9", "0 8"))
    second = folder.run("apply", "tasks.toml").stdout
    third = folder.run("apply", "tasks.toml").stdout

    assert "+ remind: created" in dry
    assert "Applied" not in dry
    assert "Applied: 2 of 2 task(s) changed." in first
    assert "~ remind: changed" in second
    assert '"0 9 * * *" → "0 8 * * *"' in second
    assert "2 unchanged" in third
    assert folder.json("show", "remind")["version"] == 2


def test_apply_says_of_a_schedule_that_is_over_that_it_never_fires(folder: Folder) -> None:
    folder.write(
        "tasks.toml",
        '[task.once]\ntarget = { http = "http://127.0.0.1:9/" }\nschedule = { at = "2001-01-01T00:00:00Z" }\n',
    )

    said = folder.run("apply", "tasks.toml").stdout

    assert 'task "once": its schedule has no time after now' in said


def test_pruning_needs_a_yes_where_nobody_can_be_asked(applied: Folder) -> None:
    applied.write(
        "tasks.toml", '[task.other]\ntarget = { http = "http://127.0.0.1:9/" }\nschedule = { every = "1h" }\n'
    )

    refused = applied.run("apply", "tasks.toml", "--prune", exit_code=1)
    names = [one["name"] for one in applied.json("tasks")["items"]]
    applied.run("apply", "tasks.toml", "--prune", "--yes")

    assert "--yes" in refused.stderr
    assert names == ["paid", "remind"]
    assert [one["name"] for one in applied.json("tasks")["items"]] == ["other"]


def test_a_task_is_shown_with_times_in_the_readers_zone_and_utc_beside(applied: Folder) -> None:
    table = applied.run("tasks").stdout
    shown = applied.run("show", "remind").stdout

    assert "remind" in table
    assert "(07:00:00Z)" in table or "(06:00:00Z)" in table
    assert "Mail everyone on trial" in shown


def test_the_next_times_of_a_stored_task_have_the_shape_of_those_on_the_spot(applied: Folder) -> None:
    stored = applied.json("next", "remind", "--after", "2026-03-28T00:00:00+02:00", "-n", "2")

    assert stored == {"times": ["2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z"]}
    assert "no schedule" in applied.run("next", "paid", exit_code=2).stderr
    assert 'no task "nobody"' in applied.run("next", "nobody", exit_code=2).stderr


def test_a_preview_shows_who_and_what_and_sends_nothing(applied: Folder) -> None:
    text = applied.run("preview", "remind").stdout
    shape = applied.json("preview", "remind", "-n", "1")

    assert '{"key":"a","email":"a@example.org"}' in text
    assert "2 message(s), as they would go out" in text
    assert (len(shape["messages"]), shape["more"]) == (1, True)
    assert applied.json("runs")["items"] == []


def test_firing_with_a_key_twice_makes_one_run(applied: Folder) -> None:
    first = applied.json("fire", "remind", "--key", "k")
    second = applied.json("fire", "remind", "--key", "k")

    assert (first["duplicate"], second["duplicate"]) == (False, True)
    assert [one["id"] for one in applied.json("runs")["items"]] == [first["run"]]


def test_a_run_is_shown_and_cancelled_with_its_reason(applied: Folder) -> None:
    run = applied.json("fire", "remind")["run"]
    applied.run("cancel", run, "--reason", "not today")

    assert "cancelled: not today" in applied.run("runs", run).stdout
    assert "cancelled" in applied.run("runs", "--task", "remind", "--state", "cancelled").stdout
    assert "was fired by hand, and it was cancelled: not today" in applied.run("why", "remind").stdout
    assert "only a run that has not ended" in applied.run("cancel", run, exit_code=1).stderr


def test_pausing_and_resuming_say_what_is_so_now(applied: Folder) -> None:
    applied.run("pause", "remind", "--reason", "moving house")

    assert "paused (moving house)" in applied.run("tasks").stdout
    assert "is paused (moving house)" in applied.run("why", "remind").stdout
    assert "is active; next at" in applied.run("resume", "remind").stdout


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("2020-01-01T00:00:00Z", "was created at"),
        ("2999-01-01T00:00:00Z", "has not come yet"),
    ],
)
def test_why_says_so_of_times_that_are_not_on_record(applied: Folder, at: str, said: str) -> None:
    assert said in applied.run("why", "remind", "--at", at).stdout


def test_an_event_is_taken_in_once(applied: Folder) -> None:
    arguments = ("emit", "order.paid", "--subject", "o-1", "--data", '{"n": 1}', "--id", "7")

    first, second = applied.json(*arguments), applied.json(*arguments)

    assert (first["duplicate"], len(first["runs"])) == (False, 1)
    assert (second["duplicate"], second["runs"]) == (True, [])
    assert applied.json("runs")["items"][0]["event"]["subject"] == "o-1"
    assert "another content" in applied.run(*arguments[:-2], "--id", "7", "--subject", "o-2", exit_code=1).stderr


@pytest.mark.parametrize("data", ["nonsense", "{'a': 1}", '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_data_that_is_no_json_is_one_sentence(applied: Folder, data: str) -> None:
    result = applied.run("emit", "order.paid", "--data", data, exit_code=1)

    assert "JSON" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("show", "nobody"), 1, 'no task "nobody". Known tasks: paid, remind'),
        (("fire", "nobody"), 1, 'no task "nobody"'),
        (("why", "nobody"), 1, 'no task "nobody"'),
        (("runs", "--task", "nobody"), 1, 'no task "nobody"'),
        (("runs", NOBODYS), 1, "no run"),
        (("runs", "nonsense"), 2, "UUID"),
        (("runs", "--state", "sleeping"), 2, "'due'"),
        (("failures", "list", "--state", "sleeping"), 2, "'open'"),
        (("up", "--listen", "nonsense"), 78, '--listen: "nonsense" is not a host and a port'),
        (("demo", "--folder", "tasks.toml"), 78, "tasks.toml cannot be made: File exists. Name another folder"),
        (("why", "remind", "--at", "noon"), 2, "noon"),
        (("failures", "show", NOBODYS), 1, "no dead letter"),
        (("failures", "requeue"), 1, "say which"),
        (("failures", "requeue", "--all"), 1, "none of these"),
        (("failures", "discard", "--all"), 2, "--reason"),
        (("apply", "absent.toml"), 1, "absent.toml"),
        (("--store", "mysql://host/name", "tasks"), 78, "mysql"),
        (("--store", "sqlite:///elsewhere.db", "tasks"), 1, "no store at"),
        (("--config", "absent.toml", "tasks"), 78, "absent.toml"),
        (("--store", "sqlite:///elsewhere.db", "doctor"), 1, ""),
        (("--store", "sqlite:///elsewhere.db", "doctor", "--reset-clock"), 1, "no store at"),
        (("--store", "sqlite:///tasks.toml", "tasks"), 78, "file is not a database"),
        (("explode",), 2, "explode"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_ends_with_a_sentence(
    applied: Folder, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    result = applied.run(*arguments, exit_code=exit_code)

    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert not (applied.path / "elsewhere.db").exists()


def test_a_task_file_with_a_typo_names_the_place(folder: Folder) -> None:
    folder.write("tasks.toml", '[task.one]\nshedule = { every = "1h" }\ntarget = { http = "http://127.0.0.1:9/" }\n')

    assert "tasks.toml:2" in folder.run("apply", "tasks.toml", exit_code=1).stderr


def test_dead_letters_are_listed_shown_requeued_and_discarded(applied: Folder) -> None:
    add_dead_letters(applied, 3)

    listed = applied.json("failures", "list")["items"]
    id = listed[0]["id"]

    assert "3      remind  mail   HTTP 500" in applied.run("failures", "list", "--groups").stdout
    assert "HTTP 500" in applied.run("failures", "show", id).stdout
    assert "1 dead letter(s) discarded" in applied.run("failures", "discard", id, "--reason", "a test").stdout
    assert "2 dead letter(s)" in applied.run("failures", "requeue", "--task", "remind").stdout
    made = applied.json("failures", "requeues")["items"][0]
    cancelled = applied.json("failures", "requeues", "--cancel", made["id"])["items"][0]
    assert (made["state"], made["rate"], cancelled["state"]) == ("canary", 50.0, "cancelled")


def test_the_doctor_says_what_is_missing_and_how_to_mend_it(applied: Folder) -> None:
    result = applied.run("doctor", exit_code=1)
    shape = applied.json("doctor", exit_code=1)

    assert "start one with `oncue clock`" in result.stdout
    assert not shape["well"]
    assert {"check": "source shop", "status": "well", "text": "it answers"} in shape["checks"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda file: damage(file), "malformed. Name another store"),
        (lambda file: file.mkdir(), "Its folder must be there"),
        (lambda file: make_strange(file), "the tables of another program"),
    ],
    ids=["damaged", "folder", "others"],
)
@pytest.mark.parametrize("command", ["tasks", "doctor", "migrate", "up"])
def test_a_file_that_is_no_store_is_told_with_a_remedy(
    folder: Folder, make: Callable[[Path], object], said: str, command: str
) -> None:
    make(folder.path / "oncue.db")

    result = folder.run(command, exit_code=1)

    assert "Traceback" not in result.output
    assert said in result.output or (command == "doctor" and "`oncue migrate`" in result.output)


def damage(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table schema_versions (number integer, name text, digest text, breaking integer)")
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def make_strange(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table tasks (id)")


def test_why_says_what_a_run_that_is_to_be_tried_again_waits_for(applied: Folder) -> None:
    applied.run("fire", "remind")
    with closing(sqlite3.connect(applied.path / "oncue.db")) as connection, connection:
        connection.execute("update runs set reason = 'the worker cannot be reached'")

    assert "waits to be tried again: the worker cannot be reached" in applied.run("why", "remind").stdout


def test_a_list_that_is_cut_says_so(applied: Folder) -> None:
    for _ in range(3):
        applied.run("fire", "remind")

    assert "There are more" in applied.run("runs", "--limit", "2").stdout
    assert "There are more" not in applied.run("runs", "--limit", "3").stdout


def test_the_doctor_names_the_repair_of_a_clock_that_ran_ahead(folder: Folder) -> None:
    folder.run("migrate")
    set_floor(folder, wall.now() + timedelta(hours=2))

    assert "--reset-clock" in folder.run("doctor", exit_code=1).stdout
    folder.run("doctor", "--reset-clock")
    assert "this host and the store agree" in folder.run("doctor").stdout


def test_the_doctor_finds_a_source_that_is_gone(applied: Folder) -> None:
    (applied.path / "shop.db").unlink()

    assert "WRONG  source shop" in applied.run("doctor", exit_code=1).stdout


def test_migrating_twice_is_safe(folder: Folder) -> None:
    assert "applied 0001" in folder.run("migrate").stdout
    assert "applied" not in folder.run("migrate").stdout


def test_what_others_wrote_cannot_move_the_cursor_of_a_terminal(applied: Folder) -> None:
    applied.run("pause", "remind", "--reason", "red \x1b[31m\nand a line")

    assert "\\x1b[31m\\nand a line" in applied.run("tasks").stdout
    assert "\x1b" not in applied.run("why", "remind").stdout


def add_dead_letters(folder: Folder, count: int) -> None:
    store = sqlite3.connect(folder.path / "oncue.db")
    with store:
        for n in range(count):
            store.execute(
                "insert into dead_letters (uuid, identity, kind, state, reason, task_name, queue, attempts, headers,"
                " properties, created_at) values (?, ?, 'message', 'open', 'HTTP 500', 'remind', 'mail', '[]', '{}',"
                " '{}', ?)",
                (str(uuid4()), f"test:{n}", write_time(datetime(2026, 11, 29, tzinfo=UTC))),
            )
    store.close()


def set_floor(folder: Folder, moment: datetime) -> None:
    store = sqlite3.connect(folder.path / "oncue.db")
    with store:
        store.execute("insert or replace into clock_samples values (1, ?)", (write_time(moment),))
    store.close()
