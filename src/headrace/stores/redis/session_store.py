"""Leases of workers and the one leader of each role, by the server's clock only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.session import LeaderTerm, NewSession, ProcessId, Renewal, Role
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import leader_words, parse_id, span, to_json


class RedisSessionStore:
    """The session store port on Redis."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def register_session(self, session: NewSession) -> None:
        """Register a session; its lease starts now."""
        process = session.process
        facts: dict[str, str | int] = {
            "host": process.host,
            "pid": process.pid,
            "start_time": process.start_time,
            "hostname": session.hostname,
            "queues": to_json(session.queues),
        }
        words = [word for pair in facts.items() for word in pair]
        await self._namespace.run("register_session", session.id.hex, span(session.lease), *words)

    async def renew_session(self, session: UUID, *, lease: timedelta, stats: dict[str, Any]) -> Renewal:
        """Renew a lease that has not ended; one that has ended can never be renewed."""
        alive, *cancels = await self._namespace.run("renew_session", session.hex, span(lease), to_json(stats))
        return Renewal(alive=bool(alive), cancel_jobs=tuple(map(parse_id, cancels)))

    async def close_session(self, session: UUID) -> None:
        """End a session at once; what still runs under it may be rescued."""
        await self.expire_sessions([session])

    async def sessions_on(self, host: str) -> list[tuple[UUID, ProcessId]]:
        """Return the live sessions whose process runs on `host`."""
        rows = await self._namespace.run("sessions_on", host)
        return [(parse_id(found), ProcessId(host, int(pid), int(start))) for found, pid, start in rows]

    async def expire_sessions(self, sessions: Sequence[UUID]) -> None:
        """End the leases of sessions whose processes are known to be gone."""
        await self._namespace.run("expire_sessions", *(session.hex for session in sessions))

    async def lead(self, session: UUID, *, lease: timedelta, role: Role = Role.ENGINE) -> LeaderTerm | None:
        """Become or stay the leader in a role; None while another session leads. A new leader starts a new term."""
        term = await self._namespace.run("lead", session.hex, span(lease), *([] if role is Role.ENGINE else [role]))
        return None if term is None else LeaderTerm(session, int(term), role)

    async def resign(self, term: LeaderTerm) -> None:
        """Give leadership up, if it is still held."""
        await self._namespace.run("resign", *leader_words(term))
