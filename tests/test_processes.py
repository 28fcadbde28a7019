"""The helper for child processes."""

from __future__ import annotations

import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from oncue.testing.until import until
from tests.free_port import free_port
from tests.processes import StartProcess, processes

pytestmark = pytest.mark.anyio

SLEEPER = "print('up'); import time; time.sleep(60)"


async def test_a_process_is_ready_when_its_output_says_so(start_process: StartProcess) -> None:
    process = start_process(sys.executable, "-c", SLEEPER)

    assert await process.ready("^u.$") == "up"


async def test_a_process_is_ready_when_its_url_answers(start_process: StartProcess, tmp_path: Path) -> None:
    port = free_port()
    process = start_process(sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", cwd=tmp_path)

    await process.ready(f"http://127.0.0.1:{port}/")

    process.terminate()
    assert await process.wait() == -signal.SIGTERM


async def test_one_that_ends_too_soon_is_told_with_its_output(start_process: StartProcess) -> None:
    process = start_process(sys.executable, "-c", "raise SystemExit('no such store')")

    with pytest.raises(AssertionError, match=r"ended with 1:\nno such store"):
        await process.ready("up")


async def test_a_frozen_process_writes_nothing_until_it_goes_on(start_process: StartProcess) -> None:
    process = start_process(sys.executable, "-c", "for line in range(10**9): print(line)")
    await process.ready("^5$")

    process.stop()
    await until(lambda: state_of(process.pid) == "T")
    size = process.log.stat().st_size
    process.cont()

    assert await until(lambda: process.log.stat().st_size > size)


async def test_kill9_leaves_no_time_to_say_goodbye(start_process: StartProcess) -> None:
    process = start_process(sys.executable, "-c", f"import atexit; atexit.register(print, 'goodbye'); {SLEEPER}")
    await process.ready("up")

    process.kill9()

    assert process.exit_code == -signal.SIGKILL
    assert "goodbye" not in process.output


async def test_children_of_children_are_gone_at_the_end(tmp_path: Path) -> None:
    parent = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEPER!r}]).pid); {SLEEPER}"
    with processes(tmp_path) as start:
        grandchild = int(await start(sys.executable, "-c", parent).ready(r"^\d+$"))

    await until(lambda: state_of(grandchild) in {None, "Z"}, within=timedelta(seconds=5))


def state_of(pid: int) -> str | None:
    """Return the kernel's letter for the state of a process, None when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return None
