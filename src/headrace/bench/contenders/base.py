"""What a job system offers to the benchmark, through its own public names."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from headrace.bench.order import Order


class UnsupportedError(Exception):
    """The job system has no such feature."""


class Contender(ABC):
    """One job system in one process: its client, and how to start its worker.

    Every system has the same tasks: `noop(number)` does nothing, `stamp(sent)` notes how long ago `sent` was,
    `nap(name)` takes 10 ms and notes its name, `doze(number)` takes a second, `scatter(count)` submits that many
    `noop` and has the time noted when all are done. Notes: see `notes.py`.
    """

    def __init__(self, order: Order) -> None:
        self.order = order

    @abstractmethod
    async def set_up(self) -> None:
        """Make the schema in the empty database."""

    @abstractmethod
    async def open(self) -> None:
        """Open the client."""

    @abstractmethod
    async def close(self) -> None:
        """Close the client."""

    @abstractmethod
    async def enqueue(self, task: str, value: Any) -> None:
        """Enqueue one job and return when it is stored."""

    async def enqueue_many(self, task: str, values: Sequence[Any]) -> None:
        """Enqueue many jobs in the fastest public way."""
        raise UnsupportedError("no bulk enqueue")

    async def fill(self, count: int) -> None:
        """Enqueue `count` jobs of `noop` before a measurement of a drain."""
        await self.fill_with("noop", count)

    async def fill_with(self, task: str, count: int) -> None:
        """Enqueue `count` jobs of a task with the numbers from 0, as fast as it goes."""
        try:
            await self.enqueue_many(task, list(range(count)))
        except UnsupportedError:
            for number in range(count):
                await self.enqueue(task, number)

    @abstractmethod
    async def done(self) -> int:
        """Return how many jobs the system's own store records as done."""

    @abstractmethod
    def worker_command(self) -> list[str]:
        """Return the command that starts one worker process."""

    def worker_environment(self) -> dict[str, str]:
        """Return the environment of the worker."""
        return {**os.environ, "BENCH_DSN": self.order.dsn, "BENCH_REDIS": self.order.redis}
