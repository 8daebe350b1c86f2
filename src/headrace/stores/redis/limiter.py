"""The limiter on Redis: token buckets by the server's clock, in the store itself or beside another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from headrace.model.admission import LimitKind
from headrace.model.limits import Level, Rate
from headrace.ports.limiter import Taken
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import span


class RedisLimiter:
    """`ports.limiter.Limiter`; each verb is one script, so rivals never take the same unit."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def declare(self, rates: Mapping[str, Rate]) -> None:
        """Set rates; a bucket that was not known starts empty."""
        words = [word for name, rate in rates.items() for word in (name, repr(rate.per_second), repr(rate.burst))]
        if words:
            await self._namespace.run("declare", *words)

    async def take(
        self, wanted: Mapping[str, float], *, some: bool = False, least: Mapping[str, float] | None = None
    ) -> Taken:
        """Take all, or of each what is there."""
        leasts = least or {}
        words = [
            word
            for name, units in wanted.items()
            for word in (name, repr(float(units)), repr(float(leasts.get(name, 0))))
        ]
        wait, given, unknown = await self._namespace.run("take", int(some), *words)
        units = {name: float(amount) for name, amount in zip(given[::2], given[1::2], strict=True)}
        return Taken(units, timedelta(microseconds=int(wait)), frozenset(unknown))

    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units; a bucket never holds more than its burst."""
        words = [word for name, amount in units.items() for word in (name, repr(float(amount)))]
        if words:
            await self._namespace.run("give_back", *words)

    async def close_bucket(self, name: str, wait: timedelta) -> None:
        """Let nothing pass for `wait`."""
        await self._namespace.run("close_bucket", name, span(wait))

    async def open_bucket(self, name: str) -> None:
        """End a closing."""
        await self._namespace.run("open_bucket", name)

    async def forget(self, name: str) -> None:
        """Remove a bucket."""
        await self._namespace.run("forget_limit", name, LimitKind.RATE)

    async def levels(self, names: Collection[str]) -> Mapping[str, Level]:
        """Return how buckets stand."""
        rows = await self._namespace.run("read_levels", *names)
        return {name: Level(float(units), timedelta(microseconds=int(closed))) for name, units, closed in rows}
