"""SAQ on Redis: one process, concurrency 100 (its default is 10), results kept."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from redis.asyncio import Redis
from saq import Worker
from saq.queue.redis import RedisQueue

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.redis import RedisCounter
from headrace.bench.notes import note, note_delay
from headrace.bench.order import Order

CONCURRENCY = 100


class Saq(Contender):
    """Its `enqueue` and its worker."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = RedisCounter(order.redis)
        self._sent = 0

    async def set_up(self) -> None:
        """Begin with an empty database."""
        await self._counter.empty()

    async def open(self) -> None:
        """Connect its queue."""
        self._queue = make_queue(self.order.redis)
        await self._queue.connect()

    async def close(self) -> None:
        """Disconnect."""
        await self._queue.disconnect()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Enqueue one job."""
        await self._queue.enqueue(task, value=value, timeout=60)
        self._sent += 1

    async def done(self) -> int:
        """Count the jobs that are no longer incomplete."""
        return self._sent - int(await self._queue.count("incomplete"))

    def worker_command(self) -> list[str]:
        """Return its worker."""
        return [sys.executable, "-m", __name__]


def make_queue(url: str) -> RedisQueue:
    """Return its queue on a pool large enough for its `map`, which enqueues all at once."""
    return RedisQueue(Redis.from_url(url, max_connections=2_000))


async def noop(ctx: Any, *, value: int) -> None:
    """Do nothing."""


async def stamp(ctx: Any, *, value: float) -> None:
    """Note the time since it was sent."""
    note_delay(value)


async def doze(ctx: Any, *, value: int) -> None:
    """Take a second."""
    await asyncio.sleep(1)


async def scatter(ctx: Any, *, value: int) -> None:
    """Run so many jobs and wait for all."""
    await ctx["worker"].queue.map("noop", [{"value": number} for number in range(value)])
    note("closed")


async def work() -> None:
    """Run its worker until a signal."""
    queue = make_queue(os.environ["BENCH_REDIS"])
    await queue.connect()
    await Worker(queue, [noop, stamp, doze, scatter], concurrency=CONCURRENCY).start()


if __name__ == "__main__":
    asyncio.run(work())
