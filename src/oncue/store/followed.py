"""The verbs of followed schedules: windows that were fired, touches, asking for the next time, and late rows.

Of each there is one row beside its schedule. `touched` counts what made its next time uncertain, `answered` how much of
that the stored one knows of; `reach` is how far back the next look behind the horizon goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from oncue.model import Change, Key, Schedule, TaskId
from oncue.rules import followed, identity, states
from oncue.rules.firing import Firing
from oncue.rules.followed import NEVER, Followed, Span
from oncue.store import codec
from oncue.store.base import Row, Steps, Wake, ask


@dataclass(frozen=True, slots=True)
class Following:
    """Where a followed schedule stands. `fence` is the token of who asks, `look_at` that of who looks behind."""

    schedule: Schedule
    name: str
    touched: int
    answered: int
    fence: int
    ready_at: datetime | None
    seen_at: datetime
    asked_at: datetime | None
    answer_at: datetime | None
    failures: int
    failing_since: datetime | None
    reason: str | None
    reach: datetime
    look_at: datetime | None

    @property
    def task_id(self) -> TaskId:
        return self.schedule.task_id

    @property
    def horizon(self) -> datetime:
        """Return the end of the last window: what is due later is still to come."""
        assert self.schedule.decided_to is not None
        return self.schedule.decided_to

    @property
    def rule(self) -> Followed:
        rule = codec.read_followed(self.schedule.timing)
        assert rule is not None
        return rule


def begin(task_id: TaskId, *, horizon: datetime, is_active: bool, now: datetime) -> Steps[None]:
    """Begin to follow: nobody before the horizon is this schedule's."""
    yield ask("begin_followed", task_id=task_id, ready_at=now if is_active else None, reach=horizon, now=now)
    yield Wake("clock", now)


def go_on(schedule: Schedule, *, reach: datetime | None, now: datetime) -> Steps[None]:
    """Ask again after a change, or after a pause, which moves the reach with the horizon."""
    rule = codec.read_followed(schedule.timing)
    assert rule is not None
    is_active = schedule.state == "active"
    yield ask(
        "go_on_following",
        task_id=schedule.task_id,
        ready_at=now if is_active else None,
        reach=reach,
        look_at=now + rule.recheck if is_active else None,
        now=now,
    )
    yield Wake("clock", now)


def rest(task_id: TaskId) -> Steps[None]:
    """Neither ask nor look while a schedule is paused or stopped."""
    yield ask("rest_followed", task_id=task_id)


def end(task_id: TaskId) -> Steps[None]:
    """Follow no longer: the task is gone, or its schedule is of another kind."""
    yield ask("end_followed", task_id=task_id, never=NEVER)


def advance(fired: Sequence[Firing], *, now: datetime) -> Steps[None]:
    """Go on from windows that were just written, within their transaction: mark their runs, and raise `touched`."""
    rows: list[tuple[object, ...]] = []
    uuids = []
    for one in fired:
        rule = codec.read_followed(one.schedule.timing) if one.state == "active" else None
        look_at = now + rule.recheck if rule else None
        rows.append((one.schedule.task_id, look_at, followed.left_out(one), one.state == "active"))
        causes = [identity.schedule_cause(run.due_at) for run in one.runs]
        uuids += [identity.run_uuid(one.schedule.task_uuid, cause) for cause in causes]
    if uuids:
        yield ask("mark_windows", ids=uuids)
    yield ask("advance_followed", rows=rows, now=now)
    yield Wake("clock", now)


def touch(task_ids: Collection[TaskId], *, now: datetime) -> Steps[None]:
    """Say that the next times of these tasks may have changed; they stand until they are asked for."""
    touched = yield ask("touch_followed", ids=sorted(task_ids), now=now)
    if touched:
        yield Wake("clock", now)


def claim_asks(*, now: datetime, until: datetime, limit: int) -> Steps[list[Following]]:
    """Claim schedules whose next time is to be asked for, until `until`; each for one clock at a time."""
    rows = yield ask("claim_asks", now=now, until=until, limit=limit)
    return (yield from _read([row["task_id"] for row in rows]))


def claim_looks(*, now: datetime, until: datetime, limit: int) -> Steps[list[Following]]:
    """Claim schedules that are to be looked behind the horizon of, until `until`."""
    rows = yield ask("claim_looks", now=now, until=until, limit=limit)
    return (yield from _read([row["task_id"] for row in rows]))


def renew_ask(following: Following, *, until: datetime) -> Steps[bool]:
    """Hold the claim of one who asks for longer; say whether it still is held."""
    return bool((yield ask("renew_ask", task_id=following.task_id, fence=following.fence, until=until)))


def renew_look(following: Following, *, until: datetime) -> Steps[bool]:
    return bool((yield ask("renew_look", task_id=following.task_id, held=following.look_at, until=until)))


def answer(following: Following, moment: datetime | None, *, now: datetime) -> Steps[bool]:
    """Write the next time, None for none; say whether it stands.

    It does only where the horizon is as it was asked with, and nothing newer was answered.
    """
    schedule = yield from _lock(following.task_id)
    rule, touched = following.rule, following.touched
    if schedule is None or schedule.state != "active" or schedule.decided_to != following.horizon:
        yield ask("release_ask", task_id=following.task_id, fence=following.fence, now=now)
        yield Wake("clock", now)
        return False
    rows = yield ask(
        "answer_followed",
        task_id=following.task_id,
        fence=following.fence,
        touched=touched,
        answer_at=moment,
        recheck_at=now + rule.recheck,
        now=now,
    )
    if not rows:
        return False
    if moment is not None:
        misfire = codec.read_timing(schedule.timing).misfire
        moment = followed.due_of(moment, rule, misfire, seen_at=following.seen_at, now=now)
    if moment != schedule.next_at:
        yield ask("move_next", task_id=following.task_id, next_at=moment)
        if moment is not None:
            yield Wake("clock", moment)
    if following.failures:
        yield Change("followed", following.name, "answered")
    return True


def fail_ask(following: Following, reason: str, *, now: datetime) -> Steps[None]:
    """Note that the next time could not be read. No horizon moves; it is asked again after a while."""
    ready_at = followed.ask_again_at(following.failures + 1, following.rule, now=now)
    why = codec.plain_text(reason)
    rows = yield ask(
        "fail_ask", task_id=following.task_id, fence=following.fence, ready_at=ready_at, reason=why, now=now
    )
    if rows and rows[0]["failures"] == 1:
        yield Change("followed", following.name, "unanswered", why)


def release(following: Following, *, now: datetime) -> Steps[None]:
    """Give a claim back: who asked was interrupted."""
    yield ask("release_ask", task_id=following.task_id, fence=following.fence, now=now)
    yield Wake("clock", now)


def barred(following: Following) -> Steps[tuple[list[Span], list[Span]]]:
    """Return the windows behind the horizon that no look enters, and those of them that are still open."""
    rows = yield ask("read_barred", task_id=following.task_id, after=following.reach)
    return [_span(row) for row in rows], [_span(row) for row in rows if row["state"] in states.literals("run.open")]


def record_look(following: Following, late: Sequence[Span], *, still_open: Sequence[Span], now: datetime) -> Steps[int]:
    """Write a look behind the horizon: a run for each span where somebody was not handed over. Answer how many."""
    schedule = yield from _lock(following.task_id)
    if schedule is None or schedule.state != "active" or schedule.decided_to is None:
        return 0
    rule, horizon = following.rule, following.horizon
    reach = followed.reach_after(following.reach, rule, horizon=horizon, still_open=[*still_open, *late], now=now)
    look_at = now + rule.recheck if reach < schedule.decided_to else None
    rows = yield ask(
        "record_look",
        task_id=following.task_id,
        held=following.look_at,
        look_at=look_at,
        reach=reach,
        made=len(late),
    )
    if not rows:
        return 0
    for number, (start, until) in enumerate(late, rows[0]["late"] - len(late) + 1):
        yield from _make_late(schedule, number, start=start, until=until, now=now)
    if late:
        yield Wake("dispatcher", now)
        yield Change("run", "", "due", facts={"count": len(late)})
    return len(late)


def fail_look(following: Following, reason: str, *, now: datetime) -> Steps[None]:
    """Look again at the next recheck: its rows could not be read."""
    look_at = now + following.rule.recheck
    yield ask("fail_look", task_id=following.task_id, held=following.look_at, look_at=look_at)
    yield Change("followed", following.name, "unseen", codec.plain_text(reason))


def handed_over(task_id: TaskId, pairs: Sequence[tuple[Key, datetime]]) -> Steps[set[tuple[str, datetime]]]:
    """Return those of (key, due time) that were handed over already, keys as text."""
    if not pairs:
        return set()
    rows = yield ask("read_handed_over", task_id=task_id, rows=_texts(pairs))
    return {(row["key_text"], codec.known_time(row["due_at"])) for row in rows}


def note_handed_over(task_id: TaskId, pairs: Sequence[tuple[Key, datetime]]) -> Steps[None]:
    """Keep whom a page handed over, within the transaction of its checkpoint."""
    if pairs:
        yield ask("insert_handed_over", task_id=task_id, rows=sorted(_texts(pairs)))


def next_ready() -> Steps[datetime | None]:
    """Return when the next ask or look is due."""
    rows = yield ask("next_following")
    return min((at for row in rows if (at := codec.as_time(row["ready_at"]))), default=None)


def of(task_id: TaskId) -> Steps[Following | None]:
    """Return where the followed schedule of a task stands, None where it has none."""
    found = yield from _read([task_id])
    return found[0] if found else None


def every() -> Steps[dict[TaskId, Following]]:
    """Return all followed schedules by task: for listings."""
    rows = yield ask("list_following")
    return {one.task_id: one for one in _nouns(rows)}


def horizon_of(task_id: TaskId) -> Steps[datetime | None]:
    """Return the horizon of a task, None where its schedule is not followed."""
    found = yield from of(task_id)
    return found.horizon if found else None


def unanswered(*, limit: int = 100) -> Steps[list[tuple[str, str, datetime]]]:
    """Return (task, reason, since) of the followed schedules whose next time cannot be read."""
    rows = yield ask("list_unanswered", limit=limit)
    return [(row["name"], row["reason"] or "", codec.known_time(row["failing_since"])) for row in rows]


def sweep(*, limit: int) -> Steps[int]:
    """Delete what no window and no look can reach any more; answer how many rows went."""
    gone = 0
    for row in (yield ask("find_unreached", limit=limit)):
        until = codec.known_time(row["until"])
        gone += len((yield ask("delete_handed_over", task_id=row["task_id"], until=until)))
    return gone + len((yield ask("delete_ended_followed", never=NEVER)))


def _make_late(schedule: Schedule, number: int, *, start: datetime, until: datetime, now: datetime) -> Steps[None]:
    cause = identity.late_cause(until, number)
    overlap = codec.read_timing(schedule.timing).overlap
    yield ask(
        "insert_late_run",
        uuid=identity.run_uuid(schedule.task_uuid, cause),
        task_id=schedule.task_id,
        task_version=schedule.task_version,
        cause=cause,
        due_at=until,
        previous_due_at=start,
        overlap=None if overlap == "allow" else overlap,
        now=now,
    )


def _lock(task_id: TaskId) -> Steps[Schedule | None]:
    rows = yield ask("lock_schedule", task_id=task_id)
    return codec.read_schedule(rows[0]) if rows else None


def _read(task_ids: Sequence[int]) -> Steps[list[Following]]:
    if not task_ids:
        return []
    rows = yield ask("read_following", ids=list(task_ids))
    return _nouns(rows)


def _nouns(rows: Iterable[Row]) -> list[Following]:
    """Return the rows whose schedule is followed: one that is of another kind by now has left its row behind."""
    found = []
    for row in rows:
        schedule = codec.read_schedule(row)
        if codec.read_followed(schedule.timing) is not None and schedule.decided_to is not None:
            found.append(_noun(row, schedule))
    return found


def _noun(row: Row, schedule: Schedule) -> Following:
    return Following(
        schedule=schedule,
        name=row["name"],
        touched=row["touched"],
        answered=row["answered"],
        fence=row["fence"],
        ready_at=codec.as_time(row["ready_at"]),
        seen_at=codec.known_time(row["seen_at"]),
        asked_at=codec.as_time(row["asked_at"]),
        answer_at=codec.as_time(row["answer_at"]),
        failures=row["failures"],
        failing_since=codec.as_time(row["failing_since"]),
        reason=row["why"],
        reach=codec.known_time(row["reach"]),
        look_at=codec.as_time(row["look_at"]),
    )


def _span(row: Row) -> Span:
    end = codec.known_time(row["due_at"])
    return codec.as_time(row["previous_due_at"]) or end, end


def _texts(pairs: Sequence[tuple[Key, datetime]]) -> list[tuple[Any, ...]]:
    return [(str(key), due_at) for key, due_at in pairs]
