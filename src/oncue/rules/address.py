"""Where an HTTP target goes: its URL and its headers, as a task file may give them."""

from __future__ import annotations

import re
from typing import Any, Final, cast
from urllib.parse import urlsplit

from oncue.rules import shape

FRAMING: Final = ("connection", "content-length", "te", "trailer", "transfer-encoding", "upgrade")
NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def read_url(value: Any) -> str:
    """Return an address of the web. Raises ValueError."""
    text = cast("str", shape.read(str, value))
    if not re.match(r"https?://[^/\s]", text) or not _can_be_called(text):
        raise ValueError(f"{shape.shown(text)} is not an address of the web. Write https://host/path.")
    return text


def read_headers(value: Any) -> dict[str, str]:
    """Return headers that can be sent, and that say nothing of a message's length. Raises ValueError."""
    return shape.each(shape.table(value).items(), _read_header)


def _can_be_called(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:  # brackets without an end, or a port above 65535
        return False


def _read_header(name: str, value: Any) -> str:
    text = cast("str", shape.read(str, value))
    if not NAME.fullmatch(name):
        raise ValueError(f"{shape.shown(name)} is not a header's name. Write letters, digits and dashes.")
    if name.lower() in FRAMING:
        raise ValueError("Oncue writes this header itself, for each message. Leave it out.")
    if not all(letter.isprintable() or letter == "\t" for letter in text):
        raise ValueError("it holds what a header cannot hold. Write one line without control characters.")
    return text
