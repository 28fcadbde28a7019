"""The private servers crash, come back on the same port, and keep what was confirmed."""

from __future__ import annotations

import asyncpg
import pika
import pytest

from tests.faults.private_postgres import PrivatePostgres
from tests.faults.private_rabbitmq import PrivateRabbitmq

pytestmark = pytest.mark.anyio


async def test_postgres_keeps_what_was_committed_over_a_crash(private_postgres: PrivatePostgres) -> None:
    connection = await asyncpg.connect(private_postgres.url)
    assert await connection.fetchval("show fsync") == "on"
    await connection.execute("create table kept as select 1 as number")

    private_postgres.stop("immediate")
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(private_postgres.url)
    private_postgres.start()

    connection = await asyncpg.connect(private_postgres.url)
    assert await connection.fetchval("select number from kept") == 1
    await connection.close()


def test_rabbitmq_keeps_what_was_confirmed_over_kill9_and_an_orderly_stop(private_rabbitmq: PrivateRabbitmq) -> None:
    publish_confirmed(private_rabbitmq.url)
    private_rabbitmq.sync()

    private_rabbitmq.kill9()
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        open_connection(private_rabbitmq.url)
    private_rabbitmq.start()
    private_rabbitmq.stop_app()
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        open_connection(private_rabbitmq.url)
    private_rabbitmq.start_app()

    with open_connection(private_rabbitmq.url) as connection:
        assert connection.channel().basic_get("kept")[2] == b"confirmed"


def publish_confirmed(url: str) -> None:
    with open_connection(url) as connection:
        channel = connection.channel()
        channel.queue_declare("kept", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "kept", b"confirmed", pika.BasicProperties(delivery_mode=2), mandatory=True)


def open_connection(url: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(url))
