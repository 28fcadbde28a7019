"""Who is who: ids that come out the same everywhere, and never the same for two."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.rules import identity

TASK = UUID("11111111-1111-4111-8111-111111111111")


def test_a_run_is_named_by_its_task_and_its_cause() -> None:
    """These ids are in stores and on brokers: they never change."""
    assert identity.run_uuid(TASK, "schedule:2026-03-02T09:00:00Z") == uuid5(TASK, "schedule:2026-03-02T09:00:00Z")
    assert str(identity.message_uuid(TASK, 42)) == "b54e9c25-fff3-5b36-8241-78a284493669"


def test_one_moment_makes_one_cause_in_whatever_zone_it_is_written() -> None:
    athens = timezone(timedelta(hours=2))

    causes = {
        identity.schedule_cause(moment)
        for moment in (datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 11, tzinfo=athens))
    }

    assert causes == {"schedule:2026-03-02T09:00:00Z"}


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=2, max_size=9, unique=True))
def test_two_moments_make_two_causes(moments: list[datetime]) -> None:
    assert len({identity.schedule_cause(moment) for moment in moments}) == len(moments)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (identity.event_cause("a", "b"), identity.manual_cause("a:b")),
        (identity.manual_cause("k"), identity.requeue_cause(TASK, TASK)),
        (identity.delivery_identity(TASK, 0), identity.delivery_identity(TASK, 1)),
        (identity.run_identity(TASK), identity.delivery_identity(TASK, 0)),
    ],
)
def test_different_things_have_different_names(one: str, other: str) -> None:
    assert one != other


def test_a_source_with_a_colon_does_not_make_two_events_one() -> None:
    assert identity.event_cause("a:b", "c") != identity.event_cause("a", "b:c")


def test_a_key_and_its_text_are_the_same_entity() -> None:
    """A resolver may give a number where an event gave text."""
    assert identity.message_uuid(TASK, 7) == identity.message_uuid(TASK, "7")


def test_a_dead_letter_from_a_broker_is_known_by_its_message_its_queue_and_its_deaths() -> None:
    message = uuid4()
    names = {
        identity.broker_identity(message, 0, "q", deaths=1, body=b"a"),
        identity.broker_identity(message, 0, "q", deaths=1, body=b"b"),
        identity.broker_identity(message, 0, "q", deaths=2, body=b"a"),
        identity.broker_identity(message, 1, "q", deaths=1, body=b"a"),
        identity.broker_identity(message, 0, "r", deaths=1, body=b"a"),
        identity.broker_identity(None, 0, "q", deaths=1, body=b"a"),
        identity.broker_identity(None, 0, "q", deaths=1, body=b"b"),
    }

    assert len(names) == 6
