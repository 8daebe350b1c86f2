"""Actions on their way into the store: written behind the answers, several at once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import islice

from headrace.model.audit import NewAction
from headrace.model.errors import HeadraceError
from headrace.ports.audit_store import AuditStore

LOG = logging.getLogger("headrace.service")

ACTIONS, DROPPED = "headrace_audit_actions_total", "headrace_audit_dropped_total"
#: Actions that wait for the store at most, and those of one write.
MOST_WAITING, MOST_AT_ONCE = 10_000, 500
#: Seconds that actions gather before they are written, that the store has for an answer, and until it is asked again.
GATHER_SECONDS, ANSWER_SECONDS, AGAIN_SECONDS = 0.1, 5.0, 1.0
#: Seconds that what still waits has at the end.
END_SECONDS = 5.0


class AuditLog:
    """Takes actions without waiting, and writes them in the background; while the store is away they wait.

    `store`: asked for at each write, because it may not be open yet. What does not fit is dropped, and counted.
    """

    def __init__(
        self, store: Callable[[], AuditStore], *, most: int = MOST_WAITING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._store, self._most, self._clock = store, most, clock
        self._waiting: deque[tuple[NewAction, float]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._is_away = False
        self.noted = self.dropped = self._told = 0

    def note(self, action: NewAction) -> None:
        """Take an action that was done now."""
        if len(self._waiting) >= self._most:
            self.dropped += 1
            return
        self._waiting.append((action, self._clock()))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="headrace-audit")

    async def _write(self) -> None:
        while self._waiting:
            await self._pause(GATHER_SECONDS)
            if not await self._write_some() and self._ending.is_set():
                return
            self._tell_dropped()
            if self._is_away:
                await self._pause(AGAIN_SECONDS)

    async def _write_some(self) -> bool:
        """Write those that wait longest; return whether they wait no more. Those that no store takes are dropped."""
        some, now = list(islice(self._waiting, MOST_AT_ONCE)), self._clock()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._store().note_actions([(action, timedelta(seconds=now - at)) for action, at in some])
        except (HeadraceError, TimeoutError) as error:
            if not self._is_away:
                LOG.warning("actions cannot be noted in the audit now: %s", error or "the store does not answer")
            self._is_away = True
            return False
        except Exception:
            LOG.exception("%d actions cannot be noted in the audit", len(some))
            self.dropped += len(some)
        else:
            self.noted += len(some)
        self._is_away = False
        for _ in some:
            self._waiting.popleft()
        return True

    async def _pause(self, seconds: float) -> None:
        """Wait, but for the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    def _tell_dropped(self) -> None:
        if self.dropped > self._told:
            LOG.error("%d actions were dropped: the audit lacks them", self.dropped - self._told)
            self._told = self.dropped

    async def close(self) -> None:
        """Write what waits, which takes a few seconds at most; what cannot be written is dropped."""
        self._ending.set()
        if self._writing is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await self._writing
        self.dropped += len(self._waiting)
        self._waiting.clear()
        self._tell_dropped()

    def expose(self) -> str:
        """Return the figures in the text format of Prometheus."""
        lines = []
        for name, about, count in (
            (ACTIONS, "Actions that this process noted in the audit.", self.noted),
            (DROPPED, "Actions that it could not note: the audit lacks them.", self.dropped),
        ):
            lines += [f"# HELP {name} {about}", f"# TYPE {name} counter", f"{name} {count}"]
        return "\n".join(lines) + "\n"
