"""The handle cache port: which handles are known, in a server beside the store; all of it may be thrown away."""

from __future__ import annotations

from typing import Protocol

from headrace.model.resume_handle import HandleView

#: How long a handle is remembered, seconds.
CACHE_SECONDS = 3_600


class HandleCache(Protocol):
    """Handles by correlation id, under `resume:{correlation_id}`.

    No method raises when the server is away: then nothing is known. What never changes of a handle (types, count) and
    a final state may be relied on; that it waits may not.
    """

    async def get(self, correlation_id: str) -> HandleView | None:
        """Return a handle, if it is remembered."""
        ...

    async def put(self, handle: HandleView) -> None:
        """Remember a handle for `CACHE_SECONDS`; one that has ended is not replaced by one that waits."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...
