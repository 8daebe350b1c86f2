"""The pruner of what leaves by its age alone: runs, signals, feeds, the audit and what belongs to events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.model.session import LeaderTerm

SLICE = 1_000


class Prune(Protocol):
    """Removes what is older than its retention, at most `limit` of it, and returns how much."""

    async def __call__(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Prune once, under the term of the leader."""
        ...


class AgePruner(Loop):
    """Removes one slice of each kind per step, on the leader only, and comes back at once while slices are full."""

    def __init__(
        self, name: str, kinds: Sequence[tuple[Prune, timedelta]], leadership: Leadership, interval: timedelta,
        *, limit: int = SLICE,
    ) -> None:  # fmt: skip
        self.name = name
        super().__init__(interval)
        self._kinds, self._leadership, self._limit = kinds, leadership, limit

    async def step(self) -> None:
        """Prune once, if this process leads."""
        term = self._leadership.term
        if term is None:
            return
        removed = [await prune(older_than=keep, limit=self._limit, term=term) for prune, keep in self._kinds]
        if max(removed) >= self._limit:
            self.wake()
