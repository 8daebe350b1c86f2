"""What command line and HTTP service show of workers: who is alive, and how long ago each was heard of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from headrace.engine.queries import to_json
from headrace.engine.slot_exposition import slots_of
from headrace.model.session import SessionView
from headrace.ports.stores import Stores


async def list_workers(stores: Stores, *, everyone: bool = False) -> tuple[datetime | None, list[SessionView]]:
    """Return the store's time and the workers that are alive; with `everyone` also those that ended."""
    # Leases are counted by the store's clock, so their ages are too.
    now, sessions = (await stores.inspect.store_info()).now, await stores.inspect.list_sessions()
    return now, serving(sessions, everyone=everyone)


def serving(sessions: Iterable[SessionView], *, everyone: bool = False) -> list[SessionView]:
    """Return the sessions of workers that are alive; with `everyone` also those that ended."""
    # A process that only calls models has a session as well, and serves no queue.
    return [session for session in sessions if session.queues and (session.alive or everyone)]


def heartbeat_age(session: SessionView, now: datetime | None) -> timedelta | None:
    """Return how long ago a live worker renewed its lease; None where that is not known."""
    lease = session.stats.get("headrace.sessions.lease_ms")
    if now is None or not session.alive:
        return None
    if lease is None:
        return now - session.started_at
    return max(timedelta(milliseconds=lease) - (session.expires_at - now), timedelta())


def worker_document(session: SessionView, now: datetime | None) -> dict[str, Any]:
    """Return a worker as one document."""
    beat = heartbeat_age(session, now)
    document: dict[str, Any] = to_json(session)
    slots = slots_of(session)
    return document | {
        "queues": {queue: row["size"] for queue, row in slots.items()},
        "slots": slots,
        "heartbeat_age_seconds": None if beat is None else round(beat.total_seconds(), 3),
    }
