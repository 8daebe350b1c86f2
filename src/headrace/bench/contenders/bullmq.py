"""BullMQ on Redis, in Node: one worker process, 100 at once; finished jobs are kept, as is its default.

Its client runs in a process of Node's own, which this one tells what to add by lines of JSON: about 0.1 ms on top of
each call that is measured one by one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.bench.children import end_with_parent
from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.redis import RedisCounter
from headrace.bench.order import Order

SCRIPTS = Path(__file__).with_name("bullmq_js")
#: Where `make bench` installs it.
HOME = Path(sys.prefix, "bullmq")


class BullMQ(Contender):
    """Its `add`, `addBulk` and worker."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = RedisCounter(order.redis)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def set_up(self) -> None:
        """Begin with an empty database."""
        await self._counter.empty()

    async def open(self) -> None:
        """Start its client and wait until that is connected."""
        self._client = await asyncio.create_subprocess_exec(
            "node", str(SCRIPTS / "client.cjs"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env=self.worker_environment(), preexec_fn=end_with_parent,
        )  # fmt: skip
        self._waiting[0] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read())
        await self._waiting[0]

    async def close(self) -> None:
        """End its client."""
        self._reader.cancel()
        self._client.terminate()
        await self._client.wait()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Add one job."""
        await self._add(task, [value])

    async def enqueue_many(self, task: str, values: Sequence[Any]) -> None:
        """Add many, a thousand in each `addBulk`."""
        await self._add(task, list(values))

    async def _add(self, task: str, values: list[Any]) -> None:
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        assert self._client.stdin is not None
        self._client.stdin.write(json.dumps({"id": number, "task": task, "values": values}).encode() + b"\n")
        await answer

    async def _read(self) -> None:
        assert self._client.stdout is not None
        async for line in self._client.stdout:
            answer = json.loads(line)
            future = self._waiting.pop(answer["id"])
            if "error" in answer:
                future.set_exception(RuntimeError(answer["error"]))
            else:
                future.set_result(None)
        for future in self._waiting.values():
            future.set_exception(RuntimeError("its client ended; what it wrote is above"))

    async def done(self) -> int:
        """Count its set of completed jobs."""
        return await self._counter.members("bull:bench:completed")

    def worker_command(self) -> list[str]:
        """Return its worker."""
        return ["node", str(SCRIPTS / "worker.cjs")]

    def worker_environment(self) -> dict[str, str]:
        """Tell it where it is installed."""
        return {**os.environ, **super().worker_environment(), "BENCH_BULLMQ": str(HOME)}
