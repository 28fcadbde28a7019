"""What `oncue simulate` prints: the firings, a summary of each task, and the load per minute."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from oncue.api.shapes import Shape, Time
from oncue.cli.ahead import is_timed, read_trigger
from oncue.cli.output import show_seconds
from oncue.definition import Definition
from oncue.engine.simulation import Fired, Scenario, Simulated
from oncue.rules import identity, times
from oncue.rules.triggers.zones import read_zone

RAN = ("on time", "late", "caught up", "running")
BUSIEST = 5
NAMED = 3
BAR = 40
MINUTE = timedelta(minutes=1)


class FiredShape(Shape):
    """What became of one due time, or of `count` of them from `first_due_at` to `due_at`. `mark` is what clocks did."""

    task: str
    due_at: Time
    first_due_at: Time
    count: int
    started_at: Time | None
    ended_at: Time | None
    late_seconds: float | None
    verdict: str
    reason: str | None
    mark: str | None


class TaskSummaryShape(Shape):
    """What became of one task's due times: a count for each verdict; and when it is due after the span."""

    task: str
    words: str
    zone: str
    due: int
    ran: int
    verdicts: dict[str, int]
    latest_seconds: float | None
    state: str
    reason: str | None
    next_at: Time | None


class MinuteShape(Shape):
    """A minute with the number of runs that start in it, and their tasks."""

    at: Time
    runs: int
    tasks: list[str]


class BandShape(Shape):
    """How many minutes start from `least` to `most` runs."""

    least: int
    most: int
    minutes: int


class LoadShape(Shape):
    """How the starts of runs lie over the minutes of the span."""

    runs: int
    minutes: int
    busiest: list[MinuteShape]
    bands: list[BandShape]


class LeftOutShape(Shape):
    """A task that is not simulated, and why."""

    task: str
    reason: str


class SimulationShape(Shape):
    """A simulation of (start, end]. `cut_at` is where the limit ended it: nothing is known of what comes after."""

    start: Time
    end: Time
    cut_at: Time | None
    firings: list[FiredShape]
    tasks: list[TaskSummaryShape]
    load: LoadShape
    not_simulated: list[LeftOutShape]


def shape_of(definitions: Sequence[Definition], scenario: Scenario, outcome: Simulated) -> SimulationShape:
    """Return what is printed of a simulation."""
    calendars = {one.name: one for one in scenario.calendars}
    triggers = {one.name: read_trigger(one, calendars, anchor=scenario.start) for one in definitions if is_timed(one)}
    return SimulationShape(
        start=scenario.start,
        end=scenario.end,
        cut_at=outcome.cut_at,
        firings=[_fired_shape(one, triggers[one.task]) for one in outcome.fired],
        tasks=[_summary(name, trigger, outcome) for name, trigger in triggers.items()],
        load=_load(outcome.fired, end=outcome.cut_at or scenario.end, start=scenario.start),
        not_simulated=_left_out(definitions),
    )


def lines_of(shape: SimulationShape, *, with_firings: bool) -> list[str]:
    """Return a simulation as a person reads it."""
    zones = {one.task: read_zone(one.zone) for one in shape.tasks}
    lines = [f"Simulated from {_utc(shape.start)} to {_utc(shape.cut_at or shape.end)}.", ""]
    if with_firings and shape.firings:
        lines += [*_aligned(list(_firing_rows(shape.firings, zones))), ""]
    if shape.tasks:
        lines += [*_aligned(list(_summary_rows(shape.tasks))), ""]
    lines += _load_lines(shape.load)
    lines += [f"Not simulated: {one.task}: {one.reason}." for one in shape.not_simulated]
    if shape.cut_at is not None:
        lines.append(
            f"Cut after {len(shape.firings):,} firings, at {_utc(shape.cut_at)}: raise --limit, "
            f"or go on with --from {_utc(shape.cut_at)}."
        )
    return lines


EVENTS = "only events start it"
FOLLOWED = "its times are read from data"


def _left_out(definitions: Sequence[Definition]) -> list[LeftOutShape]:
    return [
        LeftOutShape(task=one.name, reason=EVENTS if one.schedule is None else FOLLOWED)
        for one in definitions
        if not is_timed(one)
    ]


def _fired_shape(one: Fired, trigger: times.Trigger) -> FiredShape:
    return FiredShape(
        task=one.task,
        due_at=one.due_at,
        first_due_at=one.first_due_at,
        count=one.count,
        started_at=one.started_at,
        ended_at=one.ended_at,
        late_seconds=one.lateness.total_seconds() if one.lateness is not None else None,
        verdict=one.verdict,
        reason=one.reason,
        mark=times.note_of(trigger, one.due_at),
    )


def _summary(name: str, trigger: times.Trigger, outcome: Simulated) -> TaskSummaryShape:
    own = [one for one in outcome.fired if one.task == name]
    verdicts: Counter[str] = Counter()
    for one in own:
        verdicts[one.verdict] += one.count
    late = [one.lateness.total_seconds() for one in own if one.lateness is not None]
    state, reason, next_at = outcome.standing[name]
    return TaskSummaryShape(
        task=name,
        words=times.describe(trigger),
        zone=trigger.zone.key,
        due=sum(verdicts.values()),
        ran=sum(verdicts[word] for word in RAN),
        verdicts=dict(sorted(verdicts.items())),
        latest_seconds=max(late, default=None),
        state=state,
        reason=reason,
        next_at=next_at,
    )


def _load(fired: Sequence[Fired], *, start: datetime, end: datetime) -> LoadShape:
    starts = [(one.started_at, one.task) for one in fired if one.started_at is not None]
    by_minute: dict[datetime, Counter[str]] = defaultdict(Counter)
    for moment, task in starts:
        by_minute[moment.replace(second=0, microsecond=0)][task] += 1
    counts = {minute: sum(tasks.values()) for minute, tasks in by_minute.items()}
    busiest = sorted(counts, key=lambda minute: (-counts[minute], minute))[:BUSIEST]
    minutes = -((start - end) // MINUTE)
    bands: Counter[int] = Counter(count.bit_length() for count in counts.values())
    if minutes > len(counts):
        bands[0] = minutes - len(counts)
    return LoadShape(
        runs=len(starts),
        minutes=minutes,
        busiest=[MinuteShape(at=at, runs=counts[at], tasks=list(by_minute[at])) for at in busiest],
        bands=[
            BandShape(least=1 << bits >> 1, most=max((1 << bits) - 1, 0), minutes=bands[bits]) for bits in sorted(bands)
        ],
    )


def _firing_rows(firings: Sequence[FiredShape], zones: dict[str, ZoneInfo]) -> Iterator[tuple[str, ...]]:
    has_zones = any(zone.key != "UTC" for zone in zones.values())
    yield ("DUE", *(("UTC",) if has_zones else ()), "STARTED", "LATE", "TASK", "VERDICT")
    for one in firings:
        local = one.due_at.astimezone(zones[one.task])
        several = f"{one.count:,} times since {_local(one.first_due_at, zones[one.task])}" if one.count > 1 else None
        notes = "; ".join(note for note in (one.mark, several, one.reason) if note)
        yield (
            f"{local:%a} {local.isoformat(' ')}",
            *((_utc(one.due_at),) if has_zones else ()),
            _started(one),
            "-" if one.late_seconds is None else show_seconds(one.late_seconds) if one.late_seconds else "0",
            one.task,
            f"{one.verdict}: {notes}" if notes else one.verdict,
        )


def _started(one: FiredShape) -> str:
    if one.started_at is None:
        return "-"
    at = one.started_at
    return f"{at:%H:%M:%S}Z" if at.date() == one.due_at.date() else f"{at:%m-%d %H:%M:%S}Z"


def _summary_rows(tasks: Sequence[TaskSummaryShape]) -> Iterator[tuple[str, ...]]:
    yield ("TASK", "DUE", "RAN", "LATEST", "VERDICTS", "NEXT AFTER THAT", "SCHEDULE")
    for one in tasks:
        zone = read_zone(one.zone)
        verdicts = ", ".join(f"{count:,} {word}" for word, count in one.verdicts.items())
        following = _local(one.next_at, zone) if one.next_at else f"{one.state}: {one.reason}"
        latest = show_seconds(one.latest_seconds) if one.latest_seconds else "0" if one.ran else "-"
        yield (one.task, f"{one.due:,}", f"{one.ran:,}", latest, verdicts or "-", following, one.words)


def _load_lines(load: LoadShape) -> list[str]:
    if not load.runs:
        return ["No run starts in this span."]
    lines = [f"Load: {load.runs:,} runs start in {load.minutes:,} minutes. The busiest:"]
    for one in load.busiest:
        more = f" and {len(one.tasks) - NAMED} more" if len(one.tasks) > NAMED else ""
        lines.append(f"    {one.at:%Y-%m-%d %H:%M}Z  {one.runs:,}  {', '.join(one.tasks[:NAMED])}{more}")
    lines.append("Minutes by the runs that start in them:")
    most = max(band.minutes for band in load.bands)
    rows = []
    for band in load.bands:
        runs = f"{band.least}" if band.least == band.most else f"{band.least}-{band.most}"
        rows.append((f"    {runs:>9}", f"{band.minutes:>9,}", "█" * max(1, round(BAR * band.minutes / most))))
    return [*lines, *("  ".join(row) for row in rows)]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, columns beneath each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _local(moment: datetime, zone: ZoneInfo) -> str:
    local = moment.astimezone(zone)
    return f"{local:%a} {local.isoformat(' ')}"


def _utc(moment: datetime) -> str:
    return identity.time_text(moment)
