"""What a worker sees of the cluster: one loop that connects to it, and looks at its nodes twice a second."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from headrace.daemon_threads import DaemonThreads
from headrace.executors.ray.book import Book
from headrace.executors.ray.cluster import Cluster
from headrace.executors.ray.fitting import Amounts, Node, capacity, in_words, room, wanted
from headrace.executors.ray.signals import take_signals_back

LOG = logging.getLogger("headrace.ray")

LOOK_SECONDS = 0.5
#: One that is not connected, or has lost its node, tries again after so long.
CONNECT_SECONDS = 2.0
#: A head node that does not answer for so long is gone: to connect anew ends all that this worker has out.
GONE_SECONDS = 10.0
#: A queue whose jobs fit nowhere is worth a word after so long, and again after so long.
SAY_AFTER_SECONDS, SAY_AGAIN_SECONDS = 3.0, 60.0
#: Nothing is claimed of a queue for so long after a process of the cluster could not open the app.
REST_SECONDS = 5.0


class Sight:
    """Knows the nodes, and how much room they have."""

    def __init__(self, cluster: Cluster, book: Book, amounts: Callable[[str], Amounts], threads: DaemonThreads) -> None:
        self._cluster, self._book, self._amounts, self._threads = cluster, book, amounts, threads
        #: As they were seen last, which counts as long as looks find them.
        self._nodes: list[Node] = []
        self._seen = False
        self._connected = False
        #: Since when it was looked in vain.
        self._missed_at: float | None = None
        self._rests_until = 0.0
        self._say_at: dict[str, float] = {}
        #: Whether it was tried to connect, with or without success.
        self.tried = asyncio.Event()
        #: Whether a word was said since it was looked with success.
        self._said = False

    def need(self, queue: str) -> Amounts:
        """Return what is asked for a job of a queue on the cluster as it is."""
        return wanted(self._amounts(queue), self._nodes)

    def rest(self) -> None:
        """Claim nothing for a moment: a process could not open the app, or cannot be made."""
        self._rests_until = _now() + REST_SECONDS

    def lose(self, why: str) -> None:
        """Connect anew: the node that this worker is on is gone."""
        if self._connected:
            LOG.warning("connecting to the Ray cluster anew: %s", why)
            self._connected = self._seen = False

    @property
    def here(self) -> str:
        """The node that this worker is on; empty while it is not connected."""
        return self._cluster.here if self._connected else ""

    def room(self, queue: str, taken: Mapping[str, int]) -> int:
        """Return how many more jobs of a queue may be claimed, by what was seen last."""
        if not self._seen or _now() < self._rests_until:
            return 0
        self._warn(queue)
        mine = Counter({name: count for name, count in taken.items() if count}) | self._book.counts
        needs = {name: self.need(name) for name in {queue, *mine, *self._book.peak}}
        return room(queue, needs, self._nodes, mine, self._book.peak)

    def _warn(self, queue: str) -> None:
        now = _now()
        if capacity(self.need(queue), self._nodes):
            self._say_at.pop(queue, None)
        elif now >= self._say_at.setdefault(queue, now + SAY_AFTER_SECONDS):
            self._say_at[queue] = now + SAY_AGAIN_SECONDS
            LOG.warning("no node of the Ray cluster is large enough for a job of queue %s (%s); its jobs stay ready "
                        "meanwhile", queue, in_words(self.need(queue)))  # fmt: skip

    async def run(self) -> None:
        """Connect and look until cancelled."""
        while True:
            try:
                if not self._connected:
                    await self._connect()
                nodes: Any = await self._threads.run(self._cluster.look)
                self._note(nodes)
            except Exception as error:
                self._miss(error)
            self.tried.set()
            await asyncio.sleep(LOOK_SECONDS if self._connected else CONNECT_SECONDS)

    async def _connect(self) -> None:
        self._seen = False
        await self._threads.run(self._cluster.disconnect)
        for out in self._book:
            # Ray says no more of what was sent by way of a connection that is gone.
            self._book.remove(out)
            out.settle(ConnectionError("the connection to the Ray cluster is gone"))
        await self._threads.run(self._cluster.connect)
        take_signals_back()
        self._connected, self._missed_at = True, None
        LOG.info("connected to the Ray cluster as a driver on node %s", self._cluster.here[:8])

    def _note(self, nodes: list[Node]) -> None:
        if not self._connected:
            # It was lost while a thread looked.
            return
        self._nodes, self._missed_at, self._said, self._seen = nodes, None, False, True
        self._book.turn()
        if self._cluster.here not in {node.id for node in nodes}:
            self.lose("the node of this worker is gone")

    def _miss(self, error: Exception) -> None:
        self._seen = False
        self._missed_at = _now() if self._missed_at is None else self._missed_at
        if _now() - self._missed_at >= GONE_SECONDS:
            self._connected = False
        if not self._said:
            self._said = True
            LOG.warning("the Ray cluster does not answer, no job is sent to it: %s", first_line(error))


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _now() -> float:
    return asyncio.get_running_loop().time()
