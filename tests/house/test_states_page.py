"""The states in `docs/design.md` are drawn from the table of moves."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_drawn_states_are_those_of_the_table() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "draw_states.py"))
    page = (ROOT / "docs" / "design.md").read_text()

    assert script["drawn"](page) == page
    assert "stateDiagram-v2" in page
