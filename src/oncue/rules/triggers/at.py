"""One moment, and how a moment is written: ISO 8601, with an offset or in a zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError
from oncue.rules.triggers.placing import CALENDAR, Placing, read_placing, refuse_placing
from oncue.rules.triggers.zones import place_wall

EARLIEST_YEAR: Final = 1900
LATEST_YEAR: Final = 9000


@dataclass(frozen=True, slots=True)
class At:
    """One moment; two or none only where clocks change, and as `placing` has it. `wall` is a text without an offset."""

    text: str
    zone: ZoneInfo
    moments: tuple[datetime, ...]
    wall: datetime | None = None
    placing: Placing = CALENDAR


def read_at(text: str, zone: ZoneInfo, *, has_zone: bool, dst: object = None) -> At:
    """Return the one time that a text means; without an offset it needs a zone that was asked for."""
    moment = _parse("at", text)
    if moment.tzinfo is not None:
        refuse_placing(dst, f'at = "{text}", with its offset,')
        return At(text, zone, (moment.astimezone(UTC),))
    if not has_zone:
        raise TriggerError(
            f'at: "{text}" has no offset and no zone. Write {moment.isoformat()}Z for UTC, or add a zone.'
        )
    placing = read_placing(dst, CALENDAR)
    return At(text, zone, place_wall(moment, zone, placing), moment, placing)


def next_moment(at: At, after: datetime) -> datetime | None:
    """Return its first moment later than `after`."""
    return next((moment for moment in at.moments if moment > after), None)


def last_moment(at: At, before: datetime) -> datetime | None:
    """Return its last moment earlier than `before`."""
    return next((moment for moment in reversed(at.moments) if moment < before), None)


def read_moment(field: str, text: str, zone: ZoneInfo) -> datetime:
    """Return a moment in UTC; without an offset it is read in the zone."""
    return read_anchor(field, text, zone).astimezone(UTC)


def read_anchor(field: str, text: str, zone: ZoneInfo) -> datetime:
    """Return where steps begin: in UTC, or as it is written in the zone, be it a wall time that clocks skip."""
    moment = _parse(field, text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=zone)


def _parse(field: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if not EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
            raise ValueError(moment)
    except ValueError:
        years = f"from {EARLIEST_YEAR} to {LATEST_YEAR}"
        message = f'{field}: "{text}" is not a time {years}. Write it as 2026-03-08T02:30:00, with an offset or a zone.'
        raise TriggerError(message) from None
    return moment
