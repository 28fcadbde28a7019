"""RabbitMQ from the team's side: a queue with a dead-letter queue, and a worker that rejects what it cannot do."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pika
from pika.exceptions import AMQPError

from tests.chaos.checker import Received


def declare(url: str, queue: str) -> None:
    """Declare a durable queue, and `QUEUE.dead` for what its workers reject."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{queue}.dead"}
    channel.queue_declare(f"{queue}.dead", durable=True)
    channel.queue_declare(queue, durable=True, arguments=dead)
    connection.close()


def delete(url: str, *queues: str) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    for queue in queues:
        channel.queue_delete(queue)
    connection.close()


def publish_strange(url: str, queue: str, count: int) -> None:
    """Publish messages that Oncue never made."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    for number in range(count):
        channel.basic_publish("", queue, f"strange {number}".encode(), pika.BasicProperties(delivery_mode=2))
    connection.close()


def depth(url: str, queue: str) -> int:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    count = connection.channel().queue_declare(queue, passive=True).method.message_count
    connection.close()
    return int(count)


class RabbitWorker:
    """Logs what it gets, acknowledges it after, and rejects what `rejects` says, unless it was requeued by Oncue."""

    def __init__(self, url: str, queue: str, *, rejects: Callable[[str], bool]) -> None:
        self._url, self._queue, self._rejects = url, queue, rejects
        self._over = threading.Event()
        self.received: list[Received] = []
        self.strange: list[tuple[bytes, bool]] = []

    def consume(self) -> None:
        """Work until told to stop; connect again after a loss."""
        while not self._over.is_set():
            with contextlib.suppress(AMQPError, OSError):
                connection = pika.BlockingConnection(pika.URLParameters(self._url))
                try:
                    self._consume(connection.channel())
                finally:
                    if connection.is_open:
                        connection.close()
            self._over.wait(0.2)

    def _consume(self, channel: Any) -> None:
        channel.basic_qos(prefetch_count=50)
        for method, properties, body in channel.consume(self._queue, inactivity_timeout=0.1):
            if self._over.is_set():
                return
            if method is not None:
                self._take(channel, method, properties, body)

    def stop(self) -> None:
        self._over.set()

    def _take(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        at, headers = datetime.now(UTC), properties.headers or {}
        if "oncue-message" not in headers:
            accepted = any(known == body for known, _ in self.strange)  # it rejects each stranger once
            self.strange.append((body, accepted))
        else:
            requeue = int(headers["oncue-requeue"])
            accepted = requeue > 0 or not self._rejects(str(headers["oncue-key"]))
            self.received.append(
                Received(
                    message_id=headers["oncue-message"],
                    run=headers["oncue-run"],
                    task=headers["oncue-task"],
                    key=str(headers["oncue-key"]),
                    at=at,
                    due=datetime.fromisoformat(headers["oncue-due"]),
                    requeue=requeue,
                    accepted=True,  # its broker has it: what becomes of it there is told by its dead letter
                )
            )
        if accepted:
            channel.basic_ack(method.delivery_tag)
        else:
            channel.basic_nack(method.delivery_tag, requeue=False)


@contextlib.contextmanager
def working(url: str, queue: str, *, rejects: Callable[[str], bool]) -> Iterator[RabbitWorker]:
    """Run a worker on a thread of its own."""
    worker = RabbitWorker(url, queue, rejects=rejects)
    thread = threading.Thread(target=worker.consume, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(10)
