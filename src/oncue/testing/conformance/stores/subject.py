"""One thing whose moves are tried."""

from __future__ import annotations

from typing import Protocol

from oncue.store.base import Store


class Subject(Protocol):
    """It is brought to a state by the verbs of the store, then the move is attempted on it."""

    def __init__(self, store: Store, move: str) -> None: ...

    async def bring_to(self, state: str) -> None:
        """Bring it to a state, in a way that leaves room for the move."""
        ...

    async def attempt(self, move: str) -> None:
        """Attempt a move as whoever would make it. May raise Conflict or NotFound."""
        ...

    async def state(self) -> str:
        """Return the state that it is in."""
        ...
