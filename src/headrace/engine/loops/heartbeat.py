"""The heartbeat: renews the session's lease from a thread and a connection of its own.

Guaranteed: a worker that can run stops its handlers before its lease ends. The deadline counts from when the last
successful renewal was *sent*, less a margin, on a clock that counts a suspended machine. A lease that has ended is
never renewed. Handlers that do not stop (threads) make the process exit before the lease ends.
Not guaranteed: that a frozen process stops anything. Its late writes are refused by the fence.
The loop is a coroutine over ports; the thread only hosts it (`HeartbeatThread`), so that it can be simulated.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.errors import StorageResetError
from headrace.model.session import Renewal
from headrace.ports.clock import Clock
from headrace.ports.session_store import SessionStore

LOG = logging.getLogger("headrace.heartbeat")

#: Handlers are stopped this long before the lease ends.
STOP_MARGIN = timedelta(seconds=2)
#: sysexits.h EX_TEMPFAIL: the supervisor starts a new process
EXIT_LEASE_LOST = 75
#: Seconds of one try to renew, unless the deadline is nearer.
SHORTEST_TRY = 0.5
#: At a stop the thread may close its connection this long.
JOIN_SECONDS = 2.0


@dataclass(slots=True)
class Lease:
    """What the heartbeat needs to know of a session, and what it reports."""

    session: UUID
    length: timedelta
    interval: timedelta
    stats: Callable[[], dict[str, Any]]
    #: Called with the ids of jobs to cancel.
    on_cancel: Callable[[tuple[UUID, ...]], None]
    #: Called once when the lease is lost.
    on_lost: Callable[[], None]

    @property
    def margin(self) -> timedelta:
        """The stop margin, smaller for the short leases of tests."""
        return min(STOP_MARGIN, self.length / 6)


class Heartbeat:
    """Renews one lease until it is lost or `stop` is called."""

    def __init__(self, lease: Lease, clock: Clock, *, renewed_at: float) -> None:
        """`renewed_at`: when the registration was sent, by the clock's monotonic time."""
        self.lease = lease
        self._clock = clock
        self._stopping = asyncio.Event()
        #: When the last renewal that succeeded was sent.
        self.renewed_at = renewed_at

    def stop(self) -> None:
        """End without reporting a loss."""
        self._stopping.set()

    async def run(self, sessions: SessionStore) -> None:
        """Renew until stopped or lost."""
        while not await self._pause():
            # Past the deadline there is nothing to renew for: the handlers must be stopped by now.
            if self.remaining() <= 0 or not await self._renew(sessions):
                self.lease.on_lost()
                return

    async def _pause(self) -> bool:
        """Wait one interval, or less when the deadline is nearer; return whether the heartbeat is to stop."""
        wait = min(self.lease.interval.total_seconds(), max(self.remaining() / 2, 0.02))
        try:
            async with asyncio.timeout(wait):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _renew(self, sessions: SessionStore) -> bool:
        """Renew once; return False when the lease is lost."""
        sent_at = self._clock.monotonic()
        try:
            # Half of what is left: over a link that died silently a second try is worth more than a longer wait.
            async with asyncio.timeout(max(self.remaining() / 2, min(self.remaining(), SHORTEST_TRY))):
                renewal = await sessions.renew_session(
                    self.lease.session, lease=self.lease.length, stats=self.lease.stats()
                )
        except StorageResetError:
            # There is nothing left that the handlers could be working for.
            return False
        except Exception as error:
            LOG.warning("heartbeat failed (%s); %.1f s until the handlers are stopped", error, self.remaining())
            return self.remaining() > 0
        return self._accept(renewal, sent_at)

    def _accept(self, renewal: Renewal, sent_at: float) -> bool:
        if not renewal.alive:
            return False
        self.renewed_at = sent_at
        if renewal.cancel_jobs:
            self.lease.on_cancel(renewal.cancel_jobs)
        return True

    def remaining(self) -> float:
        """Seconds until handlers must be stopped."""
        allowed = (self.lease.length - self.lease.margin).total_seconds()
        return self.renewed_at + allowed - self._clock.monotonic()

    def until_lease_end(self) -> float:
        """Seconds until others may take the jobs, and no less than the margin."""
        margin = self.lease.margin.total_seconds()
        return max(self.renewed_at + self.lease.length.total_seconds() - self._clock.monotonic(), margin)


class HeartbeatThread:
    """Hosts a heartbeat in a thread with an event loop and a session store of its own.

    `lease.on_lost` and `lease.on_cancel` are called in that thread. After a loss it waits for `handlers_stopped`
    until the lease ends and then exits the process, since nothing else can stop a thread.
    """

    def __init__(self, heartbeat: Heartbeat, sessions: Callable[[], AbstractAsyncContextManager[SessionStore]]) -> None:
        self._heartbeat = heartbeat
        self._sessions = sessions
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._host, name="headrace-heartbeat", daemon=True)
        self._stopped = False
        self.handlers_stopped = threading.Event()

    def start(self) -> None:
        """Begin renewing."""
        self._thread.start()

    async def stop(self) -> None:
        """Stop renewing and wait until the connection is closed; the lease is left to be ended by the caller."""
        self.handlers_stopped.set()
        self._stopped = True
        if self._loop is not None:
            # RuntimeError: the thread has ended by now.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._heartbeat.stop)
        await asyncio.to_thread(self._thread.join, JOIN_SECONDS)

    def _host(self) -> None:
        asyncio.run(self._run())
        if not self._stopped:
            self._exit_unless_stopped()

    async def _run(self) -> None:
        """Renew until stopped or lost, connecting again where the connection could not be made."""
        self._loop = asyncio.get_running_loop()
        heartbeat = self._heartbeat
        while not self._stopped and heartbeat.remaining() > 0:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(heartbeat.remaining()):
                        sessions = await stack.enter_async_context(self._sessions())
                    await heartbeat.run(sessions)
                    return
            except Exception as error:
                LOG.warning("the heartbeat cannot connect, trying again: %s", error)
                await asyncio.sleep(heartbeat.lease.margin.total_seconds() / 4)
        if not self._stopped:
            heartbeat.lease.on_lost()

    def _exit_unless_stopped(self) -> None:
        if not self.handlers_stopped.wait(self._heartbeat.until_lease_end()):
            LOG.critical("the lease is lost and handlers in threads do not stop: exiting so that their jobs run once")
            os._exit(EXIT_LEASE_LOST)
