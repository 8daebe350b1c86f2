"""A limiter beside the store that need not be there when the app is opened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Protocol

from headrace.model.errors import StoreUnavailableError
from headrace.model.limits import Level, Rate
from headrace.ports.limiter import Limiter, Taken

LOG = logging.getLogger("headrace.limits")


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
        self._connecting = asyncio.Lock()

    async def open(self) -> None:
        """Connect, or say that the server is away. Raises ConfigError, NotAllowedError."""
        try:
            await self._opened()
        except StoreUnavailableError as error:
            if not error.transient:
                raise
            LOG.warning("the limiter is away: no job with a rate limit starts until it is there: %s", error)

    async def _opened(self) -> ClosableLimiter:
        async with self._connecting:
            if self._limiter is None:
                self._limiter = await self._connect()
            return self._limiter

    async def declare(self, rates: Mapping[str, Rate]) -> None:
        """Set the rates of buckets."""
        await (await self._opened()).declare(rates)

    async def take(self, wanted: Mapping[str, float], *, some: bool = False) -> Taken:
        """Take units."""
        return await (await self._opened()).take(wanted, some=some)

    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units."""
        await (await self._opened()).give_back(units)

    async def close_bucket(self, name: str, wait: timedelta) -> None:
        """Let nothing pass for some time."""
        await (await self._opened()).close_bucket(name, wait)

    async def forget(self, name: str) -> None:
        """Remove a bucket."""
        await (await self._opened()).forget(name)

    async def levels(self, names: Collection[str]) -> Mapping[str, Level]:
        """Return how buckets stand."""
        return await (await self._opened()).levels(names)

    async def close(self) -> None:
        """End its connections."""
        if self._limiter is not None:
            await self._limiter.close()
