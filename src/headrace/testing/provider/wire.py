"""HTTP/1.1 over one connection: requests in, responses out, and notice of a client that has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import h11

_LARGEST_REQUEST = 64 * 1024 * 1024
_READ_SIZE = 65_536


class RequestTooLargeError(Exception):
    """The request is larger than 64 MiB. Send less."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class HttpConnection:
    """One client's connection; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.SERVER)

    async def next_request(self) -> HttpRequest | None:
        """The next request, or None when the client is done. Raises h11.RemoteProtocolError."""
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
        return HttpRequest(head.method.decode(), head.target.decode("latin-1"), headers, bytes(body))

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_READ_SIZE))
        return event

    async def gone(self) -> None:
        """Return once the client has closed its side; keeps what it sends until then."""
        while data := await self._reader.read(_READ_SIZE):
            self._http.receive_data(data)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and headers. Without a content-length the body goes in chunks."""
        await self._send(h11.Response(status_code=status, headers=list(headers.items())))

    async def send(self, data: bytes) -> None:
        """Send a part of the body."""
        await self._send(h11.Data(data=data))

    async def finish(self) -> None:
        """End the body."""
        await self._send(h11.EndOfMessage())

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.send(body)
        await self.finish()

    async def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    def cut(self) -> None:
        """Drop the connection where it stands."""
        self._writer.transport.abort()

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow on this connection."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._writer.close()
