"""Leases of workers and the one leader of each role, by the database's clock only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.session import LeaderTerm, NewSession, ProcessId, Renewal, Role
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.terms import term_values


class PostgresSessionStore:
    """The session store port on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register_session(self, session: NewSession) -> None:
        """Register a session; its lease starts now."""
        await self._database.fetch(
            "register_session",
            id=session.id,
            start_time=session.process.start_time,
            lease=session.lease,
            pid=session.process.pid,
            host=session.process.host,
            hostname=session.hostname,
            queues=json.dumps(session.queues),
        )

    async def renew_session(self, session: UUID, *, lease: timedelta, stats: dict[str, Any]) -> Renewal:
        """Renew a lease that has not ended; one that has ended can never be renewed."""
        row = await self._database.fetch_one("renew_session", session=session, lease=lease, stats=json.dumps(stats))
        return Renewal(alive=False) if row is None else Renewal(alive=True, cancel_jobs=tuple(row["cancel_jobs"]))

    async def close_session(self, session: UUID) -> None:
        """End a session at once; what still runs under it may be rescued."""
        await self._database.fetch("close_session", session=session)

    async def sessions_on(self, host: str) -> list[tuple[UUID, ProcessId]]:
        """Return the live sessions whose process runs on `host`."""
        rows = await self._database.fetch("sessions_on", host=host)
        return [(row["id"], ProcessId(row["host"], row["pid"], row["start_time"])) for row in rows]

    async def expire_sessions(self, sessions: Sequence[UUID]) -> None:
        """End the leases of sessions whose processes are known to be gone."""
        await self._database.fetch("expire_sessions", sessions=sorted(sessions))

    async def lead(self, session: UUID, *, lease: timedelta, role: Role = Role.ENGINE) -> LeaderTerm | None:
        """Become or stay the leader in a role; None while another session leads. A new leader starts a new term."""
        row = await self._database.fetch_one("lead", session=session, lease=lease, role=role)
        return None if row is None else LeaderTerm(session, row["term"], role)

    async def resign(self, term: LeaderTerm) -> None:
        """Give leadership up, if it is still held."""
        await self._database.fetch("resign", **term_values(term))
