"""What this worker wants of the cluster's autoscaler: the slots of all its queues together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping

from headrace.daemon_threads import DaemonThreads
from headrace.executors.ray.asking import MOST_BUNDLES, NOTE_SECONDS
from headrace.executors.ray.cluster import Cluster
from headrace.executors.ray.sight import Sight, first_line

LOG = logging.getLogger("headrace.ray")

#: Requests are at least so far apart.
ASK_SECONDS = 5.0
#: A worker that ends waits no longer than this for its want to be taken back; others see that it died.
LEAVE_SECONDS = 3.0


class Wants:
    """Asks for room, seldom and in one go."""

    def __init__(self, cluster: Cluster, sight: Sight, threads: DaemonThreads) -> None:
        self._cluster, self._sight, self._threads = cluster, sight, threads
        self._slots: dict[str, int] = {}
        self._changed = asyncio.Event()

    def set(self, queue: str, slots: int) -> None:
        """Want so many slots for a queue."""
        if self._slots.get(queue, 0) != slots:
            self._slots[queue] = slots
            self._changed.set()

    @property
    def bundles(self) -> list[Mapping[str, float]]:
        """What each job takes that is to have room."""
        found = [self._sight.need(queue) for queue, slots in self._slots.items() for _ in range(slots)]
        return found[:MOST_BUNDLES]

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NOTE_SECONDS if self._slots else None):
                    await self._changed.wait()
            self._changed.clear()
            try:
                if not self._sight.here:
                    raise ConnectionError("the cluster is away")
                bundles = self.bundles
                await self._threads.run(lambda: self._cluster.want(bundles))  # noqa: B023 - run before it changes
            except Exception as error:
                self._changed.set()
                LOG.info("the autoscaler of the Ray cluster was not asked: %s", first_line(error))
            await asyncio.sleep(ASK_SECONDS)

    async def end(self) -> None:
        """Want nothing any more."""
        if not self._slots or not self._sight.here:
            return
        with contextlib.suppress(Exception):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._threads.run(lambda: self._cluster.want([]))
