"""The connections of a service that listens: how many there may be, and which of them are closed."""

from __future__ import annotations

import asyncio
import resource
from typing import Any
from weakref import WeakKeyDictionary

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headrace.service.problems import problem

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


class Protocol(H11Protocol):
    """HTTP/1.1, which refuses what it cannot read as everything else is refused."""

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, unless an answer is on its way, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            fix = "check its method, address, headers and lengths"
            answer = problem(400, "invalid_request", f"what came is no request of HTTP/1.1: {fix}")
            headers = [*answer.raw_headers, (b"connection", b"close")]
            head = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (head, h11.Data(bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class Connections:
    """Those of one server."""

    def __init__(self, server: uvicorn.Server, *, most: int = MOST_CONNECTIONS) -> None:
        self._server, self._most = server, most
        #: Those for which nothing was done when they were looked at last, and their request before that, if any.
        self._silent: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def are_too_many(self) -> bool:
        """Whether there are more than there is room for."""
        return len(self._server.server_state.connections) > self._most

    def cut(self, client: tuple[str, int]) -> None:
        """Cut the connection of a client at once, with what was not sent yet."""
        for connection in self._all():
            if connection.client == client:
                connection.transport.abort()

    async def watch(self) -> None:
        """Cut connections that do not send a whole request in time, be it the first or another one.

        Each is looked at twice, so it has between one and two times the seconds.
        """
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            self.cut_silent()

    def cut_silent(self) -> None:
        """Cut those for which nothing was done at the last look, and nothing since."""
        silent = {one: one.cycle for one in self._all() if one.cycle is None or one.cycle.response_complete}
        for connection, cycle in silent.items():
            if connection in self._silent and self._silent[connection] is cycle:
                connection.transport.abort()
        self._silent = WeakKeyDictionary(silent)

    def _all(self) -> list[Any]:
        return list(self._server.server_state.connections)
