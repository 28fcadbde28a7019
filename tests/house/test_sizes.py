"""A file can be read at a sitting, a function fits on a screen."""

from __future__ import annotations

from tests.house import source

FILE_LINES = 400
FUNCTION_LINES = 40
APART = {"store/queries.sql"}  # each statement stands there once


def test_no_file_is_longer_than_a_sitting() -> None:
    files = {
        path.relative_to(source.PRODUCT): path for kind in ("*.py", "*.sql") for path in source.PRODUCT.rglob(kind)
    }
    lengths = {
        place.as_posix(): len(path.read_text().splitlines())
        for place, path in files.items()
        if place.as_posix() not in APART and place.parent.name != "migrations"
    }

    assert {place: lines for place, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    lengths = {
        f"{module.place}:{function.lineno} {function.name}": (function.end_lineno or 0) - function.lineno + 1
        for module in source.modules()
        for function in module.functions()
    }

    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}
