"""Another edition of the zone data: next times are reckoned again, once, with a report; what ran does not run again."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import TZPATH

import pytest

from oncue.testing.until import until
from tests.cli.conftest import NOBODY, Folder

pytestmark = pytest.mark.anyio

TASK = f"""
[task.bank]
schedule = {{ cron = "0 9 * * *", zone = "Europe/Athens" }}
target = {{ http = "{NOBODY}" }}

[task.plain]
schedule = {{ cron = "0 9 * * *" }}
target = {{ http = "{NOBODY}" }}
"""


@pytest.fixture
def editions(tmp_path: Path) -> dict[str, dict[str, str]]:
    """Three editions, as environments: in the second, Athens keeps Tokyo's time; the third is as the first again."""
    made: dict[str, dict[str, str]] = {}
    for name, athens in (("2025a", "Europe/Athens"), ("2025b", "Asia/Tokyo"), ("2025c", "Europe/Athens")):
        folder = tmp_path / name
        (folder / "Europe").mkdir(parents=True)
        shutil.copy(_zone_file(athens), folder / "Europe" / "Athens")
        shutil.copy(_zone_file("UTC"), folder / "UTC")
        (folder / "tzdata.zi").write_text(f"# version {name}\n")
        made[name] = {"PYTHONTZPATH": str(folder), "TZ": "UTC"}
    return made


def _zone_file(name: str) -> Path:
    found = next((Path(folder) / name for folder in TZPATH if (Path(folder) / name).exists()), None)
    if found is None:
        import tzdata

        found = Path(tzdata.__file__).parent / "zoneinfo" / name
    return found


async def apply(folder: Folder, env: dict[str, str]) -> None:
    folder.write("tasks.toml", TASK)
    process = folder.start("up", "tasks.toml", "--listen", "127.0.0.1:0", env=env)
    await process.ready("oncue runs")
    process.interrupt()
    assert await process.wait() == 0


async def run_clock(folder: Folder, env: dict[str, str], *, sign: str) -> str:
    process = folder.start("clock", env=env)
    await process.ready(sign)
    process.interrupt()
    assert await process.wait() == 0
    return process.output


def schedules(folder: Folder) -> dict[str, tuple[str, str]]:
    """Return (next time of day in UTC, edition) of each task."""
    rows = _read(folder, "select name, next_at, zone_data from schedules join tasks on tasks.id = task_id")
    return {name: (next_at[11:16], edition) for name, next_at, edition in rows}


def _read(folder: Folder, sql: str) -> list[Any]:
    connection = sqlite3.connect(folder.path / "oncue.db")
    rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


async def test_a_new_edition_moves_what_it_moves_once_and_says_so(
    folder: Folder, editions: dict[str, dict[str, str]]
) -> None:
    await apply(folder, editions["2025a"])
    before = schedules(folder)

    told = await run_clock(folder, editions["2025b"], sign="zone data changed")
    after = schedules(folder)
    process = folder.start("clock", env=editions["2025b"])
    await process.ready("oncue runs")
    await until(lambda: _read(folder, "select 1 from components where name = 'clock'"), within=timedelta(seconds=9))
    process.interrupt()
    await process.wait()

    assert {edition for _, edition in before.values()} == {"2025a"}
    assert before["bank"][0] in ("06:00", "07:00")
    assert after == {"bank": ("00:00", "2025b"), "plain": ("09:00", "2025b")}
    assert "reckoned=2" in told
    assert "moved=1" in told
    ((subject, detail),) = _read(folder, "select subject, detail from audit where verb = 'reckon'")
    assert subject == "bank"
    assert detail.startswith("by zone data 2025b: next due ")
    assert "zone data changed" not in process.output


async def test_an_older_edition_moves_nothing(folder: Folder, editions: dict[str, dict[str, str]]) -> None:
    await apply(folder, editions["2025b"])
    before = schedules(folder)

    process = folder.start("clock", env=editions["2025a"])
    await process.ready("oncue runs")
    await until(lambda: _read(folder, "select 1 from components where name = 'clock'"), within=timedelta(seconds=9))
    process.interrupt()
    await process.wait()

    assert schedules(folder) == before
    assert "zone data changed" not in process.output


async def test_there_and_back_again_ends_where_it_began(folder: Folder, editions: dict[str, dict[str, str]]) -> None:
    await apply(folder, editions["2025a"])
    before = schedules(folder)

    for edition in ("2025b", "2025c"):
        await run_clock(folder, editions[edition], sign="zone data changed")

    assert {name: at for name, (at, _) in schedules(folder).items()} == {name: at for name, (at, _) in before.items()}
