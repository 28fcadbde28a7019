"""What every `Envelope` promises, whatever its workers read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID, uuid4

import pytest

from oncue.adapters.base import Envelope
from oncue.adapters.envelopes.trace import read_address
from oncue.definition import BrokerTarget, HttpTarget
from oncue.errors import TargetError
from oncue.model import Address, Entity, Json, Key, Message


class EnvelopeRig(Protocol):
    """An envelope, a target that it writes for, and how its workers read."""

    target: BrokerTarget | HttpTarget

    def make(self, *, limit: int = 256 * 1024) -> Envelope:
        """Return the envelope; a body above `limit` bytes is refused."""
        ...

    def read(self, message: Message) -> Json:
        """Return the payload of a message, as a worker gets it."""
        ...


def make_address(**changes: Any) -> Address:
    """Return an address that needs only what a test is about."""
    address = Address(uuid4(), "trial-ending", uuid4(), datetime(2026, 3, 28, 7, tzinfo=UTC), attempt=1, requeue=0)
    return replace(address, **changes)


class EnvelopeConformance:
    """Subclass it with a fixture `rig` that gives an `EnvelopeRig`."""

    def test_a_worker_gets_the_key_beside_the_data(self, rig: EnvelopeRig) -> None:
        entity = Entity(42, {"email": "zoë@example.org", "days": [1, 2], "plan": {"name": "pro"}, "note": None})

        message = rig.make().pack(entity, make_address(), target=rig.target)

        assert rig.read(message) == {"key": 42, **entity.data}

    def test_a_run_that_concerns_nobody_sends_the_data_alone(self, rig: EnvelopeRig) -> None:
        message = rig.make().pack(Entity("", {"full": True}), make_address(), target=rig.target)

        assert rig.read(message) == {"full": True}

    def test_the_message_keeps_its_id_key_and_requeue_number(self, rig: EnvelopeRig) -> None:
        address = make_address(attempt=3, requeue=2)

        message = rig.make().pack(Entity("user-7", {}), address, target=rig.target)

        assert (message.id, message.key, message.requeue) == (address.message_id, "user-7", 2)

    def test_the_same_entity_and_address_make_the_same_bytes(self, rig: EnvelopeRig) -> None:
        entity, address = Entity(1, {"b": 2, "a": 1}), make_address()

        assert rig.make().pack(entity, address, target=rig.target) == rig.make().pack(
            entity, address, target=rig.target
        )

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (datetime(2026, 3, 28, 7, tzinfo=UTC), "2026-03-28T07:00:00Z"),
            (datetime(2026, 3, 28, 9, tzinfo=timezone(timedelta(hours=2))), "2026-03-28T09:00:00+02:00"),
            (date(2026, 3, 28), "2026-03-28"),
            (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
            (Decimal("12.50"), "12.50"),
        ],
    )
    def test_values_that_json_lacks_become_text(self, rig: EnvelopeRig, value: Any, text: str) -> None:
        message = rig.make().pack(Entity(1, {"value": value}), make_address(), target=rig.target)

        assert rig.read(message)["value"] == text

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN")])
    def test_what_is_no_number_is_refused_by_its_place(self, rig: EnvelopeRig, value: Any) -> None:
        with pytest.raises(TargetError, match=r"scores\[1\]\.value"):
            rig.make().pack(Entity(1, {"scores": [{}, {"value": value}]}), make_address(), target=rig.target)

    def test_words_that_look_like_no_number_pass(self, rig: EnvelopeRig) -> None:
        message = rig.make().pack(Entity(1, {"word": "NaN Infinity"}), make_address(), target=rig.target)

        assert rig.read(message)["word"] == "NaN Infinity"

    @pytest.mark.parametrize("value", [object(), b"\xff", "\ud800"])
    def test_what_cannot_be_written_is_refused_by_task(self, rig: EnvelopeRig, value: Any) -> None:
        with pytest.raises(TargetError, match='task "trial-ending"'):
            rig.make().pack(Entity(1, {"value": value}), make_address(), target=rig.target)

    def test_a_body_above_the_limit_is_refused_with_both_sizes(self, rig: EnvelopeRig) -> None:
        with pytest.raises(TargetError, match=r"[56],\d{3} bytes, more than the limit of 1,000") as caught:
            rig.make(limit=1_000).pack(Entity(1, {"note": "s3cret" * 900}), make_address(), target=rig.target)

        assert "s3cret" not in str(caught.value)

    def test_no_header_shows_the_data(self, rig: EnvelopeRig) -> None:
        message = rig.make().pack(Entity(1, {"email": "zoe@example.org"}), make_address(), target=rig.target)

        assert "zoe" not in repr(message.headers)
        assert "zoe" not in repr(message.properties)


class BrokerEnvelopeConformance(EnvelopeConformance):
    """For what goes to a broker, and can come back from its dead-letter queue."""

    @pytest.mark.parametrize("key", [42, "42", "", "a b%\r\nx: y", "Ω" * 50, -(2**63)])
    def test_a_dead_message_tells_where_it_came_from(self, rig: EnvelopeRig, key: Key) -> None:
        address = make_address(attempt=2, requeue=1)

        message = rig.make().pack(Entity(key, {}), address, target=rig.target)

        assert read_address(message.headers) == (address, key)
