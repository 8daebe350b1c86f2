"""A loopback port for a server that is about to start."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

#: Below the range from which kernels take ports for outgoing connections, so that a port
#: which was free while its server was down is not lost to a passing client.
PORTS = range(20_000, 32_000)


def candidate_ports(preferred: int | None = None) -> Iterator[int]:
    """Ports that are free right now, `preferred` first. Each may still be lost before the server binds it."""
    if preferred is not None and is_free(preferred):
        yield preferred
    tried = 0
    while tried < 200:
        tried += 1
        port = random.choice(PORTS)  # noqa: S311 - a port is no secret
        if is_free(port):
            yield port


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do it, or connections that just ended would make the port look taken for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
