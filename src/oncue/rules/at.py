"""One moment, and how a moment is written: ISO 8601, with an offset or in a zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from oncue.errors import TriggerError

EARLIEST_YEAR: Final = 1900
LATEST_YEAR: Final = 9000


@dataclass(frozen=True, slots=True)
class At:
    """One moment. `wall` is what was written, where it had no offset: in a gap it differs from what the clock shows."""

    text: str
    zone: ZoneInfo
    moment: datetime
    wall: datetime | None = None


def read_at(text: str, zone: ZoneInfo, *, has_zone: bool) -> At:
    """Return the one time that a text means; without an offset it needs a zone that was asked for."""
    moment = _parse("at", text)
    if moment.tzinfo is not None:
        return At(text, zone, moment.astimezone(UTC))
    if not has_zone:
        raise TriggerError(f'at: "{text}" has no offset and no zone. Write {text}Z for UTC, or add a zone.')
    return At(text, zone, _place(moment, zone), moment)


def read_moment(field: str, text: str, zone: ZoneInfo) -> datetime:
    """Return a moment in UTC; without an offset it is read in the zone."""
    return _place(_parse(field, text), zone)


def _place(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.replace(tzinfo=moment.tzinfo or zone).astimezone(UTC)


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
