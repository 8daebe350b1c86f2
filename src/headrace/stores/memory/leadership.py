"""The one leader of each role: a row with a term and an expiry by the store's clock."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from headrace.model.session import LeaderTerm, Role
from headrace.stores.memory.rows import Leader
from headrace.stores.memory.state import State


def leads(state: State, term: LeaderTerm) -> bool:
    """Whether `term` is the current one of its role and has not ended."""
    row = state.leaders.get(term.role)
    return row is not None and (row.session, row.term) == (term.session, term.term) and row.expires_at > state.now()


def lead(state: State, session: UUID, lease: timedelta, role: Role) -> LeaderTerm | None:
    """Become or stay the leader in a role; a new term begins with each new leader and after each lapse."""
    row, now = state.leaders.get(role), state.now()
    current = row is not None and row.expires_at > now
    if current and row is not None and row.session != session:
        return None
    last = row.term if row is not None else 0
    term = LeaderTerm(session, last if current else last + 1, role)
    state.leaders[role] = Leader(session, term.term, now + lease)
    return term


def resign(state: State, term: LeaderTerm) -> None:
    """End `term` now, unless another one began."""
    if leads(state, term):
        state.leaders[term.role] = Leader(term.session, term.term, state.now())
