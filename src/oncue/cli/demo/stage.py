"""Where the demo plays: its folder and files, its processes, and a look into its store."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from oncue import wall
from oncue.app import Oncue
from oncue.cli.demo.children import Child, WorkerLog, start_oncue, start_worker
from oncue.cli.demo.screen import Screen
from oncue.cli.demo.shop import Shop
from oncue.config import load_config
from oncue.errors import ConfigError
from oncue.model import DeadLetter, Run, Task
from oncue.rules.firing import LedgerEntry
from oncue.store import failures, runs, tasks, watch

T = TypeVar("T")
PERIOD = timedelta(seconds=2)
CONCURRENCY = 20
REMINDER, WELCOME = "trial-reminder", "welcome"
LOCK = "demo.lock"
FILES = (
    *("oncue.toml", "tasks.toml", "oncue.db", "oncue.db-wal", "oncue.db-shm", "oncue.log"),
    *("shop.db", "shop.db-journal", "worker.log", "worker.out", LOCK),
)
LOOK = 0.01
PATIENCE = 150  # tenths of a second

TASKS = """\
[task.trial-reminder]            # every two seconds, to everybody who is on trial at that moment
schedule = { every = "2s" }
resolve  = { sql = "select id as key, name, email from trials where state = 'on trial'", source = "shop" }
target   = { http = "http://127.0.0.1:PORT/remind" }
misfire  = { grace = "500ms", catch_up = "latest" }
retry    = { attempts = 3, first = "200ms" }

[task.welcome]                   # the moment somebody starts a trial
on       = [{ event = "trial.started" }]
target   = { http = "http://127.0.0.1:PORT/welcome" }
"""
CONFIG = """\
# Made by `oncue demo`. Everything is shorter here than one would have it: a demo must not take long.
store = "sqlite:///FOLDER/oncue.db"

[source.shop]
url = "sqlite:///FOLDER/shop.db"

[dispatcher]
lease = "2s"

[api]
listen = "127.0.0.1:PORT"
"""


class Missing(Exception):
    """Something that the demo is to show was not seen; the message says what was seen instead."""


class Stage:
    """The folder, the shop, the worker, and `oncue up`, which may be killed and started again."""

    def __init__(self, folder: Path, screen: Screen) -> None:
        self.folder = folder
        self.screen = screen
        self.log = WorkerLog(folder / "worker.log")
        self.shop: Shop
        self.worker: Child | None = None
        self.up: Child | None = None
        self.worker_port = ""
        self.has_store = False
        self.reported: set[int] = set()
        self.letter_uuid = ""
        self._api_port = _free_port()
        self._app: Oncue | None = None
        self._lock = -1

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Stage]:
        """Set everything up but `oncue up`, and take everything down at the end."""
        self._lock = await self._lock_folder()
        try:
            self._clear()
            self.shop = Shop(self.folder / "shop.db", events_url=f"http://127.0.0.1:{self._api_port}/v1/events")
            self.shop.open()
            self.worker = start_worker(self.folder, lock=self._lock)
            await self._write_files()
            yield self
        finally:
            await self._close()

    async def start_up(self) -> float:
        """Start `oncue up` and wait until it is ready; return how many seconds that took."""
        begun = wall.monotonic()
        self.up = start_oncue("up", "tasks.toml", folder=self.folder, lock=self._lock)
        await self.until(self._is_ready, within=20, what="oncue up is ready")
        self.has_store = True
        return wall.monotonic() - begun

    async def until(self, seen: Callable[[], Awaitable[T | None]], *, within: float, what: str) -> T:
        """Look again and again until `seen` answers something. Raises Missing."""
        end = wall.monotonic() + within
        while True:
            if answer := await seen():
                return answer
            if self.up is not None and not self.up.is_alive:
                raise Missing(f"oncue up ended by itself. Its last words:\n{self._last_words()}")
            if wall.monotonic() > end:
                raise Missing(f"waited {within:g} s in vain until {what}")
            await asyncio.sleep(LOOK)

    @property
    def pid(self) -> int:
        assert self.up is not None
        return self.up.pid

    def kill_up(self) -> None:
        assert self.up is not None
        self.up.kill()
        self.up = None

    async def end_up(self) -> int | None:
        """Ask `oncue up` to end in order; return its exit code, or None where it had to be killed."""
        assert self.up is not None
        code = await self.up.end(within=10)
        self.up = None
        return code

    def order(self, line: str) -> None:
        """Tell the worker how to behave."""
        assert self.worker is not None
        self.worker.order(line)

    async def command(self, *arguments: str) -> None:
        """Run an `oncue` command in the folder, beside what runs. Raises Missing."""
        child = start_oncue(*arguments, folder=self.folder, lock=self._lock)
        code = await child.wait(within=20)
        if code != 0:
            raise Missing(f"`oncue {' '.join(arguments)}` answered {code}:\n{self._last_words()}")

    @property
    def app(self) -> Oncue:
        """The store of the demo, for looking into it."""
        if self._app is None:
            self._app = Oncue(load_config(self.folder / "oncue.toml"))
        return self._app

    async def task(self, name: str) -> Task:
        return await self.app.store.read(tasks.read, name)

    async def runs(self) -> list[Run]:
        """Return all runs, the earliest first."""
        return (await self.app.store.read(runs.latest, task_id=None, state=None, before=None, limit=10_000))[::-1]

    async def ledger(self, task: Task) -> list[LedgerEntry]:
        """Return what became of a task's due times that made no run."""
        first, last = task.created_at, wall.now()
        rows = await self.app.store.read(watch.ledger, task.id, first=first, last=last, limit=1000)
        return [
            LedgerEntry(row["first_due_at"], row["last_due_at"], row["count"], row["verdict"], row["reason"])
            for row in rows
        ]

    async def letters(self) -> list[DeadLetter]:
        return await self.app.store.read(failures.latest, task=None, state=None, before=None, limit=1000)

    async def _is_ready(self) -> bool:
        url = f"http://127.0.0.1:{self._api_port}/readyz"
        return await asyncio.to_thread(_answers, url)

    def _last_words(self) -> str:
        return "\n".join((self.folder / "oncue.log").read_text(errors="replace").splitlines()[-15:])

    async def _lock_folder(self) -> int:
        """Hold the folder for this demo. What an earlier one left behind needs a moment to end."""
        if self.folder.exists() and (strange := {path.name for path in self.folder.iterdir()} - set(FILES)):
            raise ConfigError(
                f"{self.folder} holds what no demo has put there ({min(strange)}): name another with --folder."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        if not _take(lock):
            with self.screen.waiting(f"what runs in {self.folder} from before is about to end"):
                for _ in range(PATIENCE):
                    await asyncio.sleep(0.1)
                    if _take(lock):
                        return lock
            os.close(lock)
            raise ConfigError(f"another demo runs in {self.folder}: end it, or name another folder with --folder.")
        return lock

    def _clear(self) -> None:
        for name in FILES:
            if name != LOCK:
                (self.folder / name).unlink(missing_ok=True)

    async def _write_files(self) -> None:
        told = self.folder / "worker.out"

        async def port() -> str:
            return told.read_text().strip()

        self.worker_port = await self.until(port, within=20, what="the worker listens")
        folder = str(self.folder.resolve())
        (self.folder / "tasks.toml").write_text(TASKS.replace("PORT", self.worker_port))
        config = CONFIG.replace("PORT", str(self._api_port)).replace("FOLDER", folder)
        (self.folder / "oncue.toml").write_text(config)

    async def _close(self) -> None:
        try:
            if self.up is not None and self.up.is_alive:
                await self.up.end(within=10)
            if self._app is not None:
                await self._app.close()
        finally:
            for child in (self.up, self.worker):
                if child is not None:
                    child.kill()
            os.close(self._lock)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
