"""What every receiver keeps. Subclass `ReceiverConformance` and give it a `rig` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

import pytest

from oncue.adapters.base import Receiver
from oncue.definition import HttpTarget
from oncue.model import Confirmed, Message, Refused, Unknown, Unreachable


@dataclass(slots=True)
class ReceiverRig:
    """A receiver under test, and the other side: `answer` says how it replies to a message's body.

    Answers: an HTTP status, optionally with headers; "hang" for none in time; "cut" for a connection that ends;
    "endless 200" for a status with a body that does not end, "stalled 200" for one that does not come.
    """

    receiver: Receiver
    url: str
    nobody: str
    got: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)
    answer: Callable[[bytes], int | str | tuple[int, dict[str, str]]] = lambda _body: 200
    most_at_once: int = 0


def make_message(body: bytes = b"{}") -> Message:
    return Message(uuid4(), 1, body, "application/json", {"oncue-key": "1"})


class ReceiverConformance:
    """Every test here holds for every receiver over HTTP."""

    pytestmark = pytest.mark.anyio

    def target(self, rig: ReceiverRig, **changes: object) -> HttpTarget:
        return HttpTarget(**{"url": rig.url, "timeout": timedelta(seconds=2), **changes})  # type: ignore[arg-type]

    async def test_a_success_confirms_and_bytes_and_headers_arrive_as_they_are(self, rig: ReceiverRig) -> None:
        message = make_message('{"name": "Ζωή"}'.encode())

        outcomes = await rig.receiver.send([message], target=self.target(rig, headers={"X-Team": "shop"}))

        assert outcomes == [Confirmed()]
        body, headers = rig.got[0]
        assert body == message.body
        assert (headers["oncue-key"], headers["x-team"]) == ("1", "shop")
        assert headers["content-type"] == "application/json"

    async def test_outcomes_come_in_the_order_of_the_messages(self, rig: ReceiverRig) -> None:
        rig.answer = lambda body: 500 if body == b"2" else 204

        outcomes = await rig.receiver.send([make_message(b) for b in (b"1", b"2", b"3")], target=self.target(rig))

        assert [type(outcome) for outcome in outcomes] == [Confirmed, Refused, Confirmed]

    @pytest.mark.parametrize(("status", "again"), [(400, True), (404, True), (429, True), (503, True), (410, False)])
    async def test_another_status_refuses_and_gone_for_good(self, rig: ReceiverRig, status: int, again: bool) -> None:
        rig.answer = lambda _: status

        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig))

        assert isinstance(outcome, Refused)
        assert str(status) in outcome.reason
        assert outcome.again is again

    async def test_a_redirect_is_refused_and_not_followed(self, rig: ReceiverRig) -> None:
        rig.answer = lambda _: (302, {"Location": rig.url})

        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig))

        assert isinstance(outcome, Refused)
        assert len(rig.got) == 1

    @pytest.mark.parametrize(
        "headers",
        [
            {"Retry-After": "7"},
            {"Retry-After": "Sat, 28 Mar 2026 07:00:07 GMT", "Date": "Sat, 28 Mar 2026 07:00:00 GMT"},
        ],
    )
    async def test_what_the_other_side_asks_to_wait_is_carried(self, rig: ReceiverRig, headers: dict[str, str]) -> None:
        rig.answer = lambda _: (429, headers)

        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig))

        assert isinstance(outcome, Refused)
        assert outcome.retry_after == timedelta(seconds=7)

    @pytest.mark.parametrize("answer", ["hang", "cut"])
    async def test_no_answer_leaves_it_unknown(self, rig: ReceiverRig, answer: str) -> None:
        rig.answer = lambda _: answer

        (outcome,) = await rig.receiver.send(
            [make_message()], target=self.target(rig, timeout=timedelta(milliseconds=300))
        )

        assert isinstance(outcome, Unknown)

    @pytest.mark.parametrize("way", ["endless", "stalled"])
    @pytest.mark.parametrize(("status", "kind"), [(200, Confirmed), (500, Refused)])
    async def test_a_status_counts_whatever_its_body_does(
        self, rig: ReceiverRig, way: str, status: int, kind: type[object]
    ) -> None:
        rig.answer = lambda _: f"{way} {status}"

        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig))

        assert isinstance(outcome, kind)

    async def test_a_reason_is_short_and_holds_no_control_characters(self, rig: ReceiverRig) -> None:
        rig.answer = lambda _: (400, {"X-Body": "no\x1b[2Jway" + "y" * 1_000})

        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig))

        assert isinstance(outcome, Refused)
        assert outcome.reason.startswith("HTTP 400: no")
        assert outcome.reason.isprintable()
        assert len(outcome.reason) < 250

    @pytest.mark.parametrize("headers", [{"X-Team": "a\r\nX-Evil: b"}, {"X y": "1"}, {"X-Team": "\0"}])
    async def test_a_header_that_cannot_be_sent_is_refused_for_good(
        self, rig: ReceiverRig, headers: dict[str, str]
    ) -> None:
        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig, headers=headers))

        assert isinstance(outcome, Refused)
        assert not outcome.again
        assert repr(next(iter(headers))) in outcome.reason
        assert rig.got == []

    async def test_a_targets_header_wins_over_a_messages_own(self, rig: ReceiverRig) -> None:
        target = self.target(rig, headers={"content-type": "application/vnd.shop+json", "Oncue-Key": "2"})

        await rig.receiver.send([make_message()], target=target)

        _, headers = rig.got[0]
        assert (headers["content-type"], headers["oncue-key"]) == ("application/vnd.shop+json", "2")

    @pytest.mark.parametrize("scheme", ["http", "nothing"])
    async def test_no_reason_shows_the_secrets_of_a_url(self, rig: ReceiverRig, scheme: str) -> None:
        url = f"{scheme}://zoe:secret-word@127.0.0.1:{rig.nobody}/hook?token=secret-word"

        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig, url=url))

        assert isinstance(outcome, Unreachable | Refused)
        assert "secret-word" not in outcome.reason

    @pytest.mark.parametrize("url", ["http://127.0.0.1:{nobody}/", "http://nobody.invalid/"])
    async def test_nobody_there_is_unreachable(self, rig: ReceiverRig, url: str) -> None:
        target = self.target(rig, url=url.format(nobody=rig.nobody))

        (outcome,) = await rig.receiver.send([make_message()], target=target)

        assert isinstance(outcome, Unreachable)

    @pytest.mark.parametrize("url", ["not a url", "ftp://shop.example/", "http://a..b/", "http://[::/", "http://"])
    async def test_something_that_is_no_url_is_refused_for_good(self, rig: ReceiverRig, url: str) -> None:
        (outcome,) = await rig.receiver.send([make_message()], target=self.target(rig, url=url))

        assert isinstance(outcome, Refused)
        assert not outcome.again

    async def test_no_more_are_in_flight_than_the_target_allows(self, rig: ReceiverRig) -> None:
        await rig.receiver.send([make_message() for _ in range(12)], target=self.target(rig, concurrency=3))

        assert rig.most_at_once <= 3

    async def test_sends_beside_each_other_share_what_the_target_allows(self, rig: ReceiverRig) -> None:
        target = self.target(rig, concurrency=3)

        await asyncio.gather(*(rig.receiver.send([make_message() for _ in range(6)], target=target) for _ in range(4)))

        assert rig.most_at_once <= 3
