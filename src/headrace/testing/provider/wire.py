"""HTTP/1.1 over one connection: requests in, responses out, and notice of a client that has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import cast

import h11

_LARGEST_REQUEST = 64 * 1024 * 1024


class RequestTooLargeError(Exception):
    """The request is larger than 64 MiB. Send less."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class HttpConnection(asyncio.Protocol):
    """One client's connection; one request at a time.

    `serve` runs as a task of the connection's own. It is cancelled when the client goes while it is answered, so that
    a call that hangs does not hang on without its client.
    """

    def __init__(
        self, serve: Callable[[HttpConnection], Coroutine[None, None, None]], tasks: set[asyncio.Task[None]]
    ) -> None:
        self._serve, self._tasks = serve, tasks
        self._held = b""
        self._http = h11.Connection(h11.SERVER)
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        # Not asserted: the transports of uvloop are no asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        self._task = asyncio.get_running_loop().create_task(self._serve(self))
        self._tasks.add(self._task)
        self._task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._transport.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "the scripted provider failed to answer", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    def data_received(self, data: bytes) -> None:
        """Keep what came until it is asked for."""
        self._http.receive_data(data)
        self._arrived.set()

    def eof_received(self) -> bool:
        """Take the client for gone: nobody here sends half a conversation."""
        self._client_gone()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Let nobody wait for a client that is gone."""
        self._client_gone()
        self._writable.set()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._writable.set()

    def _client_gone(self) -> None:
        if self._answering:
            self._task.cancel()
        elif self._http.their_state is not h11.CLOSED:
            self._http.receive_data(b"")
        self._arrived.set()

    async def next_request(self) -> HttpRequest | None:
        """The next request, or None when the client is done. Raises h11.RemoteProtocolError."""
        self._answering = False
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            if len(body) > _LARGEST_REQUEST:
                raise RequestTooLargeError
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        self._answering = True
        return HttpRequest(head.method.decode(), head.target.decode("latin-1"), headers, bytes(body))

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._arrived.clear()
            await self._arrived.wait()
        return event

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and headers with what follows. Without a content-length the body goes in chunks."""
        self._held = self._http.send(h11.Response(status_code=status, headers=list(headers.items()))) or b""

    async def send(self, data: bytes) -> None:
        """Send a part of the body, which goes in chunks."""
        # As h11 would write it, whose check of each event is most of what a token costs.
        await self._put(b"%x\r\n%b\r\n" % (len(data), data) if data else b"")

    async def finish(self, last: bytes = b"") -> None:
        """Send the last part of the body, and end it."""
        await self._write(*([h11.Data(data=last)] if last else []), h11.EndOfMessage())

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response."""
        lines = [*headers.items(), ("content-length", str(len(body)))]
        await self._write(h11.Response(status_code=status, headers=lines), h11.Data(data=body), h11.EndOfMessage())

    async def _write(self, *events: h11.Event) -> None:
        await self._put(b"".join(part for event in events if (part := self._http.send(event))))

    async def _put(self, data: bytes) -> None:
        # In one piece: each write is a call of the operating system, and they are most of what an answer costs.
        data, self._held = self._held + data, b""
        if data:
            self._transport.write(data)
        await self._writable.wait()

    async def cut(self) -> None:
        """Drop the connection where it stands, once what was sent has left."""
        self._transport.set_write_buffer_limits(high=0)
        await self._writable.wait()
        self._transport.abort()

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow on this connection."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
