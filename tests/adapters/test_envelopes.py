"""JSON and Celery messages: the conformance suite, what Celery itself writes, and what its own worker makes of ours."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import celery
import pytest

pytest.register_assert_rewrite("oncue.testing.conformance")

from oncue.adapters.brokers.amqp import AmqpBroker  # noqa: E402
from oncue.adapters.envelopes.celery import CeleryEnvelope  # noqa: E402
from oncue.adapters.envelopes.json import JsonEnvelope  # noqa: E402
from oncue.adapters.envelopes.trace import read_address, trace_of  # noqa: E402
from oncue.definition import BrokerTarget, HttpTarget  # noqa: E402
from oncue.errors import TargetError  # noqa: E402
from oncue.model import Confirmed, Entity, Json, Message  # noqa: E402
from oncue.testing.conformance.envelopes import BrokerEnvelopeConformance, EnvelopeConformance, make_address  # noqa: E402
from oncue.testing.until import until  # noqa: E402

QUEUE = BrokerTarget("main", "work", task="emails.trial_ending")
URL = HttpTarget("https://example.org/hook")


class JsonRig:
    def __init__(self, target: BrokerTarget | HttpTarget) -> None:
        self.target = target

    def make(self, *, limit: int = 256 * 1024) -> JsonEnvelope:
        return JsonEnvelope(limit=limit)

    def read(self, message: Message) -> Json:
        return json.loads(message.body)


class CeleryRig:
    target = QUEUE

    def make(self, *, limit: int = 256 * 1024) -> CeleryEnvelope:
        return CeleryEnvelope(limit=limit)

    def read(self, message: Message) -> Json:
        arguments, named, _ = json.loads(message.body)
        assert arguments == []
        return named


class TestJsonEnvelope(BrokerEnvelopeConformance):
    @pytest.fixture
    def rig(self) -> JsonRig:
        return JsonRig(QUEUE)


class TestJsonEnvelopeOverHttp(EnvelopeConformance):
    @pytest.fixture
    def rig(self) -> JsonRig:
        return JsonRig(URL)


class TestCeleryEnvelope(BrokerEnvelopeConformance):
    @pytest.fixture
    def rig(self) -> CeleryRig:
        return CeleryRig()


# --- JSON ----------------------------------------------------------------------------------------------------------


def test_over_http_all_headers_are_printable_text_with_an_idempotency_key():
    address = make_address(task_name="prüfung")

    message = JsonEnvelope().pack(Entity("a b%\r\nX-Evil: 1é", {}), address, target=URL)

    assert message.headers == {
        "oncue-message": str(address.message_id),
        "oncue-run": str(address.run_uuid),
        "oncue-task": "pr%C3%BCfung",
        "oncue-key": "a%20b%25%0D%0AX-Evil:%201%C3%A9",
        "oncue-due": "2026-03-28T07:00:00Z",
        "oncue-attempt": "1",
        "oncue-requeue": "0",
        "Idempotency-Key": str(address.message_id),
    }


def test_a_plain_body_is_exactly_this():
    message = JsonEnvelope().pack(Entity("ü", {"n": 1}), make_address(), target=QUEUE)

    assert message.body == '{"key":"ü","n":1}'.encode()
    assert message.content_type == "application/json"


# --- Reading back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"message": "no-uuid"},
        {"message": None},
        {"run": 7},
        {"task": None},
        {"task": "nul\0"},
        {"key": None},
        {"key": True},
        {"key": "nul\0"},
        {"due": "yesterday"},
        {"due": "2026-03-28T07:00:00"},
        {"due": "0001-01-01T00:00:00+14:00"},
    ],
)
@pytest.mark.parametrize("joint", "-_")
def test_garbage_in_a_header_makes_a_stranger(joint: str, change: Json):
    headers = trace_of(1, make_address(), joint=joint)

    assert read_address(headers) is not None
    assert read_address(headers | {f"oncue{joint}{name}": value for name, value in change.items()}) is None


@pytest.mark.parametrize("requeue", [None, "many", -1, 2**40, [1]])
def test_a_requeue_number_that_is_none_counts_as_zero(requeue: object):
    headers = trace_of(1, make_address(requeue=3)) | {"oncue-requeue": requeue}

    address, _ = read_address(headers)

    assert address.requeue == 0


def test_a_stranger_has_no_address():
    assert read_address({}) is None
    assert read_address({"task": "emails.send", "id": str(uuid4())}) is None


# --- Celery --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [URL, BrokerTarget("main", "work"), BrokerTarget("main", "work", task="")])
def test_celery_needs_the_name_of_the_workers_task(target: BrokerTarget | HttpTarget):
    with pytest.raises(TargetError, match="envelope"):
        CeleryEnvelope().pack(Entity(1, {}), make_address(), target=target)


def test_a_celery_message_is_what_celery_itself_would_send():
    address = make_address()
    app = celery.Celery("sender", set_as_current=False)
    theirs = app.amqp.as_task_v2(
        str(address.message_id), QUEUE.task, (), {"key": 42, "email": "zoë"}, origin="oncue@trial-ending"
    )

    ours = CeleryEnvelope().pack(Entity(42, {"email": "zoë"}), address, target=QUEUE)

    headers = {name: value for name, value in ours.headers.items() if not name.startswith("oncue")}
    shown = headers.pop("kwargsrepr")
    assert headers == {name: value for name, value in theirs.headers.items() if name != "kwargsrepr"}
    assert json.loads(ours.body) == json.loads(json.dumps(theirs.body))
    assert ours.properties == {**theirs.properties, "content_encoding": "utf-8"}
    assert shown == "{'key': 42, ...}"


WORKER = """
    import os
    import celery

    app = celery.Celery("team", broker=os.environ["BROKER"])
    app.conf.task_default_queue = os.environ["QUEUE"]

    @app.task(name="emails.trial_ending", bind=True)
    def trial_ending(self, **entity):
        seen = (self.request.id, self.request.root_id, self.request.oncue_run, self.request.oncue_key, entity)
        with open(os.environ["LOG"], "a") as log:
            log.write(repr(seen) + "\\n")
"""


@pytest.fixture
def worker(amqp_url: str, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A stock worker in its own process; gives its queue and the log of what it ran."""
    (tmp_path / "team.py").write_text(textwrap.dedent(WORKER))
    queue, log = f"celery-{uuid4().hex[:8]}", tmp_path / "ran.log"
    log.touch()
    environment = os.environ | {"BROKER": amqp_url, "QUEUE": queue, "LOG": str(log)}
    command = [sys.executable, "-m", "celery", "-A", "team", "worker", "--pool=solo", "--without-mingle"]
    with (tmp_path / "worker.log").open("wb") as output:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
        yield queue, log
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.fixture
async def broker(amqp_url: str) -> AsyncIterator[AmqpBroker]:
    made = AmqpBroker("main", amqp_url)
    yield made
    await made.close()


@pytest.mark.anyio
async def test_a_stock_celery_worker_runs_a_message_of_ours(worker: tuple[str, Path], broker: AmqpBroker):
    (queue, log), address = worker, make_address()
    target = BrokerTarget("main", queue, task="emails.trial_ending")
    message = CeleryEnvelope().pack(Entity(42, {"email": "zoë@example.org", "plan": None}), address, target=target)

    async def is_sent() -> bool:  # the worker declares its queue when it has started
        return await broker.publish([message], target=target) == [Confirmed()]

    async def what_ran() -> list[str]:
        return log.read_text().splitlines()

    await until(is_sent, within=timedelta(seconds=60))
    (line,) = await until(what_ran, within=timedelta(seconds=60))

    id, root_id, run, key, entity = ast.literal_eval(line)
    assert (id, root_id, run) == (str(address.message_id), str(address.message_id), str(address.run_uuid))
    assert (key, entity) == (42, {"key": 42, "email": "zoë@example.org", "plan": None})
