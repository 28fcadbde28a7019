"""Calendars over HTTP."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from oncue.app import Oncue
from oncue.definition import Calendar
from tests.api.conftest import put

pytestmark = pytest.mark.anyio

WEEK: dict[str, Any] = {"weekdays": "mon-fri", "except": ["2026-12-25"]}
NOON = {"cron": "0 12 * * *", "only_on": "week"}


async def test_a_calendar_is_made_then_changed_then_left_as_it_is(client: httpx2.AsyncClient) -> None:
    answers = [
        await client.put("/v1/calendars/week", json=WEEK),
        await client.put("/v1/calendars/week", json=WEEK | {"known_until": "2030-12-31"}),
        await client.put("/v1/calendars/week", json=WEEK | {"known_until": "2030-12-31"}),
    ]

    assert [(one.status_code, one.json()) for one in answers] == [
        (201, {"name": "week", "verdict": "created", "moved": []}),
        (200, {"name": "week", "verdict": "changed", "moved": []}),
        (200, {"name": "week", "verdict": "unchanged", "moved": []}),
    ]


async def test_what_a_calendar_answers_can_be_put_back(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/calendars/free", json={"dates": {"2026-12-25": "Noël"}, "source": "me"})

    shown = (await client.get("/v1/calendars/free")).json()
    again = await client.put("/v1/calendars/free", json=shown["definition"])

    assert shown["definition"] == {"dates": {"2026-12-25": "Noël"}, "source": "me"}
    assert again.json()["verdict"] == "unchanged"


async def test_all_are_listed_in_words_with_the_tasks_that_use_them(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    soon = str((await oncue.now()).date() + timedelta(days=60))
    await client.put("/v1/calendars/week", json=WEEK | {"known_until": soon})
    await client.put("/v1/calendars/free", json={"dates": ["2026-12-25"]})
    await put(client, schedule=NOON)

    listed = (await client.get("/v1/calendars")).json()

    free = {"name": "free", "words": "1 date", "known_until": None, "ends_soon": False, "source": "", "tasks": []}
    week = {"name": "week", "words": "mon-fri, except 1 date", "known_until": soon, "ends_soon": True, "source": ""}
    assert listed == {"items": [free, week | {"tasks": ["remind"]}], "next_cursor": None}


async def test_a_change_answers_which_next_times_it_moves(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/calendars/week", json={"weekdays": "mon-sun"})
    await put(client, schedule=NOON)
    times = (await client.get("/v1/tasks/remind/next", params={"n": 2})).json()["times"]

    answer = await client.put("/v1/calendars/week", json={"weekdays": "mon-sun", "except": [times[0][:10]]})

    assert answer.json()["moved"] == [{"task": "remind", "old": times[0], "new": times[1]}]
    assert (await client.get("/v1/tasks/remind")).json()["schedule"]["next_at"] == times[1]


async def test_a_task_is_put_with_calendars_that_are_stored_as_apply_does(client: httpx2.AsyncClient) -> None:
    body = {"schedule": {"cron": "0 12 * * *", "except_on": "week"}, "target": {"http": "http://127.0.0.1:9/"}}

    unknown = await client.put("/v1/tasks/weekend", json=body)
    await client.put("/v1/calendars/week", json=WEEK)
    known = await client.put("/v1/tasks/weekend", json=body)
    await client.put("/v1/calendars/all", json={"weekdays": "mon-sun"})
    never = await client.put("/v1/tasks/never", json=body | {"schedule": {"cron": "0 12 * * *", "except_on": "all"}})

    assert (unknown.status_code, unknown.json()["code"]) == (422, "task_file_error")
    assert 'no calendar "week"' in unknown.json()["detail"]
    assert known.status_code == 201
    assert (never.status_code, never.json()["code"]) == (422, "task_file_error")
    assert "no time" in never.json()["detail"]


async def test_a_calendar_is_removed_when_no_task_uses_it(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/calendars/week", json=WEEK)
    await put(client, schedule=NOON)

    refused = await client.delete("/v1/calendars/week")
    await put(client)
    removed = await client.delete("/v1/calendars/week")
    gone = [await client.get("/v1/calendars/week"), await client.delete("/v1/calendars/week")]

    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "is used by remind" in refused.json()["detail"]
    assert (removed.status_code, removed.content) == (204, b"")
    assert [one.status_code for one in gone] == [404, 404]


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("week", {}, "[calendar.week]: it names no day."),
        ("week", {"weekdays": "mon-fun"}, '[calendar.week] weekdays: "mon-fun" is no weekday.'),
        ("week", {"dates": {"soon": ""}}, '[calendar.week] dates: "soon" is not a date.'),
        ("week", {"dates": {"2026-01-01": "\ud800"}}, "half of a surrogate pair"),
        ("week", {"weekdays": "mon", "day": 1}, "[calendar.week] day: there is no such key."),
        ("Week", {"weekdays": "mon"}, "is not a calendar's name"),
    ],
)
async def test_a_body_that_is_no_calendar_is_refused_with_its_place(
    client: httpx2.AsyncClient, name: str, body: dict[str, Any], says: str
) -> None:
    content = json.dumps(body).encode()
    answer = await client.put(f"/v1/calendars/{name}", content=content, headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (422, "task_file_error")
    assert says in answer.json()["detail"]


async def test_more_dates_than_a_body_may_hold_are_refused(client: httpx2.AsyncClient) -> None:
    dates = {
        f"{year}-{month:02}-{day:02}": "x" * 30
        for year in range(1990, 2020)
        for month in range(1, 13)
        for day in range(1, 29)
    }

    answer = await client.put("/v1/calendars/much", json={"dates": dates})

    assert (answer.status_code, answer.json()["code"]) == (413, "content_too_large")


async def test_the_same_in_python(oncue: Oncue) -> None:
    week = Calendar("week", weekdays=("mon",))

    planned = await oncue.preview_calendar(week)
    stored = [(await oncue.put_calendar(week)).verdict for _ in range(2)]
    known = await oncue.calendars()
    await oncue.remove_calendar("week")

    assert planned.verdict == "created"
    assert (stored, known, await oncue.calendars()) == (["created", "unchanged"], [week], [])
