"""One request and its answer over a connection to one of the given addresses, whatever name the target has.

Nothing here looks a name up, reads proxies from the environment or keeps a connection for later. The name is in the
header `Host` and in TLS: a certificate must be the name's.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import cache

import httpcore2

from headrace.model.http import HttpAnswer, HttpError
from headrace.model.targets import Target
from headrace.outbound.body import read_body
from headrace.outbound.hop import Hop

#: Time for one address of several; that of the whole request is bounded by whoever calls.
_CONNECTING = 10.0


class _Pinned(httpcore2.AsyncNetworkBackend):
    """Connects to given addresses, tried in their order."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._inner = httpcore2.AnyIOBackend()
        self._stream: httpcore2.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection; `host` is not asked for."""
        last: Exception = httpcore2.ConnectError("no address")
        for address in self._addresses:
            try:
                self._stream = await self._inner.connect_tcp(address, port, timeout=_CONNECTING)
                return self._stream
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
        raise last

    async def aclose(self) -> None:
        """Close the connection, also one whose TLS did not come about."""
        if self._stream is not None:
            await self._stream.aclose()


@cache
def default_tls() -> ssl.SSLContext:
    """Return what certificates are checked by: the machine's authorities, read once."""
    return httpcore2.default_ssl_context()


async def exchange(
    hop: Hop, addresses: Sequence[str], max_bytes: int, tls: ssl.SSLContext, *, cut: bool = False
) -> HttpAnswer:
    """Send a request to one of the addresses of its target; return the answer. Raises HttpError.

    `cut`: a body of more than `max_bytes` is cut rather than refused.
    """
    backend = _Pinned(addresses)
    try:
        with _faults(hop.target):
            response = await _sent(hop, backend, tls)
            headers = _texts(response.headers)
            try:
                async with aclosing(response.aiter_stream()) as chunks:
                    body = await read_body(chunks, headers.get("content-encoding", ""), max_bytes, cut=cut)
            finally:
                await response.aclose()
    finally:
        await backend.aclose()
    reason = _text(response.extensions["reason_phrase"])
    return HttpAnswer(response.status, reason, headers, body, hop.target.url)


async def _sent(hop: Hop, backend: _Pinned, tls: ssl.SSLContext) -> httpcore2.Response:
    target = hop.target
    scheme, host = target.scheme.encode("ascii"), target.host.encode("ascii")
    origin = httpcore2.Origin(scheme, host, target.port)
    url = httpcore2.URL(scheme=scheme, host=host, port=target.port, target=target.path.encode("ascii"))
    headers = [(name.encode("ascii"), value.encode("utf-8")) for name, value in hop.sent_headers()]
    connection = httpcore2.AsyncHTTPConnection(origin, ssl_context=tls, network_backend=backend)
    return await connection.handle_async_request(
        httpcore2.Request(hop.method.encode("ascii"), url, headers=headers, content=hop.body)
    )


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by their names in lower case; those of one name are joined."""
    texts: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = _text(raw_name).lower(), _text(raw_value)
        texts[name] = f"{texts[name]}, {value}" if name in texts else value
    return texts


def _text(raw: bytes) -> str:
    """Return what a header says: UTF-8 where it is that, as many servers send it, else Latin-1, as HTTP had it."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


@contextmanager
def _faults(target: Target) -> Iterator[None]:
    """Raise HttpError for what the library raises: which target it was, and whether trying again can help."""
    try:
        yield
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
        cause = error.__cause__
        if isinstance(cause, ssl.SSLError):
            why = getattr(cause, "verify_message", "") or cause.reason or "no TLS"
            raise HttpError(
                f"{target.site} cannot be trusted ({why}): correct its certificate", code="http_tls"
            ) from None
        raise HttpError(f"{target.site} cannot be reached", code="http_unreachable", transient=True) from None
    except httpcore2.TimeoutException:
        raise HttpError(f"{target.site} does not answer", code="http_timeout", transient=True) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        why = str(error)[:200] or "the connection was lost"
        raise HttpError(f"{target.site} gave no whole answer ({why})", code="http_broken", transient=True) from None
