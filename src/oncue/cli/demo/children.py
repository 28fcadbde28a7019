"""The demo's child processes. None outlives the demo: each holds a pipe from it, and ends when the pipe does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from oncue.cli.demo import worker


@dataclass(frozen=True, slots=True)
class Webhook:
    """One line of the worker's own log. `message`, `run` and `due` are what the request's headers said."""

    at: datetime
    path: str
    message: str
    key: str
    attempt: int
    requeue: int
    run: str
    due: datetime
    accepted: bool


class Child:
    """One process; it holds the demo's lock on the folder, so that no other demo begins there while it lives."""

    def __init__(self, command: list[str], *, folder: Path, log: str, lock: int) -> None:
        with (folder / log).open("ab") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                pass_fds=[lock],
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def order(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._process.kill()
        self._close()

    async def wait(self, *, within: float) -> int | None:
        """Return its exit code when it has ended; kill it where it does not, and return None."""
        try:
            return await asyncio.to_thread(self._process.wait, within)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()

    async def end(self, *, within: float) -> int | None:
        """Ask it to end, and return its exit code; kill it where it does not, and return None."""
        self._process.terminate()
        return await self.wait(within=within)

    def _close(self) -> None:
        self._process.wait()
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()


def start_worker(folder: Path, *, lock: int) -> Child:
    """Start the worker. It is run as the plain file that it is, and prints its port into `worker.out`."""
    command = [sys.executable, "-I", worker.__file__, "worker.log"]
    return Child(command, folder=folder, log="worker.out", lock=lock)


def start_oncue(*arguments: str, folder: Path, lock: int) -> Child:
    """Start `oncue` with arguments in the folder; its output goes into `oncue.log`."""
    command = [sys.executable, "-m", "oncue.cli.demo.guard", *arguments]
    return Child(command, folder=folder, log="oncue.log", lock=lock)


class WorkerLog:
    """Reads the worker's log as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0
        self._lines: list[Webhook] = []

    def read(self) -> list[Webhook]:
        """Return all lines so far."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                whole, _, _ = file.read().rpartition(b"\n")
            if whole:
                self._read_to += len(whole) + 1
                self._lines += [_read_line(line) for line in whole.splitlines()]
        return self._lines

    def of_run(self, run: object) -> list[Webhook]:
        """Return what came of one run and was accepted."""
        return [line for line in self.read() if line.run == str(run) and line.accepted]


def _read_line(line: bytes) -> Webhook:
    said = json.loads(line)
    return Webhook(
        at=datetime.fromtimestamp(said["time"], UTC),
        path=said["path"],
        message=said["message"],
        key=said["key"],
        attempt=said["attempt"],
        requeue=said["requeue"],
        run=said["run"],
        due=datetime.fromisoformat(said["due"]),
        accepted=said["answer"] == "accepted",
    )
