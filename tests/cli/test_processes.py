"""The executables as processes: they start, serve, drain when asked to, and refuse a wrong configuration."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import socket
import sqlite3
import threading
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from oncue.testing.until import until
from tests.cli.conftest import Folder

pytestmark = pytest.mark.anyio

LISTENS = r"listening on (http://127\.0\.0\.1:\d+)"


async def test_up_runs_everything_and_drains_when_asked_to(folder: Folder) -> None:
    process = folder.start("up", "tasks.toml", "--listen", "127.0.0.1:0")
    url = (await process.ready(LISTENS)).rpartition(" ")[2]
    accepted = await asyncio.to_thread(post_event, url)

    process.terminate()

    assert await process.wait(within=timedelta(seconds=35)) == 0
    assert len(accepted["runs"]) == 1
    assert 'task "paid" created' in process.output
    assert "Traceback" not in process.output


async def test_a_component_of_its_own_serves_its_health(folder: Folder) -> None:
    process = folder.start("clock", "--listen", "127.0.0.1:0")
    url = (await process.ready(LISTENS)).rpartition(" ")[2]
    await process.ready(f"{url}/healthz")
    await until(lambda: "clock" in seen(folder))

    process.interrupt()

    assert await process.wait() == 0
    assert "clock" not in seen(folder)


@pytest.mark.parametrize("name", ["ingest", "dispatcher", "failures", "watch", "api"])
async def test_each_component_starts_and_ends_in_order(folder: Folder, name: str) -> None:
    process = folder.start(name, "--listen", "127.0.0.1:0")
    url = (await process.ready(LISTENS)).rpartition(" ")[2]
    await process.ready(f"{url}/readyz")

    process.terminate()

    assert await process.wait() == 0
    assert "Traceback" not in process.output


async def test_a_second_signal_cuts_the_drain_short(folder: Folder) -> None:
    with slow_server() as (target, asked):
        folder.write("tasks.toml", f'[task.slow]\nschedule = {{ every = "1s" }}\ntarget = {{ http = "{target}" }}\n')
        process = folder.start("up", "tasks.toml", "--listen", "127.0.0.1:0")
        url = (await process.ready(LISTENS)).rpartition(" ")[2]
        await until(asked.is_set, within=timedelta(seconds=20))
        process.terminate()
        await until(lambda: not answers(url))

        process.terminate()

        assert await process.wait(within=timedelta(seconds=5)) == 0, process.output
    assert "drain cut short" in process.output
    assert "exception" not in process.output.lower()
    shown = await asyncio.to_thread(folder.json, "runs", "--state", "due")
    assert shown["items"] != []


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('store = "mysql://host/name"', "mysql"),
        ("stor = 1", "stor"),
        ("store = ", "oncue.toml"),
        ('[source.app]\nurl = "env:NOT_SET"', "NOT_SET"),
        ('[dispatcher]\nlease = "never"', "lease"),
        ('[api]\nlisten = "everywhere"', "listen"),
    ],
)
async def test_a_wrong_configuration_ends_with_78_and_one_sentence(folder: Folder, config: str, said: str) -> None:
    folder.write("oncue.toml", config)
    process = folder.start("up")

    assert await process.wait() == 78
    assert said in process.output
    assert len(process.output.strip().splitlines()) == 1
    assert not (folder.path / "oncue.db").exists()


async def test_a_port_that_is_taken_is_said_in_one_sentence(folder: Folder) -> None:
    first = folder.start("up", "--listen", "127.0.0.1:0")
    url = (await first.ready(LISTENS)).rpartition(" ")[2]

    second = folder.start("api", "--listen", url.removeprefix("http://"))

    assert await second.wait() == 78
    assert "--listen" in second.output
    assert "Traceback" not in second.output


def post_event(url: str) -> Any:
    event = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.paid"}
    headers = {"content-type": "application/cloudevents+json"}
    request = urllib.request.Request(f"{url}/v1/events", json.dumps(event).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def seen(folder: Folder) -> list[str]:
    store = sqlite3.connect(folder.path / "oncue.db")
    try:
        return [name for (name,) in store.execute("select name from components")]
    finally:
        store.close()


def answers(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def slow_server() -> Iterator[tuple[str, threading.Event]]:
    """A receiver that never answers; the event says that it was asked."""
    asked, over = threading.Event(), threading.Event()

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.set()
            over.wait(60)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
