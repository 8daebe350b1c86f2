"""The cache port: texts by key, which many may share and which may be gone at any time."""

from __future__ import annotations

from typing import Protocol

from headrace.model.cache import CacheStats


class SharedCache(Protocol):
    """One bounded cache of texts: when it is full, what was not asked for longest gives way.

    A cache is a hint. No method raises when whoever holds it is away or begins again: then nothing is known, nothing
    is kept, and the counts begin with 0.
    """

    async def get(self, key: str) -> str | None:
        """Return what was put under a key, if it is there and its time is not over."""
        ...

    async def put(self, key: str, text: str) -> None:
        """Keep a text under a key, in place of an earlier one; one that is larger than the whole cache is not kept."""
        ...

    async def clear(self) -> None:
        """Forget all entries; the counts stay."""
        ...

    async def stats(self) -> CacheStats:
        """Return what it holds, and its counts."""
        ...

    async def close(self) -> None:
        """Let go of it; others that share it still have it."""
        ...
