"""The services that tests ask for are there, or are named as missing."""

from __future__ import annotations

from collections.abc import Callable

import asyncpg
import pika
import pytest

from tests import services
from tests.missing import Missing, closing_line

pytestmark = pytest.mark.anyio


async def test_each_test_has_an_empty_database_of_its_own(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    tables = await connection.fetchval("select count(*) from pg_tables where schemaname = 'public'")
    await connection.close()

    assert tables == 0


def test_a_queue_can_be_declared_under_a_unique_name(amqp_url: str, unique_name: Callable[[str], str]) -> None:
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        declared = connection.channel().queue_declare(unique_name("queue"), exclusive=True)

    assert declared.method.message_count == 0


def test_a_store_url_names_one_of_both_kinds(store_url: str) -> None:
    assert store_url.startswith(("sqlite:////", "postgresql://"))


def test_redis_and_nats_are_found_by_what_they_say(redis_url: str, nats_url: str) -> None:
    assert redis_url.startswith("redis://")
    assert nats_url.startswith("nats://")


def test_a_service_that_does_not_answer_is_missing_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCUE_TEST_REDIS_URL", "redis://127.0.0.1:1/0")

    with pytest.raises(Missing, match=r"Redis \(apt-get install redis-server"):
        services.redis()


def test_all_that_is_missing_stands_in_one_line() -> None:
    skipped = [skip_report(f"Skipped: not tested here: {name} (install it)") for name in ("NATS", "Kafka", "NATS")]

    assert closing_line(skipped) == "not tested here: Kafka (install it); NATS (install it)"


def skip_report(reason: str) -> pytest.TestReport:
    return pytest.TestReport("test", ("test", 1, "test"), {}, "skipped", ("test", 1, reason), "setup")
