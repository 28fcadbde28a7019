"""Tasks and runs over HTTP."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx2
import pytest

from oncue.app import Oncue
from tests.api.conftest import NOBODY, put

pytestmark = pytest.mark.anyio


async def test_a_task_is_made_then_changed_then_left_as_it_is(client: httpx2.AsyncClient) -> None:
    body: dict[str, Any] = {"schedule": {"every": "1h"}, "target": {"http": NOBODY}}

    answers = [
        await client.put("/v1/tasks/one", json=body),
        await client.put("/v1/tasks/one", json=body | {"description": "new"}),
        await client.put("/v1/tasks/one", json=body | {"description": "new"}),
    ]

    assert [(one.status_code, one.json()["verdict"]) for one in answers] == [
        (201, "created"),
        (200, "changed"),
        (200, "unchanged"),
    ]
    shown = (await client.get("/v1/tasks/one")).json()
    assert (shown["version"], shown["description"]) == (2, "new")
    assert shown["definition"]["schedule"] == {"every": "1h"}
    assert shown["schedule"]["next_at"].endswith("Z")


async def test_what_a_task_answers_can_be_put_back(client: httpx2.AsyncClient) -> None:
    await put(client, misfire={"grace": "10m", "catch_up": "all"}, retry={"attempts": 3, "first": "2s"}, expires="2h")
    shown = (await client.get("/v1/tasks/remind")).json()

    answer = await client.put("/v1/tasks/remind", json=shown["definition"])

    assert answer.json()["verdict"] == "unchanged"


async def test_all_tasks_are_listed_by_name(client: httpx2.AsyncClient) -> None:
    await put(client, "b")
    await put(client, "a")

    listed = (await client.get("/v1/tasks")).json()

    assert [one["name"] for one in listed["items"]] == ["a", "b"]


async def test_the_next_times_are_in_utc(client: httpx2.AsyncClient) -> None:
    await put(client, schedule={"cron": "0 9 * * *", "zone": "Europe/Athens"})

    answer = await client.get("/v1/tasks/remind/next", params={"n": 2, "after": "2026-03-28T00:00:00+02:00"})

    assert answer.json() == {"times": ["2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z"]}


async def test_a_preview_shows_the_messages_and_makes_no_run(client: httpx2.AsyncClient) -> None:
    await put(client)

    shown = (await client.get("/v1/tasks/remind/preview", params={"n": 1})).json()

    assert [(one["key"], one["body"]) for one in shown["messages"]] == [("a", '{"key":"a","email":"a@example.org"}')]
    assert shown["more"]
    assert (await client.get("/v1/runs")).json()["items"] == []


async def test_a_preview_of_a_query_that_fails_says_so(client: httpx2.AsyncClient) -> None:
    await put(client, resolve={"sql": "select id as key from nowhere", "source": "shop"})

    answer = await client.get("/v1/tasks/remind/preview")

    assert (answer.status_code, answer.json()["code"]) == (502, "resolve_error")
    assert "nowhere" in answer.json()["detail"]


@pytest.mark.parametrize("header", [True, False])
async def test_firing_twice_with_one_key_makes_one_run(client: httpx2.AsyncClient, header: bool) -> None:
    await put(client)
    asked: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}} if header else {"json": {"key": "k"}}

    first, second = [await client.post("/v1/tasks/remind/fire", **asked) for _ in range(2)]

    assert first.status_code == second.status_code == 202
    assert first.json()["run"] == second.json()["run"]
    assert (first.json()["duplicate"], second.json()["duplicate"]) == (False, True)
    assert len((await client.get("/v1/runs")).json()["items"]) == 1


async def test_a_task_is_paused_with_its_reason_and_resumed(client: httpx2.AsyncClient) -> None:
    await put(client)

    paused = (await client.post("/v1/tasks/remind/pause", json={"reason": "moving house"})).json()
    resumed = (await client.post("/v1/tasks/remind/resume")).json()
    again = await client.post("/v1/tasks/remind/resume")

    assert (paused["state"], paused["reason"], paused["schedule"]["state"]) == ("paused", "moving house", "paused")
    assert (resumed["state"], resumed["schedule"]["state"]) == ("active", "active")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "task_file_error"),
        ({"target": {}}, "task_file_error"),
        ({"target": {"http": "nonsense"}}, "task_file_error"),
        ({"target": {"broker": "main", "queue": "q"}}, "task_file_error"),
        ({"target": {"http": NOBODY}, "schedule": {"cron": "61 * * * *"}}, "task_file_error"),
        ({"target": {"http": NOBODY}, "schedule": {"cron": "0 0 30 2 *"}}, "task_file_error"),
        ({"target": {"http": NOBODY}, "schedule": {"cron": "* * * * *", "zone": "Mars/Base"}}, "task_file_error"),
        ({"target": {"http": NOBODY}, "shedule": {}}, "task_file_error"),
        ({"target": {"http": NOBODY}, "name": "another"}, "task_file_error"),
        ({"target": {"http": NOBODY}, "description": "half \ud800"}, "task_file_error"),
        ([], "invalid_request"),
        ("text", "invalid_request"),
        (None, "invalid_request"),
    ],
    ids=str,
)
async def test_a_definition_that_is_wrong_is_refused(client: httpx2.AsyncClient, body: Any, code: str) -> None:
    answer = await client.put("/v1/tasks/one", content=json.dumps(body), headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


async def test_runs_page_by_cursor_without_gaps(client: httpx2.AsyncClient) -> None:
    await put(client)
    for n in range(5):
        await client.post("/v1/tasks/remind/fire", json={"key": str(n)})
    pages, cursor = [], None
    while True:
        page = (await client.get("/v1/runs", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        pages.append([one["cause"] for one in page["items"]])
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert pages == [["manual:4", "manual:3"], ["manual:2", "manual:1"], ["manual:0"]]


async def test_runs_are_filtered_by_task_and_state(client: httpx2.AsyncClient) -> None:
    await put(client, "a")
    await put(client, "b")
    run = (await client.post("/v1/tasks/a/fire")).json()["run"]
    await client.post("/v1/tasks/b/fire")
    await client.post(f"/v1/runs/{run}/cancel", json={"reason": "not today"})

    found = (await client.get("/v1/runs", params={"task": "a", "state": "cancelled"})).json()["items"]
    other = (await client.get("/v1/runs", params={"task": "a", "state": "due"})).json()["items"]

    assert [(one["id"], one["reason"]) for one in found] == [(run, "not today")]
    assert other == []


async def test_a_run_that_ended_cannot_be_cancelled(client: httpx2.AsyncClient) -> None:
    await put(client)
    run = (await client.post("/v1/tasks/remind/fire")).json()["run"]
    await client.post(f"/v1/runs/{run}/cancel")

    answer = await client.post(f"/v1/runs/{run}/cancel")

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert (await client.get(f"/v1/runs/{run}")).json()["state"] == "cancelled"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/tasks/nobody", 404),
        ("/v1/tasks/nobody/next", 404),
        ("/v1/tasks/nobody/preview", 404),
        ("/v1/runs?task=nobody", 404),
        ("/v1/runs?state=sleeping", 422),
        ("/v1/runs?limit=0", 422),
        ("/v1/runs?limit=1001", 422),
        ("/v1/runs?cursor=nonsense", 422),
        ("/v1/runs/not-an-id", 422),
        (f"/v1/runs/{UUID(int=7)}", 404),
        ("/v1/failures?state=sleeping", 422),
        (f"/v1/failures/{UUID(int=7)}", 404),
        (f"/v1/failures/requeues/{UUID(int=7)}", 404),
        ("/v1/runs?task=%00", 422),
        ("/v1/tasks/a%00b", 422),
        ("/v1/nowhere", 404),
        ("/v1/tasks/../../etc/passwd", 404),
    ],
)
async def test_what_is_not_there_or_not_understood_is_a_problem(
    client: httpx2.AsyncClient, path: str, status: int
) -> None:
    answer = await client.get(path)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "code", "detail"} <= answer.json().keys()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/tasks/remind/fire", {"due-at": "2026-03-28T07:00:00Z"}),
        ("/v1/tasks/remind/pause", {"reason": "a test", "until": "tomorrow"}),
        (f"/v1/runs/{UUID(int=7)}/cancel", {"why": "a test"}),
        ("/v1/failures/requeues", {"all": True, "tasks": "remind"}),
        ("/v1/failures/discard", {"all": True, "reason": "a test", "tasks": "remind"}),
    ],
)
async def test_a_key_that_is_not_known_is_refused_and_nothing_done(
    client: httpx2.AsyncClient, path: str, body: dict[str, Any]
) -> None:
    await put(client)

    answer = await client.post(path, json=body)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert (await client.get("/v1/runs")).json()["items"] == []


async def test_no_route_fails_on_a_name_that_nobody_has(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    paths: dict[str, dict[str, Any]] = (await client.get("/openapi.json")).json()["paths"]
    answers = {}
    for path, methods in paths.items():
        for method in methods:
            for value in (str(uuid4()), "'; drop table runs; --", "\x00", "{{7*7}}"):
                quoted = quote(value, safe="")
                url = path.replace("{name}", quoted).replace("{id}", quoted).replace("{verb}", "cancel")
                answers[method, path, value] = (await client.request(method, url)).status_code

    assert {asked: status for asked, status in answers.items() if status >= 500} == {}
    assert "/v1/events" in paths
