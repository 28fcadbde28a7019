"""Every (state, move) pair of the table, on any store: a legal one moves, an illegal one changes nothing.

The pairs are generated from `rules/states.py`. A move that no verb carries out yet stands in ELSEWHERE.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from oncue.errors import Conflict, NotFound
from oncue.rules import states
from oncue.store.base import Store
from oncue.testing.conformance.stores import messages, tasks_and_runs
from oncue.testing.conformance.stores.subject import Subject

# No verb leads into these states yet, or out of them; a run is held from its first moment.
ELSEWHERE: dict[str, dict[str, set[str]]] = {
    "task": {"states": set(), "moves": set()},
    "schedule": {"states": set(), "moves": set()},
    "run": {"states": set(), "moves": {"hold"}},
    "delivery": {"states": set(), "moves": set()},
    "dead_letter": {"states": {"quarantined"}, "moves": {"quarantine", "release"}},
    "requeue": {"states": set(), "moves": set()},
}
SUBJECTS: dict[str, type[Subject]] = {
    "task": tasks_and_runs.TaskSubject,
    "schedule": tasks_and_runs.ScheduleSubject,
    "run": tasks_and_runs.RunSubject,
    "delivery": messages.DeliverySubject,
    "dead_letter": messages.DeadLetterSubject,
    "requeue": messages.RequeueSubject,
}


def pairs() -> Iterator[tuple[str, str, str]]:
    """Yield (noun, state, move) for every state and every move of each noun, legal or not."""
    for noun, elsewhere in ELSEWHERE.items():
        moves = dict.fromkeys(move for _, move in states.TABLES[noun])
        for state in states.states(noun):
            for move in moves:
                if state not in elsewhere["states"] and move not in elsewhere["moves"]:
                    yield noun, state, move


class MoveConformance:
    """The table of moves."""

    def test_every_noun_of_the_table_is_walked(self) -> None:
        assert set(states.TABLES) - set(ELSEWHERE) == {"cue"}

    @pytest.mark.parametrize(("noun", "state", "move"), list(pairs()))
    async def test_a_pair_moves_where_the_table_says_so_and_nowhere_else(
        self, store: Store, noun: str, state: str, move: str
    ) -> None:
        subject = SUBJECTS[noun](store, move)
        await subject.bring_to(state)
        before = await subject.state()

        with contextlib.suppress(Conflict, NotFound):
            await subject.attempt(move)

        assert before == state
        assert await subject.state() == (states.move(noun, state, move) or state)
