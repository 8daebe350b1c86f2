"""The body of an answer: read within a bound, and inflated piece by piece so that a small one cannot become huge."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Iterator

from headrace.model.http import HttpError

_PIECE = 256 * 1024
_GZIP = 31
_MAGIC = b"\x1f\x8b"


async def read_body(chunks: AsyncIterable[bytes], encoding: str, limit: int, *, cut: bool = False) -> bytes:
    """Return the whole body. Raises HttpError for one that is larger than `limit`, as it came or inflated.

    `cut`: of a larger one return the beginning instead, and read no more of it.
    """
    inflating = _inflating(encoding)
    parts, came, size = [], 0, 0
    async for chunk in chunks:
        came += len(chunk)
        for piece in inflating.feed(chunk) if inflating else (chunk,):
            parts.append(piece)
            size += len(piece)
            if max(came, size) > limit:
                if cut:
                    return b"".join(parts)[:limit]
                raise HttpError(f"the answer is larger than {limit} bytes: ask for less", code="http_too_large")
    if inflating and came:
        inflating.finish()
    return b"".join(parts)


def _inflating(encoding: str) -> _Inflating | None:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return _Inflating()
    raise HttpError(f"the answer has the encoding {name[:40]!r}, which was not asked for: gzip was", code="http_broken")


class _Inflating:
    """Gzip, of one part or several."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what data becomes, in bounded pieces."""
        while True:
            try:
                piece = self._stream.decompress(data, _PIECE)
            except zlib.error:
                raise HttpError("the answer is no gzip, though it says so", code="http_broken") from None
            yield piece
            data = self._stream.unconsumed_tail
            if self._stream.eof:
                data = self._stream.unused_data
                if not data.startswith(_MAGIC):
                    return  # what some servers pad it with
                self._stream = zlib.decompressobj(_GZIP)
            elif not data:
                return  # the end of it follows all that is inflated

    def finish(self) -> None:
        """Raise HttpError when the end is missing."""
        if not self._stream.eof:
            raise HttpError("the answer ended early", code="http_broken", transient=True)
