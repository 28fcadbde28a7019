"""The command line in a folder of the test's own, in this process or as a child."""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import oncue
from oncue.cli import app
from tests.processes import Process, StartProcess

NOBODY = "http://127.0.0.1:9/"
TASKS = f"""
[task.remind]
description = "Mail everyone on trial"
schedule = {{ cron = "0 9 * * *", zone = "Europe/Athens" }}
resolve = {{ sql = "select id as key, email from trial", source = "shop" }}
target = {{ http = "{NOBODY}" }}

[task.paid]
target = {{ http = "{NOBODY}" }}

[[task.paid.on]]
event = "order.paid"
"""


class Folder:
    """A working folder with a configuration, a shop and a task file, and the commands in it."""

    def __init__(self, path: Path, start: StartProcess) -> None:
        self.path = path
        self._start = start
        shop = sqlite3.connect(path / "shop.db")
        with shop:
            shop.execute("create table trial (id text primary key, email text)")
            shop.executemany("insert into trial values (?, ?)", [("a", "a@example.org"), ("b", "b@example.org")])
        shop.close()
        self.write("oncue.toml", f'[source.shop]\nurl = "sqlite:///{path}/shop.db"\n')
        self.write("tasks.toml", TASKS)

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.write_text(text)
        return file

    def run(self, *arguments: str, exit_code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == exit_code, (result.output, result.exception)
        return result

    def json(self, *arguments: str, exit_code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", exit_code=exit_code).stdout)

    def start(self, *arguments: str, env: dict[str, str] | None = None) -> Process:
        here = {"PYTHONPATH": str(Path(oncue.__file__).parents[1])}
        return self._start(sys.executable, "-m", "oncue", *arguments, cwd=self.path, env=here | (env or {}))


@pytest.fixture
def folder(tmp_path: Path, start_process: StartProcess) -> Iterator[Folder]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setenv("TZ", "Europe/Athens")
        time.tzset()
        yield Folder(tmp_path, start_process)
    time.tzset()


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Commands set logging up for a process that is theirs; here it is not."""
    root, ours = logging.root, logging.getLogger("oncue")
    before = root.handlers, root.level, ours.level
    yield
    root.handlers, root.level, ours.level = before
