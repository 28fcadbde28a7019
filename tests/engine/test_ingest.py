"""The ingest: durable when answered, once each, at the broker at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from oncue.definition import EventResolver, HttpTarget, Subscription
from oncue.errors import Conflict, InvalidEvent
from oncue.model import Event
from oncue.store import tasks
from tests.engine.stage import NOON, Stage
from tests.free_port import free_port

pytestmark = pytest.mark.anyio

PAID = (Subscription("order.paid"),)


def event(name: str = "e1", **changes: object) -> Event:
    known = {"source": "shop", "type": "order.paid", "time": NOON, "subject": "3", "data": {"total": 12}}
    return Event(**{"id": name, **known, **changes})  # type: ignore[arg-type]


async def test_an_event_whose_entity_is_in_it_goes_out_from_the_process_that_took_it(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))

    accepted = await stage.ingest.accept(event())
    await stage.ingest.drain()

    (run,) = await stage.runs()
    assert (accepted.verdict, run.state, run.cause) == ("accepted", "done", "event:shop:e1")
    assert stage.worker.took[0][2] == {"key": "3", "total": 12}


async def test_a_duplicate_is_answered_as_such_and_runs_nothing(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))

    first, second = await asyncio.gather(stage.ingest.accept(event()), stage.ingest.accept(event()))
    third = await stage.ingest.accept(event())
    await stage.ingest.drain()

    assert [one.verdict for one in (first, second, third)] == ["accepted", "duplicate", "duplicate"]
    assert len(stage.worker.took) == 1


async def test_an_id_used_again_for_another_content_is_a_conflict(stage: Stage) -> None:
    await stage.ingest.accept(event())

    with pytest.raises(Conflict, match='event "e1" of "shop"'):
        await stage.ingest.accept(event(data={"total": 13}))


async def test_an_event_older_than_ids_are_remembered_is_refused(stage: Stage) -> None:
    with pytest.raises(InvalidEvent, match="7 days"):
        await stage.ingest.accept(event(time=NOON - timedelta(days=7, seconds=1)))


async def test_a_pattern_decides_who_is_started(stage: Stage) -> None:
    large = (Subscription("order.paid", {"data": {"total": [{"numeric": [">", 100]}]}}),)
    await stage.apply(
        stage.definition("large", schedule=None, on=large, resolve=EventResolver()),
        stage.definition("each", schedule=None, on=PAID, resolve=EventResolver()),
    )

    await stage.ingest.accept(event())
    await stage.ingest.drain()

    assert [run.task_name for run in await stage.runs()] == ["each"]


async def test_a_query_is_asked_for_the_events_key_alone(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID))

    await stage.ingest.accept(event())
    await stage.dispatch()

    assert stage.worker.took[0][2] == {"key": 3, "email": "a3@example.org"}
    assert stage.worker.keys == ["3"]


async def test_a_query_is_asked_for_everyone_where_the_subscription_says_all(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=None, on=(Subscription("order.paid", all=True),)))

    await stage.ingest.accept(event())
    await stage.dispatch()

    assert len(stage.worker.keys) == 5


async def test_anything_but_confirmed_gives_the_run_to_the_dispatchers(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))
    stage.worker.answer = lambda _key: 503 if len(stage.worker.took) < 2 else 200

    await stage.ingest.accept(event())
    await stage.ingest.drain()
    between = await stage.states()
    await stage.dispatch()

    assert between == ["due"]
    assert await stage.states() == ["done"]
    assert [len(ids) for ids in stage.worker.ids.values()] == [1]


async def test_a_broker_that_is_down_loses_no_event(stage: Stage) -> None:
    nobody = HttpTarget(f"http://127.0.0.1:{free_port()}/")
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver(), target=nobody))

    accepted = await stage.ingest.accept(event())
    await stage.ingest.drain()

    (run,) = await stage.runs()
    assert accepted.verdict == "accepted"
    assert (run.state, run.attempts) == ("due", 0)


async def test_an_event_for_a_paused_task_is_in_the_ledger(stage: Stage) -> None:
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))
    await stage.store.write(tasks.pause, "greet", reason="release", actor="test", now=stage.now)

    await stage.ingest.accept(event())

    assert await stage.runs() == []
    assert await stage.ledger() == {"skipped": 1}


async def test_a_task_that_was_applied_since_is_seen_by_the_next_look(stage: Stage) -> None:
    await stage.ingest.accept(event("before"))
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver()))
    await stage.ingest.step(stage.now)

    await stage.ingest.accept(event("after"))
    await stage.ingest.drain()

    assert [run.cause for run in await stage.runs()] == ["event:shop:after"]


async def test_a_task_that_changed_since_the_last_look_is_started_by_its_new_version(stage: Stage) -> None:
    definition = stage.definition(schedule=None, on=PAID, resolve=EventResolver())
    await stage.apply(definition)
    await stage.ingest.step(stage.now)
    await stage.apply(stage.definition(schedule=None, on=PAID, resolve=EventResolver(), description="new"))

    await stage.ingest.accept(event())
    await stage.ingest.drain()

    assert [run.task_version for run in await stage.runs()] == [2]
