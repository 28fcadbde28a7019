"""All moves of all state machines: `(state, move) -> state`. SQL and engine know no other; docs draw them from here.

The sets below name the states that statements ask for: `store/sql.py` writes them into SQL as literals.
"""

from __future__ import annotations

from typing import Final

Moves = dict[tuple[str, str], str]

SCHEDULE: Final[Moves] = {
    ("active", "fire"): "active",
    ("active", "pause"): "paused",
    ("active", "finish"): "finished",
    ("active", "stop"): "stopped",
    ("active", "change"): "active",
    ("paused", "resume"): "active",
    ("paused", "finish"): "finished",
    ("paused", "change"): "paused",
    ("stopped", "change"): "active",
    ("finished", "change"): "active",
    ("finished", "revive"): "active",
}

RUN: Final[Moves] = {
    ("due", "claim"): "running",
    ("due", "queue"): "queued",
    ("due", "skip"): "skipped",
    ("due", "hold"): "held",
    ("due", "cancel"): "cancelled",
    ("queued", "wake"): "due",
    ("queued", "cancel"): "cancelled",
    ("running", "claim"): "running",
    ("running", "give_back"): "due",
    ("running", "settle"): "settling",
    ("running", "finish"): "done",
    ("running", "part"): "partial",
    ("running", "fail"): "failed",
    ("running", "expire"): "expired",
    ("running", "cancel"): "cancelled",
    ("held", "release"): "due",
    ("held", "cancel"): "cancelled",
    ("settling", "finish"): "done",
    ("settling", "part"): "partial",
    ("settling", "cancel"): "cancelled",
}

DELIVERY: Final[Moves] = {
    ("waiting", "claim"): "sending",
    ("waiting", "cancel"): "cancelled",
    ("sending", "claim"): "sending",
    ("sending", "give_back"): "waiting",
    ("sending", "confirm"): "delivered",
    ("sending", "bury"): "dead",
    ("sending", "expire"): "expired",
    ("sending", "drop"): "unqualified",
    ("sending", "cancel"): "cancelled",
}

DEAD_LETTER: Final[Moves] = {
    ("open", "requeue"): "requeuing",
    ("open", "discard"): "discarded",
    ("open", "quarantine"): "quarantined",
    ("quarantined", "release"): "open",
    ("quarantined", "discard"): "discarded",
    ("requeuing", "confirm"): "recovered",
    ("requeuing", "reopen"): "open",
    ("requeuing", "discard"): "discarded",
}

REQUEUE: Final[Moves] = {
    ("canary", "pass"): "running",
    ("canary", "finish"): "done",
    ("canary", "stop"): "stopped",
    ("canary", "cancel"): "cancelled",
    ("running", "pause"): "paused",
    ("running", "finish"): "done",
    ("running", "stop"): "stopped",
    ("running", "cancel"): "cancelled",
    ("paused", "resume"): "running",
    ("paused", "cancel"): "cancelled",
}

CUE: Final[Moves] = {
    ("waiting", "replace"): "waiting",
    ("waiting", "cancel"): "tombstone",
    ("waiting", "take"): "taken",
    ("taken", "take"): "taken",
    ("taken", "finish"): "gone",
}

TASK: Final[Moves] = {
    ("active", "pause"): "paused",
    ("paused", "extend"): "paused",
    ("active", "remove"): "removed",
    ("paused", "resume"): "active",
    ("paused", "remove"): "removed",
}

TABLES: Final[dict[str, Moves]] = {
    "task": TASK,
    "schedule": SCHEDULE,
    "run": RUN,
    "delivery": DELIVERY,
    "dead_letter": DEAD_LETTER,
    "requeue": REQUEUE,
    "cue": CUE,
}


# Runs whose window no look behind the horizon enters: it is theirs still, or ended by a failure, a rule or a person.
BARRED: Final = ("due", "queued", "running", "held", "failed", "expired", "cancelled")


def move(noun: str, state: str, verb: str) -> str | None:
    """Return the state that `verb` leads to, or None where the table does not allow it."""
    return TABLES[noun].get((state, verb))


def states(noun: str) -> tuple[str, ...]:
    """Return all states of a noun, in the order of the table."""
    return tuple(dict.fromkeys(state for (start, _), end in TABLES[noun].items() for state in (start, end)))


def first(noun: str) -> str:
    """Return the state in which a noun begins: the first of its table."""
    return states(noun)[0]


def before(noun: str, *verbs: str) -> tuple[str, ...]:
    """Return the states in which any of `verbs` is allowed."""
    return tuple(dict.fromkeys(start for (start, verb) in TABLES[noun] if verb in verbs))


def leads(noun: str, start: str, end: str) -> bool:
    """Say whether any move leads from one state to the other."""
    return any(known == start and reached == end for (known, _), reached in TABLES[noun].items())


def ends(noun: str) -> tuple[str, ...]:
    """Return the states that nothing leads out of."""
    starts = {start for start, _ in TABLES[noun]}
    return tuple(state for state in states(noun) if state not in starts)


def literals(name: str) -> tuple[str, ...]:
    """Return the states for `{state in …}` in SQL: `run.claim|skip` where a move is allowed, `run.ends` where none is.

    `run.open` are all but the ends, `schedule.rest` all but the first, `run.barred` those of BARRED.
    """
    noun, _, verbs = name.partition(".")
    if name == "run.barred":
        return BARRED
    if verbs == "ends":
        return ends(noun)
    if verbs == "rest":
        return states(noun)[1:]
    if verbs == "open":
        return tuple(state for state in states(noun) if state not in ends(noun))
    return before(noun, *verbs.split("|"))
