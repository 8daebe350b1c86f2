"""The bounds on what a provider may send, kept below the SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from headrace.providers.bounds import LARGEST_ANSWER, LARGEST_ERROR, LARGEST_TRANSFER, too_large


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
