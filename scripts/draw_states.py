"""Draws the table of moves into docs/design.md: `python scripts/draw_states.py`. A test holds the drawing true."""

from __future__ import annotations

import re
from pathlib import Path

from oncue.rules import states

PAGE = Path(__file__).parent.parent / "docs" / "design.md"
MARKS = re.compile(r"(<!-- states -->\n).*?(<!-- end of states -->)", re.DOTALL)


def draw() -> str:
    """Return every state machine as a Mermaid diagram."""
    return "\n".join(_draw_one(noun, moves) for noun, moves in states.TABLES.items())


def _draw_one(noun: str, moves: states.Moves) -> str:
    by_ends: dict[tuple[str, str], list[str]] = {}
    for (start, move), end in moves.items():
        by_ends.setdefault((start, end), []).append(move)
    lines = [f"    {start} --> {end}: {', '.join(names)}" for (start, end), names in by_ends.items()]
    lines += [f"    {end} --> [*]" for end in states.ends(noun)]
    return "\n".join([f"**{noun.replace('_', ' ')}**", "", "```mermaid", "stateDiagram-v2", *lines, "```", ""])


def drawn(page: str) -> str:
    """Return the page with the drawing as the table has it now."""
    return MARKS.sub(lambda found: found[1] + draw() + found[2], page)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
