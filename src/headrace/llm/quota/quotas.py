"""All pools of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random

from headrace.llm.quota.pool import LocalPool
from headrace.llm.quota.reservation import Reservation
from headrace.llm.quota.values import PoolStats
from headrace.model.quota import Estimate, Pool
from headrace.ports.limiter import Limiter


class Quotas:
    """Lets calls pass while their pools have units, over all processes that share the limiter.

    Time is the running loop's for waits here, and the limiter's for everything that processes share.

    >>> from headrace.model.quota import PoolLimits
    >>> from headrace.model.usage import Usage
    >>> from headrace.stores.memory import open_memory_stores
    >>> async def main() -> None:
    ...     quotas = Quotas(open_memory_stores().limiter)
    ...     pool = Pool("fake:main:small", PoolLimits(requests_per_minute=60_000))
    ...     reservation = await quotas.reserve(pool, Estimate(input_tokens=10, max_tokens=20))
    ...     reservation.settle(Usage(input_tokens=10, output_tokens=5, calls=1))
    ...     print(quotas.stats()[0].used["requests"])
    ...     await quotas.close()
    >>> asyncio.run(main())
    1.0
    """

    def __init__(self, limiter: Limiter, *, random: Random | None = None) -> None:
        """`random` draws the jitter of waits."""
        self._limiter = limiter
        self._random = random or Random()  # noqa: S311 - no secret is drawn
        self._pools: dict[str, LocalPool] = {}
        #: workers that end just now
        self._leave = 0

    def try_reserve(self, pool: Pool, estimate: Estimate) -> Reservation | None:
        """Reserve at once from what this process has leased; None: it would have to wait. Asks no server."""
        return self._local(pool).try_reserve(estimate)

    async def reserve(self, pool: Pool, estimate: Estimate, *, longest: timedelta | None = None) -> Reservation:
        """Reserve, after a wait if need be, in the order in which callers came.

        Raises QuotaWait as soon as it is clear that the wait exceeds `longest` (None: waits as long as it takes).
        Who is first in line with a call that takes more than the pool's bucket ever holds waits on until it is earned,
        where that takes five minutes at most: if all left, nobody would ever have it.
        """
        local = self._local(pool)
        return local.try_reserve(estimate) or await local.reserve(estimate, longest)

    @contextmanager
    def jobs_leave(self) -> Iterator[None]:
        """Let nobody wait here who waits for a limited time, as jobs do: a worker that ends would wait for them."""
        self._leave += 1
        self._turn_jobs_away()
        try:
            yield
        finally:
            self._leave -= 1
            self._turn_jobs_away()

    def _turn_jobs_away(self) -> None:
        for local in self._pools.values():
            local.turn_jobs_away(self._leave > 0)

    def closed_for(self, pool_name: str) -> timedelta:
        """Return for how much longer a pool lets nothing pass, as far as this process knows; zero: it is open."""
        local = self._pools.get(pool_name)
        return local.closed_for() if local is not None else timedelta()

    def stats(self) -> list[PoolStats]:
        """Return the pools that were used here, by name."""
        return [self._pools[name].stats() for name in sorted(self._pools)]

    async def close(self) -> None:
        """Give everything back that is not used; callers that still wait get a CancelledError. Allowed twice."""
        pools, self._pools = list(self._pools.values()), {}
        await asyncio.gather(*(pool.close() for pool in pools))

    def _local(self, pool: Pool) -> LocalPool:
        local = self._pools.get(pool.name)
        if local is None or local.dead:
            local = self._pools[pool.name] = LocalPool(pool, self._limiter, self._random)
            local.turn_jobs_away(self._leave > 0)
        elif local.limits != pool.limits:
            local.relimit(pool.limits)
        return local
