"""Which edition of the zone data this machine has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from oncue import zonedata


def edition_with(folder: Path | str) -> str:
    """Ask another process, which reads its zones from this folder."""
    asked = subprocess.run(
        [sys.executable, "-c", "from oncue import zonedata; print(zonedata.edition())"],
        env={"PYTHONTZPATH": str(folder), "PYTHONPATH": str(Path(zonedata.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    return asked.stdout.strip()


def test_this_machine_has_an_edition() -> None:
    assert re.fullmatch(r"20\d\d[a-z]", zonedata.edition())


@pytest.mark.parametrize(
    ("file", "text", "edition"),
    [
        ("tzdata.zi", "# version 2025b\nR d 1916\n", "2025b"),
        ("+VERSION", "2024a\n", "2024a"),
        ("tzdata.zi", "# This zic input file is in the public domain.\n", "unknown"),
    ],
)
def test_the_edition_stands_beside_the_zones(tmp_path: Path, file: str, text: str, edition: str) -> None:
    (tmp_path / "UTC").write_bytes(b"TZif")
    (tmp_path / file).write_text(text)

    assert edition_with(tmp_path) == edition


def test_without_zones_of_the_system_it_is_the_packages(tmp_path: Path) -> None:
    import tzdata

    assert edition_with(tmp_path) == tzdata.IANA_VERSION
