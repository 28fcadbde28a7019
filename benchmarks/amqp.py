"""Confirmed publishing to RabbitMQ, by client: persistent, mandatory, confirms gathered a page at a time.

This bench chose the client of `oncue.adapters.brokers.amqp`. Figures are the machine's: compare within one run.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

URL = "amqp://guest:guest@127.0.0.1:5672/"
BODY = b'{"key": 123456, "email": "somebody@example.org", "plan": "annual"}'
HEADERS = {"oncue-message": "7d5f9c1e-0000-5000-8000-000000000000", "oncue-attempt": 1}

Publish = Callable[[int], Awaitable[None]]


def run(url: str = "", *, messages: int = 10_000, page: int = 1_000, rounds: int = 3) -> dict[str, Any]:
    """Publish `messages` through each client, `page` in flight; return rates a second (best of `rounds`) and ratios."""
    url = url or os.environ.get("ONCUE_BENCH_AMQP_URL", URL)
    rates: dict[str, float | str] = dict.fromkeys(CLIENTS, "not installed")
    for _ in range(rounds):  # interleaved, so that a noisy moment does not fall on one client alone
        for client, (module, measure) in CLIENTS.items():
            if importlib.util.find_spec(module) is not None:
                rate = messages / asyncio.run(measure(url, messages, page))
                rates[client] = max(rate, best if isinstance(best := rates[client], float) else 0.0)
    measured = {client: rate for client, rate in rates.items() if isinstance(rate, float)}
    slowest = min(measured.values(), default=1.0)
    return {
        "bench": "amqp",
        "messages": messages,
        "in_flight": page,
        "per_second": {client: round(rate) if isinstance(rate, float) else rate for client, rate in rates.items()},
        "ratio_to_slowest": {client: round(rate / slowest, 2) for client, rate in measured.items()},
    }


async def with_pika(url: str, messages: int, page: int) -> float:
    import pika
    from pika.adapters.asyncio_connection import AsyncioConnection

    loop = asyncio.get_running_loop()
    opened, closed = loop.create_future(), loop.create_future()
    connection = AsyncioConnection(
        pika.URLParameters(url),
        on_open_callback=opened.set_result,
        on_open_error_callback=lambda _, error: opened.set_exception(error),
        on_close_callback=lambda _, error: closed.set_result(error),
    )
    await opened
    ready: asyncio.Future[Any] = loop.create_future()
    channel = connection.channel(on_open_callback=ready.set_result)
    await ready
    queue = queue_name()
    declared: asyncio.Future[Any] = loop.create_future()
    channel.queue_declare(queue, durable=True, arguments={"x-expires": 60_000}, callback=declared.set_result)
    await declared
    confirmed, wanted, reached = 0, 0, loop.create_future()

    def on_confirm(frame: Any) -> None:
        nonlocal confirmed
        confirmed = frame.method.delivery_tag  # nothing is refused here, so the highest tag stands for all before it
        if confirmed >= wanted and not reached.done():
            reached.set_result(None)

    selected: asyncio.Future[Any] = loop.create_future()
    channel.confirm_delivery(on_confirm, callback=selected.set_result)
    await selected
    start = time.perf_counter()
    for first in range(0, messages, page):
        wanted, reached = min(first + page, messages), loop.create_future()
        for _ in range(first, wanted):
            properties = pika.BasicProperties(delivery_mode=2, headers=HEADERS, message_id=HEADERS["oncue-message"])
            channel.basic_publish("", queue, BODY, properties, mandatory=True)
        await reached
    took = time.perf_counter() - start
    deleted: asyncio.Future[Any] = loop.create_future()
    channel.queue_delete(queue, callback=deleted.set_result)
    await deleted
    connection.close()
    await closed
    return took


async def with_aio_pika(url: str, messages: int, page: int) -> float:
    import aio_pika

    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=True)
        queue = await channel.declare_queue(queue_name(), durable=True, arguments={"x-expires": 60_000})

        async def publish(_: int) -> None:
            message = aio_pika.Message(
                BODY, delivery_mode=2, headers=dict(HEADERS), message_id=str(HEADERS["oncue-message"])
            )
            await channel.default_exchange.publish(message, queue.name, mandatory=True)

        took = await in_pages(publish, messages, page)
        await queue.delete(if_unused=False, if_empty=False)
    return took


async def with_aiormq(url: str, messages: int, page: int) -> float:
    import aiormq
    from pamqp.commands import Basic

    connection = await aiormq.connect(url)
    channel = await connection.channel(publisher_confirms=True)
    queue = queue_name()
    await channel.queue_declare(queue, durable=True, arguments={"x-expires": 60_000})

    async def publish(_: int) -> None:
        properties = Basic.Properties(delivery_mode=2, headers=HEADERS, message_id=str(HEADERS["oncue-message"]))
        await channel.basic_publish(BODY, routing_key=queue, properties=properties, mandatory=True)

    took = await in_pages(publish, messages, page)
    await channel.queue_delete(queue)
    await connection.close()
    return took


async def with_oncue(url: str, messages: int, page: int) -> float:
    """The adapter that was built on the winner, for what it adds."""
    import pika

    from oncue.adapters.brokers.amqp import AmqpBroker
    from oncue.definition import BrokerTarget
    from oncue.model import Confirmed, Message

    def team(work: Callable[[Any], object]) -> None:
        connection = pika.BlockingConnection(pika.URLParameters(url))
        work(connection.channel())
        connection.close()

    queue, broker = queue_name(), AmqpBroker("bench", url)
    team(lambda channel: channel.queue_declare(queue, durable=True, arguments={"x-expires": 60_000}))
    sent = [Message(uuid4(), key, BODY, "application/json", HEADERS) for key in range(messages)]
    await broker.publish(sent[:1], target=BrokerTarget("bench", queue))
    start = time.perf_counter()
    for first in range(0, messages, page):
        outcomes = await broker.publish(sent[first : first + page], target=BrokerTarget("bench", queue))
        if any(not isinstance(outcome, Confirmed) for outcome in outcomes):
            raise RuntimeError(f"not confirmed: {outcomes[0]}")
    took = time.perf_counter() - start
    await broker.close()
    team(lambda channel: channel.queue_delete(queue))
    return took


async def in_pages(publish: Publish, messages: int, page: int) -> float:
    start = time.perf_counter()
    for first in range(0, messages, page):
        await asyncio.gather(*map(publish, range(first, min(first + page, messages))))
    return time.perf_counter() - start


def queue_name() -> str:
    return f"oncue.bench.{uuid4().hex}"


CLIENTS: dict[str, tuple[str, Callable[[str, int, int], Any]]] = {
    "pika (asyncio)": ("pika", with_pika),
    "aiormq": ("aiormq", with_aiormq),
    "aio-pika": ("aio_pika", with_aio_pika),
    "oncue's adapter": ("pika", with_oncue),
}


def table(result: dict[str, Any]) -> str:
    """Lay a result out for people."""
    lines = [f"{'client':<16} {'messages/s':>14} {'ratio':>7}"]
    for client, rate in result["per_second"].items():
        ratio = result["ratio_to_slowest"].get(client, "")
        lines.append(f"{client:<16} {rate:>14} {ratio:>7}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.amqp", description=__doc__)
    parser.add_argument("--url", default="", help="defaults to $ONCUE_BENCH_AMQP_URL, else the local broker")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--page", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    result = run(options.url, messages=options.messages, page=options.page)
    sys.stdout.write((json.dumps(result, indent=2) if options.json else table(result)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
