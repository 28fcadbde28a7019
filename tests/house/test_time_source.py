"""One file asks the machine for the time."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house import source

WALL = "wall.py"
STRANGERS = {"cli/demo/worker.py"}  # a program that has never heard of Oncue, and imports nothing of it
MAY_ASK_WALL = {"api", "app", "cli", "client", "console", "testing"}
CLOCK = re.compile(
    r"""(^|\.)(datetime|date)\.(now|utcnow|today)$
      | (^|\.)time\.(time|monotonic|perf_counter)(_ns)?$
      | (^|\.|_)loop(\(\))?\.time$""",
    re.VERBOSE,
)


def test_no_other_file_reads_a_clock() -> None:
    ours = [module for module in source.modules() if module.place not in {WALL, *STRANGERS}]
    readings = [reading for module in ours for reading in clock_readings(module)]

    assert readings == []


def test_strangers_import_nothing_of_ours() -> None:
    strangers = [module for module in source.modules() if module.place in STRANGERS]

    assert len(strangers) == len(STRANGERS)
    assert [name for module in strangers for name in module.imports() if name.startswith("oncue")] == []


def test_only_the_loop_and_the_outer_rooms_ask_the_wall() -> None:
    asking = {
        module.place for module in source.modules() if any(name.startswith("oncue.wall") for name in module.imports())
    }

    assert {place for place in asking if place.partition("/")[0].removesuffix(".py") not in MAY_ASK_WALL} <= {
        "engine/loop.py"
    }


@pytest.mark.parametrize(
    "line",
    [
        "datetime.now(UTC)",
        "from datetime import date; date.today()",
        "import datetime; datetime.datetime.utcnow()",
        "time.monotonic()",
        "stamp = field(default_factory=time.time)",
        "from time import perf_counter_ns",
        "asyncio.get_running_loop().time()",
        "self._loop.time()",
    ],
)
def test_a_clock_is_known_in_each_guise(line: str) -> None:
    assert clock_readings(source.read("engine/clock.py", line))


def test_the_time_of_a_datetime_is_no_clock() -> None:
    assert clock_readings(source.read("rules/times.py", "due_at.time(); time(9, 0); now + delay")) == []


def clock_readings(module: source.Module) -> list[str]:
    written = [source.dotted(node) for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)]
    return [f"{module.place}: {name}" for name in [*written, *module.imports()] if CLOCK.search(name)]
