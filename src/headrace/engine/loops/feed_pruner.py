"""The pruner of feeds: entries leave after their retention, on the leader only."""

from __future__ import annotations

from datetime import timedelta

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.ports.feed_store import FeedStore

SLICE = 1_000


class FeedPruner(Loop):
    """Removes one slice per step and comes back at once while slices are full."""

    name = "feed-pruner"

    def __init__(self, feeds: FeedStore, leadership: Leadership, *, keep: timedelta, interval: timedelta) -> None:
        super().__init__(interval)
        self._feeds = feeds
        self._leadership = leadership
        self._keep = keep

    async def step(self) -> None:
        """Prune once, if this process leads."""
        term = self._leadership.term
        if term is None:
            return
        if await self._feeds.prune_feeds(older_than=self._keep, limit=SLICE, term=term) >= SLICE:
            self.wake()
