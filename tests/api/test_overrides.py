"""One due time to come, skipped, moved and restored; and a pause that ends: over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from tests.api.conftest import put

pytestmark = pytest.mark.anyio


async def due(client: httpx2.AsyncClient) -> list[str]:
    times: list[str] = (await client.get("/v1/tasks/remind/next", params={"n": 3})).json()["times"]
    return times


async def test_a_due_time_is_skipped_then_restored(client: httpx2.AsyncClient) -> None:
    await put(client)
    before = await due(client)

    skipped = await client.post("/v1/tasks/remind/skip", json={"due_at": before[0], "reason": "audit"})
    between = await due(client)
    restored = await client.post("/v1/tasks/remind/restore", json={"due_at": before[0]})

    assert [one.status_code for one in (skipped, restored)] == [200, 200]
    assert skipped.json()["schedule"]["next_at"] == before[1] == between[0]
    assert skipped.json()["schedule"]["overrides"] == [{"due_at": before[0], "moved_to": None, "reason": "audit"}]
    assert await due(client) == before


async def test_a_due_time_is_moved(client: httpx2.AsyncClient) -> None:
    await put(client)
    first, second, _ = await due(client)
    to = (datetime.fromisoformat(first) + timedelta(minutes=30)).isoformat().replace("+00:00", "Z")

    moved = await client.post("/v1/tasks/remind/move", json={"due_at": first, "to": to, "reason": "audit"})

    assert moved.json()["schedule"]["next_at"] == to
    assert (await due(client))[:2] == [to, second]


async def test_what_is_no_due_time_answers_conflict(client: httpx2.AsyncClient) -> None:
    await put(client)
    first = datetime.fromisoformat((await due(client))[0])

    answers = [
        await client.post(
            "/v1/tasks/remind/skip", json={"due_at": (first + timedelta(minutes=1)).isoformat(), "reason": "r"}
        ),
        await client.post("/v1/tasks/remind/restore", json={"due_at": first.isoformat()}),
        await client.post("/v1/tasks/remind/skip", json={"due_at": first.isoformat()}),
        await client.post("/v1/tasks/none/skip", json={"due_at": first.isoformat(), "reason": "r"}),
    ]

    assert [one.status_code for one in answers] == [409, 409, 422, 404]


async def test_a_pause_can_have_an_end(client: httpx2.AsyncClient) -> None:
    await put(client)
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0).isoformat().replace("+00:00", "Z")

    paused = await client.post("/v1/tasks/remind/pause", json={"reason": "release", "until": until})

    assert (paused.json()["state"], paused.json()["resume_at"]) == ("paused", until)


FAR = ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"]
ROUTES = {
    "skip": {"due_at": "T", "reason": "r"},
    "move": {"due_at": "2030-01-01T09:00:00Z", "to": "T", "reason": "r"},
    "restore": {"due_at": "T"},
    "pause": {"reason": "r", "until": "T"},
    "fire": {"due_at": "T"},
    "backfill": {"from": "T", "to": "2030-01-01T09:00:00Z", "dry_run": True},
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("moment", FAR)
async def test_a_moment_that_no_clock_will_show_is_refused(client: httpx2.AsyncClient, route: str, moment: str) -> None:
    await put(client)
    body = {key: moment if value == "T" else value for key, value in ROUTES[route].items()}

    answer = await client.post(f"/v1/tasks/remind/{route}", json=body)

    assert (answer.status_code, "is not a time from 1900 to 9000" in answer.text) == (422, True)


async def test_half_a_character_is_no_pace(client: httpx2.AsyncClient) -> None:
    await put(client)
    body = '{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "pace": "\\ud800"}'

    answer = await client.post("/v1/tasks/remind/backfill", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 422
