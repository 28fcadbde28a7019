"""Runs `oncue` as a child of the demo: as always, but that it ends when the demo is gone, however that ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
from time import sleep

DRAIN_SECONDS = 10


def main() -> None:
    """Run the command line, and ask it to end when standard input does."""
    threading.Thread(target=_watch, daemon=True).start()
    from oncue.cli import main as run

    sys.argv[0] = "oncue"
    run()


def _watch() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    sleep(DRAIN_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
