"""A program: several components in one process, otherwise as their executables run them; it saves a test its time.

`python -m tests.chaos.components oncue.toml clock dispatcher [--listen 127.0.0.1:8041]`
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from oncue.api.app import create_events_app, create_health_app
from oncue.app import Oncue
from oncue.cli.components import carry
from oncue.config import load_config
from oncue.observe.log import set_up_logging


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("components", nargs="+")
    parser.add_argument("--listen")
    given = parser.parse_args()
    set_up_logging()
    make_app = create_events_app if "ingest" in given.components else create_health_app
    asyncio.run(carry(Oncue(load_config(given.config)), given.components, make_app, listen=given.listen))


if __name__ == "__main__":
    main()
