"""A private RabbitMQ node that a test may stop, kill and start again.

It shares nothing with a node that already runs here: own ports, cookie, data, logs, and an own port mapper (epmd).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self
from uuid import uuid4

from tests.free_port import free_port
from tests.missing import Missing

SCRIPTS = Path("/usr/lib/rabbitmq/bin")  # past Debian's wrappers, which change the user and the home
HEADER = b"AMQP\x00\x00\x09\x01"
START_SECONDS = 60


class PrivateRabbitmq:
    """Runs from `with` to its end, on a port that it keeps over restarts. The user is guest, the password guest."""

    def __init__(self) -> None:
        self.node = f"oncue-{uuid4().hex[:8]}@localhost"
        self.port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"
        self._server: subprocess.Popen[bytes] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if not (SCRIPTS / "rabbitmq-server").exists() or not shutil.which("epmd"):
            raise Missing("a private RabbitMQ", "apt-get install rabbitmq-server")
        self.folder = Path(tempfile.mkdtemp(prefix="oncue-rabbitmq-"))
        self._environment = self._make_environment()
        try:
            self._epmd = subprocess.Popen(["epmd"], env=self._environment, stdout=subprocess.DEVNULL)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill9()
        if self._epmd:
            self._epmd.kill()
            self._epmd.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the node (again, with the data it has), and return when connections are taken. Takes 4 s or so."""
        with self.log.open("ab") as log:
            self._server = subprocess.Popen(
                [SCRIPTS / "rabbitmq-server"],
                env=self._environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._await_connections()

    def kill9(self) -> None:
        """End the node at once. It forgets what it was told in the last seconds to declare: see `sync`."""
        if not self._server:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()
        self._server = None
        while self._says() is not None:
            time.sleep(0.01)

    def sync(self) -> None:
        """Let the node write down what was declared so far, which it otherwise does some seconds later.

        A confirmed message is on disk, but its durable queue may not be yet: the confirm does not wait for that.
        """
        self.ctl("eval", "mnesia:sync_log().")

    def stop_app(self) -> None:
        """Stop the broker in an orderly way; the node stays. Clients are told, new connections are refused."""
        self.ctl("stop_app")

    def start_app(self) -> None:
        """Start the broker again after `stop_app`, and return when connections are taken."""
        self.ctl("start_app")
        self._await_connections()

    def ctl(self, *arguments: str) -> str:
        """Run `rabbitmqctl` on this node, and return what it says."""
        done = subprocess.run(
            [SCRIPTS / "rabbitmqctl", "--quiet", *arguments],
            env=self._environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def _make_environment(self) -> dict[str, str]:
        files = {
            ".erlang.cookie": uuid4().hex,
            "rabbitmq.conf": f"listeners.tcp.1 = 127.0.0.1:{self.port}\n",
            "rabbitmq-env.conf": "",
            "enabled_plugins": "[].\n",
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)
        (self.folder / ".erlang.cookie").chmod(0o400)
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(free_port()),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "rabbitmq-env.conf"),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _await_connections(self) -> None:
        end = time.monotonic() + START_SECONDS
        while self._says() != b"\x01":  # the first byte of a frame of the broker's
            if time.monotonic() > end or (self._server and self._server.poll() is not None):
                raise RuntimeError(f"{self.node} does not start:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.1)

    def _says(self) -> bytes | None:
        """Return the first byte of its answer, empty if it hangs up, None if it refuses."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
                line.sendall(HEADER)
                return line.recv(1)
        except ConnectionRefusedError:
            return None
        except OSError:
            return b""
