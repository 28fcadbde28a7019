"""`oncue zones`: which edition of the zone data this host and the components read, and what a new one moved."""

from __future__ import annotations

from typing import Final

import typer

from oncue.api.shapes import Shape, Time
from oncue.cli.output import AsJson, print_json, print_table, say
from oncue.cli.session import opened, run
from oncue.store import watch
from oncue.zonedata import origin

REPORTED: Final = 50


class ComponentZonesShape(Shape):
    """The edition that one component reads."""

    name: str
    host: str
    pid: int
    zone_data: str | None
    seen_at: Time


class ReckonedShape(Shape):
    """A next time that another edition moved."""

    at: Time
    task: str
    text: str


class ZonesShape(Shape):
    """The zone data in use, and the latest report of what moved."""

    zone_data: str
    read_from: str
    components: list[ComponentZonesShape]
    moved: list[ReckonedShape]


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(zones)


def zones(as_json: AsJson = False) -> None:
    """Show which zone data is in use, and what its latest edition moved."""

    async def work() -> None:
        async with opened() as oncue:
            components = await oncue.store.read(watch.components)
            moved = await oncue.store.read(watch.audit, "reckon", limit=REPORTED)
        here = origin()
        fields = ("name", "host", "pid", "zone_data", "seen_at")
        shape = ZonesShape(
            zone_data=here.edition,
            read_from=here.place,
            components=[ComponentZonesShape(**{one: getattr(each, one) for one in fields}) for each in components],
            moved=[ReckonedShape(at=one.happened_at, task=one.subject, text=one.detail) for one in moved],
        )
        if as_json:
            print_json(shape)
            return
        _print(shape)

    run(work)


def _print(shape: ZonesShape) -> None:
    say(f"This host reads zone data {shape.zone_data}, from {shape.read_from}.")
    say("")
    rows = [(one.name, one.host, one.pid, one.zone_data, one.seen_at) for one in shape.components]
    print_table(("COMPONENT", "HOST", "PID", "ZONE DATA", "SEEN"), rows, none="No component has been heard of.")
    say("")
    moved = [(one.at, one.task, one.text) for one in shape.moved]
    print_table(("MOVED AT", "TASK", "HOW"), moved, none="No edition has moved a next time.")
