"""`oncue calendars` and `oncue zones` over a SQLite store."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import date, timedelta

import pytest

from oncue import wall
from oncue.zonedata import edition
from tests.cli.conftest import NOBODY, Folder

HOUR = (wall.now() + timedelta(hours=12)).hour  # no test begins before it and ends after it
REPORT = f"""
[calendar.business-days]
weekdays = "mon-fri"

[task.report]
target = {{ http = "{NOBODY}" }}
schedule = {{ cron = "0 {HOUR} * * *", only_on = "business-days", except_on = "gr-holidays" }}
"""
YEARS = ("--from", "2026", "--to", "2031")


@pytest.fixture
def imported(folder: Folder) -> Folder:
    folder.run("calendars", "import", "gr-holidays", "--country", "gr", *YEARS)
    folder.write("report.toml", REPORT)
    folder.run("apply", "report.toml")
    return folder


def test_a_country_is_imported_once_shown_and_used(imported: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncue.adapters.calendars.holidays.util.find_spec", lambda _name: None)  # it is not needed now

    listed = imported.run("calendars").stdout
    shown = imported.json("calendars", "show", "gr-holidays")
    times = imported.json("next", "report", "--after", "2026-12-24T00:00:00Z", "-n", "2")["times"]

    assert "73 dates" in listed
    assert "mon-fri" in listed
    assert (shown["known_until"], shown["tasks"], shown["ends_soon"]) == ("2031-12-31", ["report"], False)
    assert shown["source"].startswith("holidays 0.")
    assert shown["source"].endswith(" --country GR")
    assert shown["definition"]["dates"]["2026-12-25"] == "Christmas Day"
    assert times == [f"2026-12-{day}T{HOUR:02}:00:00Z" for day in (24, 28)]


def test_the_listing_in_json_is_a_page(imported: Folder) -> None:
    page = json.loads(imported.run("calendars", "--json").stdout)

    assert [(one["name"], one["words"]) for one in page["items"]] == [
        ("business-days", "mon-fri"),
        ("gr-holidays", "73 dates"),
    ]


def test_an_import_shows_what_changes_first_and_a_dry_run_stores_nothing(imported: Folder) -> None:
    first, second = _next(imported), _next(imported, skip=1)
    day = date.fromisoformat(first[:10])
    imported.write("free.txt", f"# strikes\n{day} Strike\n")

    dry = imported.run("calendars", "import", "gr-holidays", "--file", "free.txt", "--dry-run").stdout
    after_dry = _next(imported)
    done = imported.run("calendars", "import", "gr-holidays", "--file", "free.txt").stdout

    assert f"+ {day} {day:%a}  Strike" in dry
    assert "in all 1 added, 7" in dry
    assert 'task "report": next ' in dry
    assert "Stored" not in dry
    assert after_dry == first
    assert 'Stored: calendar "gr-holidays" is changed; 1 next time(s) moved.' in done
    assert _next(imported) == second


def test_the_same_import_again_changes_nothing(imported: Folder) -> None:
    again = imported.run("calendars", "import", "gr-holidays", "--country", "GR", *YEARS).stdout

    assert 'calendar "gr-holidays": unchanged: 73 dates' in again
    assert "Stored" not in again


def test_without_years_this_and_five_more_are_imported(folder: Folder) -> None:
    folder.run("calendars", "import", "nyse", "--exchange", "xnys")

    shown = folder.json("calendars", "show", "nyse")
    assert shown["known_until"] == f"{wall.now().year + 5}-12-31"
    assert min(shown["definition"]["dates"]) >= f"{wall.now().year}-01-01"


def test_an_icalendar_file_is_imported_with_its_name_as_the_source(folder: Folder) -> None:
    event = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270504\nSUMMARY:Fête\nEND:VEVENT"
    folder.path.joinpath("a.ics").write_bytes(f"\ufeffBEGIN:VCALENDAR\n{event}\nEND:VCALENDAR\n".encode())

    folder.run("calendars", "import", "school", "--file", "a.ics")

    shown = folder.json("calendars", "show", "school")
    assert shown["definition"] == {
        "dates": {"2027-05-04": "Fête"},
        "known_until": "2027-12-31",
        "source": "file a.ics",
    }


def test_a_calendar_is_shown_with_the_days_of_this_year_and_the_next(folder: Folder) -> None:
    year = wall.now().year
    given = [word for number in range(4) for word in ("--date", f"{year + number}-02-03")]
    folder.run("calendars", "set", "days", "--weekdays", "mon-fri", *given, "--except", f"{year}-02-04")

    shown = folder.run("calendars", "show", "days").stdout

    assert "mon-fri, 4 dates, except 1 date" in shown
    assert f"{year + 1}-02-03" in shown
    assert f"{year + 2}-02-03" not in shown
    assert "(not in it)" in shown
    assert "2 more in other years" in shown


def test_a_day_is_checked(imported: Folder) -> None:
    said = imported.run("calendars", "check", "gr-holidays", "2026-12-25").stdout

    assert said == "2026-12-25, a Friday, is in gr-holidays: Christmas Day.\n"
    assert "is not a date" in imported.run("calendars", "check", "gr-holidays", "soon", exit_code=2).stderr


def test_a_calendar_in_use_is_not_removed_and_one_that_is_not_is(imported: Folder) -> None:
    refused = imported.run("calendars", "remove", "gr-holidays", exit_code=1).stderr
    imported.write("report.toml", REPORT.replace(', except_on = "gr-holidays"', ""))
    imported.run("apply", "report.toml")
    imported.run("calendars", "remove", "gr-holidays")

    assert 'calendar "gr-holidays" is used by report: change these tasks first.' in refused
    assert 'no calendar "gr-holidays"' in imported.run("calendars", "show", "gr-holidays", exit_code=1).stderr


def test_a_calendar_that_leaves_a_task_no_time_is_refused_before_anything_is_stored(imported: Folder) -> None:
    imported.write("end.toml", REPORT.replace("* * *", "* * mon").replace("report", "mondays"))
    imported.run("apply", "end.toml")

    refused = imported.run("calendars", "set", "business-days", "--weekdays", "sat,sun", exit_code=1)

    assert 'task "mondays" would have no time left by calendar "business-days"' in refused.stderr
    assert imported.json("calendars", "show", "business-days")["words"] == "mon-fri"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("import", "x"), 2, "exactly one of --country"),
        (("import", "x", "--country", "GR", "--exchange", "XNYS"), 2, "exactly one of --country"),
        (("import", "x", "--exchange", "XNYS", "--subdivision", "NY"), 2, "exactly one of --country"),
        (("import", "X y", "--country", "GR"), 1, "is not a calendar's name"),
        (("import", "x", "--country", "GX"), 1, 'no country "GX". Did you mean'),
        (("import", "x", "--country", "GR", "--from", "1066", "--to", "1070"), 1, "no years that can be imported"),
        (("import", "x", "--country", "GR", "--from", "2030", "--to", "2029"), 1, "no years that can be imported"),
        (("import", "x", "--country", "GR", "--from", "2000", "--to", "2050"), 1, "at most 50"),
        (("import", "x", "--country", "IN", "--from", "2034", "--to", "2038"), 1, "only from 2001 to 2035"),
        (("import", "x", "--file", "none.ics"), 1, "none.ics: it cannot be read: No such file"),
        (("import", "x", "--file", "bad.txt"), 1, 'bad.txt: line 2: "tomorrow" is not a date'),
        (("import", "x", "--file", "latin.txt"), 1, "latin.txt: it is not text in UTF-8"),
        (("import", "x", "--file", "huge.txt"), 1, "huge.txt: it is larger than 4 MB"),
        (("import", "x", "--file", "good.txt", "--from", "2030", "--to", "2031"), 1, "holds no day of 2030 to 2031"),
        (("set", "x"), 1, "it names no day"),
        (("set", "x", "--weekdays", "sun-mon"), 1, "[calendar.x] weekdays"),
        (("set", "x", "--date", "2026-02-30"), 2, "is not a date"),
        (("show", "x"), 1, "Known calendars: none"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence_and_stores_nothing(
    folder: Folder, arguments: tuple[str, ...], exit_code: int, says: str
) -> None:
    folder.run("migrate")
    folder.write("bad.txt", "2026-12-25 Christmas\ntomorrow\n")
    folder.write("good.txt", "2026-12-25 Christmas\n")
    folder.write("huge.txt", "2026-12-25 Christmas\n" * 200_000)
    folder.path.joinpath("latin.txt").write_bytes("2026-12-25 Noël\n".encode("latin-1"))

    refused = folder.run("calendars", *arguments, exit_code=exit_code)

    assert says in refused.stderr
    assert json.loads(folder.run("calendars", "--json").stdout)["items"] == []


def test_without_the_library_the_sentence_says_what_to_install(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncue.adapters.calendars.holidays.util.find_spec", lambda _name: None)

    refused = folder.run("calendars", "import", "gr-holidays", "--country", "GR", exit_code=78)

    assert "pip install 'oncue[calendars]'" in refused.stderr


def test_doctor_tells_of_a_calendar_that_ends_and_of_one_that_has_ended(imported: Folder) -> None:
    today = wall.now().date()
    imported.run("calendars", "set", "gr-holidays", "--date", "2026-01-01", "--until", str(today + timedelta(days=9)))
    soon = imported.json("doctor", exit_code=1)["checks"]
    imported.run("calendars", "set", "gr-holidays", "--date", "2026-01-01", "--until", str(today - timedelta(days=2)))
    over = imported.json("doctor", exit_code=1)["checks"]

    (told,) = (check for check in soon if check["check"] == "calendar_ends")
    assert (told["status"], "task report uses it" in told["text"]) == ("note", True)
    assert [check["status"] for check in over if check["check"] == "calendar_ends"] == ["wrong"]
    assert "ENDS SOON" in imported.run("calendars").stdout


def test_zones_says_which_edition_this_host_reads_and_that_nothing_has_moved(imported: Folder) -> None:
    said = imported.run("zones").stdout
    shape = imported.json("zones")

    assert f"This host reads zone data {edition()}, from " in said
    assert "No edition has moved a next time." in said
    assert (shape["zone_data"], shape["components"], shape["moved"]) == (edition(), [], [])


def test_zones_lists_components_and_what_a_new_edition_moved(imported: Folder) -> None:
    _reckon_by_an_old_clock(imported)

    said = imported.run("zones").stdout
    shape = imported.json("zones")

    assert [(one["name"], one["pid"], one["zone_data"]) for one in shape["components"]] == [("clock", 7, "2025a")]
    assert [(one["task"], "by zone data" in one["text"]) for one in shape["moved"]] == [("report", True)]
    assert "clock" in said
    assert "report" in said


def _reckon_by_an_old_clock(folder: Folder) -> None:
    """Make a store look as after a new edition, with a clock that reads an old one."""
    now = "2026-11-01T00:00:00.000000+00:00"
    with closing(sqlite3.connect(folder.path / "oncue.db")) as store, store:
        store.execute(
            "insert into components (instance, name, host, pid, started_at, seen_at, zone_data) "
            "values ('i', 'clock', 'h', 7, ?, ?, '2025a')",
            (now, now),
        )
        store.execute(
            "insert into audit (happened_at, actor, verb, subject, detail) "
            "values (?, 'clock', 'reckon', 'report', 'by zone data 2025b: next due x instead of y')",
            (now,),
        )


def _next(folder: Folder, *, skip: int = 0) -> str:
    times: list[str] = folder.json("next", "report", "-n", "3")["times"]
    return times[skip]
