"""Imports go one way: the contracts stand in pyproject.toml, beside the table of rooms in the design page."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from tests.house import source
from tests.missing import Missing

PURE = {"crash", "definition", "errors", "model", "rules", "wall"}
UNPURE = {
    "asyncio",
    "http",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "sqlite3",
    "subprocess",
    "threading",
    "time",
}


def test_rooms_import_only_what_stands_below_them() -> None:
    if not importlib.util.find_spec("importlinter"):
        raise Missing("the layers", "pip install import-linter")
    # In a process of its own: it sets up logging, and would silence every logger of this one.
    check = "import sys; from importlinter import cli; sys.exit(cli.lint_imports(no_cache=True))"

    done = subprocess.run([sys.executable, "-c", check], cwd=source.ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout


def test_the_lowest_rooms_need_nothing_but_the_standard_library() -> None:
    for module in source.modules():
        if module.room in PURE:
            assert roots(module) <= {"oncue", *sys.stdlib_module_names}, module.place


def test_the_rules_cannot_reach_the_world() -> None:
    for module in source.modules():
        if module.room in {"definition", "model", "rules"}:
            assert not roots(module) & UNPURE, module.place


def roots(module: source.Module) -> set[str]:
    return {name.partition(".")[0] for name in module.imports()}
