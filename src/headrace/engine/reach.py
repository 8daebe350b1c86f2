"""Asking a limiter beside the store, and knowing when that is of no use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.engine.late_limiter import soon
from headrace.engine.outage import Outage
from headrace.model.errors import StoreUnavailableError
from headrace.ports.limiter import Limiter

LOG = logging.getLogger("headrace.limits")
T = TypeVar("T")

#: A limiter that is away is asked again after this long.
PROBE_SECONDS = 0.5
#: Any bucket will do to see whether it answers; there need not be one of this name.
_PROBED = ("probe",)


class Reach:
    """A limiter that may be away.

    Guaranteed: only calls that are under way when it goes away wait for it. From then on none does, until it has
    answered a probe, which runs in a task of its own and ends with `close`.
    """

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._outage = Outage(LOG, "the limiter is away and no job with a rate limit starts")
        self._probing: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def away(self) -> bool:
        """Whether it did not answer when it was asked last."""
        return self._probing is not None

    async def ask(self, call: Callable[[Limiter], Awaitable[T]]) -> T:
        """Return what it answers. Raises StoreUnavailableError: at once while it is away."""
        if self.away:
            raise StoreUnavailableError("The server that counts rates is away.")
        try:
            return await soon(call(self._limiter))
        except StoreUnavailableError as error:
            self._outage.note(error)
            if self._probing is None and not self._closed:
                self._probing = asyncio.create_task(self._probe(), name="headrace-limiter-probe")
                self._probing.add_done_callback(self._answered)
            raise

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                await soon(self._limiter.levels(_PROBED))
                return
            except StoreUnavailableError as error:
                self._outage.note(error)

    def _answered(self, probing: asyncio.Task[None]) -> None:
        self._probing = None
        if not probing.cancelled():
            probing.exception()  # Whoever asks next sees it.

    async def close(self) -> None:
        """End the probe, and begin none any more."""
        self._closed = True
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)
