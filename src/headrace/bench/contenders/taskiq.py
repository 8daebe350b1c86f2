"""taskiq on a Redis stream: 2 worker processes (its default), results kept, fetches of 100 (its default)."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.redis import RedisCounter
from headrace.bench.notes import note_delay
from headrace.bench.order import Order

_URL = os.environ.get("BENCH_REDIS", "redis://127.0.0.1")
_results: Any = RedisAsyncResultBackend(redis_url=_URL, prefix_str="bench")
broker = RedisStreamBroker(url=_URL).with_result_backend(_results)


class Taskiq(Contender):
    """Its `kiq` and its worker."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = RedisCounter(order.redis)

    async def set_up(self) -> None:
        """Begin with an empty database."""
        await self._counter.empty()

    async def open(self) -> None:
        """Make the stream and connect."""
        await broker.startup()

    async def close(self) -> None:
        """Disconnect."""
        await broker.shutdown()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Send one task."""
        await TASKS[task].kiq(value)

    async def done(self) -> int:
        """Count the results it has stored."""
        return await self._counter.keys("bench")

    def worker_command(self) -> list[str]:
        """Return its own worker command."""
        return [
            sys.executable,
            "-m",
            "taskiq",
            "worker",
            f"{__name__}:broker",
            "--workers",
            "2",
            "--log-level",
            "WARNING",
        ]


@broker.task(task_name="noop")
async def noop(number: int) -> None:
    """Do nothing."""


@broker.task(task_name="stamp")
async def stamp(sent: float) -> None:
    """Note the time since `sent`."""
    note_delay(sent)


@broker.task(task_name="doze")
async def doze(number: int) -> None:
    """Take a second."""
    await asyncio.sleep(1)


TASKS: dict[str, Any] = {"noop": noop, "stamp": stamp, "doze": doze}
