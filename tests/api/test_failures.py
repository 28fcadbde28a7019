"""Dead letters and requeues over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from oncue.app import Oncue
from tests.api.conftest import bury

pytestmark = pytest.mark.anyio


async def test_dead_letters_page_and_are_grouped_by_their_reason(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await bury(oncue, 3)

    page = (await client.get("/v1/failures", params={"limit": 2, "task": "remind", "state": "open"})).json()
    groups = (await client.get("/v1/failures/groups")).json()["items"]

    assert [one["key"] for one in page["items"]] == ["key-2", "key-1"]
    assert page["next_cursor"]
    assert groups == [{"task": "remind", "queue": "mail", "reason": "HTTP 500", "count": 3}]


async def test_one_dead_letter_shows_what_it_carried(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await bury(oncue)
    id = (await client.get("/v1/failures")).json()["items"][0]["id"]

    shown = (await client.get(f"/v1/failures/{id}")).json()

    assert (shown["body"], shown["data"], shown["state"]) == ('{"n": 1}', {"n": 0}, "open")


async def test_a_requeue_takes_open_ones_once(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await bury(oncue, 2)

    made = await client.post("/v1/failures/requeues", json={"task": "remind", "rate": 5})
    again = await client.post("/v1/failures/requeues", json={"all": True})

    assert (made.status_code, made.json()["total"], made.json()["rate"]) == (202, 2, 5)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    listed = (await client.get("/v1/failures/requeues")).json()["items"]
    assert [one["id"] for one in listed] == [made.json()["id"]]


async def test_a_requeue_is_cancelled_and_gives_back_what_it_had_not_sent(
    client: httpx2.AsyncClient, oncue: Oncue
) -> None:
    await bury(oncue, 2)
    id = (await client.post("/v1/failures/requeues", json={"all": True})).json()["id"]

    paused = await client.post(f"/v1/failures/requeues/{id}/pause")
    cancelled = await client.post(f"/v1/failures/requeues/{id}/cancel")

    assert paused.status_code == 409  # its first has not come back yet
    assert cancelled.json()["state"] == "cancelled"
    assert (await client.get("/v1/failures/groups")).json()["items"][0]["count"] == 2


async def test_discarding_closes_with_a_reason(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await bury(oncue, 2)

    answer = await client.post("/v1/failures/discard", json={"all": True, "reason": "a test run"})

    assert answer.json() == {"discarded": 2}
    shown = (await client.get("/v1/failures")).json()["items"]
    assert {(one["state"], one["ended_reason"]) for one in shown} == {("discarded", "a test run")}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/failures/requeues", {}, 409),
        ("/v1/failures/requeues", {"ids": ["nonsense"]}, 422),
        ("/v1/failures/requeues", {"all": True, "rate": 0}, 422),
        ("/v1/failures/requeues", {"all": True, "rate": -1}, 422),
        ("/v1/failures/discard", {"all": True}, 422),
        ("/v1/failures/discard", {"all": True, "reason": ""}, 422),
        ("/v1/failures/discard", {"reason": "none named"}, 409),
        ("/v1/failures/requeues/00000000-0000-0000-0000-000000000000/explode", {}, 422),
    ],
)
async def test_what_does_not_say_enough_is_refused(
    client: httpx2.AsyncClient, path: str, body: dict[str, Any], status: int
) -> None:
    answer = await client.post(path, json=body)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
