"""The demo's worker: a plain program that takes webhooks and keeps its own log. It has never heard of Oncue.

    python worker.py LOG

It prints the port that it listens on, and ends when its standard input does. Lines on its standard input tell it how to
behave: `refuse KEY`, `accept KEY`, `slow SECONDS` (each job takes so long), `quick`. It works on four jobs at a time.
"""

import json
import os
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HANDS = 4


class Worker:
    """How the worker behaves now, and its log: one JSON line for each webhook, written before it is answered."""

    def __init__(self, path: str) -> None:
        self.log = open(path, "a", encoding="utf-8")  # noqa: SIM115  open as long as the program runs
        self.hands = threading.Semaphore(HANDS)
        self.writing = threading.Lock()
        self.refused: set[str] = set()
        self.seconds = 0.0

    def take(self, path: str, headers: dict[str, str], body: bytes) -> bool:
        """Do one job, write it down, and say whether it was accepted."""
        arrived = time.time()
        with self.hands:
            time.sleep(self.seconds)
            key = str(json.loads(body or b"{}").get("key", ""))
            accepted = key not in self.refused
            self.write(
                time=arrived,
                path=path,
                message=headers.get("oncue-message"),
                key=key,
                attempt=int(headers.get("oncue-attempt", "1")),
                requeue=int(headers.get("oncue-requeue", "0")),
                run=headers.get("oncue-run"),
                due=headers.get("oncue-due"),
                answer="accepted" if accepted else "refused",
            )
        return accepted

    def write(self, **line: object) -> None:
        with self.writing:
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()

    def obey(self, line: str) -> None:
        """Change the worker's behaviour as one line of standard input says."""
        order, _, word = line.strip().partition(" ")
        if order == "refuse":
            self.refused.add(word)
        elif order == "accept":
            self.refused.discard(word)
        elif order == "slow":
            self.seconds = float(word)
        elif order == "quick":
            self.seconds = 0.0


class Webhook(BaseHTTPRequestHandler):
    """Answers 200 to what it accepts, and 503 to what it refuses."""

    protocol_version = "HTTP/1.1"
    worker: Worker

    def handle(self) -> None:
        with suppress(ConnectionError):  # whoever called has hung up
            super().handle()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        accepted = self.worker.take(self.path, headers, body)
        answer = b"thank you" if accepted else b"the mailbox is full"
        self.send_response(200 if accepted else 503)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing: the log is a file."""


class Server(ThreadingHTTPServer):
    """Serves each connection in a thread of its own."""

    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    worker = Webhook.worker = Worker(sys.argv[1])
    server = Server(("127.0.0.1", 0), Webhook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)  # noqa: T201  whoever starts it reads the port here
    for line in sys.stdin:
        worker.obey(line)
    os._exit(0)


if __name__ == "__main__":
    main()
