"""Times to come as a table: in the zone of the schedule, of the reader where that is another, and in UTC."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from oncue.rules import identity, times

LOCALTIME = Path("/etc/localtime")


def rows_of(zone: ZoneInfo, moments: Sequence[datetime], notes: Sequence[str]) -> list[str]:
    """Return the moments as lines below their headings, each with its note."""
    columns = [(zone.key, [_shown(moment.astimezone(zone)) for moment in moments])]
    if _differs(zone, moments):
        columns.append((f"{reader()} (yours)", [_shown(moment.astimezone()) for moment in moments]))
    if zone.key != "UTC":
        columns.append(("UTC", [identity.time_text(moment) for moment in moments]))
    columns.append(("", list(notes)))
    padded = []
    for heading, words in columns:
        width = max(map(len, (heading, *words)))
        padded.append([f"{word:{width}}" for word in (heading, *words)])
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]


def notes_of(trigger: times.Trigger, moments: Sequence[datetime]) -> list[str]:
    """Return what the clocks, a calendar or a person did to each of the moments."""
    return [times.note_of(trigger, moment) or "" for moment in moments]


def horizon_of(trigger: times.Trigger) -> list[str]:
    """Return a line for each calendar that ends: up to when it is known."""
    return [
        f'Calendar "{calendar.name}" is known until {calendar.known_until}: import it again before that.'
        for calendar in times.calendars_of(trigger)
        if calendar.known_until is not None
    ]


def reader() -> str:
    """Return the name of the reader's zone: that of TZ, else of this host."""
    if name := os.environ.get("TZ", "").removeprefix(":"):
        return name
    _, _, linked = str(LOCALTIME.resolve()).partition("/zoneinfo/")
    return linked or "local"


def _differs(zone: ZoneInfo, moments: Sequence[datetime]) -> bool:
    """Say whether the reader's clock shows other times than both the schedule's zone and UTC."""
    offsets = [moment.astimezone().utcoffset() for moment in moments]
    return any(offsets) and offsets != [moment.astimezone(zone).utcoffset() for moment in moments]


def _shown(local: datetime) -> str:
    return f"{local:%a} {local.isoformat(' ')}"
