"""Headrace itself: the public client here, the shipped `headrace worker` in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.batch import Batch
from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.postgres import Counter
from headrace.bench.order import Order

APP = "headrace.bench.contenders.ours_tasks:app"
#: Those of its tasks.
QUEUES = ("default", "fair", "keys")


class Headrace(Contender):
    """The public client and the shipped worker, with default settings."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        for name in [name for name in os.environ if name.startswith("HEADRACE_")]:
            del os.environ[name]  # default settings, whatever the caller works with
        os.environ["HEADRACE_URL"] = order.dsn
        self._counter = Counter(order.dsn, "count_headrace")

    async def set_up(self) -> None:
        """Apply the migrations."""
        from headrace.stores.postgres.migrate import apply

        await apply(self.order.dsn)

    async def open(self) -> None:
        """Open the app as a client."""
        from headrace.bench.contenders import ours_tasks

        self._app = ours_tasks.app
        await self._app.__aenter__()

    async def close(self) -> None:
        """Close the client."""
        await self._app.__aexit__(None, None, None)
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Await one `enqueue`."""
        await self._app.find_task(task).enqueue(value)

    async def enqueue_many(self, task: str, values: Sequence[Any]) -> None:
        """Submit a batch."""
        await self._app.submit(self._app.find_task(task), values)

    async def fill_with(self, task: str, count: int) -> None:
        """Enqueue plain jobs, each by itself and all at once: they are stored in inserts of many rows."""
        found = self._app.find_task(task)
        for start in range(0, count, 10_000):
            await asyncio.gather(*(found.enqueue(number) for number in range(start, min(start + 10_000, count))))

    async def enqueue_behind(self, task: str, count: int, gates: Sequence[Mapping[str, Any]]) -> None:
        """Enqueue jobs by turns under the options of each gate, as `fill_with` does."""
        calls = [self._app.find_task(task).options(**gate) for gate in gates]
        for start in range(0, count, 10_000):
            numbers = range(start, min(start + 10_000, count))
            await asyncio.gather(*(calls[number % len(calls)].enqueue(number) for number in numbers))

    async def submit(self, task: str, count: int, **options: Any) -> Batch:
        """Submit a batch under options."""
        return await self._app.submit(self._app.find_task(task), range(count), **options)

    async def done(self) -> int:
        """Count the history."""
        return await self._counter.count()

    def worker_command(self) -> list[str]:
        """Return the shipped command, with default settings."""
        return [sys.executable, "-m", "headrace", "worker", APP, "--log-level", "warning"]

    def worker_environment(self) -> dict[str, str]:
        """Let the worker import the Headrace of the order."""
        environment = super().worker_environment()
        if self.order.source:
            environment["PYTHONPATH"] = self.order.source
        return environment


class HeadraceWide(Headrace):
    """The same with more jobs at once than by default."""

    def worker_command(self) -> list[str]:
        """Return the shipped command with 400 slots."""
        return [*super().worker_command(), "--concurrency", "400"]


class HeadraceBatch(HeadraceWide):
    """With all jobs as items of one batch, which is closed at the end."""

    async def fill_with(self, task: str, count: int) -> None:
        """Submit one batch."""
        await self.enqueue_many(task, list(range(count)))


class HeadraceRedis(Headrace):
    """The same on the Redis store."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        os.environ["HEADRACE_URL"] = order.redis
        # Where the store is remembered: the next measurement empties it.
        self._directory = tempfile.TemporaryDirectory(prefix="headrace-bench-")
        os.environ["HEADRACE_DIRECTORY"] = self._directory.name

    async def set_up(self) -> None:
        """Make the namespace in an empty database."""
        from headrace.stores.redis import RedisSite, create_namespace

        await self._call("FLUSHDB")
        await create_namespace(RedisSite(self.order.redis))

    async def close(self) -> None:
        """Close the client, and forget the store."""
        await super().close()
        self._directory.cleanup()

    async def done(self) -> int:
        """Count the history."""
        return sum([int(await self._call("ZCARD", f"{{headrace}}:ended:succeeded:{queue}")) for queue in QUEUES])

    async def _call(self, *words: str) -> Any:
        """Send one command on a connection of its own."""
        from headrace.stores.redis.addresses import parse_address
        from headrace.stores.redis.connection import Server, ServerOptions

        server = Server(ServerOptions(parse_address(self.order.redis), size=1))
        try:
            return await server.call(*words)
        finally:
            await server.close()


class HeadraceRedisWide(HeadraceRedis):
    """The same with as many jobs at once as its peers."""

    def worker_command(self) -> list[str]:
        """Return the shipped command with 100 slots."""
        return [*super().worker_command(), "--concurrency", "100"]
