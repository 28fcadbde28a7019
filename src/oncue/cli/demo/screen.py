"""What the demo prints: a line for each thing that happens, and on a terminal also what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console
from rich.markup import escape

from oncue import wall

COLOURS = {"oncue": "green", "shop": "cyan", "worker": "yellow", "you": "magenta"}


class Screen:
    """Lines with the time and who did it."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)

    def title(self, text: str) -> None:
        self._console.print(f"\n[bold]{escape(text)}[/bold]")

    def text(self, text: str) -> None:
        self._console.print(escape(text))

    def file(self, text: str) -> None:
        """Print a file."""
        for line in text.splitlines():
            self._console.print(f"    [dim]│[/dim] {escape(line)}")

    def say(self, who: str, text: str) -> None:
        """Print what somebody just did."""
        moment = clock_text(wall.now())
        self._console.print(f"[dim]{moment}[/dim]  [{COLOURS[who]}]{who:<6}[/]  {escape(text)}")

    def tell(self, text: str) -> None:
        """Print what is to be seen in the lines above."""
        self._console.print(f"{'':20}[bold]→ {escape(text)}[/bold]")

    def table(self, rows: Sequence[tuple[str, str, str]]) -> None:
        width = max(len(name) + len(value) for name, value, _ in rows) + 2
        for name, value, remark in rows:
            figure = f"{name}: [bold]{escape(value)}[/bold]{'':{width - len(name) - len(value)}}"
            self._console.print(f"    {figure}  [dim]{escape(remark)}[/dim]".rstrip())

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show what is awaited: a line that goes when it is over, or without a terminal a line that stays."""
        if self._console.is_terminal:
            with self._console.status(f"[dim]{escape(text)}[/dim]"):
                yield
        else:
            self.text(f"              ... {text}")
            yield


def clock_text(moment: datetime) -> str:
    """Return a time of day in the reader's zone, to the tenth of a second."""
    local = moment.astimezone()
    return f"{local:%H:%M:%S}.{local.microsecond // 100_000}"
