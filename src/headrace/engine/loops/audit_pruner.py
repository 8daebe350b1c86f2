"""The pruner of the audit: actions leave after their retention, on the leader only."""

from __future__ import annotations

from datetime import timedelta

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.ports.audit_store import AuditStore

SLICE = 1_000


class AuditPruner(Loop):
    """Removes one slice per step and comes back at once while slices are full."""

    name = "audit-pruner"

    def __init__(self, audit: AuditStore, leadership: Leadership, *, keep: timedelta, interval: timedelta) -> None:
        super().__init__(interval)
        self._audit = audit
        self._leadership = leadership
        self._keep = keep

    async def step(self) -> None:
        """Prune once, if this process leads."""
        term = self._leadership.term
        if term is None:
            return
        if await self._audit.prune_actions(older_than=self._keep, limit=SLICE, term=term) >= SLICE:
            self.wake()
