"""The connections below the SDK, by aiohttp: its parser is compiled, and a model writes in thousands of small pieces.

What comes while nobody asks for more stays in the socket, so that the pieces of a pause are read together.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from headrace.providers.bounds import too_large
from headrace.providers.fault import Progress

#: Until a connection stands, its encryption included.
_CONNECT_SECONDS = 10.0
#: An idle connection is kept for so long.
_KEPT_SECONDS = 15.0
#: Providers and what stands before them tell much in headers.
_LONGEST_HEADER = 65_536
#: aiohttp wants larger bodies as files, which it sends piece by piece.
_LARGE_BODY = 1_048_576

#: How far the call came that is made here: the SDK hands nothing on to its transport.
progress_of_call: ContextVar[Progress | None] = ContextVar("headrace_progress_of_call", default=None)


class OutOfTimeError(TimeoutError):
    """The deadline of a call has passed while its answer was read."""


class Connections:
    """Connections to one server for one event loop, as many at once as there are calls; the deadline is the caller's.

    `use_proxies`: honour the environment's HTTP proxies and certificates. Made within the loop that uses it. What goes
    wrong is told in the words of the SDK's HTTP client, by errors of httpx2.TransportError.
    """

    def __init__(self, base_url: str, *, use_proxies: bool) -> None:
        self._proxy = _proxy_for(base_url) if use_proxies else None
        is_encrypted = urlsplit(base_url).scheme == "https"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_KEPT_SECONDS,
                # The same trust as of the SDK's own connections; to load it takes a while.
                ssl=httpx2.create_ssl_context(trust_env=use_proxies) if is_encrypted else True,
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            trace_configs=[_watch_sending()],
        )

    async def request(
        self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes, *, unpack: bool = True
    ) -> aiohttp.ClientResponse:
        """Send a request; the body of its answer is still to be read, by `pieces`.

        `unpack`: undo its compression, which some servers do not leave though they are asked to.
        """
        with _sorted():
            return await self._session.request(
                method,
                url,
                headers=headers,
                data=io.BytesIO(body) if len(body) > _LARGE_BODY else body or None,
                # A prompt goes to the configured server, and to no other that this one names.
                allow_redirects=False,
                auto_decompress=unpack,
                proxy=self._proxy,
                trace_request_ctx=progress_of_call.get(),
            )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()


async def pieces(response: aiohttp.ClientResponse, *, most: int | None = None) -> AsyncIterator[bytes]:
    """Yield the body of an answer as it comes.

    Raises httpx2.TransportError, BadOutputError beyond `most` bytes, and OutOfTimeError once it has expired.
    """
    size = 0
    with _sorted():
        while piece := await _next_piece(response.content):
            size += len(piece)
            if most is not None and size > most:
                raise too_large(most)
            held = _held_back(response)
            try:
                yield piece
            finally:
                if held is not None and not held.is_closing():
                    held.resume_reading()


def expire(response: aiohttp.ClientResponse) -> None:
    """Let whoever reads an answer now, or next, get OutOfTimeError: one timer for a call, not one for each piece.

    Unless its end has been read from the socket: then nobody waits for the server any more.
    """
    if not response.content.is_eof():
        response.content.set_exception(OutOfTimeError())


async def _next_piece(content: aiohttp.StreamReader) -> bytes:
    """Read what has come; behind the last of it b"", or the error of a cut."""
    try:
        return await content.readany()
    except aiohttp.ClientError as error:
        # What came before the cut was answered, and may be paid for.
        content.set_exception(None)  # type: ignore[arg-type]
        rest = content.read_nowait()
        content.set_exception(error)
        if rest:
            return rest
        raise


def _held_back(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    """Leave in the socket what comes from now on; None where the answer is whole, for its connection is another's."""
    connection = response.connection
    transport = None if connection is None else connection.transport
    if transport is None or transport.is_closing():
        return None
    transport.pause_reading()
    return transport


class Transport(httpx2.AsyncBaseTransport):
    """The connections as the SDK's HTTP client wants them."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its answer's body is still to be read. Raises httpx2.TransportError."""
        headers = request.headers.multi_items()
        # The client above unpacks.
        response = await self._connections.request(
            request.method, str(request.url), headers, request.content, unpack=False
        )
        return httpx2.Response(
            response.status, headers=list(response.raw_headers), stream=_Body(response), request=request
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return pieces(self._response)

    async def aclose(self) -> None:
        """Give the connection back where the answer was read to its end; else close it."""
        self._response.close()


def _proxy_for(base_url: str) -> str | None:
    parts = urlsplit(base_url)
    proxies = getproxies()
    if proxy_bypass(parts.hostname or ""):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def _watch_sending() -> aiohttp.TraceConfig:
    """From when the first byte of a request is sent it may be paid."""

    async def note(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
        if context.trace_request_ctx is not None:
            context.trace_request_ctx.is_sent = True

    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(note)
    return config


@contextmanager
def _sorted() -> Iterator[None]:
    """Tell what went wrong in the words of the SDK's HTTP client."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(str(error)) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except OutOfTimeError:
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise httpx2.ReadError(str(error)) from error
