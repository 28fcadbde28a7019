"""The table of moves: closed, every state reached, every end an end, and what SQL reads of it."""

from __future__ import annotations

from typing import get_args

import pytest

from oncue import model
from oncue.rules import states

KNOWN = {
    "task": model.TaskState,
    "schedule": model.ScheduleState,
    "run": model.RunState,
    "delivery": model.DeliveryState,
    "dead_letter": model.DeadLetterState,
    "requeue": model.RequeueState,
}
ENDS = {
    "task": {"removed"},
    "schedule": set(),
    "run": {"done", "partial", "failed", "skipped", "expired", "cancelled"},
    "delivery": {"delivered", "dead", "expired", "cancelled", "unqualified"},
    "dead_letter": {"recovered", "discarded"},
    "requeue": {"done", "stopped", "cancelled"},
    "cue": {"tombstone", "gone"},
}


@pytest.mark.parametrize("noun", KNOWN)
def test_the_table_and_the_model_know_the_same_states(noun: str) -> None:
    assert set(states.states(noun)) == set(get_args(KNOWN[noun]))


@pytest.mark.parametrize("noun", states.TABLES)
def test_every_state_is_reached_from_the_first(noun: str) -> None:
    reached, ahead = set[str](), {states.first(noun)}
    while ahead:
        reached |= ahead
        ahead = {end for (start, _), end in states.TABLES[noun].items() if start in reached} - reached

    assert reached == set(states.states(noun))


@pytest.mark.parametrize("noun", states.TABLES)
def test_nothing_leads_out_of_an_end_state(noun: str) -> None:
    assert set(states.ends(noun)) == ENDS[noun]


@pytest.mark.parametrize("noun", states.TABLES)
def test_a_verb_leads_to_one_state_or_to_where_it_began(noun: str) -> None:
    """So that `{to:noun.state.verb}` is right for every state in which a statement allows the verb."""
    for verb in {verb for _, verb in states.TABLES[noun]}:
        ends = {end for (start, known), end in states.TABLES[noun].items() if known == verb and end != start}
        assert len(ends) <= 1, verb


def test_a_move_that_the_table_does_not_have_leads_nowhere() -> None:
    assert states.move("run", "due", "claim") == "running"
    assert states.move("run", "done", "claim") is None


@pytest.mark.parametrize(
    ("name", "literals"),
    [
        ("run.claim", ("due", "running")),
        ("run.wake|skip", ("due", "queued")),
        ("run.ends", ("skipped", "cancelled", "done", "partial", "failed", "expired")),
        ("requeue.open", ("canary", "running", "paused")),
        ("schedule.rest", ("paused", "finished", "stopped")),
        ("run.nothing", ()),
    ],
)
def test_sql_reads_the_states_of_the_table(name: str, literals: tuple[str, ...]) -> None:
    assert states.literals(name) == literals


@pytest.mark.parametrize(
    ("start", "end", "leads"), [("running", "failed", True), ("running", "skipped", False), ("done", "done", False)]
)
def test_it_says_whether_one_state_leads_to_another(start: str, end: str, leads: bool) -> None:
    assert states.leads("run", start, end) is leads
