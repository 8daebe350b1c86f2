"""Client processes, a limiter and a provider that refuses, on virtual time: a minute of calls takes under a second."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from headrace.llm.quota import Quotas, QuotaWait, Reservation
from headrace.model.errors import StoreUnavailableError
from headrace.model.quota import NO_HINT, Dimension, Estimate, Pool, PoolLimits, QuotaHint
from headrace.model.usage import Usage
from headrace.ports.limiter import Limiter
from headrace.stores.memory import open_memory_stores
from headrace.testing.simulation.loop import WORLD, VirtualLoop

START = datetime(2026, 1, 1, tzinfo=UTC)


class LoopClock:
    """`ports.clock.Clock` that shows the time of a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        """Return the wall clock."""
        return START + timedelta(seconds=self._loop.now)

    def monotonic(self) -> float:
        """Return the time of the loop."""
        return self._loop.now


class FarLimiter:
    """A limiter behind a network: each verb takes some milliseconds, and is counted."""

    def __init__(self, limiter: Limiter, random: Random, *, seconds: float = 0.002) -> None:
        self._limiter, self._random, self._seconds = limiter, random, seconds
        self.asked: Counter[str] = Counter()
        self.away = False

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            self.asked[name] += 1
            if self.away:
                raise StoreUnavailableError("nobody listens there")
            await asyncio.sleep(self._seconds * self._random.uniform(0.5, 1))
            answer = await getattr(self._limiter, name)(*arguments, **options)
            await asyncio.sleep(self._seconds * self._random.uniform(0.5, 1))
            return answer

        return call


@dataclass
class Bucket:
    """A token bucket of the provider, full at first."""

    per_second: float
    burst: float
    level: float
    at: float = 0.0

    def settle(self, now: float) -> None:
        """Add what flowed in."""
        self.level = min(self.burst, self.level + (now - self.at) * self.per_second)
        self.at = now


class Refused(Exception):
    """HTTP 429."""

    def __init__(self, retry_after: timedelta | None, hint: QuotaHint) -> None:
        super().__init__()
        self.retry_after, self.hint = retry_after, hint


@dataclass(kw_only=True)
class Workload:
    """What is asked, and how long answers take."""

    prompt: int = 500
    output: int = 180
    max_tokens: int = 1_000
    first: float = 0.1
    per_token: float = 1 / 600


@dataclass(kw_only=True)
class Provider:
    """Reserves the prompt and `max_tokens` of a call when it comes, and returns what the answer did not need."""

    loop: VirtualLoop
    random: Random
    #: units per second
    flows: Mapping[Dimension, float]
    burst_seconds: float = 1.0
    #: refusals tell whole seconds, as the header does; None: they tell nothing
    whole_seconds: bool | None = True
    tells_limits: bool = False
    #: the answer is reserved when a call comes; else it is charged when it is written
    reserves_answers: bool = True
    #: one way, in seconds
    network: tuple[float, float] = (0.005, 0.02)
    buckets: dict[Dimension, Bucket] = field(default_factory=dict)
    #: (time, units) of accepted calls, by what they used in the end
    accepted: list[tuple[float, Mapping[Dimension, float]]] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    def __post_init__(self) -> None:
        for dimension, flow in self.flows.items():
            self.buckets[dimension] = Bucket(flow, flow * self.burst_seconds, flow * self.burst_seconds)

    def scale(self, factor: float) -> None:
        """Change the quota from now on."""
        for bucket in self.buckets.values():
            bucket.settle(self.loop.now)
            bucket.per_second *= factor
            bucket.burst *= factor
            bucket.level = min(bucket.level, bucket.burst)

    async def call(self, estimate: Estimate, output: int, work: Workload) -> tuple[Usage, QuotaHint]:
        """Answer or refuse."""
        await asyncio.sleep(self.random.uniform(*self.network))
        tokens = estimate.tokens if self.reserves_answers else estimate.input_tokens
        reserved = {Dimension.REQUESTS: 1.0, Dimension.TOKENS: float(tokens)}
        self._admit(reserved)
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        hint = self._hint()
        await asyncio.sleep(work.first + output * work.per_token)
        used = {Dimension.REQUESTS: 1.0, Dimension.TOKENS: float(estimate.input_tokens + output)}
        for dimension, bucket in self.buckets.items():
            bucket.settle(self.loop.now)
            bucket.level = min(bucket.burst, bucket.level + reserved[dimension] - used[dimension])
        self.in_flight -= 1
        self.accepted.append((self.loop.now, used))
        await asyncio.sleep(self.random.uniform(*self.network))
        return Usage(input_tokens=estimate.input_tokens, output_tokens=output, calls=1), hint

    def _admit(self, reserved: Mapping[Dimension, float]) -> None:
        for bucket in self.buckets.values():
            bucket.settle(self.loop.now)
        lacks = [(reserved[dimension] - bucket.level) / bucket.per_second for dimension, bucket in self.buckets.items()]
        if max(lacks) > 1e-9:
            self.refused.append(self.loop.now)
            wait = float(math.ceil(max(lacks))) if self.whole_seconds else max(lacks)
            told = None if self.whole_seconds is None else timedelta(seconds=wait)
            raise Refused(told, self._hint())
        for dimension, bucket in self.buckets.items():
            bucket.level -= reserved[dimension]

    def _hint(self) -> QuotaHint:
        if not self.tells_limits:
            return NO_HINT
        return QuotaHint(
            limits={dimension: bucket.per_second * 60 for dimension, bucket in self.buckets.items()},
            remaining={dimension: bucket.level for dimension, bucket in self.buckets.items()},
        )

    def used(self, dimension: Dimension, begin: float, end: float) -> float:
        """Return the units per second that answered calls used between two instants."""
        return sum(units[dimension] for at, units in self.accepted if begin <= at < end) / (end - begin)

    def refusals(self, begin: float = 0.0, end: float = math.inf) -> int:
        """Return how many calls were refused between two instants."""
        return sum(begin <= at < end for at in self.refused)


@dataclass(kw_only=True)
class World:
    """Some processes on one key."""

    loop: VirtualLoop
    provider: Provider
    limiter: FarLimiter
    quotas: list[Quotas]
    work: Workload
    random: Random
    pool: Pool
    left: int = 0
    #: answered calls of each process
    answered: Counter[int] = field(default_factory=Counter)

    async def run(self, calls: int, *, concurrency: int = 100) -> float:
        """Let every process ask with so many workers until all calls are answered; return when the supply ended."""
        self.left = calls
        # Not `as_completed`: it starts them in the order of a set, which differs from one run to the next.
        return min(await asyncio.gather(*(self._worker(quotas) for quotas in self.quotas for _ in range(concurrency))))

    async def _worker(self, quotas: Quotas) -> float:
        while self.left > 0:
            self.left -= 1
            while not await self.ask(quotas):
                pass
        return self.loop.now

    async def ask(self, quotas: Quotas) -> bool:
        """Make one call; say whether it was answered."""
        work = self.work
        output = min(work.max_tokens, max(1, int(self.random.expovariate(1 / work.output))))
        estimate = Estimate(work.prompt, work.max_tokens)
        reservation: Reservation = await quotas.reserve(self.pool, estimate)
        try:
            usage, hint = await self.provider.call(estimate, output, work)
        except Refused as error:
            reservation.refuse(error.retry_after, error.hint)
            return False
        self.answered[self.quotas.index(quotas)] += 1
        reservation.settle(usage, hint, per_token=timedelta(seconds=work.per_token))
        return True

    async def close(self) -> None:
        """End all processes."""
        for quotas in self.quotas:
            await quotas.close()


def in_world(
    scenario: Callable[[World], Awaitable[None]],
    *,
    limits: PoolLimits,
    flows: Mapping[Dimension, float],
    processes: int = 3,
    work: Workload | None = None,
    seed: int = 1,
    **provider: Any,
) -> World:
    """Run a scenario on virtual time and return the world as it ended."""
    loop, random = VirtualLoop(None), Random(seed)
    clock = LoopClock(loop)
    limiter = FarLimiter(open_memory_stores(clock).limiter, random)
    quotas = [Quotas(limiter, random=Random(seed + number)) for number in range(processes)]
    world = World(
        loop=loop, provider=Provider(loop=loop, random=random, flows=flows, **provider), limiter=limiter,
        quotas=quotas, work=work or Workload(), random=random, pool=Pool("fake:main:small", limits),
    )  # fmt: skip

    async def whole() -> None:
        await scenario(world)
        await world.close()

    try:
        loop.run_until_complete(whole())
    finally:
        loop.dispose([WORLD])
    return world


__all__ = ["Provider", "QuotaWait", "Refused", "Workload", "World", "in_world"]
