"""Health, metrics, and what no request gets past."""

from __future__ import annotations

import httpx2
import pytest

from oncue.api.app import create_events_app, create_health_app
from oncue.app import Oncue
from oncue.errors import StoreUnavailable
from tests.api.conftest import bury, put

pytestmark = pytest.mark.anyio


async def test_a_process_lives_and_is_ready(client: httpx2.AsyncClient) -> None:
    alive, ready = await client.get("/healthz"), await client.get("/readyz")

    assert alive.status_code == ready.status_code == 200
    assert ready.json() == {"ready": True, "reasons": [], "problems": []}


async def test_what_is_wrong_elsewhere_is_named_and_takes_nobody_out(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await put(client)
    await bury(oncue)

    ready = await client.get("/readyz")

    assert ready.status_code == 200
    assert [one["code"] for one in ready.json()["problems"]] == [
        "component_missing",
        "component_missing",
        "dead_letters",
    ]


async def test_a_store_without_a_schema_is_not_ready(sqlite_url: str) -> None:
    made = Oncue(sqlite_url)
    transport = httpx2.ASGITransport(app=create_health_app(made))

    async with httpx2.AsyncClient(transport=transport, base_url="http://oncue") as client:
        ready, alive = await client.get("/readyz"), await client.get("/healthz")

    assert (ready.status_code, alive.status_code) == (503, 200)
    assert "oncue migrate" in ready.json()["reasons"][0]
    await made.close()


async def test_a_process_that_drains_is_not_ready(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    oncue.loop.stop()

    ready = await client.get("/readyz")

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["this process is draining."])


async def test_metrics_are_read_from_the_store_where_no_watch_runs(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await put(client)
    await client.post("/v1/tasks/remind/fire")
    await bury(oncue, 2)

    answer = await client.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in (
        'oncue_runs_open{state="due"} 1.0',
        'oncue_schedules{state="active"} 1.0',
        "oncue_dead_letters_open 2.0",
        "oncue_dead_letters_total 2.0",
        'oncue_problems{code="dead_letters"} 1.0',
    ):
        assert line in answer.text


async def test_metrics_of_this_process_are_there_without_the_store(
    client: httpx2.AsyncClient, oncue: Oncue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: object) -> None:
        raise StoreUnavailable("the store cannot be used now")

    monkeypatch.setattr(oncue.store.database, "read", down)

    answer = await client.get("/metrics")

    assert answer.status_code == 200
    assert "oncue_dead_letters_total 0.0" in answer.text


async def test_a_write_that_a_page_of_elsewhere_sends_is_refused(client: httpx2.AsyncClient) -> None:
    await put(client)

    elsewhere = await client.post("/v1/tasks/remind/fire", headers={"origin": "https://evil.example"})
    own = await client.post("/v1/tasks/remind/fire", headers={"origin": "http://oncue"})

    assert (elsewhere.status_code, elsewhere.json()["code"]) == (403, "forbidden")
    assert own.status_code == 202


@pytest.mark.parametrize(("method", "path"), [("PUT", "/v1/tasks/one"), ("POST", "/v1/failures/discard")])
async def test_no_route_reads_a_body_over_the_limit(client: httpx2.AsyncClient, method: str, path: str) -> None:
    answer = await client.request(method, path, content=b'{"a": "' + b"x" * 300_000 + b'"}')

    assert (answer.status_code, answer.json()["code"]) == (413, "content_too_large")


async def test_a_method_that_a_route_has_not_is_a_problem(client: httpx2.AsyncClient) -> None:
    answer = await client.delete("/v1/tasks")

    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


async def test_an_ingest_serves_events_and_health_and_no_more(oncue: Oncue) -> None:
    transport = httpx2.ASGITransport(app=create_events_app(oncue))

    async with httpx2.AsyncClient(transport=transport, base_url="http://oncue") as client:
        paths = (await client.get("/openapi.json")).json()["paths"]

    assert set(paths) == {"/v1/events", "/healthz", "/readyz", "/metrics"}
