"""Events over HTTP: what is taken, what is answered, and what is turned away before anybody believes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from oncue.app import Oncue
from oncue.errors import StoreUnavailable
from oncue.model import Event
from oncue.store import runs
from oncue.store.events import Accepted
from oncue.testing.until import until
from tests.api.conftest import NOBODY, put

pytestmark = pytest.mark.anyio

STRUCTURED = {"content-type": "application/cloudevents+json"}
BATCH = {"content-type": "application/cloudevents-batch+json"}
KB = 1024


def event(**changes: Any) -> dict[str, Any]:
    made = {
        "specversion": "1.0",
        "id": "1",
        "source": "/shop",
        "type": "order.paid",
        "subject": "o-1",
        "data": {"n": 1},
    }
    return {name: value for name, value in (made | changes).items() if value is not ...}


async def post(client: httpx2.AsyncClient, body: Any, headers: dict[str, str] = STRUCTURED) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await client.post("/v1/events", content=content, headers=headers)


@pytest.fixture(autouse=True)
async def task(client: httpx2.AsyncClient) -> None:
    await put(
        client, "paid", schedule=None, resolve={"event": True}, target={"http": NOBODY}, on=[{"event": "order.paid"}]
    )


async def test_an_event_is_answered_when_its_run_is_durable(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    answer = await post(client, event())

    assert answer.status_code == 202
    (made,) = await oncue.store.read(runs.latest, task_id=None, state=None, before=None, limit=10)
    assert answer.json() == {"id": "1", "duplicate": False, "runs": [str(made.uuid)]}
    assert made.event is not None
    assert made.event.key == "o-1"


async def test_the_same_event_again_is_a_duplicate_and_starts_nothing(client: httpx2.AsyncClient) -> None:
    await post(client, event())

    answer = await post(client, event())

    assert answer.status_code == 202
    assert answer.json() == {"id": "1", "duplicate": True, "runs": []}
    assert len((await client.get("/v1/runs")).json()["items"]) == 1


async def test_another_content_under_the_same_id_is_a_conflict(client: httpx2.AsyncClient) -> None:
    await post(client, event())

    answer = await post(client, event(data={"n": 2}))

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_binary_event_has_its_attributes_in_headers(client: httpx2.AsyncClient) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "b%201",
        "ce-source": "/shop",
        "ce-type": "order.paid",
        "content-type": "application/json",
    }

    answer = await post(client, {"n": 1}, headers)

    assert (answer.status_code, answer.json()["id"]) == (202, "b 1")
    run = (await client.get("/v1/runs")).json()["items"][0]
    assert (run["event"]["subject"], run["event"]["id"]) == (None, "b 1")


async def test_a_batch_is_answered_one_by_one(client: httpx2.AsyncClient) -> None:
    answer = await post(client, [event(), event(), event(id="2", type="order.lost")], BATCH)

    assert answer.status_code == 202
    assert [(one["id"], one["duplicate"], len(one["runs"])) for one in answer.json()] == [
        ("1", False, 1),
        ("1", True, 0),
        ("2", False, 0),
    ]


async def test_a_batch_with_one_bad_event_is_refused_whole(client: httpx2.AsyncClient) -> None:
    answer = await post(client, [event(), event(id="")], BATCH)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_event")
    assert "event 1 of the batch" in answer.json()["detail"]
    assert (await client.get("/v1/runs")).json()["items"] == []


async def test_a_batch_with_a_conflict_points_at_it_and_keeps_the_others(client: httpx2.AsyncClient) -> None:
    await post(client, event())

    answer = await post(client, [event(data={"n": 2}), event(id="2")], BATCH)

    assert answer.status_code == 409
    assert [one["pointer"] for one in answer.json()["errors"]] == ["/0"]
    assert len((await client.get("/v1/runs")).json()["items"]) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"specversion": "0.3"},
        {"specversion": ...},
        {"id": ...},
        {"id": ""},
        {"id": 7},
        {"id": "a\nb"},
        {"id": "x" * 2000},
        {"source": ...},
        {"source": "a\x00b"},
        {"type": ...},
        {"type": ["a"]},
        {"subject": ""},
        {"subject": "\x1b[31m"},
        {"time": "yesterday"},
        {"time": "2026-11-29"},
        {"time": "2026-11-29T10:00:00"},
        {"time": 5},
        {"time": "2001-01-01T00:00:00Z"},
        {"datacontenttype": "text/xml"},
        {"datacontenttype": 1},
        {"data_base64": "AAAA"},
    ],
    ids=str,
)
async def test_what_is_no_event_is_refused(client: httpx2.AsyncClient, changes: dict[str, Any]) -> None:
    answer = await post(client, event(**changes))

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_event")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"a": 1, "a": 2}',
        b'{"data": {"a": 1, "a": 2}}',
        b'{"data": NaN}',
        b'{"data": Infinity}',
        b'{"data": 1e999}',
        b'{"data": ' + b"9" * 5000 + b"}",
        b'{"data": "\\ud800"}',
        b'{"data": {"\\udfff": 1}}',
        b'{"data": ' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"data": ' + b"[" * 100_000,
        b'{"data": ' + b'{"a":' * 40_000,
    ],
    ids=lambda body: str(body[:30]),
)
async def test_what_is_no_sound_json_is_refused(client: httpx2.AsyncClient, body: bytes) -> None:
    answer = await post(client, body)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_event")
    assert "sys." not in answer.json()["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "application/json"},
        {"content-type": "text/plain"},
        {"content-type": "application/xml", "ce-specversion": "1.0", "ce-id": "1", "ce-source": "/", "ce-type": "t"},
        STRUCTURED | {"content-encoding": "gzip"},
    ],
    ids=str,
)
async def test_what_comes_in_another_form_is_turned_away(client: httpx2.AsyncClient, headers: dict[str, str]) -> None:
    answer = await post(client, event(), headers)

    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


async def test_a_body_over_the_limit_is_turned_away_by_its_length(client: httpx2.AsyncClient) -> None:
    answer = await post(client, event(data="x" * 300 * KB))

    assert (answer.status_code, answer.json()["code"]) == (413, "content_too_large")


async def test_a_body_that_does_not_say_its_length_is_read_no_further_than_the_limit(
    client: httpx2.AsyncClient,
) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1000):
            read += KB
            yield b" " * KB

    answer = await client.post("/v1/events", content=endless(), headers=STRUCTURED)

    assert answer.status_code == 413
    assert read < 300 * KB


async def test_a_store_that_is_down_says_when_to_send_again(
    client: httpx2.AsyncClient, oncue: Oncue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store cannot be used now")

    monkeypatch.setattr(oncue.store.database, "write", down)

    answer = await post(client, event())

    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert answer.headers["retry-after"] == "2"


async def test_more_events_than_can_wait_are_turned_away(
    client: httpx2.AsyncClient, oncue: Oncue, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, waiting = asyncio.Event(), 0

    async def slow(_: Event) -> Accepted:
        nonlocal waiting
        waiting += 1
        await go.wait()
        return Accepted("accepted")

    monkeypatch.setattr(oncue, "emit", slow)
    many = [{"specversion": "1.0", "id": str(n), "source": "/", "type": "t"} for n in range(2500)]
    first = asyncio.create_task(post(client, many, BATCH))
    await until(lambda: waiting == len(many))

    second = await post(client, event())
    go.set()

    assert (second.status_code, second.json()["code"]) == (429, "too_many_requests")
    assert second.headers["retry-after"] == "1"
    assert (await first).status_code == 202
    assert (await post(client, event())).status_code == 202


async def test_events_are_counted_by_their_verdict(client: httpx2.AsyncClient) -> None:
    await post(client, event())
    await post(client, event())
    await post(client, event(data=2))
    await post(client, b"{}")

    text = (await client.get("/metrics")).text

    for verdict in ("accepted", "duplicate", "conflict", "refused"):
        assert f'oncue_events_total{{verdict="{verdict}"}} 1.0' in text
