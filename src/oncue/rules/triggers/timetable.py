"""A schedule that is composed: several triggers, less what is excluded, on the days of calendars, within bounds.

The noun alone; `composition` reads it, `search` and `moving` walk it, and `composed` answers for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from oncue.definition import Override
from oncue.rules.triggers.days import EVERY_DAY, Days
from oncue.rules.triggers.kinds import Kind

Move = Literal["next", "previous"]


@dataclass(frozen=True, slots=True)
class Timetable:
    """The times that any of `parts` names on an allowed day, less those that one of `excluded` names exactly.

    With `move` a time on another day goes to the next or previous allowed one. None lies before `starts_at` or after
    `ends_at`, neither as named nor as moved. `overrides` are the changes by hand, which nothing else restricts.
    """

    parts: tuple[Kind, ...]
    zone: ZoneInfo
    excluded: tuple[Kind, ...] = ()
    days: Days = EVERY_DAY
    move: Move | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    overrides: tuple[Override, ...] = ()

    @property
    def has_calendar(self) -> bool:
        """Say whether some days are not allowed."""
        return bool(self.days.only or self.days.never)

    def is_within(self, moment: datetime) -> bool:
        """Say whether a moment lies within the bounds."""
        if self.starts_at is not None and moment < self.starts_at:
            return False
        return self.ends_at is None or moment <= self.ends_at
