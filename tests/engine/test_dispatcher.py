"""The dispatcher, stepped by hand, with a real worker and a real shop."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from oncue.definition import HttpTarget, Misfire, NoResolver, Retry, SqlResolver
from oncue.engine.dispatcher import Dispatcher, Limits
from oncue.engine.watch import examine
from oncue.store import runs, watch
from oncue.testing.until import until
from tests.engine.stage import ALL, LEASE, Stage
from tests.free_port import free_port

pytestmark = pytest.mark.anyio

ONCE = Retry(attempts=1)
TWICE = Retry(attempts=2, first=timedelta(seconds=2))


async def test_everyone_concerned_gets_a_message_page_by_page(stage: Stage) -> None:
    await stage.apply(stage.definition())

    await stage.fire_next()

    assert sorted(stage.worker.keys) == ["1", "2", "3", "4", "5"]
    assert stage.worker.took[0][2] == {"key": 1, "email": "a1@example.org"}
    (run,) = await stage.runs()
    assert (run.state, run.resolved, run.confirmed, run.open) == ("done", 5, 5, 0)


async def test_who_is_concerned_is_asked_when_the_run_executes(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.advance(minutes=1)
    await stage.tick()
    stage.write("delete from trial where id = 3; insert into trial values (9, 'late@example.org')")

    await stage.dispatch()

    assert sorted(stage.worker.keys) == ["1", "2", "4", "5", "9"]


async def test_nobody_concerned_is_a_run_that_says_so(stage: Stage) -> None:
    stage.write("delete from trial")
    await stage.apply(stage.definition())

    await stage.fire_next()

    (run,) = await stage.runs()
    assert (run.state, run.reason) == ("done", "nobody qualifies")


async def test_a_last_page_that_is_empty_does_not_say_that_nobody_qualified(stage: Stage) -> None:
    stage.write("delete from trial where id > 4")
    await stage.apply(stage.definition())

    await stage.fire_next()

    (run,) = await stage.runs()
    assert (run.state, run.resolved, run.reason) == ("done", 4, None)


async def test_a_refused_message_is_tried_again_alone_under_the_same_id(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.answer = lambda key: 503 if key == "2" and stage.worker.keys.count("2") < 3 else 200

    await stage.fire_next()
    between = await stage.states()
    for _ in range(4):
        stage.advance(seconds=10)
        await stage.dispatch()

    assert between == ["settling"]
    assert await stage.states() == ["done"]
    assert stage.worker.keys.count("2") == 3
    assert len(stage.worker.keys) == 7
    assert all(len(ids) == 1 for ids in stage.worker.ids.values())


async def test_a_message_out_of_attempts_is_a_dead_letter_with_its_context(stage: Stage) -> None:
    await stage.apply(stage.definition(retry=TWICE))
    stage.worker.answer = lambda key: 500 if key == "4" else 200

    await stage.fire_next()
    stage.advance(minutes=1)
    await stage.dispatch()

    (run,) = await stage.runs()
    (letter,) = await stage.letters()
    assert (run.state, run.confirmed, run.dead) == ("partial", 4, 1)
    assert letter.what.key == 4
    assert letter.what.task_name == "greet"
    assert letter.what.run_uuid == run.uuid
    assert [attempt.error for attempt in letter.what.attempts] == ["HTTP 500", "HTTP 500"]
    assert letter.what.body == b'{"key":4,"email":"a4@example.org"}'


async def test_a_retry_asks_first_whether_the_entity_still_qualifies(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.answer = lambda key: 503 if key == "2" else 200
    await stage.fire_next()
    stage.write("delete from trial where id = 2")

    stage.advance(minutes=1)
    await stage.dispatch()

    (run,) = await stage.runs()
    (delivery,) = await stage.deliveries(run.id)
    assert (run.state, delivery.state, delivery.reason) == ("done", "unqualified", "no longer qualifies")
    assert stage.worker.keys.count("2") == 1


async def test_a_dead_dispatchers_page_is_repeated_with_the_same_ids(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)
    await until(lambda: len(stage.worker.took) == 2)
    await kill(stage.dispatcher)
    stage.worker.gate = None

    stage.advance(seconds=LEASE.total_seconds() + 1)
    await stage.dispatch(stage.another_dispatcher())

    (run,) = await stage.runs()
    assert (run.state, run.fence, run.confirmed) == ("done", 2, 5)
    assert len(stage.worker.keys) == 7
    assert all(len(ids) == 1 for ids in stage.worker.ids.values())


async def kill(dispatcher: Dispatcher) -> None:
    """End a dispatcher's tasks without letting them give anything back, as a kill -9 would."""
    tasks = list(dispatcher._tasks)
    dispatcher._give_back = _nothing  # type: ignore[method-assign,assignment]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _nothing(*_: object, **__: object) -> None:
    return None


async def test_a_dispatcher_that_lost_its_lease_writes_nothing(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)
    await until(lambda: len(stage.worker.took) == 2)

    stage.advance(seconds=LEASE.total_seconds() + 1)
    other = stage.another_dispatcher()
    await other.step(stage.now)
    stage.worker.gate.set()
    await other.idle()
    await stage.dispatcher.idle()

    (run,) = await stage.runs()
    assert (run.state, run.fence, run.resolved, run.confirmed) == ("done", 2, 5, 5)


async def test_a_receiver_slower_than_the_lease_gets_a_late_message_from_one_dispatcher(stage: Stage) -> None:
    limits = Limits(lease=timedelta(milliseconds=150))
    dispatcher = Dispatcher(stage.store, stage.handover, now=lambda: stage.now, limits=limits)
    await stage.apply(stage.definition(retry=Retry(first=timedelta(seconds=1))))
    stage.worker.answer = lambda key: 500 if key == "4" else 200
    await stage.fire_next()
    stage.worker.answer, stage.worker.gate = (lambda _key: 200), asyncio.Event()
    stage.advance(seconds=2)
    await dispatcher.step(stage.now)
    stage.advance(minutes=5)

    async def is_renewed() -> bool:
        (late,) = await stage.deliveries((await stage.runs())[0].id)
        return late.ready_at > stage.now

    await until(is_renewed)
    await stage.another_dispatcher().step(stage.now)
    stage.worker.gate.set()
    await dispatcher.idle()

    (run,) = await stage.runs()
    assert run.state == "done"
    assert stage.worker.keys.count("4") == 2


async def test_a_target_that_cannot_be_reached_holds_the_cursor_and_costs_no_attempt(stage: Stage) -> None:
    nobody = HttpTarget(f"http://127.0.0.1:{free_port()}/")
    await stage.apply(stage.definition(target=nobody, retry=ONCE))

    await stage.fire_next()
    for _ in range(5):
        stage.advance(seconds=20)
        await stage.dispatch()

    (run,) = await stage.runs()
    assert (run.state, run.attempts, run.cursor, run.resolved) == ("due", 0, None, 0)
    assert "cannot be reached" in (run.reason or "")
    assert await stage.letters() == []


async def test_a_run_that_is_tried_in_vain_for_long_is_told_of_with_its_reason(stage: Stage) -> None:
    nowhere = HttpTarget(f"http://127.0.0.1:{free_port()}/hook", concurrency=2)
    await stage.apply(stage.definition(target=nowhere), stage.definition("well", target=nowhere, resolve=NoResolver()))
    await stage.fire_next()
    figures = await stage.store.read(watch.figures, now=stage.now)

    async def told(now: datetime) -> list[tuple[str, str]]:
        found = await examine(stage.store, figures, now=now, overdue=timedelta(seconds=30))
        return [(one.subject, one.text) for one in found if one.code == "runs_held"]

    early = await told(stage.now)
    for _ in range(8):
        await stage.dispatch()
        stage.advance(seconds=16)
    await stage.dispatch()

    assert early == []
    (name, text), _ = await told(stage.now)
    assert name == "greet"
    assert re.match(r'a run of task "greet" has been tried in vain for 128 s: .* cannot be reached: ', text)


async def test_a_run_that_comes_too_late_expires(stage: Stage) -> None:
    await stage.apply(stage.definition(expires=timedelta(minutes=2), misfire=Misfire(grace=timedelta(hours=1))))
    stage.advance(minutes=1)
    await stage.tick()

    stage.advance(minutes=2, seconds=1)
    await stage.dispatch()

    assert await stage.states() == ["expired"]
    assert stage.worker.took == []


async def test_a_query_that_fails_is_tried_again_and_ends_as_a_dead_letter_of_the_run(stage: Stage) -> None:
    broken = stage.definition("broken", resolve=SqlResolver("select id as key from nowhere", "app"), retry=TWICE)
    await stage.apply(broken, stage.definition("whole"))

    await stage.fire_next()
    stage.advance(seconds=20)
    await stage.dispatch()

    states = {run.task_name: run.state for run in await stage.runs()}
    (letter,) = await stage.letters()
    assert states == {"broken": "failed", "whole": "done"}
    assert letter.what.kind == "run"
    assert 'source "app"' in letter.what.reason
    assert "nowhere" in letter.what.reason


async def test_a_row_too_large_is_a_dead_letter_and_its_neighbours_go_out(stage: Stage) -> None:
    stage.write(f"update trial set email = '{'x' * 300_000}' where id = 2")
    await stage.apply(stage.definition())

    await stage.fire_next()

    (run,) = await stage.runs()
    (letter,) = await stage.letters()
    assert (run.state, run.confirmed, run.dead) == ("partial", 4, 1)
    assert "at most 262,144" in letter.what.reason


async def test_a_drain_gives_the_run_back_after_its_page_uncounted(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)
    await until(lambda: len(stage.worker.took) == 2)

    draining = asyncio.create_task(stage.dispatcher.drain())
    await asyncio.sleep(0)
    stage.worker.gate.set()
    await draining

    (run,) = await stage.runs()
    assert (run.state, run.attempts, run.confirmed) == ("due", 0, 2)
    stage.worker.gate = None
    await stage.dispatch(stage.another_dispatcher())
    assert await stage.states() == ["done"]
    assert len(stage.worker.keys) == 5


async def test_a_drain_cut_short_gives_the_run_back_at_its_last_checkpoint(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)
    await until(lambda: len(stage.worker.took) == 2)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await stage.dispatcher.drain()

    (run,) = await stage.runs()
    assert (run.state, run.attempts, run.confirmed) == ("due", 0, 0)


async def test_a_run_that_finds_its_slot_taken_is_skipped_with_the_reason(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)

    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now - timedelta(seconds=50))
    stage.worker.gate.set()
    await stage.dispatch()

    first, second = await stage.runs()
    assert (first.state, second.state) == ("done", "skipped")
    assert "still handing over" in (second.reason or "")


async def test_a_queued_run_goes_when_the_slot_is_free(stage: Stage) -> None:
    await stage.apply(stage.definition(overlap="queue"))
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)

    for _ in range(2):
        stage.advance(seconds=10)
        await stage.store.write(runs.renew, (await stage.runs())[0], until=stage.now + LEASE)
        stage.now = stage.now.replace(second=0) + timedelta(minutes=1)
        await stage.store.write(runs.renew, (await stage.runs())[0], until=stage.now + LEASE)
        await stage.tick()
        await stage.dispatcher.step(stage.now)
    between = await stage.states()
    stage.worker.gate.set()
    await stage.dispatch()

    assert between == ["running", "queued", "skipped"]
    assert await stage.states() == ["done", "done", "skipped"]


async def test_a_replaced_run_ends_at_its_next_page(stage: Stage) -> None:
    await stage.apply(stage.definition(overlap="replace"))
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)
    await until(lambda: len(stage.worker.took) == 2)
    await stage.store.write(runs.renew, (await stage.runs())[0], until=stage.now + 3 * LEASE)

    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)
    stage.worker.gate.set()
    await stage.dispatch()

    first, second = await stage.runs()
    assert (first.state, first.reason, second.state) == ("cancelled", "replaced by a later run", "done")
    assert first.confirmed == 2
    assert second.confirmed == 5


async def test_caught_up_runs_go_one_after_another(stage: Stage) -> None:
    await stage.apply(stage.definition(misfire=Misfire(catch_up="all")))

    stage.advance(minutes=4, seconds=59)
    await stage.tick()
    await stage.dispatch()

    assert [run.caught_up for run in await stage.runs()] == [True, True, True, False]
    assert await stage.states() == ["done", "done", "done", "skipped"]
    assert len(stage.worker.keys) == 15


async def test_a_cancelled_run_sends_no_further_page(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.worker.gate = asyncio.Event()
    stage.advance(minutes=1)
    await stage.tick()
    await stage.dispatcher.step(stage.now)
    await until(lambda: len(stage.worker.took) == 2)

    await stage.store.write(runs.cancel, (await stage.runs())[0].uuid, reason="by hand", now=stage.now)
    stage.worker.gate.set()
    await stage.dispatch()

    (run,) = await stage.runs()
    assert (run.state, run.reason, run.confirmed) == ("cancelled", "by hand", 2)
    assert len(stage.worker.keys) == 2


async def test_a_run_keeps_the_version_that_it_was_made_by(stage: Stage) -> None:
    await stage.apply(stage.definition())
    stage.advance(minutes=1)
    await stage.tick()
    await stage.apply(stage.definition(resolve=SqlResolver(f"{ALL} where id = 1", "app")))

    await stage.dispatch()

    assert len(stage.worker.keys) == 5


async def test_a_run_whose_dispatchers_all_die_fails_in_the_open(stage: Stage) -> None:
    await stage.apply(stage.definition(retry=replace(TWICE)))
    stage.advance(minutes=1)
    await stage.tick()
    for _ in range(2):
        await stage.store.write(runs.claim, now=stage.now, until=stage.now + LEASE, limit=1)
        stage.advance(seconds=LEASE.total_seconds() + 1)

    await stage.dispatch()

    (run,) = await stage.runs()
    (letter,) = await stage.letters()
    assert run.state == "failed"
    assert "tried 2 times" in letter.what.reason
