"""`python -m benchmarks [--json] [--quick]`: every figure, measured now on this machine."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import amqp, clock, times


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="leave out the million schedules")
    parser.add_argument("--only", choices=["clock", "amqp", "times"], help="measure one part")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    if options.only in (None, "clock"):
        figures["clock"] = asyncio.run(clock.measure(million=not options.quick))
    if options.only in (None, "amqp"):
        figures["amqp"] = amqp.run()
    if options.only in (None, "times"):
        figures["times"] = times.run()
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        show(figures)
    return 0


def show(figures: dict[str, Any]) -> None:
    """Print one table: a line for each figure."""
    table = Table("what", "figure", title="Oncue, measured on this machine now", title_justify="left")
    for name, value in flat(figures):
        table.add_row(name, str(value))
    Console().print(table)


def flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [row for name, inner in value.items() for row in flat(inner, f"{path} {name}".strip())]
    return [(path, value)]


if __name__ == "__main__":
    raise SystemExit(main())
