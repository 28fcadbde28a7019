"""What `docs/time.md` shows of commands is what they print, for a reader in UTC or where the page says."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oncue.cli import app
from tests.house import source

PAGE = (Path(__file__).parents[2] / "docs" / "time.md").read_text()
EXAMPLES = re.findall(r"```console\n\$ (?:TZ=(\S+) )?oncue (.*?)\n(.*?)```", PAGE, re.DOTALL)
FILES = re.findall(r"```toml\n# (\S+\.toml)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def reader(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """A reader in the folder of the page's files, and in the zone of the example."""
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setenv("TZ", request.param or "UTC")
        time.tzset()
        yield
    time.tzset()


def test_every_finding_of_lint_is_on_the_page() -> None:
    texts = [module.text for module in source.modules() if "lint" in module.place]
    codes = {
        code
        for text in texts
        for code in re.findall(r'"([a-z]+(?:-[a-z]+)*)",\s*(?:severity=)?"(?:error|warning|note)"', text)
    }

    assert len(codes) > 20
    assert {code for code in codes - {"error", "warning"} if f"| `{code}` |" not in PAGE} == set()


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 5
    assert len(FILES) >= 2


@pytest.mark.parametrize(("reader", "command", "printed"), EXAMPLES, indirect=["reader"])
def test_an_example_prints_what_the_page_shows(reader: None, command: str, printed: str) -> None:
    result = CliRunner().invoke(app, shlex.split(command))

    assert result.exit_code == 0, result.output
    assert result.output.strip() == printed.strip()
