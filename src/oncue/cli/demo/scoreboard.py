"""The demo's scoreboard: what Oncue's store says, held against what the worker wrote down itself.

The due times are counted here, from the moment that the task was made; nothing of the engine's is asked for them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from oncue.cli.demo.children import Webhook
from oncue.model import Run
from oncue.rules import states
from oncue.rules.firing import LedgerEntry


@dataclass(frozen=True, slots=True)
class Evidence:
    """What both sides say at one quiet moment, `until`.

    `runs` are all runs; `scheduled_id` is the task with a schedule, made at `since`, due every `period`. `told` are the
    keys of the events that were taken.
    """

    log: Sequence[Webhook]
    runs: Sequence[Run]
    ledger: Sequence[LedgerEntry]
    scheduled_id: int
    since: datetime
    until: datetime
    period: timedelta
    told: Collection[str]


@dataclass(frozen=True, slots=True)
class Score:
    """The figures, and in `wrong` a sentence for each thing that does not fit together."""

    due_times: int
    on_time: int
    caught_up: int
    skipped: int
    coalesced: int
    events: int
    confirmed: int
    repeated: int
    refused: int
    dead: int
    recovered: int
    lost: int
    lateness: list[timedelta]
    wrong: list[str]

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the scoreboard as (name, value, remark)."""
        runs = self.on_time + self.caught_up + self.skipped
        late = sorted(lateness / timedelta(milliseconds=1) for lateness in self.lateness) or [0.0]
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        agrees = "" if self.wrong else "; the worker's log has every one"
        return [
            ("due times", str(self.due_times), "counted from the task file; each has a run or is in the ledger"),
            ("runs", str(runs), f"{self.on_time} on time, {self.caught_up} caught up{skipped}"),
            ("coalesced", str(self.coalesced), "missed, and covered by a later run: so says the policy"),
            ("events", str(self.events), "each of them fired its task once"),
            ("entities", str(self.confirmed), f"delivered, says Oncue's store{agrees}"),
            ("repeated", str(self.repeated), "arrived twice under one message id: the page that the kill cut short"),
            ("dead letters", str(self.dead), f"after {self.refused} refusals; recovered: {self.recovered}"),
            ("lost", str(self.lost), "confirmed, taken or due, and not found again"),
            (
                "lateness",
                f"p50 {median(late):.0f} ms, max {late[-1]:.0f} ms",
                "from the due time to the first webhook at the worker",
            ),
        ]


def count(evidence: Evidence) -> Score:
    """Hold the two sides against each other."""
    arrived: dict[str, set[str]] = defaultdict(set)
    for line in evidence.log:
        if line.accepted:
            arrived[line.run].add(line.message)
    scheduled = [run for run in evidence.runs if run.task_id == evidence.scheduled_id and run.kind == "schedule"]
    unsent, wrong_runs = _unsent(evidence.runs, arrived)
    unfired, wrong_times = _unfired(evidence, scheduled)
    unheard, wrong_events = _unheard(evidence)
    ids = Counter(line.message for line in evidence.log if line.accepted)
    return Score(
        due_times=len(due_times(evidence.since, evidence.period, evidence.until)),
        on_time=sum(run.state != "skipped" and not run.caught_up for run in scheduled),
        caught_up=sum(run.caught_up for run in scheduled),
        skipped=sum(run.state == "skipped" for run in scheduled),
        coalesced=sum(entry.count for entry in evidence.ledger if entry.verdict == "coalesced"),
        events=len(evidence.told),
        confirmed=sum(run.confirmed for run in evidence.runs),
        repeated=sum(times - 1 for times in ids.values()),
        refused=sum(not line.accepted for line in evidence.log),
        dead=sum(run.dead for run in evidence.runs if run.dead_letter_id is None),
        recovered=sum(run.confirmed for run in evidence.runs if run.dead_letter_id is not None),
        lost=unsent + unfired + unheard,
        lateness=_lateness(evidence, scheduled),
        wrong=[*wrong_runs, *wrong_times, *wrong_events],
    )


def due_times(since: datetime, period: timedelta, until: datetime) -> list[datetime]:
    """Return the moments every `period` after `since`, by plain counting."""
    return [since + period * step for step in range(1, (until - since) // period + 1)]


def _unsent(runs: Sequence[Run], arrived: dict[str, set[str]]) -> tuple[int, list[str]]:
    """Count entities that Oncue says were delivered and the worker has not; and those whose end nobody knows."""
    lost, wrong = 0, []
    for run in runs:
        missing = run.confirmed - len(arrived[str(run.uuid)])
        if missing > 0:
            wrong.append(f"run {run.uuid}: {run.confirmed} confirmed, and {missing} of them not in the worker's log")
            lost += missing
        endless = run.resolved - run.confirmed - run.dead - run.dropped
        if endless or run.state not in states.ends("run"):
            wrong.append(f"run {run.uuid} is {run.state}: {endless} of {run.resolved} entities have not ended")
            lost += max(endless, 0)
    return lost, wrong


def _unfired(evidence: Evidence, scheduled: Sequence[Run]) -> tuple[int, list[str]]:
    """Count due times with neither a run nor a line in the ledger, or with more than one of them."""
    fired = Counter(run.due_at for run in scheduled)
    lost, wrong = 0, []
    for due in due_times(evidence.since, evidence.period, evidence.until):
        found = fired[due] + sum(entry.first_due_at <= due <= entry.last_due_at for entry in evidence.ledger)
        if found != 1:
            wrong.append(f"the due time {due:%H:%M:%S.%f}Z has {found} runs or lines in the ledger, not one")
            lost += found == 0
    return lost, wrong


def _unheard(evidence: Evidence) -> tuple[int, list[str]]:
    """Count events that were taken and whose customer the worker never heard of."""
    caused = Counter(run.event.key for run in evidence.runs if run.event and run.dead_letter_id is None)
    ended = {str(run.uuid): run.event.key for run in evidence.runs if run.event}
    heard = {ended.get(line.run) for line in evidence.log if line.accepted}
    unheard = [key for key in evidence.told if key not in heard]
    twice = [key for key in evidence.told if caused[key] > 1]
    wrong = [f"the event of {key} was taken, and the worker's log has nothing of it" for key in unheard]
    return len(unheard), wrong + [f"the event of {key} made {caused[key]} runs" for key in twice]


def _lateness(evidence: Evidence, scheduled: Sequence[Run]) -> list[timedelta]:
    """Return how long after its due time each run that was on time first reached the worker."""
    first: dict[str, datetime] = {}
    for line in evidence.log:
        first[line.run] = min(line.at, first.get(line.run, line.at))
    runs = [run for run in scheduled if not run.caught_up and str(run.uuid) in first]
    return [first[str(run.uuid)] - run.due_at for run in runs]
