"""The handle store port: what paused work waits for. One handle per correlation id; events that come early are kept.

Registering and noting take turns on one row per correlation id, so that an event and its handle never miss each other.
Whatever ends a handle sends the signal `signal_key(correlation_id)` in the same transaction, with the payload
`{"state": "resolved" | "expired" | "cancelled"}`, and marks its target, if it has one, as to be woken.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from headrace.model.resume_handle import HandleView, NewHandle, NotedEvent
from headrace.model.session import LeaderTerm


class HandleStore(Protocol):
    """Durable handles, by the store's clock. All methods raise StoreUnavailableError when the store cannot answer."""

    async def register_handle(self, handle: NewHandle) -> HandleView:
        """Store a handle; it may be resolved at once by what came early. Hints follow.

        Again with the same types, count, agents and target it changes nothing and returns it as it is, with token and
        time of the first. Raises ConflictError where these differ.
        """
        ...

    async def note_event(self, noted: NotedEvent) -> HandleView | None:
        """Keep an event of a correlation id, once per event id; return the handle, if there is one by now.

        Events without a correlation id are none of its business: None. What the handle does not expect is not kept, nor
        is what comes after its end. A dead event of its request types counts as long as no event that it caused (their
        `causation_id` is its id) is kept: so a request that is run again after all is not counted twice.
        """
        ...

    async def resolve_by_token(self, token_hash: str, payload: str) -> HandleView:
        """End a waiting handle by its token, with JSON text.

        The same payload again returns the handle as it is. Raises NotFoundError for an unknown token, ConflictError
        when another payload or anything else ended it before, HandleExpiredError when its time is over: one that no
        sweep has ended yet is ended as expired by this.
        """
        ...

    async def cancel_handle(self, correlation_id: str) -> HandleView:
        """End a waiting handle; one that has ended stays as it is. Raises NotFoundError."""
        ...

    async def expire_handles(self, *, limit: int) -> list[HandleView]:
        """End up to `limit` waiting handles whose time has come, and return them."""
        ...

    async def due_wakes(self, *, limit: int, again_in: timedelta) -> list[HandleView]:
        """Return up to `limit` ended handles whose target is to be woken, and let no other process see them so long."""
        ...

    async def mark_woken(self, correlation_id: str) -> None:
        """Note that the target of a handle was woken, or needs it no more."""
        ...

    async def get_handle(self, correlation_id: str) -> HandleView | None:
        """Return a handle."""
        ...

    async def list_handles(self, *, waiting: bool, limit: int) -> list[HandleView]:
        """Return handles, the newest first; with `waiting` only those."""
        ...

    async def noted_events(self, correlation_id: str) -> list[NotedEvent]:
        """Return the events that are kept for a correlation id, of the types its handle expects, as they came."""
        ...

    async def prune_handles(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` handles that ended longer ago, with their events, and early events as old."""
        ...
