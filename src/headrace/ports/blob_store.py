"""The blob store port: large values, apart from the rows that control the work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol


class BlobStore(Protocol):
    """Blobs by key. Keys are made of [A-Za-z0-9._-] and "/"; no part begins with a dot.

    All methods raise BlobStoreError when the storage cannot answer.
    """

    async def put_blob(self, key: str, data: bytes) -> None:
        """Store a blob, whole or not at all; it is on disk when this returns. An equal key is replaced."""
        ...

    async def get_blob(self, key: str, *, most: int | None = None) -> bytes:
        """Return a blob. Raises NotFoundError, and PayloadTooLargeError for one of more than `most` bytes, unread."""
        ...

    async def delete_blob(self, key: str) -> None:
        """Remove a blob; one that is not there is no error."""
        ...

    def list_blobs(self, prefix: str) -> AsyncIterator[tuple[str, datetime]]:
        """Return key and time of the last change (aware) of the blobs below a prefix, in no order."""
        ...

    async def close(self) -> None:
        """Release what is open."""
        ...
