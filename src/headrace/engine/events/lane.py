"""A lane: the messages of one key of a partition, handled one after another."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from headrace.model.message_log import Partition
from headrace.model.offsets import Progress
from headrace.ports.bus import Delivery

LOG = logging.getLogger("headrace.events")

#: A handler that failed in a way it should not is called again after so many seconds, and ever later.
PAUSES = (0.2, 5.0)

Handle = Callable[[Delivery], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Lane:
    """Messages that wait, and the task that handles them. It belongs to one assignment of its partition."""

    place: Partition
    key: str
    progress: Progress
    waiting: deque[Delivery] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    #: A handler has its slot.
    begun: bool = False
    #: Its partition is another member's: nothing of it begins any more, and nothing of it is noted.
    closed: bool = False

    def put(self, delivery: Delivery) -> None:
        """Let a message wait behind the others."""
        self.waiting.append(delivery)

    async def work(self, handle: Handle, slots: asyncio.Semaphore, before: asyncio.Task[None] | None) -> None:
        """Handle what waits, in order, until there is nothing; `before`: a lane of this key that is still ending."""
        if before is not None:
            await asyncio.wait([before])
        while self.waiting and not self.closed:
            await self._until_handled(self.waiting[0], handle, slots)
            if not self.closed:
                self.progress.end(self.waiting.popleft().offset)

    async def _until_handled(self, delivery: Delivery, handle: Handle, slots: asyncio.Semaphore) -> None:
        """Call the handler until it returns: a message is never passed over, whatever its handler raises."""
        pause = PAUSES[0]
        while not self.closed:
            try:
                async with slots:
                    self.begun = True
                    await handle(delivery)
                return
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                LOG.error("a handler of key %r was cancelled from within, trying again", self.key)
            except Exception:
                LOG.exception("the handler of key %r failed, trying again", self.key)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSES[1])

    def drop_rest(self) -> None:
        """Leave what has not begun to whoever reads the partition next."""
        while len(self.waiting) > 1:
            self.waiting.pop()

    def close(self) -> None:
        """End, in the middle of a handler too."""
        self.closed = True
        if self.task is not None:
            self.task.cancel()
