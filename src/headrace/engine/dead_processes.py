"""Processes of this host that are gone: their sessions end at once, not with their leases."""

from __future__ import annotations

import logging

from headrace.engine.host import is_gone, this_host
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.rescuer")


async def expire_gone(stores: Stores) -> int:
    """End the sessions of processes that are gone on this host; return how many."""
    sessions = await stores.sessions.sessions_on(this_host())
    gone = [session for session, process in sessions if is_gone(process)]
    if gone:
        LOG.warning("%d processes of this host are gone: %s", len(gone), ", ".join(map(str, gone)))
        await stores.sessions.expire_sessions(gone)
    return len(gone)
