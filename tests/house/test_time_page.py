"""What `docs/time.md` shows of `oncue next` is what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oncue.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "time.md"
EXAMPLES = re.findall(r"```console\n\$ oncue (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize(("command", "printed"), EXAMPLES)
def test_an_example_prints_what_the_page_shows(command: str, printed: str) -> None:
    result = CliRunner().invoke(app, shlex.split(command))

    assert result.exit_code == 0
    assert result.output.strip() == printed.strip()
