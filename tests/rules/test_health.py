"""What is wrong, in sentences: calendars that end, and zone data that is behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from oncue.definition import Calendar
from oncue.rules import health

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def problems(
    *, calendars: Sequence[tuple[Calendar, list[str]]] = (), editions: Sequence[tuple[str, str, str]] = ()
) -> list[health.Problem]:
    signs = health.Signs(None, None, (), (), 0, 0, (), calendars, editions)
    return health.problems(signs, now=NOW, overdue=timedelta(seconds=30), silent=timedelta(seconds=45))


def holidays(until: str | None) -> Calendar:
    source = "holidays 0.109 --country GR"
    return Calendar("gr-holidays", known_until=date.fromisoformat(until) if until else None, source=source)


@pytest.mark.parametrize(
    ("until", "text", "urgent"),
    [
        ("2026-12-31", "is known until 2026-12-31, in 32 days; tasks a, b use it", False),
        ("2026-11-30", "is known until 2026-11-30, in 1 day; tasks a, b use it", False),
        ("2026-11-29", "is known until 2026-11-29, today; tasks a, b use it", False),
        ("2026-11-28", "was known until 2026-11-28, and no later day is in it; tasks a, b use it", True),
    ],
)
def test_a_calendar_that_ends_is_told_with_its_tasks_and_the_remedy(until: str, text: str, urgent: bool) -> None:
    (problem,) = problems(calendars=[(holidays(until), ["a", "b"])])

    assert (problem.code, problem.subject, problem.urgent) == ("calendar_ends", "gr-holidays", urgent)
    remedy = "import more years: oncue calendars import gr-holidays --country GR."
    assert problem.text == f'calendar "gr-holidays" {text}: {remedy}'


@pytest.mark.parametrize(
    ("until", "users"), [("2027-01-29", ["a"]), (None, ["a"]), ("2026-12-31", []), ("2020-12-31", [])]
)
def test_a_calendar_that_ends_later_or_that_nobody_uses_is_no_problem(until: str | None, users: list[str]) -> None:
    assert problems(calendars=[(holidays(until), users)]) == []


def test_sixty_days_before_its_end_a_calendar_begins_to_be_told() -> None:
    assert len(problems(calendars=[(holidays("2027-01-28"), ["a"])])) == 1


def test_one_task_and_many_tasks_are_both_said_well() -> None:
    (one,) = problems(calendars=[(holidays("2026-12-31"), ["a"])])
    (many,) = problems(calendars=[(holidays("2026-12-31"), list("abcde"))])

    assert "task a uses it" in one.text
    assert "tasks a, b, c and more use it" in many.text


def test_what_is_over_is_told_before_what_is_to_come() -> None:
    found = problems(calendars=[(holidays("2026-12-31"), ["a"]), (holidays("2026-01-31"), ["a"])])

    assert [one.urgent for one in found] == [True, False]


def test_the_process_that_reads_older_zone_data_is_told() -> None:
    editions = [("clock", "h1 (pid 1)", "2025a"), ("watch", "h1 (pid 1)", "2025a"), ("clock", "h2 (pid 2)", "2025b")]

    (problem,) = problems(editions=editions)

    assert (problem.code, problem.subject, problem.urgent) == ("zone_data_behind", "h1 (pid 1)", False)
    assert problem.text == (
        "clock, watch on h1 (pid 1) reads zone data 2025a, others 2025b: upgrade its tzdata and restart it."
    )


@pytest.mark.parametrize(
    "editions",
    [
        [],
        [("clock", "h1 (pid 1)", "2025b"), ("clock", "h2 (pid 2)", "2025b")],
        [("clock", "h1 (pid 1)", "unknown"), ("clock", "h2 (pid 2)", "2025b")],
    ],
)
def test_where_all_read_the_same_or_one_cannot_say_nobody_is_behind(editions: list[tuple[str, str, str]]) -> None:
    assert problems(editions=editions) == []
