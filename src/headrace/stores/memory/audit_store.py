"""The audit in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from headrace.model.audit import Action, NewAction, Place, noted
from headrace.model.session import LeaderTerm
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.state import State, atomic


class MemoryAuditStore:
    """`ports.audit_store.AuditStore` over a dict; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._actions: dict[UUID, Action] = {}

    @atomic
    async def note_actions(self, actions: Sequence[tuple[NewAction, timedelta]]) -> None:
        """Store actions whose ids are new."""
        now = self._state.now()
        for action, age in actions:
            self._actions.setdefault(action.id, noted(action, now - age))

    @atomic
    async def list_actions(
        self, *, before: Place | None = None, limit: int, who: str | None = None, operation: str | None = None
    ) -> list[Action]:
        """Return actions, the newest first."""
        found = [
            action
            for action in self._actions.values()
            if who in (None, action.who) and operation in (None, action.operation)
            if before is None or action.place < before
        ]
        return sorted(found, key=lambda action: action.place, reverse=True)[:limit]

    @atomic
    async def prune_actions(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old actions; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        before = self._state.now() - older_than
        old = sorted(action.place for action in self._actions.values() if action.at <= before)[:limit]
        for _, action_id in old:
            del self._actions[action_id]
        return len(old)
