"""Proves the promises after a fault: from what the store holds, and from what the receivers logged themselves.

`violations` returns a sentence for each promise that was broken, with its number in the reliability rules (I1 to I10).
Nothing in here is computed by Oncue's own code.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid5

from tests.chaos.facts import Facts

SECOND = timedelta(seconds=1)
OPEN_RUNS = {"due", "queued", "running", "held", "settling"}
OPEN_DELIVERIES = {"waiting", "sending"}
REASONED = {"failed", "skipped", "expired", "cancelled"}
SKEW = timedelta(milliseconds=5)  # between this host's clock and its carried sample


@dataclass(frozen=True)
class Received:
    """One message as a receiver logged it. `accepted` is what it answered."""

    message_id: str
    run: str
    task: str
    key: str
    at: datetime
    due: datetime
    requeue: int = 0
    accepted: bool = True


@dataclass(frozen=True)
class Accepted:
    """An event that was answered with success."""

    source: str
    id: str
    type: str
    key: str


@dataclass
class Expected:
    """What the load was: who is concerned by each scheduled task (due each whole second), which event starts what.

    `followed` are the keys in the data of each followed task, with the moment at which each is due.
    """

    entities: dict[str, frozenset[str]] = field(default_factory=dict)
    subscribers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    accepted: list[Accepted] = field(default_factory=list)
    one_at_a_time: tuple[str, ...] = ()
    followed: dict[str, dict[str, datetime]] = field(default_factory=dict)


def violations(facts: Facts, received: Iterable[Received], expected: Expected) -> list[str]:
    """Return what was broken, empty when all promises were kept."""
    log = list(received)
    checks = (
        no_due_time_is_lost(facts, expected),
        no_event_is_lost(facts, expected),
        nothing_is_doubled(facts),
        counts_add_up(facts),
        everybody_was_reached(facts, log, expected),
        everybody_followed_was_reached(facts, log, expected),
        windows_follow_each_other(facts, expected),
        ids_are_stable(facts, log),
        nothing_is_early(facts, log),
        schedules_are_consistent(facts),
        attempts_are_limited(facts),
        nothing_is_stuck(facts),
        each_end_has_a_reason(facts),
        overlap_is_kept(facts, log, expected),
    )
    return [sentence for check in checks for sentence in check]


def no_due_time_is_lost(facts: Facts, expected: Expected) -> Iterator[str]:
    """I1: each whole second since the task was made has one run, or stands under one entry of the ledger."""
    for task in facts.tasks:
        if task["name"] not in expected.entities:
            continue
        schedule = next(one for one in facts.schedules if one["task_id"] == task["id"])
        runs = Counter(run["due_at"] for run in _scheduled(facts, task["id"]))
        entries = [entry for entry in facts.ledger if entry["task_id"] == task["id"]]
        due = list(_seconds(task["created_at"], schedule["last_due_at"]))
        if not due:
            yield f"I1 {task['name']}: no second was due: the test proves nothing"
        for moment in due:
            covered = runs[moment] + sum(entry["first_due_at"] <= moment <= entry["last_due_at"] for entry in entries)
            if covered != 1:
                yield f"I1 {task['name']}: {moment:%H:%M:%S} is covered {covered} times"
        for moment in set(runs) - set(due):
            yield f"I1 {task['name']}: a run at {moment} was never due"
        for entry in entries:
            count = sum(entry["first_due_at"] <= moment <= entry["last_due_at"] for moment in due)
            if count != entry["count"]:
                yield f"I1 {task['name']}: the ledger counts {entry['count']} where {count} were due"


def no_event_is_lost(facts: Facts, expected: Expected) -> Iterator[str]:
    """I1: each event that was answered with success is there, with one run of each task that it starts."""
    stored = {(event["source"], event["event_id"]) for event in facts.events}
    causes = Counter((facts.task_name(run["task_id"]), run["cause"]) for run in facts.runs)
    for event in expected.accepted:
        if (event.source, event.id) not in stored:
            yield f"I1 event {event.id}: answered with success, and not stored"
        for task in expected.subscribers.get(event.type, ()):
            if (count := causes[task, f"event:{event.source}:{event.id}"]) != 1:
                yield f"I1 event {event.id}: {count} runs of {task}"


def nothing_is_doubled(facts: Facts) -> Iterator[str]:
    """I2: one run for each cause of a task; one delivery a message and requeue; one dead letter an identity."""
    for what, keys in (
        ("runs", [(run["task_id"], run["cause"]) for run in facts.runs]),
        ("due times", [(run["task_id"], run["due_at"]) for run in facts.runs if _is_due_time(run)]),
        ("deliveries", [(one["run_id"], one["message_id"]) for one in facts.deliveries]),
        ("dead letters", [one["identity"] for one in facts.dead_letters]),
    ):
        for key, count in Counter(keys).items():
            if count > 1:
                yield f"I2 {count} {what} of {key}"


def counts_add_up(facts: Facts) -> Iterator[str]:
    """I3: whoever was resolved is confirmed, dead, dropped or open, in the run's counts as in its rows."""
    by_run = defaultdict(Counter[str])
    for delivery in facts.deliveries:
        by_run[delivery["run_id"]][delivery["state"]] += 1
    for run in facts.runs:
        tally = {name: run[name] for name in ("confirmed", "dead", "dropped", "open")}
        if run["resolved"] != sum(tally.values()) or min(tally.values()) < 0:
            yield f"I3 {_named(facts, run)}: resolved {run['resolved']}, but {tally}"
        states = by_run[run["id"]]
        if run["open"] != states["waiting"] + states["sending"]:
            yield f"I3 {_named(facts, run)}: {run['open']} open, but deliveries are {dict(states)}"
        if run["state"] == "done" and run["dead"]:
            yield f"I3 {_named(facts, run)}: done with {run['dead']} dead"


def everybody_was_reached(facts: Facts, log: list[Received], expected: Expected) -> Iterator[str]:
    """I3: in each run that ended well, whoever is concerned was handed over, or is a dead letter; and nobody else."""
    reached: dict[str, set[str]] = defaultdict(set)
    handed: dict[str, set[str]] = defaultdict(set)
    for one in log:
        handed[one.run].add(one.key)
        if one.accepted:
            reached[one.run].add(one.key)
    buried: dict[str, set[str]] = defaultdict(set)
    for letter in facts.dead_letters:
        if letter["run_uuid"]:
            buried[letter["run_uuid"]].add(str(letter["key_json"]))
    dropped: dict[int, set[str]] = defaultdict(set)
    for delivery in facts.deliveries:
        if delivery["state"] in ("expired", "cancelled", "unqualified"):
            dropped[delivery["run_id"]].add(str(delivery["key_json"]))
    for run in facts.runs:
        wanted = _concerned(facts, run, expected)
        if wanted is None:
            continue
        for key in handed[run["uuid"]] - wanted:
            yield f"I3 {_named(facts, run)}: {key} was handed over, and is not concerned"
        if run["state"] not in ("done", "partial"):
            continue
        for key in wanted - reached[run["uuid"]] - buried[run["uuid"]] - dropped[run["id"]]:
            yield f"I3 {_named(facts, run)}: {key} is lost"
        if run["resolved"] != len(wanted):
            yield f"I3 {_named(facts, run)}: resolved {run['resolved']} of {len(wanted)}"
        if run["confirmed"] > len(reached[run["uuid"]]):
            yield f"I3 {_named(facts, run)}: {run['confirmed']} confirmed, {len(reached[run['uuid']])} received"
    yield from _recovered(facts, log)


def everybody_followed_was_reached(facts: Facts, log: list[Received], expected: Expected) -> Iterator[str]:
    """I1, I3, I4: whoever is in a followed task's data was handed over, as one message and not early, or is buried."""
    for task, dues in expected.followed.items():
        uuid = next((one["uuid"] for one in facts.tasks if one["name"] == task), None)
        buried = {str(one["key_json"]) for one in facts.dead_letters if one["task_name"] == task}
        ids: dict[str, set[str]] = defaultdict(set)
        accepted: set[str] = set()
        for one in log:
            if one.task != task:
                continue
            ids[one.key].add(one.message_id)
            accepted |= {one.key} if one.accepted else set()
            if one.key not in dues:
                yield f"I3 {task}: {one.key} was handed over, and is not in the data"
            elif one.at < dues[one.key] - SKEW:
                yield f"I4 {task}: {one.key} came {dues[one.key] - one.at} early"
        if not dues:
            yield f"I1 {task}: nobody was in the data: the test proves nothing"
        for key, due in dues.items():
            known = str(uuid5(UUID(uuid), f"followed:{due.isoformat().replace('+00:00', 'Z')}:{key}"))
            if key not in accepted | buried:
                yield f"I1 {task}: {key}, due at {due:%H:%M:%S.%f}, is lost"
            if ids[key] - {known}:
                yield f"I3 {task}: {key} came as messages {ids[key]}, not {known}"


def windows_follow_each_other(facts: Facts, expected: Expected) -> Iterator[str]:
    """I1: the windows of a followed task meet, without a gap and without an overlap."""
    for task in facts.tasks:
        if task["name"] not in expected.followed:
            continue
        windows = sorted(
            (run["due_at"], run["previous_due_at"]) for run in _scheduled(facts, task["id"]) if _is_due_time(run)
        )
        for (end, _), (_, start) in pairwise(windows):
            if start != end:
                yield f"I1 {task['name']}: a window begins at {start}, where the last one ended at {end}"


def _recovered(facts: Facts, log: list[Received]) -> Iterator[str]:
    arrived = {(one.message_id, one.requeue) for one in log if one.accepted}
    for letter in facts.dead_letters:
        was_ours = letter["kind"] == "message" and letter["task_id"] is not None
        key = letter["message_id"], letter["requeue"]
        if letter["state"] == "recovered" and was_ours and key not in arrived:
            yield f"I3 dead letter of {letter['key_json']}: recovered, and never received again"


def ids_are_stable(facts: Facts, log: list[Received]) -> Iterator[str]:
    """I3: the id of a message is made of its run and key; a requeue keeps that of its dead letter."""
    letters = {letter["id"]: letter for letter in facts.dead_letters}
    runs = {run["uuid"]: run for run in facts.runs}
    for one in log:
        run = runs.get(one.run)
        if run is None:
            yield f"I3 {one.task}: received for run {one.run}, which does not exist"
            continue
        letter = letters.get(run["dead_letter_id"])
        if letter is not None and letter["message_id"]:
            known = letter["message_id"]
        elif run["is_window"]:
            continue  # its ids are made of task, due time and key: see `everybody_followed_was_reached`
        else:
            known = str(uuid5(UUID(letter["run_uuid"] if letter else one.run), one.key))
        if one.message_id != known:
            yield f"I3 {one.task}: {one.key} came as message {one.message_id}, not {known}"


def nothing_is_early(facts: Facts, log: list[Received]) -> Iterator[str]:
    """I4: no run is recorded or started, and no message received, before its due time."""
    for run in facts.runs:
        for name in ("asked_at", "started_at"):
            if run[name] is not None and run[name] < run["due_at"]:
                yield f"I4 {_named(facts, run)}: {name} {run['due_at'] - run[name]} early"
    for one in log:
        if one.at < one.due - SKEW:
            yield f"I4 {one.task}: {one.key} came {one.due - one.at} early"


def schedules_are_consistent(facts: Facts) -> Iterator[str]:
    """I5: the next time is later than the last, which is the last that has a run or an entry."""
    for schedule in facts.schedules:
        name = facts.task_name(schedule["task_id"])
        last, following = schedule["last_due_at"], schedule["next_at"]
        if schedule["state"] == "active" and following is None and "next" not in schedule["timing"]["schedule"]:
            yield f"I5 {name}: active without a next time"
        if last is not None and following is not None and following <= last:
            yield f"I5 {name}: next {following} is not after last {last}"
        known = [run["due_at"] for run in _scheduled(facts, schedule["task_id"])]
        known += [one["last_due_at"] for one in facts.ledger if one["task_id"] == schedule["task_id"]]
        if last is not None and known and max(known) != last:
            yield f"I5 {name}: last {last}, but the latest run or entry is {max(known)}"


def attempts_are_limited(facts: Facts) -> Iterator[str]:
    """I6: nothing was tried more often than its task allows; what died was claimed once more to end it."""
    limits = {
        (one["task_id"], one["version"]): one["definition"].get("retry", {}).get("attempts", 5)
        for one in facts.definitions
    }
    runs = {run["id"]: run for run in facts.runs}
    for run in facts.runs:
        limit = limits[run["task_id"], run["task_version"]] + (run["state"] == "failed")
        if run["attempts"] > limit:
            yield f"I6 {_named(facts, run)}: {run['attempts']} attempts, {limit} allowed"
    for delivery in facts.deliveries:
        run = runs.get(delivery["run_id"])
        if run is None:
            yield f"I2 delivery of {delivery['key_json']}: its run is gone"
            continue
        limit = limits[run["task_id"], run["task_version"]] + (delivery["state"] == "dead")
        if delivery["attempts"] > limit:
            yield f"I6 delivery of {delivery['key_json']}: {delivery['attempts']} attempts, {limit} allowed"


def nothing_is_stuck(facts: Facts) -> Iterator[str]:
    """I7: after settling nothing is open, no slot is held, and nothing is requeuing without a live requeue."""
    states = {run["id"]: run["state"] for run in facts.runs}
    for run in facts.runs:
        if run["state"] in OPEN_RUNS:
            yield f"I7 {_named(facts, run)}: still {run['state']}"
    for delivery in facts.deliveries:
        if delivery["state"] in OPEN_DELIVERIES:
            yield f"I7 delivery of {delivery['key_json']}: still {delivery['state']}"
    for task in facts.tasks:
        if task["slot"] is not None and states.get(task["slot"]) not in OPEN_RUNS:
            yield f"I7 {task['name']}: its slot is held by a run that is {states.get(task['slot'])}"
    live = {one["id"] for one in facts.requeues if one["state"] in ("canary", "running", "paused")}
    for letter in facts.dead_letters:
        if letter["state"] == "requeuing" and letter["requeue_id"] not in live:
            yield f"I7 dead letter {letter['uuid']}: requeuing, and its requeue is over"
    for requeue in facts.requeues:
        if requeue["id"] in live:
            yield f"I7 requeue {requeue['uuid']}: still {requeue['state']}"
        elif requeue["recovered"] + requeue["failed"] != requeue["sent"]:
            back = requeue["recovered"] + requeue["failed"]
            yield f"I7 requeue {requeue['uuid']}: {requeue['sent']} sent, {back} back"
    for schedule in facts.schedules:
        if (
            schedule["state"] == "active"
            and schedule["next_at"]
            and schedule["next_at"] < facts.now - timedelta(minutes=1)
        ):
            yield f"I7 {facts.task_name(schedule['task_id'])}: overdue since {schedule['next_at']}"


def each_end_has_a_reason(facts: Facts) -> Iterator[str]:
    """I10: whatever ended otherwise than well says why."""
    for run in facts.runs:
        if run["state"] in REASONED and not run["reason"]:
            yield f"I10 {_named(facts, run)}: {run['state']} without a reason"
        if run["state"] not in OPEN_RUNS and run["ended_at"] is None:
            yield f"I10 {_named(facts, run)}: {run['state']} without an end"
        if run["state"] in ("failed", "partial") and not _has_letter(facts, run):
            yield f"I10 {_named(facts, run)}: {run['state']} without a dead letter"
    for delivery in facts.deliveries:
        if delivery["state"] in ("dead", "expired", "cancelled", "unqualified") and not delivery["reason"]:
            yield f"I10 delivery of {delivery['key_json']}: {delivery['state']} without a reason"
    for letter in facts.dead_letters:
        if not letter["reason"] or (letter["state"] in ("discarded", "recovered") and not letter["ended_reason"]):
            yield f"I10 dead letter {letter['uuid']}: {letter['state']} without a reason"
    for schedule in facts.schedules:
        if schedule["state"] in ("stopped", "paused", "finished") and not schedule["reason"]:
            yield f"I10 {facts.task_name(schedule['task_id'])}: {schedule['state']} without a reason"
    for entry in facts.ledger:
        if not entry["reason"]:
            yield f"I10 ledger entry of {facts.task_name(entry['task_id'])}: no reason"


def overlap_is_kept(facts: Facts, log: list[Received], expected: Expected) -> Iterator[str]:
    """Of a task with a slot, no two runs hand over at once: the first messages of its runs do not interleave."""
    runs = {run["uuid"]: run for run in facts.runs}
    for task in expected.one_at_a_time:
        firsts: dict[tuple[str, str], Received] = {}
        for one in sorted(log, key=lambda one: one.at):
            run = runs.get(one.run)
            if one.task == task and run is not None and run["cause"].startswith("schedule:"):
                firsts.setdefault((one.run, one.key), one)
        order = [one.run for one in firsts.values()]
        blocks = [run for place, run in enumerate(order) if place == 0 or order[place - 1] != run]
        for run, count in Counter(blocks).items():
            if count > 1:
                yield f"overlap of {task}: run {run} handed over in {count} parts, with others between them"


def _has_letter(facts: Facts, run: dict[str, Any]) -> bool:
    if run["dead_letter_id"] is not None:
        return True
    return any(letter["run_uuid"] == run["uuid"] for letter in facts.dead_letters)


def _concerned(facts: Facts, run: dict[str, Any], expected: Expected) -> frozenset[str] | None:
    kind, _, cause = run["cause"].partition(":")
    if kind == "schedule":
        return expected.entities.get(facts.task_name(run["task_id"]))
    if kind == "event":
        keys = [event.key for event in expected.accepted if f"{event.source}:{event.id}" == cause]
        return frozenset(keys[:1]) if keys else None
    return None


def _scheduled(facts: Facts, task_id: int) -> list[dict[str, Any]]:
    return [run for run in facts.runs if run["task_id"] == task_id and run["cause"].startswith("schedule:")]


def _is_due_time(run: dict[str, Any]) -> bool:
    """Say whether a run is of the schedule's own due time, and not for rows that appeared late."""
    return run["cause"].startswith("schedule:") and ":late:" not in run["cause"]


def _seconds(after: datetime, until: datetime | None) -> Iterator[datetime]:
    """Each whole second in (after, until]: what `* * * * * *` means, in any zone."""
    if until is None:
        return
    moment = after.astimezone(UTC).replace(microsecond=0) + SECOND
    while moment <= until:
        yield moment
        moment += SECOND


def _named(facts: Facts, run: dict[str, Any]) -> str:
    return f"run {run['id']} of {facts.task_name(run['task_id'])} ({run['cause']})"
