"""What becomes of wall times that the clocks skip or show twice: a schedule's `dst`, and what each kind does without.

`zones.py` carries it out.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from oncue.errors import TriggerError

Gap = Literal["after", "skip", "shift"]
Repeat = Literal["first", "last", "both"]
KNOWN: Final[dict[str, tuple[str, ...]]] = {"gap": get_args(Gap), "repeat": get_args(Repeat)}


@dataclass(frozen=True, slots=True)
class Placing:
    """Where a wall time goes when clocks change.

    In a gap: `after` is the first instant after it, one run for all that it skipped; `shift` is later by its length;
    `skip` is nowhere. In a repeat: the `first` copy, the `last`, or `both`.
    """

    gap: Gap
    repeat: Repeat


FIXED: Final = Placing("after", "first")
"""A cron at fixed times of the day."""

WILDCARD: Final = Placing("skip", "both")
"""A cron with a rhythm: the times that clocks really show. Elapsed calendar rules follow their pattern this way too."""

CALENDAR: Final = Placing("shift", "first")
"""Calendar rules, calendar steps and local moments, as RFC 5545 has it."""


def read_placing(value: object, default: Placing) -> Placing:
    """Return the placing that a schedule's `dst` asks for; what it leaves out is the kind's own."""
    if value is None:
        return default
    if not isinstance(value, Mapping):
        raise TriggerError(
            f'dst: {value!r} is not a table. Write for example dst = {{ gap = "skip", repeat = "both" }}.'
        )
    for key, policy in value.items():
        if key not in KNOWN:
            raise TriggerError(f'dst: there is no key "{key}". {_hint(str(key), tuple(KNOWN))}')
        if policy not in KNOWN[key]:
            raise TriggerError(f"dst: {key} = {_quoted(policy)} is not known. {_hint(str(policy), KNOWN[key])}")
    return Placing(cast(Gap, value.get("gap", default.gap)), cast(Repeat, value.get("repeat", default.repeat)))


def refuse_placing(value: object, what: str) -> None:
    """Raise TriggerError if `dst` is given where no change of clocks matters."""
    if value is not None:
        raise TriggerError(f"dst: {what} does not go by a zone's clocks, so that dst changes nothing. Leave it out.")


def _hint(given: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    return f'Did you mean "{near[0]}"?' if near else f"Write one of {', '.join(known)}."


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
