"""Blobs in the memory of this process: for tests, and for stores that keep their jobs there too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from headrace.blobs.keys import check_key, check_prefix, check_size
from headrace.clock import SystemClock
from headrace.model.errors import NotFoundError
from headrace.ports.clock import Clock


class MemoryBlobs:
    """A dictionary. Nothing survives the process."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._blobs: dict[str, tuple[bytes, datetime]] = {}

    async def put_blob(self, key: str, data: bytes) -> None:
        """Store a blob; an equal key is replaced."""
        self._blobs[check_key(key)] = data, self._clock.now()

    async def get_blob(self, key: str, *, most: int | None = None) -> bytes:
        """Return a blob. Raises NotFoundError, PayloadTooLargeError."""
        found = self._blobs.get(check_key(key))
        if found is None:
            raise NotFoundError(f"no blob {key} in memory")
        check_size(key, len(found[0]), most)
        return found[0]

    async def delete_blob(self, key: str) -> None:
        """Remove a blob, if it is there."""
        self._blobs.pop(check_key(key), None)

    async def list_blobs(self, prefix: str) -> AsyncIterator[tuple[str, datetime]]:
        """Return key and time of the last change of the blobs below a prefix, as they are now."""
        folder = check_prefix(prefix)
        for key, (_, changed_at) in list(self._blobs.items()):
            if not folder or key.startswith(f"{folder}/"):
                yield key, changed_at

    async def close(self) -> None:
        """Forget everything."""
        self._blobs.clear()
