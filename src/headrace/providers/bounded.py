"""A bound on what a provider may send: an answer of 50 MB must not fill a worker's memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from headrace.model.provider_errors import BadOutputError
from headrace.model.usage import Usage

#: The longest answers of today's models are some hundred thousand tokens, a few MB.
LARGEST_ANSWER = 8 * 1024 * 1024
#: A stream has 200 to 300 bytes round each token, and is never in memory as a whole; vectors are long and wanted.
LARGEST_TRANSFER = 64 * 1024 * 1024
#: An error says what is wrong in a few lines, or in the page of a proxy.
LARGEST_ERROR = 1024 * 1024


async def bound_response(response: httpx2.Response) -> None:
    """Bound the bytes of a response that was not read yet; a hook for the HTTP client.

    It sits below the SDK, which reads the body of an error itself.
    """
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _BoundedStream(response.stream, _bound(response))


def _bound(response: httpx2.Response) -> int:
    if not response.is_success:
        return LARGEST_ERROR
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    is_long = is_stream or response.request.url.path.endswith("/embeddings")
    return LARGEST_TRANSFER if is_long else LARGEST_ANSWER


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, bound: int) -> None:
        self._stream, self._bound = stream, bound

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._bound:
                raise too_large(self._bound)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def too_large(bound: int = LARGEST_ANSWER) -> BadOutputError:
    """The error for a body that grew beyond its bound; it was paid for, and nobody knows how much."""
    return BadOutputError(
        f"the provider sent more than {bound} bytes; the rest was refused",
        errors=[f"the answer is larger than {bound} bytes"],
        usage=Usage(calls=1, unpriced=1),
    )
