"""Followed schedules: how they are written, what a firing takes, and how far back a look goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from oncue.definition import Misfire
from oncue.errors import TriggerError
from oncue.model import Schedule, TaskId
from oncue.rules import followed
from oncue.rules.followed import Followed, PythonNext, Span, SqlNext

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
NEXT: dict[str, Any] = {"sql": "select min(at) from cue where at > :after", "source": "app"}
RULE = followed.read_followed({"next": NEXT})


def at(seconds: float = 0, *, minutes: float = 0, hours: float = 0) -> datetime:
    return START + timedelta(seconds=seconds, minutes=minutes, hours=hours)


def schedule(next_at: datetime | None, *, last: datetime | None = None, since: datetime = START) -> Schedule:
    return Schedule(TaskId(1), UUID(int=1), 1, 7, next_at, last, "{}", since=since)


def test_what_is_left_out_has_its_default() -> None:
    assert (RULE.next, RULE.zone.key) == (SqlNext(NEXT["sql"], "app"), "UTC")
    assert (RULE.recheck, RULE.lookback) == (timedelta(minutes=1), timedelta(hours=1))


def test_all_of_it_may_be_said() -> None:
    spec = {"next": {"python": "shop.times:next_due"}, "recheck": "30s", "lookback": "0s", "zone": "Europe/Athens"}

    read = followed.read_followed(spec)

    assert (read.next, read.zone.key) == (PythonNext("shop.times:next_due"), "Europe/Athens")
    assert (read.recheck, read.lookback) == (timedelta(seconds=30), timedelta())


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"next": "select 1"}, "next: 'select 1' is not a table."),
        ({"next": {}}, "next: it says nothing."),
        ({"next": {"sql": "select 1"}}, "next: it says sql."),
        ({"next": NEXT | {"python": "a:b"}}, "next: it says python and source and sql."),
        ({"next": NEXT | {"sql": " "}}, "next: sql is empty."),
        ({"next": NEXT | {"source": 3}}, "next: source = 3 is not text."),
        ({"next": {"python": "shop.times"}}, 'next: python = "shop.times" is no place.'),
        ({"next": {"python": "shop times:next"}}, 'next: python = "shop times:next" is no place.'),
        ({"next": NEXT, "recheck": 60}, "recheck: 60 is not text."),
        ({"next": NEXT, "recheck": "soon"}, 'recheck: "soon" is not a duration.'),
        ({"next": NEXT, "recheck": "0.5s"}, "recheck: 500ms is too short."),
        ({"next": NEXT, "lookback": "-1h"}, 'lookback: "-1h" is not a duration.'),
        ({"next": NEXT, "zone": "Europe/Nowhere"}, "Europe/Nowhere"),
        ({"next": NEXT, "cron": "* * * * *"}, "cron: a followed schedule has no such key. Its keys are next,"),
        ({"next": NEXT, "start": "2026-01-01"}, "start: a followed schedule has no such key."),
        ({"next": NEXT, "end": "2026-01-01"}, "end: a followed schedule has no such key."),
        ({"next": NEXT, "jitter": "5s"}, "jitter: a followed schedule has no such key."),
        ({"next": NEXT, "max_runs": 3}, "max_runs: a followed schedule has no such key."),
        ({"next": NEXT, "rechek": "1m"}, 'rechek: a followed schedule has no such key. Did you mean "recheck"?'),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_key_and_the_remedy(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(TriggerError) as refused:
        followed.read_followed(spec)

    assert words in str(refused.value)


def test_a_sentence_says_where_the_next_time_is_read() -> None:
    assert followed.describe(RULE) == "Followed: the next time is read by a query from app."
    assert "shop.times:next_due in Python" in followed.describe(
        followed.read_followed({"next": {"python": "shop.times:next_due"}})
    )


@pytest.mark.parametrize("late", [0, 0.5, 60])
def test_on_time_a_window_ends_at_the_due_time_and_begins_at_the_horizon(late: float) -> None:
    fired = followed.decide(schedule(at(90), last=at(30)), Misfire(), now=at(90 + late))

    (run,) = fired.runs
    assert (run.previous_due_at, run.due_at, run.caught_up, run.held) == (at(30), at(90), False, False)
    assert (fired.next_at, fired.last_due_at, fired.state, fired.ledger) == (None, at(90), "active", ())
    assert followed.left_out(fired) is None


@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_after_an_outage_one_window_ends_now(catch_up: Any) -> None:
    fired = followed.decide(schedule(at(90)), Misfire(catch_up=catch_up, hold=True), now=at(151))

    (run,) = fired.runs
    assert (run.previous_due_at, run.due_at, run.caught_up, run.held) == (START, at(151), True, True)
    assert (fired.last_due_at, fired.ledger) == (at(151), ())


def test_who_is_older_than_max_age_is_left_out_with_a_row() -> None:
    policy = Misfire(max_age=timedelta(minutes=10))

    fired = followed.decide(schedule(at(90)), policy, now=at(minutes=30))

    (run,), (entry,) = fired.runs, fired.ledger
    assert (run.previous_due_at, run.due_at) == (at(minutes=20), at(minutes=30))
    assert (entry.first_due_at, entry.last_due_at, entry.verdict) == (at(90), at(minutes=20), "missed")
    assert "0:10:00" in entry.reason
    assert followed.left_out(fired) == at(minutes=20)


def test_nobody_is_left_out_who_is_exactly_as_old_as_is_caught_up() -> None:
    fired = followed.decide(schedule(at(90)), Misfire(max_age=timedelta(seconds=100)), now=at(189.9))

    assert fired.ledger == ()
    assert fired.runs[0].previous_due_at == START


def test_where_nothing_is_caught_up_the_horizon_stops_where_the_grace_begins() -> None:
    """Who was due within the grace is asked for again, and is on time."""
    fired = followed.decide(schedule(at(90)), Misfire(catch_up="none"), now=at(minutes=30))

    (entry,) = fired.ledger
    assert (fired.runs, fired.next_at, fired.state) == ((), None, "active")
    assert fired.last_due_at == entry.last_due_at == followed.left_out(fired) == at(minutes=29)
    assert entry.reason == "missed by more than its grace"


@pytest.mark.parametrize(
    ("next_at", "first"), [(None, at(60)), (at(hours=9), at(60)), (at(30), at(30)), (at(90), at(90))]
)
def test_a_rest_is_one_row_from_the_first_that_is_known_to_have_passed(next_at: Any, first: datetime) -> None:
    entry = followed.passed(schedule(next_at), since=at(60), now=at(600), verdict="skipped", reason="paused: x")

    assert (entry.first_due_at, entry.last_due_at, entry.count) == (first, at(600), 1)


@pytest.mark.parametrize(
    ("answer", "seen", "due"),
    [
        (at(500), 90, at(500)),  # to come
        (at(99), 90, at(99)),  # just passed: its exact time
        (at(40), 90, at(40)),  # as old as the grace
        (at(39.9), 90, at(100)),  # older: late data, and no misfire
        (at(39.9), -20, at(100)),  # asked a recheck and a grace ago
        (at(39.9), -20.1, at(39.9)),  # nobody asked for longer than that: an outage, for the policies
        (at(99), -999, at(99)),
    ],
)
def test_an_answer_is_due_at_its_time_or_now(answer: datetime, seen: float, due: datetime) -> None:
    assert followed.due_of(answer, RULE, Misfire(), seen_at=at(seen), now=at(100)) == due


def test_a_pause_between_asks_in_vain_grows_up_to_the_recheck() -> None:
    pauses = [(followed.ask_again_at(n, RULE, now=START) - START).total_seconds() for n in (1, 2, 3, 6, 7, 5000)]

    assert pauses == [1, 2, 4, 32, 60, 60]


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        ([], [(0, 100)]),
        ([(20, 30)], [(0, 20), (30, 100)]),
        ([(30, 40), (10, 20), (20, 30)], [(0, 10), (40, 100)]),
        ([(-50, 10), (90, 200)], [(10, 90)]),
        ([(10, 60), (20, 30)], [(0, 10), (60, 100)]),
        ([(-5, 100)], []),
        ([(100, 200)], [(0, 100)]),
        ([(-20, -10)], [(0, 100)]),
    ],
)
def test_free_spans_are_what_is_in_none_that_is_taken(taken: list[Any], free: list[Any]) -> None:
    spans: list[Span] = [(at(start), at(end)) for start, end in taken]

    assert followed.free_spans(at(0), at(100), spans) == [(at(start), at(end)) for start, end in free]


def test_there_is_nothing_free_where_there_is_nothing() -> None:
    assert followed.free_spans(at(5), at(5), []) == []


@pytest.mark.parametrize(
    ("now", "horizon", "still_open", "reach"),
    [
        (100, 90, [], 0),  # all of it may still appear
        (3700, 90, [], 90),  # the horizon
        (3650, 90, [], 50),
        (3700, 3650, [], 100),
        (3700, 3650, [(60, 70), (40, 50)], 40),  # what is open holds it
        (3700, 3650, [(-5, 50)], 0),  # it never goes back
    ],
)
def test_a_look_reaches_back_as_far_as_rows_may_still_appear(
    now: float, horizon: float, still_open: list[Any], reach: float
) -> None:
    rule: Followed = RULE
    spans: list[Span] = [(at(start), at(end)) for start, end in still_open]

    assert followed.reach_after(at(0), rule, horizon=at(horizon), still_open=spans, now=at(now)) == at(reach)
