"""The session store port: leases of workers, and the one leader of each role."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from headrace.model.session import LeaderTerm, NewSession, ProcessId, Renewal, Role


class SessionStore(Protocol):
    """Sessions and leadership, by the store's clock only."""

    async def register_session(self, session: NewSession) -> None:
        """Register a session; its lease starts now."""
        ...

    async def renew_session(self, session: UUID, *, lease: timedelta, stats: dict[str, Any]) -> Renewal:
        """Renew a lease that has not ended; one that has ended can never be renewed."""
        ...

    async def close_session(self, session: UUID) -> None:
        """End a session at once; what still runs under it may be rescued."""
        ...

    async def sessions_on(self, host: str) -> list[tuple[UUID, ProcessId]]:
        """Return the live sessions whose process runs on `host`."""
        ...

    async def expire_sessions(self, sessions: Sequence[UUID]) -> None:
        """End the leases of sessions whose processes are known to be gone."""
        ...

    async def lead(self, session: UUID, *, lease: timedelta, role: Role = Role.ENGINE) -> LeaderTerm | None:
        """Become or stay the leader in a role; None while another session leads. A new leader starts a new term."""
        ...

    async def resign(self, term: LeaderTerm) -> None:
        """Give leadership up, if it is still held."""
        ...
