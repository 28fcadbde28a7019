"""Ports of our own, below the range from which the kernel takes ports for outgoing connections.

A port from that range can be taken by somebody's connection while its server is down between two starts.
"""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """Return a port on loopback on which nothing listens."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
