"""Sessions and leadership in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.session import LeaderTerm, NewSession, ProcessId, Renewal, Role
from headrace.stores.memory import leadership
from headrace.stores.memory.rows import Session
from headrace.stores.memory.state import State, atomic


class MemorySessionStore:
    """`ports.session_store.SessionStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    @atomic
    async def register_session(self, session: NewSession) -> None:
        """Register a session; one that is registered, dead or alive, is left as it is."""
        now = self._state.now()
        self._state.sessions.setdefault(session.id, Session(session, now, now + session.lease))

    @atomic
    async def renew_session(self, session: UUID, *, lease: timedelta, stats: dict[str, Any]) -> Renewal:
        """Renew a lease that has not ended."""
        if not self._state.alive(session):
            return Renewal(alive=False)
        row = self._state.sessions[session]
        row.expires_at, row.stats = self._state.now() + lease, dict(stats)
        unwanted = (job for job in self._state.running.values() if job.session == session and job.cancel_requested)
        return Renewal(alive=True, cancel_jobs=tuple(job.id for job in unwanted))

    @atomic
    async def close_session(self, session: UUID) -> None:
        """End a session at once."""
        self._end(session)

    @atomic
    async def sessions_on(self, host: str) -> list[tuple[UUID, ProcessId]]:
        """Return the live sessions of a host."""
        rows = self._state.sessions.items()
        return [(key, row.new.process) for key, row in rows if row.new.process.host == host and self._state.alive(key)]

    @atomic
    async def expire_sessions(self, sessions: Sequence[UUID]) -> None:
        """End the leases of sessions whose processes are gone."""
        for session in sessions:
            self._end(session)

    def _end(self, session: UUID) -> None:
        if self._state.alive(session):
            self._state.sessions[session].expires_at = self._state.now()

    @atomic
    async def lead(self, session: UUID, *, lease: timedelta, role: Role = Role.ENGINE) -> LeaderTerm | None:
        """Become or stay the leader in a role."""
        return leadership.lead(self._state, session, lease, role)

    @atomic
    async def resign(self, term: LeaderTerm) -> None:
        """Give leadership up."""
        leadership.resign(self._state, term)
