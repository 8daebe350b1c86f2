"""The connections of a service that listens: how many there may be, and which of them are closed."""

from __future__ import annotations

import asyncio
import resource
from typing import Any
from weakref import WeakSet

import uvicorn

#: Connections of one process, and file descriptors that are left for everything else.
MOST_CONNECTIONS, OTHER_FILES = 4_096, 128
#: Seconds that a connection may be silent between two requests, or before the first one is whole.
IDLE_SECONDS = 75


def make_room() -> int:
    """Let this process have as many files open as it may, and return how many connections it takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + OTHER_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(min(MOST_CONNECTIONS, soft - OTHER_FILES), 1)


class Connections:
    """Those of one server."""

    def __init__(self, server: uvicorn.Server) -> None:
        self._server = server
        #: Those that had no whole request when they were looked at last.
        self._silent: WeakSet[Any] = WeakSet()

    def cut(self, client: tuple[str, int]) -> None:
        """Cut the connection of a client at once, with what was not sent yet."""
        for connection in self._all():
            if connection.client == client:
                connection.transport.abort()

    async def watch(self) -> None:
        """Cut connections that do not send a whole request in time; those that wait for another one end by themselves.

        Each is looked at twice, so it has between one and two times the seconds.
        """
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            self.cut_silent()

    def cut_silent(self) -> None:
        """Cut those that had no request at the last look, and have none now."""
        silent = [one for one in self._all() if one.cycle is None]
        for connection in silent:
            if connection in self._silent:
                connection.transport.abort()
        self._silent = WeakSet(silent)

    def _all(self) -> list[Any]:
        return list(self._server.server_state.connections)
