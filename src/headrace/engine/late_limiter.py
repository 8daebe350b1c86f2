"""A limiter beside the store that need not be there when the app is opened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Protocol, TypeVar

from headrace.model.errors import StoreUnavailableError
from headrace.model.limits import Level, Rate
from headrace.ports.limiter import Limiter, Taken

LOG = logging.getLogger("headrace.limits")
T = TypeVar("T")

#: A server that says nothing for so long is away for those who can go on without it.
PATIENCE_SECONDS = 1.0


async def soon(answer: Awaitable[T]) -> T:
    """Return what a limiter answers. Raises StoreUnavailableError when it says nothing for PATIENCE_SECONDS."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await answer
    except TimeoutError:
        raise StoreUnavailableError(f"The server that counts rates said nothing for {PATIENCE_SECONDS:g} s.") from None


class ClosableLimiter(Limiter, Protocol):
    """A limiter with connections of its own."""

    async def close(self) -> None:
        """End them."""
        ...


class LateLimiter:
    """`ports.limiter.Limiter` on a server that is connected to when it can be reached; until then every call raises
    StoreUnavailableError."""

    def __init__(self, connect: Callable[[], Awaitable[ClosableLimiter]]) -> None:
        self._connect = connect
        self._limiter: ClosableLimiter | None = None
        self._connecting: asyncio.Task[ClosableLimiter] | None = None

    async def open(self) -> None:
        """Connect, or say that the server is away. Raises ConfigError, NotAllowedError."""
        try:
            await soon(self._opened())
        except StoreUnavailableError as error:
            if not error.transient:
                raise
            LOG.warning("the limiter is away: no job with a rate limit starts until it is there: %s", error)

    async def _opened(self) -> ClosableLimiter:
        if self._limiter is not None:
            return self._limiter
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connected(), name="headrace-limiter")
            self._connecting.add_done_callback(_no_word)
        # Shielded: who does not wait so long must not take it from those who come next.
        return await asyncio.shield(self._connecting)

    async def _connected(self) -> ClosableLimiter:
        try:
            self._limiter = await self._connect()
            return self._limiter
        finally:
            self._connecting = None

    async def declare(self, rates: Mapping[str, Rate]) -> None:
        """Set the rates of buckets."""
        await (await self._opened()).declare(rates)

    async def take(
        self, wanted: Mapping[str, float], *, some: bool = False, least: Mapping[str, float] | None = None
    ) -> Taken:
        """Take units."""
        return await (await self._opened()).take(wanted, some=some, least=least)

    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units."""
        await (await self._opened()).give_back(units)

    async def close_bucket(self, name: str, wait: timedelta) -> None:
        """Let nothing pass for some time."""
        await (await self._opened()).close_bucket(name, wait)

    async def open_bucket(self, name: str) -> None:
        """End a closing."""
        await (await self._opened()).open_bucket(name)

    async def forget(self, name: str) -> None:
        """Remove a bucket."""
        await (await self._opened()).forget(name)

    async def levels(self, names: Collection[str]) -> Mapping[str, Level]:
        """Return how buckets stand."""
        return await (await self._opened()).levels(names)

    async def close(self) -> None:
        """End its connections."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._limiter is not None:
            await self._limiter.close()


def _no_word(task: asyncio.Task[ClosableLimiter]) -> None:
    """Let connecting fail when nobody waits for it any more: whoever asks next sees it."""
    if not task.cancelled():
        task.exception()
