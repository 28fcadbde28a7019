"""RabbitMQ: the conformance suite, and the faults that only it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import kombu
import pytest

pytest.register_assert_rewrite("oncue.testing.conformance")

from oncue.adapters.brokers.amqp import AmqpBroker, without_deaths  # noqa: E402
from oncue.adapters.brokers.amqp_connection import read_url  # noqa: E402
from oncue.adapters.brokers.amqp_fields import Death, read_death, to_amqp, to_plain  # noqa: E402
from oncue.definition import BrokerTarget  # noqa: E402
from oncue.errors import AdapterError, ConfigError  # noqa: E402
from oncue.model import Confirmed, Message, Refused, Unknown, Unreachable  # noqa: E402
from oncue.testing.conformance.brokers import BrokerConformance, consume, make_message  # noqa: E402
from oncue.testing.until import until  # noqa: E402

from .rabbit import Proxy, RabbitRig  # noqa: E402

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rig(amqp_url: str) -> AsyncIterator[RabbitRig]:
    async with Proxy(amqp_url) as proxy:
        made = RabbitRig(amqp_url, proxy)
        yield made
        proxy.unblock()
        await made.close()


class TestAmqpBroker(BrokerConformance):
    pass


# --- Refused: the broker answers no --------------------------------------------------------------------------------


async def test_an_absent_exchange_is_refused_in_the_brokers_words_and_neighbours_go_on(rig: RabbitRig):
    queue, _ = await rig.declare()
    broker = rig.connect()

    refused, confirmed = await asyncio.gather(
        broker.publish([make_message() for _ in range(200)], target=BrokerTarget("main", "x", exchange="nowhere")),
        broker.publish([make_message() for _ in range(200)], target=BrokerTarget("main", queue)),
    )

    assert {type(outcome) for outcome in refused} == {Refused}
    assert "no exchange 'nowhere'" in refused[0].reason
    assert refused[0].again
    assert confirmed == [Confirmed()] * 200


async def test_an_exchange_without_a_binding_is_unroutable(rig: RabbitRig):
    outcomes = await rig.connect().publish([make_message()], target=BrokerTarget("main", "key", exchange="amq.direct"))

    assert outcomes == [Refused('unroutable: exchange "amq.direct" leads to no queue for "key" (NO_ROUTE)')]


async def test_a_full_queue_refuses_only_what_is_too_much(rig: RabbitRig):
    queue, _ = await rig.declare(**{"x-max-length": 3, "x-overflow": "reject-publish"})
    broker = rig.connect()

    outcomes = await broker.publish([make_message() for _ in range(5)], target=BrokerTarget("main", queue))

    assert outcomes[:3] == [Confirmed()] * 3
    assert all(isinstance(outcome, Refused) and "nack" in outcome.reason for outcome in outcomes[3:])


async def test_one_bad_message_takes_no_neighbour_down_with_its_channel(rig: RabbitRig):
    queue, _ = await rig.declare()
    good, bad = make_message(), with_properties(make_message(), expiration="soon")

    outcomes = await rig.connect().publish([good, bad, good], target=BrokerTarget("main", queue))

    assert [type(outcome) for outcome in outcomes] == [Confirmed, Refused, Confirmed]
    assert not outcomes[1].again
    assert "406" in outcomes[1].reason


@pytest.mark.parametrize(
    "message",
    [
        make_message(note="x" * 200_000),
        make_message(note=object()),
        make_message(**{"n" * 300: 1}),
    ],
    ids=["larger than a frame", "no AMQP type", "too long a name"],
)
async def test_headers_that_do_not_fit_are_refused_for_good_and_alone(rig: RabbitRig, message: Message):
    queue, _ = await rig.declare()

    outcomes = await rig.connect().publish(
        [make_message(), message, make_message()], target=BrokerTarget("main", queue)
    )

    assert [type(outcome) for outcome in outcomes] == [Confirmed, Refused, Confirmed]
    assert not outcomes[1].again


async def test_a_queue_deleted_while_publishing_refuses_and_works_again_once_it_is_back(rig: RabbitRig):
    queue, _ = await rig.declare()
    broker, target = rig.connect(), BrokerTarget("main", queue)
    assert await broker.publish([make_message()], target=target) == [Confirmed()]

    await rig.remove(queue)
    refused = await broker.publish([make_message()], target=target)
    await rig.do(lambda channel: channel.queue_declare(queue, durable=True))

    assert isinstance(refused[0], Refused)
    assert await broker.publish([make_message()], target=target) == [Confirmed()]


# --- Unreachable: nothing was sent ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("amqp://guest:not-the-password@127.0.0.1:5672/", "ACCESS_REFUSED"),
        ("amqp://guest:guest@127.0.0.1:1/", "127.0.0.1:1: Connection refused"),
        ("amqp://guest:secret-word@no-such-host.invalid/", "no-such-host.invalid"),
        ("amqp://guest:guest@127.0.0.1:5672/no-such-vhost", "no-such-vhost"),
    ],
)
async def test_who_cannot_be_reached_says_why_without_credentials(rig: RabbitRig, url: str, words: str):
    broker = rig.connect(url=url)

    outcomes = await broker.publish([make_message()], target=BrokerTarget("main", "any"))

    assert isinstance(outcomes[0], Unreachable)
    assert words in outcomes[0].reason
    assert "not-the-password" not in outcomes[0].reason
    assert "secret-word" not in outcomes[0].reason
    with pytest.raises(AdapterError, match=words):
        await broker.depth("any")


@pytest.mark.parametrize("url", ["http://guest:secret-word@host/", "amqp://guest:secret-word@host:many/"])
def test_a_url_that_cannot_be_read_is_not_repeated(url: str):
    with pytest.raises(ConfigError, match=r"\[broker.main\] url") as caught:
        AmqpBroker("main", url)
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "vhost"), [("", "/"), ("/", "/"), ("//", "/"), ("/%2f", "/"), ("/team", "team"), ("//team", "/team")]
)
def test_a_virtual_host_is_read_as_celery_reads_it(path: str, vhost: str):
    url = f"amqp://guest:guest@localhost{path}"

    assert read_url("main", url, purpose="test", within=1).virtual_host == vhost
    assert (kombu.Connection(url).virtual_host or "/") == vhost


async def test_a_broker_that_blocks_publishers_is_unreachable_until_it_takes_messages_again(rig: RabbitRig):
    queue, _ = await rig.declare()
    broker, target = rig.connect(confirm_within=1.0), BrokerTarget("main", queue)
    await broker.publish([make_message()], target=target)

    rig.proxy.block("low on memory")
    blocked = await broker.publish([make_message(), make_message()], target=target)
    again = await broker.publish([make_message()], target=target)
    rig.proxy.unblock()

    assert blocked == [Unreachable('broker "main" blocks publishers: low on memory')] * 2
    assert again == [Unreachable('broker "main" blocks publishers: low on memory')]
    assert await broker.publish([make_message()], target=target) == [Confirmed()]


async def test_dead_letters_are_read_while_publishers_are_blocked(rig: RabbitRig):
    queue, _ = await rig.declare()
    await rig.connect().publish([make_message()], target=BrokerTarget("main", queue))
    broker = rig.connect(url=rig.url, confirm_within=0.5)
    broker._writing._blocked = "low on disk"  # a real alarm would block everyone on this broker

    outcomes = await broker.publish([make_message()], target=BrokerTarget("main", queue))

    assert outcomes == [Unreachable('broker "main" blocks publishers: low on disk')]
    assert len(await consume(broker, queue, count=1, acknowledge=True)) == 1


# --- Unknown: it may have arrived ----------------------------------------------------------------------------------


async def test_a_connection_cut_in_mid_flight_leaves_the_unanswered_unknown(rig: RabbitRig):
    queue, _ = await rig.declare()
    broker, target = rig.connect(), BrokerTarget("main", queue)
    await broker.publish([make_message()], target=target)
    rig.proxy.lose_answers(True)

    messages = [make_message() for _ in range(50)]
    publishing = asyncio.create_task(broker.publish(messages, target=target))
    await until(lambda: stand(rig, queue, 51))
    rig.proxy.lose_answers(False)
    rig.proxy.sever()
    outcomes = await publishing

    assert {type(outcome) for outcome in outcomes} == {Unknown}
    assert "connection lost" in outcomes[0].reason
    assert await broker.publish([make_message()], target=target) == [Confirmed()]


async def test_confirms_that_do_not_come_in_time_are_unknown_and_cost_the_connection(rig: RabbitRig):
    queue, _ = await rig.declare()
    broker, target = rig.connect(confirm_within=1.0), BrokerTarget("main", queue)
    await broker.publish([make_message()], target=target)

    rig.proxy.lose_answers(True)
    outcomes = await broker.publish([make_message()] * 3, target=target)
    rig.proxy.lose_answers(False)

    assert outcomes == [Unknown('broker "main": no confirm within 1 s')] * 3
    assert await broker.publish([make_message()], target=target) == [Confirmed()]


async def test_a_broker_that_accepts_and_says_nothing_is_unreachable(rig: RabbitRig):
    broker = rig.connect(confirm_within=0.5)
    rig.proxy.lose_answers(True)

    outcomes = await broker.publish([make_message()], target=BrokerTarget("main", "any"))
    rig.proxy.sever()

    assert isinstance(outcomes[0], Unreachable)


# --- Dead letters --------------------------------------------------------------------------------------------------


async def test_a_dead_letter_is_requeued_without_its_deaths_and_dies_once_again(rig: RabbitRig):
    queue, dead = await rig.declare()
    broker, target, message = rig.connect(), BrokerTarget("main", queue), make_message(run="r1")
    await broker.publish([message], target=target)
    await rig.reject(queue)
    (first,) = await consume(broker, dead, count=1, acknowledge=True)

    back = Message(message.id, 1, first.body, first.content_type, without_deaths(first.headers), first.properties)
    assert await broker.publish([back], target=target) == [Confirmed()]
    await rig.reject(queue)
    (second,) = await consume(broker, dead, count=1, acknowledge=True)

    assert without_deaths(first.headers) == {"run": "r1"}
    assert (second.deaths, second.origin, second.body) == (1, queue, message.body)
    assert second.properties["message_id"] == str(message.id)


async def test_a_message_dead_of_age_names_the_reason(rig: RabbitRig):
    queue, dead = await rig.declare(**{"x-message-ttl": 0})
    await rig.connect().publish([make_message()], target=BrokerTarget("main", queue))

    (read,) = await consume(rig.connect(), dead, count=1)

    assert (read.origin, read.reason, read.deaths) == (queue, "expired", 1)


async def test_a_reader_that_lost_its_connection_reads_the_same_message_again(rig: RabbitRig):
    queue, _ = await rig.declare()
    broker, message = rig.connect(), make_message()
    await broker.publish([message], target=BrokerTarget("main", queue))

    async with aclosing(broker.consume(queue)) as messages:
        held = await anext(messages)
        await rig.sever()
        with pytest.raises(AdapterError, match="connection"):
            await anext(messages)
    (again,) = await consume(broker, queue, count=1)
    await broker.acknowledge(held)

    assert (again.body, held.body) == (message.body, message.body)
    assert await until(lambda: stand(rig, queue, 1))


def test_deaths_are_read_newest_first_and_counted_where_it_failed():
    headers = {
        "x-first-death-queue": "work",
        "x-death": [
            {"queue": "work", "reason": "rejected", "count": 3},
            {"queue": "wait", "reason": "expired", "count": 2},
            {"queue": "work", "reason": "maxlen", "count": 1},
        ],
    }

    assert read_death(headers) == Death("work", "rejected", 4)


@pytest.mark.parametrize("headers", [{}, {"x-death": None}, {"x-death": "garbage"}, {"x-death": [7]}])
def test_a_message_without_deaths_has_no_origin(headers: dict):
    assert read_death(headers).origin is None
    assert read_death(headers).count == 0


def test_headers_come_back_in_their_amqp_types():
    from datetime import UTC, datetime
    from decimal import Decimal

    headers = {"t": datetime(2026, 1, 2, tzinfo=UTC), "b": b"\xff", "d": Decimal("1.5"), "l": [1, None, {"x": "y"}]}

    assert to_amqp(to_plain(headers)) == headers
    assert to_plain(headers)["t"] == {"$timestamp": 1767312000}


# --- What the tests say often --------------------------------------------------------------------------------------


def with_properties(message: Message, **properties: object) -> Message:
    return Message(message.id, message.key, message.body, message.content_type, message.headers, properties)


async def stand(rig: RabbitRig, queue: str, count: int) -> bool:
    return await rig.do(lambda channel: channel.queue_declare(queue, passive=True).method.message_count) == count
