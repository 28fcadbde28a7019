"""The demo's shop: a database of trials that Oncue did not make and only reads, and events about what happens there."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

NAMES = (
    *("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ines", "Jon", "Kim", "Leo", "Mia"),
    *("Noa", "Omar", "Pia", "Quinn", "Rosa", "Sam", "Tess", "Una", "Vera", "Will", "Xenia", "Yara", "Zoe"),
)
FIRST = 44
PAUSE = 2.5


@dataclass(frozen=True, slots=True)
class Customer:
    """Somebody on trial, by the shop's own key."""

    key: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.key})"


class Shop:
    """Customers join and cancel. Each who joins is told as an event, again and again until somebody has taken it."""

    def __init__(self, path: Path, *, events_url: str) -> None:
        self._path = path
        self._events_url = events_url
        self._names = cycle(NAMES)
        self._joined = 0
        self._untold: list[Customer] = []
        self._telling = asyncio.Lock()
        self.told: list[str] = []

    def open(self) -> None:
        """Make the database, with its first customers."""
        with self._connect() as connection:
            connection.execute("create table trials (id text primary key, name text, email text, state text)")
        for _ in range(FIRST):
            self._add()

    @property
    def is_quiet(self) -> bool:
        """Say whether all who joined have been told."""
        return not self._untold

    def on_trial(self) -> list[Customer]:
        """Return who is on trial now, in the order of their keys."""
        with self._connect() as connection:
            rows = connection.execute("select id, name from trials where state = 'on trial' order by id").fetchall()
        return [Customer(*row) for row in rows]

    def cancel(self, customer: Customer) -> None:
        with self._connect() as connection:
            connection.execute("update trials set state = 'cancelled' where id = ?", (customer.key,))

    async def join(self) -> Customer:
        """Take in a new customer and tell it; return when the event is taken."""
        customer = self._add()
        self._untold.append(customer)
        await self._tell()
        return customer

    async def live(self) -> None:
        """Go on for ever: one joins, one of the latest cancels."""
        while True:
            await asyncio.sleep(PAUSE)
            self._untold.append(self._add())
            await self._tell()
            await asyncio.sleep(PAUSE)
            if len(customers := self.on_trial()) > FIRST - 4:
                self.cancel(customers[-2])

    def _add(self) -> Customer:
        self._joined += 1
        customer = Customer(f"c-{self._joined:03}", next(self._names))
        email = f"{customer.name.lower()}@example.com"
        with self._connect() as connection:
            connection.execute("insert into trials values (?, ?, ?, 'on trial')", (customer.key, customer.name, email))
        return customer

    async def _tell(self) -> None:
        async with self._telling:
            while self._untold:
                if await asyncio.to_thread(self._post, self._untold[0]):
                    self.told.append(self._untold.pop(0).key)
                else:
                    await asyncio.sleep(0.3)

    def _post(self, customer: Customer) -> bool:
        """Post a CloudEvent. Nobody there is no error here: it is told again, under the same id."""
        event = {
            "specversion": "1.0",
            "id": f"started-{customer.key}",
            "source": "/shop",
            "type": "trial.started",
            "subject": customer.key,
            "data": {"name": customer.name},
        }
        body, headers = json.dumps(event).encode(), {"Content-Type": "application/cloudevents+json"}
        request = urllib.request.Request(self._events_url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(200 <= answer.status < 300)
        except (urllib.error.URLError, OSError):
            return False

    def _connect(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self._path, timeout=5, isolation_level=None))
