"""Child processes of a test: started, watched, frozen, killed, and gone when the test ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from oncue.testing.until import until

START = timedelta(seconds=20)
END = timedelta(seconds=20)


class Process:
    """A child with its output in a file. It leads a group of its own, so that its children go with it."""

    def __init__(
        self, argv: Sequence[str | Path], env: Mapping[str, str] | None = None, *, log: Path, cwd: Path | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                argv,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def output(self) -> str:
        """What it has written so far, to both streams."""
        return self.log.read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._child.poll()

    async def ready(self, sign: str, *, within: timedelta = START) -> str:
        """Wait until its output matches the pattern `sign`, or until that URL answers with success; return what did."""

        async def shown() -> str | None:
            if found := await _ask(sign) if sign.startswith("http") else _search(sign, self.output):
                return found
            if self.exit_code is not None:
                raise AssertionError(f"{self._child.args} ended with {self.exit_code}:\n{self.output[-4000:]}")
            return None

        return str(await until(shown, within=within, what=f"{sign} of {self._child.args}, in {self.log}"))

    async def wait(self, *, within: timedelta = END) -> int:
        """Wait until it ends, and return its exit code."""
        await until(lambda: self.exit_code is not None, within=within, what=f"end of {self._child.args}, in {self.log}")
        return self._child.wait()

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        self._child.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Ask it to end as Ctrl-C does (SIGINT)."""
        self._child.send_signal(signal.SIGINT)

    def kill9(self) -> None:
        """End it, and it alone, at once (SIGKILL)."""
        self._child.kill()
        self._child.wait()

    def stop(self) -> None:
        """Freeze it (SIGSTOP)."""
        self._child.send_signal(signal.SIGSTOP)

    def cont(self) -> None:
        """Let it go on (SIGCONT)."""
        self._child.send_signal(signal.SIGCONT)

    def destroy(self) -> None:
        """End it and all that it started, at once; harmless when it has ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()


class StartProcess(Protocol):
    """What the fixture `start_process` gives."""

    def __call__(
        self, *argv: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, name: str | None = None
    ) -> Process: ...


@contextlib.contextmanager
def processes(folder: Path) -> Iterator[StartProcess]:
    """Yield a function that starts a process, logs below `folder`, and destroys all of them at the end."""
    started: list[Process] = []

    def start(
        *argv: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, name: str | None = None
    ) -> Process:
        log = folder / f"{name or Path(argv[0]).name}-{len(started)}.log"
        started.append(Process(argv, env, log=log, cwd=cwd))
        return started[-1]

    try:
        yield start
    finally:
        for process in reversed(started):
            process.destroy()


def _search(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[0] if found else None


async def _ask(url: str) -> str | None:
    def fetch() -> str | None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return url if answer.status < 300 else None
        except OSError:
            return None

    return await asyncio.to_thread(fetch)
