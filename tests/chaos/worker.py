"""A program: an HTTP worker that knows nothing of Oncue, and keeps its own log of whatever it was handed.

`python -m tests.chaos.worker PORT FOLDER` answers `POST /NAME` and logs to `FOLDER/NAME.jsonl`, before it answers.
`?refuse=e2:1,e5:99` refuses an entity so often in each run (never one that was requeued); `&delay=0.2` takes its time.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

from aiohttp import web


class Worker:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: Counter[tuple[str, str]] = Counter()

    async def take(self, request: web.Request) -> web.Response:
        at = datetime.now(UTC)
        await request.read()
        headers = {name.lower(): unquote(value) for name, value in request.headers.items()}
        key, run, requeue = headers["oncue-key"], headers["oncue-run"], int(headers["oncue-requeue"])
        self._seen[run, key] += 1
        accepted = requeue > 0 or self._seen[run, key] > self._refusals(request).get(key, 0)
        await asyncio.sleep(float(request.query.get("delay", "0")))
        self._note(
            request.match_info["name"],
            at=at.isoformat(),
            message_id=headers["oncue-message"],
            run=run,
            task=headers["oncue-task"],
            key=key,
            due=headers["oncue-due"],
            requeue=requeue,
            accepted=accepted,
        )
        return web.Response(status=204) if accepted else web.Response(status=500, text=f"no to {key}")

    def _refusals(self, request: web.Request) -> dict[str, int]:
        pairs = (pair.split(":") for pair in request.query.get("refuse", "").split(",") if pair)
        return {key: int(times) for key, times in pairs}

    def _note(self, name: str, **fields: object) -> None:
        with (self._folder / f"{name}.jsonl").open("a") as log:
            log.write(json.dumps(fields) + "\n")


async def main(port: int, folder: Path) -> None:
    site = web.Application(client_max_size=16 * 1024**2)
    site.router.add_post("/{name}", Worker(folder).take)
    runner = web.AppRunner(site, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("listening", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
