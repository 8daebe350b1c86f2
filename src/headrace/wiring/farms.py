"""Several farms as one: each queue has its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.ports.executor import Call, Farm


class Farms:
    """Runs each call on the farm of its queue."""

    def __init__(self, farms: Sequence[Farm]) -> None:
        self._farms = farms

    def _of(self, queue: str) -> Farm:
        return next(farm for farm in self._farms if farm.serves(queue))

    def serves(self, queue: str) -> bool:
        """Whether the jobs of a queue run on one of them."""
        return any(farm.serves(queue) for farm in self._farms)

    async def begin(self) -> None:
        """Begin with them all."""
        await asyncio.gather(*(farm.begin() for farm in self._farms))

    def room(self, queue: str, taken: Mapping[str, int]) -> int:
        """Return how many more jobs of a queue its farm can start."""
        farm = self._of(queue)
        return farm.room(queue, {name: count for name, count in taken.items() if farm.serves(name)})

    def want(self, queue: str, slots: int) -> None:
        """Tell a queue's farm how many of its jobs this worker would run there at once."""
        self._of(queue).want(queue, slots)

    async def run(self, call: Call) -> Any:
        """Run a call there."""
        return await self._of(call.job.queue).run(call)

    async def close(self) -> None:
        """Close them all."""
        for farm in self._farms:
            await farm.close()
