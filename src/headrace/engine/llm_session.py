"""The session under which one process makes model calls: with it others know whether a call's maker still lives.

Unlike a worker's, nothing has to stop when its lease ends: paid answers are taken from anyone. A call in flight then
counts as orphaned until its answer comes, and an equal one may be made elsewhere. So the lease is long, and its
heartbeat runs on the loop of the calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.engine.host import this_process
from headrace.engine.loops.loop import Loop
from headrace.model.errors import HeadraceError
from headrace.model.session import NewSession
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.llm")

LEASE = timedelta(seconds=30)
INTERVAL = timedelta(seconds=5)


class CallerSession(Loop):
    """Registered with the first call; renewed until it is closed. One that was lost is followed by another."""

    name = "llm-session"

    def __init__(self, stores: Stores, stats: Callable[[], dict[str, Any]], interval: timedelta = INTERVAL) -> None:
        super().__init__(interval)
        self._stores, self._stats = stores, stats
        self._session: UUID | None = None
        self._registering = asyncio.Lock()

    async def id(self) -> UUID:
        """The session of now. Raises StoreUnavailableError."""
        if self._session is None:
            async with self._registering:
                if self._session is None:
                    self._session = await self._register()
        return self._session

    async def _register(self) -> UUID:
        session = NewSession(this_process(), socket.gethostname(), {}, LEASE)
        await self._stores.sessions.register_session(session)
        self.start()
        return session.id

    async def step(self) -> None:
        """Renew the lease; where it was lost, the next call registers another."""
        if self._session is None:
            return
        renewal = await self._stores.sessions.renew_session(self._session, lease=LEASE, stats=self._stats())
        if not renewal.alive:
            LOG.warning("the session of this process's model calls has ended: another one begins with the next call")
            self._session = None

    async def close(self) -> None:
        """End the session: what is still in flight under it counts as orphaned."""
        await self.stop()
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(HeadraceError):
                await self._stores.sessions.close_session(session)
