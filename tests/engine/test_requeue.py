"""Failures under control: dead letters go back, ask again, keep their ids, and stop when it gets worse."""

from __future__ import annotations

from datetime import timedelta

import pytest

from oncue.definition import Retry, SqlResolver
from oncue.model import Requeue
from oncue.store import failures
from tests.engine.stage import ALL, Stage

pytestmark = pytest.mark.anyio

ONCE = Retry(attempts=1)


async def requeue(stage: Stage, *, ask_again: bool = True, rate: float = 50.0) -> Requeue:
    return await stage.store.write(
        failures.requeue, everything=True, rate=rate, ask_again=ask_again, actor="test", now=stage.now
    )


async def carry_out(stage: Stage, seconds: int = 10) -> None:
    for _ in range(seconds):
        await stage.failures.step(stage.now)
        await stage.dispatch()
        stage.advance(seconds=1)


async def fail(stage: Stage, *keys: str) -> None:
    """Let a run end with dead letters for these keys; afterwards the worker takes everything."""
    await stage.apply(stage.definition(retry=ONCE))
    stage.worker.answer = lambda key: 500 if key in keys else 200
    await stage.fire_next()
    stage.worker.answer = lambda _key: 200


async def test_a_requeued_dead_letter_arrives_under_the_same_id_and_is_recovered(stage: Stage) -> None:
    await fail(stage, "4")

    made = await requeue(stage)
    await carry_out(stage)

    (letter,) = await stage.letters()
    done = await stage.store.read(failures.read_requeue, made.uuid)
    assert letter.state == "recovered"
    assert (done.state, done.recovered, done.failed) == ("done", 1, 0)
    assert stage.worker.keys.count("4") == 2
    assert len(stage.worker.ids["4"]) == 1


async def test_one_goes_first_and_the_rest_stay_when_it_comes_back(stage: Stage) -> None:
    await fail(stage, "1", "2", "3", "4", "5")
    stage.worker.answer = lambda _key: 500

    made = await requeue(stage)
    await carry_out(stage)

    stopped = await stage.store.read(failures.read_requeue, made.uuid)
    assert stopped.state == "stopped"
    assert "first one came back" in (stopped.reason or "")
    assert len(stage.worker.took) == 6
    assert [letter.state for letter in await stage.letters()] == ["open"] * 5


async def test_a_requeue_sends_no_more_a_second_than_its_rate(stage: Stage) -> None:
    await fail(stage, "1", "2", "3", "4", "5")

    await requeue(stage, rate=2.0)
    await carry_out(stage, seconds=2)
    soon = len(stage.worker.took)
    await carry_out(stage, seconds=5)

    assert soon <= 5 + 1 + 2
    assert len(stage.worker.took) == 10
    assert {letter.state for letter in await stage.letters()} == {"recovered"}


async def test_who_no_longer_qualifies_is_not_sent_and_the_letter_says_so(stage: Stage) -> None:
    await fail(stage, "4")
    stage.write("delete from trial where id = 4")

    await requeue(stage)
    await carry_out(stage)

    (letter,) = await stage.letters()
    assert (letter.state, letter.ended_reason) == ("discarded", "nobody qualifies")
    assert stage.worker.keys.count("4") == 1


async def test_a_requeue_that_asks_nobody_sends_the_exact_bytes(stage: Stage) -> None:
    await fail(stage, "4")
    stage.write("update trial set email = 'new@example.org' where id = 4")

    await requeue(stage, ask_again=False)
    await carry_out(stage)

    assert [body for key, _, body in stage.worker.took if key == "4"] == [{"key": 4, "email": "a4@example.org"}] * 2


async def test_a_requeue_that_asks_nobody_says_in_its_headers_that_it_is_one(stage: Stage) -> None:
    await fail(stage, "4")

    await requeue(stage, ask_again=False)
    await carry_out(stage)

    first, again = (headers for headers in stage.worker.headers if headers["oncue-key"] == "4")
    assert (first["oncue-requeue"], again["oncue-requeue"]) == ("0", "1")
    assert [run.kind for run in await stage.runs() if str(run.uuid) == again["oncue-run"]] == ["requeue"]


async def test_a_requeue_that_fails_opens_the_letter_again_with_all_its_attempts(stage: Stage) -> None:
    await fail(stage, "4")
    stage.worker.answer = lambda _key: 500

    await requeue(stage)
    await carry_out(stage)

    (letter,) = await stage.letters()
    assert letter.state == "open"
    assert letter.what.requeue == 1
    assert len(letter.what.attempts) == 2


async def test_a_run_that_failed_goes_on_where_it_stood(stage: Stage) -> None:
    broken = stage.definition(resolve=SqlResolver("select id as key, email from members", "app"), retry=ONCE)
    await stage.apply(broken)
    await stage.fire_next()
    stage.write(f"create view members as {ALL.replace('id as key', 'id')}")

    await requeue(stage)
    await carry_out(stage)

    (letter,) = await stage.letters()
    assert letter.state == "recovered"
    assert len(stage.worker.keys) == 5


async def test_a_requeue_of_a_dead_handler_is_carried_on_by_another(stage: Stage) -> None:
    await fail(stage, "1", "2", "3")
    made = await requeue(stage)
    await carry_out(stage, seconds=2)

    from oncue.engine.failures import Failures

    stage.failures = Failures(stage.store, stage.adapters, now=lambda: stage.now)
    stage.now += timedelta(minutes=1)
    await carry_out(stage, seconds=5)

    done = await stage.store.read(failures.read_requeue, made.uuid)
    assert (done.state, done.recovered) == ("done", 3)


async def test_a_requeue_that_is_resumed_after_its_cause_was_mended_goes_on(stage: Stage) -> None:
    """What came back before it was resumed does not pause it again."""
    stage.write("delete from trial")
    stage.write(";".join(f"insert into trial (id, email) values ({n}, 'x')" for n in range(100, 140)))
    await fail(stage, *(str(n) for n in range(100, 140)))
    stage.worker.answer = lambda key: 200 if key == "100" else 500
    made = await requeue(stage, rate=15.0)
    await carry_out(stage)
    paused = await stage.store.read(failures.read_requeue, made.uuid)
    stage.worker.answer = lambda _key: 200

    await stage.store.write(
        failures.move_requeue, paused, "running", reason="asked to resume", ready_at=stage.now, now=stage.now
    )
    await carry_out(stage)

    done = await stage.store.read(failures.read_requeue, made.uuid)
    assert paused.state == "paused"
    assert (done.state, done.recovered + done.failed) == ("done", 40)
