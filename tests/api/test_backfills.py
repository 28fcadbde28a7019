"""Backfills and missed runs over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest

from oncue.app import Oncue
from oncue.definition import Definition, HttpTarget, Misfire
from oncue.store import schedules, tasks
from tests.api.conftest import NOBODY, put

pytestmark = pytest.mark.anyio

SPAN = {"from": "2026-03-27T09:00:00Z", "to": "2026-03-30T11:00:00+02:00"}  # four times, both ends inclusive
MARCH = datetime(2026, 3, 2, 9, tzinfo=UTC)


async def ask(client: httpx2.AsyncClient, name: str = "remind", **given: Any) -> httpx2.Response:
    headers = {"Idempotency-Key": given.pop("header")} if "header" in given else {}
    return await client.post(f"/v1/tasks/{name}/backfill", json=SPAN | given, headers=headers)


async def test_a_backfill_is_made_and_followed(client: httpx2.AsyncClient) -> None:
    await put(client)
    before = (await client.get("/v1/tasks/remind")).json()

    answer = await ask(client)

    made = answer.json()
    assert (answer.status_code, made.pop("duplicate")) == (202, False)
    assert (made["total"], made["waiting"], made["first_due_at"]) == (4, 4, "2026-03-27T09:00:00Z")
    assert (await client.get(f"/v1/backfills/{made['id']}")).json() == made
    assert (await client.get("/v1/backfills")).json() == {"items": [made], "next_cursor": None}
    found = (await client.get("/v1/runs")).json()["items"]
    assert [one["cause"] for one in found] == [f"backfill:{made['id']}:{one['due_at']}" for one in found]
    assert (await client.get("/v1/tasks/remind")).json() == before


async def test_a_dry_run_answers_the_plan_and_makes_nothing(client: httpx2.AsyncClient) -> None:
    await put(client, schedule={"cron": "30 3 * * *", "zone": "Europe/Athens"})

    answer = await ask(client, dry_run=True, pace="1m")

    plan = answer.json()
    assert (answer.status_code, plan["runs"], plan["takes_seconds"], plan["zone"]) == (200, 3, 120, "Europe/Athens")
    assert plan["times"][1] == {
        "due_at": "2026-03-29T01:00:00Z",
        "local": "Sun 2026-03-29 04:00:00+03:00",
        "note": "moved from 03:30",
    }
    assert (await client.get("/v1/backfills")).json()["items"] == []


@pytest.mark.parametrize("given", [{"header": "k"}, {"key": "k"}])
async def test_the_same_key_again_answers_the_same_backfill(client: httpx2.AsyncClient, given: dict[str, str]) -> None:
    await put(client)

    first, second = [(await ask(client, **given)).json() for _ in range(2)]
    await put(client, schedule={"every": "1h"})  # a client that asks again need not know
    third = (await ask(client, **given)).json()

    assert first["id"] == second["id"] == third["id"]
    assert [one["duplicate"] for one in (first, second, third)] == [False, True, True]
    assert len((await client.get("/v1/runs")).json()["items"]) == 4


@pytest.mark.parametrize(
    ("given", "status", "words"),
    [
        ({"pace": "soon"}, 422, "not a duration"),
        ({"pace": "0s"}, 409, "how far apart"),
        ({"from": "2026-03-27T09:00:00"}, 422, "timezone"),
        ({"to": "2026-03-01T09:00:00Z"}, 409, "ends before it begins"),
        ({"to": "2076-03-01T09:00:00Z"}, 409, "Split it"),
        ({"until": "2026-03-01T09:00:00Z"}, 422, "until"),
    ],
)
async def test_what_cannot_be_backfilled_is_a_problem_with_a_sentence(
    client: httpx2.AsyncClient, given: dict[str, str], status: int, words: str
) -> None:
    await put(client)

    answer = await ask(client, **given)

    assert answer.status_code == status
    assert words in answer.text
    assert (await client.get("/v1/runs")).json()["items"] == []


async def test_a_task_without_a_schedule_is_a_conflict_and_no_task_is_not_found(client: httpx2.AsyncClient) -> None:
    await put(client, "paid", schedule=None, on=[{"event": "order.paid"}], resolve={"event": True})

    paid, nobody = await ask(client, "paid"), await ask(client, "nobody")

    assert (paid.status_code, nobody.status_code) == (409, 404)
    assert "has no schedule" in paid.json()["detail"]


async def test_what_waits_of_a_backfill_is_cancelled(client: httpx2.AsyncClient) -> None:
    await put(client)
    made = (await ask(client)).json()

    answer = await client.post(f"/v1/backfills/{made['id']}/cancel", json={"reason": "wrong month"})

    assert (answer.status_code, answer.json()["waiting"], answer.json()["cancelled"]) == (202, 0, 4)
    assert {one["reason"] for one in (await client.get("/v1/runs")).json()["items"]} == {"wrong month"}
    assert (await client.post(f"/v1/backfills/{UUID(int=1)}/cancel")).status_code == 404


async def test_backfills_page_by_cursor(client: httpx2.AsyncClient) -> None:
    await put(client)
    made = [(await ask(client)).json()["id"] for _ in range(3)]

    first = (await client.get("/v1/backfills", params={"limit": 2})).json()
    rest = (await client.get("/v1/backfills", params={"limit": 2, "cursor": first["next_cursor"]})).json()

    assert [one["id"] for one in first["items"] + rest["items"]] == made[::-1]
    assert rest["next_cursor"] is None


async def miss(oncue: Oncue, name: str = "report") -> None:
    """Let a daily task miss a week, as a clock that was away finds it."""
    misfire = Misfire(catch_up="all", max_age=timedelta(days=7), max=3, hold=True)
    report = Definition(
        name, HttpTarget(NOBODY), schedule={"cron": "0 9 * * *"}, misfire=misfire, expires=timedelta(hours=2)
    )
    await oncue.store.write(tasks.apply, [report], prune=False, actor="test", now=MARCH)
    now = MARCH + timedelta(days=7, hours=1)
    due = await oncue.store.read(schedules.upcoming, after=(MARCH, 0), until=now, limit=9)
    await oncue.store.write(schedules.record_firings, [schedules.decide(one, now=now) for one in due], now=now)


async def test_missed_runs_that_wait_are_listed_with_what_was_passed_over(
    client: httpx2.AsyncClient, oncue: Oncue
) -> None:
    await miss(oncue)

    (one,) = (await client.get("/v1/catch-up")).json()["items"]

    assert (one["task"], one["runs"], one["since"]) == ("report", 3, "2026-03-09T10:00:00Z")
    assert one["due_times"] == [f"2026-03-0{day}T09:00:00Z" for day in (7, 8, 9)]
    assert one["passed_over"] == [
        {
            "first_due_at": "2026-03-03T09:00:00Z",
            "last_due_at": "2026-03-06T09:00:00Z",
            "count": 4,
            "verdict": "missed",
            "reason": "only the latest 3 missed times are caught up",
        }
    ]
    assert one["words"] == (
        "They run one after another, by their due times (overlap is skip). "
        "What is later than its expires of 2h ends as expired."
    )


@pytest.mark.parametrize(
    ("decision", "state", "reason"),
    [
        ({"do": "run"}, "due", None),
        ({"do": "drop", "reason": "too old"}, "cancelled", "too old"),
        ({"do": "drop"}, "cancelled", "dropped through the API"),
    ],
)
async def test_missed_runs_are_decided_once(
    client: httpx2.AsyncClient, oncue: Oncue, decision: dict[str, str], state: str, reason: str | None
) -> None:
    await miss(oncue)

    answers = [await client.post("/v1/tasks/report/catch-up", json=decision) for _ in range(2)]

    assert [(one.status_code, one.json()) for one in answers] == [
        (200, {"do": decision["do"], "runs": 3}),
        (200, {"do": decision["do"], "runs": 0}),
    ]
    found = (await client.get("/v1/runs")).json()["items"]
    assert {(one["state"], one["reason"]) for one in found} == {(state, reason)}
    assert (await client.get("/v1/catch-up")).json()["items"] == []


async def test_a_decision_needs_a_task_and_one_of_two_words(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await miss(oncue)

    nobody = await client.post("/v1/tasks/nobody/catch-up", json={"do": "run"})
    other = await client.post("/v1/tasks/report/catch-up", json={"do": "wait"})

    assert (nobody.status_code, other.status_code) == (404, 422)
    assert (await client.get("/v1/catch-up")).json()["items"][0]["runs"] == 3


async def test_what_waits_shows_in_the_metrics_and_the_problems(client: httpx2.AsyncClient, oncue: Oncue) -> None:
    await miss(oncue)

    metrics = (await client.get("/metrics")).text
    problems = (await client.get("/readyz")).json()["problems"]

    assert 'oncue_runs_open{state="held"} 3.0' in metrics
    assert 'oncue_problems{code="runs_wait_for_person"} 1.0' in metrics
    (told,) = [one for one in problems if one["code"] == "runs_wait_for_person"]
    assert (told["subject"], told["urgent"]) == ("report", False)


async def test_the_page_for_machines_names_the_span_as_it_is_asked_for(client: httpx2.AsyncClient) -> None:
    page = (await client.get("/openapi.json")).json()

    fields = page["components"]["schemas"]["NewBackfill"]["properties"]
    assert {"from", "to", "pace", "dry_run", "key"} == set(fields)
