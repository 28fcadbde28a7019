"""What is wrong with one task, source, queue or message gets its sentence; its neighbours run on."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import asyncpg
import pytest

from oncue.definition import BrokerTarget, Retry, SqlResolver
from oncue.testing.until import until
from tests.chaos.conftest import MakeTeam
from tests.chaos.facts import Facts
from tests.chaos.team import COMPONENTS, TIMEOUT, Team

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

TWICE = Retry(attempts=2, first=timedelta(milliseconds=200), cap=timedelta(milliseconds=200))
MEGABYTE = 1024**2
MANUAL: dict[str, Any] = {"schedule": None, "retry": TWICE}


@contextlib.asynccontextmanager
async def neighbours(team: Team) -> AsyncIterator[None]:
    """See to it that a task beside the bad one is done each second, all through the block and after it."""
    process = await team.start(*COMPONENTS)

    async def is_on_time() -> bool:
        facts = await team.facts()
        soon = facts.now - timedelta(seconds=3)
        return any(run["due_at"] > soon and run["state"] == "done" for run in runs_of(facts, "pages"))

    await until(is_on_time)
    yield
    await until(is_on_time)
    process.terminate()
    assert await process.wait() == 0, process.output
    assert "Traceback" not in process.output
    assert await team.check()


def runs_of(facts: Facts, name: str) -> list[dict[str, Any]]:
    return [run for run in facts.runs if facts.task_name(run["task_id"]) == name]


async def ended(team: Team, name: str) -> dict[str, Any]:
    """Fire a task by hand, and return the run when it has ended."""
    async with team.app() as app:
        await app.fire(name)

    async def over() -> dict[str, Any] | None:
        return next((run for run in runs_of(await team.facts(), name) if run["ended_at"]), None)

    return await until(over, within=timedelta(seconds=20))  # type: ignore[return-value]


async def letters(team: Team, name: str) -> list[dict[str, Any]]:
    return [letter for letter in (await team.facts()).dead_letters if letter["task_name"] == name]


async def change(url: str, statement: str) -> None:
    """Write into a store behind Oncue's back."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=10)) as connection, connection:
            connection.execute(statement)
        return
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def test_a_schedule_whose_zone_has_vanished_stops_and_says_so(make_team: MakeTeam, store_url: str) -> None:
    team = await make_team(store_url)
    lost = team.pages("lost", schedule={"cron": "* * * * * *", "zone": "Europe/Athens"})
    await team.apply(team.pages(), lost)
    del team.expected.entities["lost"]
    await change(store_url, "update schedules set timing = replace(timing, 'Europe/Athens', 'Europe/Atlantis')")

    async with neighbours(team):

        async def stopped() -> str | None:
            facts = await team.facts()
            schedule = next(one for one in facts.schedules if facts.task_name(one["task_id"]) == "lost")
            return schedule["reason"] if schedule["state"] == "stopped" else None

        reason = await until(stopped)

    assert 'there is no time zone "Europe/Atlantis"' in str(reason)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("select key from nowhere", "no such table: nowhere"),
        ("select id from customer", 'the query has no column "key"'),
        ("select id as key from customer where id = :tomorrow", "the query uses :tomorrow, which is not known"),
        ("select null as key from customer", "key that is not null"),
    ],
)
async def test_a_query_that_fails_fails_its_run_with_the_databases_words(
    make_team: MakeTeam, sqlite_url: str, sql: str, sentence: str
) -> None:
    team = await make_team(sqlite_url)
    await team.apply(team.pages(), replace(team.pages("broken"), **MANUAL, resolve=SqlResolver(sql, "shop")))
    del team.expected.entities["broken"]

    async with neighbours(team):
        run = await ended(team, "broken")
        (letter,) = await letters(team, "broken")

    assert (run["state"], letter["kind"]) == ("failed", "run")
    assert sentence in run["reason"]
    assert sentence in letter["reason"]


async def test_a_source_that_is_down_fails_its_run_and_is_named(make_team: MakeTeam, sqlite_url: str) -> None:
    team = await make_team(sqlite_url)
    with team.config.open("a") as config:
        config.write('\n[source.crm]\nurl = "postgresql://nobody@127.0.0.1:1/crm"\n')
    await team.apply(
        team.pages(), replace(team.pages("broken"), **MANUAL, resolve=SqlResolver("select id as key from x", "crm"))
    )
    del team.expected.entities["broken"]

    async with neighbours(team):
        run = await ended(team, "broken")

    assert run["state"] == "failed"
    assert 'source "crm"' in run["reason"]


async def test_a_queue_that_is_absent_makes_dead_letters_that_name_it(
    make_team: MakeTeam, sqlite_url: str, amqp_url: str
) -> None:
    team = await make_team(sqlite_url, amqp=amqp_url, queue="nowhere")
    await team.apply(team.pages(), replace(team.pages("broken"), **MANUAL, target=BrokerTarget("main", "nowhere")))
    del team.expected.entities["broken"]

    async with neighbours(team):
        run = await ended(team, "broken")
        found = await letters(team, "broken")

    assert (run["state"], run["dead"], len(found)) == ("partial", 7, 7)
    assert {letter["reason"] for letter in found} == {'unroutable: no queue "nowhere" (NO_ROUTE)'}
    assert {letter["queue"] for letter in found} == {"nowhere"}


async def test_a_row_of_five_megabytes_is_a_dead_letter_and_its_page_goes_out(
    make_team: MakeTeam, sqlite_url: str
) -> None:
    team = await make_team(sqlite_url)
    wide = f"select id as key, case when id = 'e4' then hex(zeroblob({5 * MEGABYTE // 2})) end as picture from customer"
    await team.apply(team.pages(), replace(team.pages("wide"), **MANUAL, resolve=SqlResolver(wide, "shop")))
    del team.expected.entities["wide"]

    async with neighbours(team):
        run = await ended(team, "wide")
        (letter,) = await letters(team, "wide")

    assert (run["state"], run["resolved"], run["confirmed"], run["dead"]) == ("partial", 7, 6, 1)
    assert letter["key_json"] == "e4"
    assert "5,242,8" in letter["reason"]


async def test_a_receiver_that_refuses_is_quoted(make_team: MakeTeam, sqlite_url: str) -> None:
    team = await make_team(sqlite_url)
    refused = replace(team.pages("refused", query="refuse=e3:99", timeout=TIMEOUT), **MANUAL)
    await team.apply(team.pages(), refused)
    del team.expected.entities["refused"]

    async with neighbours(team):
        run = await ended(team, "refused")
        (letter,) = await letters(team, "refused")

    assert (run["state"], run["confirmed"]) == ("partial", 6)
    assert letter["reason"] == "HTTP 500: no to e3"
    assert len(letter["attempts"].split("HTTP 500")) == 1 + TWICE.attempts


EVENT = {"specversion": "1.0", "source": "shop", "type": "order.paid"}


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"data": "x" * 5 * MEGABYTE}, 413, "larger than"),
    ({"id": ""}, 422, "id"),
    ({"time": "yesterday"}, 422, "time"),
    ({"subject": "a\0b"}, 422, "subject"),
    ({"data": {"deep": "\ud800"}}, 422, "surrogate"),
    ({"time": "2020-01-01T00:00:00Z"}, 422, "7 days"),
]


async def test_an_event_that_cannot_be_taken_is_answered_with_a_sentence(make_team: MakeTeam, store_url: str) -> None:
    team = await make_team(store_url)
    await team.apply(team.pages(), team.orders())

    async def answer(session: aiohttp.ClientSession, changes: dict[str, Any]) -> tuple[int, str]:
        body = {**EVENT, "id": "bad", "time": datetime.now(UTC).isoformat(), **changes}
        sent, headers = io.BytesIO(json.dumps(body).encode()), {"Content-Type": "application/cloudevents+json"}
        async with session.post(f"http://127.0.0.1:{team.port}/v1/events", data=sent, headers=headers) as got:
            return got.status, str((await got.json(content_type=None)).get("detail"))

    async with neighbours(team), aiohttp.ClientSession() as session:
        _, *answers = await asyncio.gather(
            asyncio.gather(*(team.post(session, f"good-{number}", key=f"o{number}") for number in range(9))),
            *(answer(session, changes) for changes, _, _ in BAD),
        )

    told = [
        (status, detail) if status != wanted or words not in detail else None
        for (status, detail), (_, wanted, words) in zip(answers, BAD, strict=True)
    ]
    assert told == [None] * len(BAD)
