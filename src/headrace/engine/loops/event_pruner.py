"""The pruner of events: logs, notes, messages and handles leave after their retention, on the leader only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.ports.stores import EventStores

SLICE = 1_000


@dataclass(frozen=True, slots=True)
class EventRetention:
    """How long what belongs to events is kept; see `[events]` in the settings."""

    events: timedelta
    #: Which messages were handled: as long none is handled twice.
    inbox: timedelta
    messages: timedelta
    #: After their end, and early events without a handle.
    handles: timedelta


class EventPruner(Loop):
    """Removes one slice of each kind per step and comes back at once while slices are full."""

    name = "event-pruner"

    def __init__(
        self, stores: EventStores, leadership: Leadership, retention: EventRetention,
        interval: timedelta = timedelta(seconds=60),
    ) -> None:  # fmt: skip
        super().__init__(interval)
        self._stores, self._leadership, self._retention = stores, leadership, retention

    async def step(self) -> None:
        """Prune once, if this process leads."""
        term = self._leadership.term
        if term is None:
            return
        stores, keep = self._stores, self._retention
        removed = [
            await stores.outbox.prune_events(older_than=keep.events, limit=SLICE, term=term),
            await stores.inbox.prune_inbox(older_than=keep.inbox, limit=SLICE, term=term),
            await stores.log.prune_messages(older_than=keep.messages, limit=SLICE, term=term),
            await stores.handles.prune_handles(older_than=keep.handles, limit=SLICE, term=term),
        ]
        if max(removed) >= SLICE:
            self.wake()
