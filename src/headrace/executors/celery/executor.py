"""The executor: sends calls to the farm, waits for them, and tells it of those that are to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.event_loops import end_tasks
from headrace.executors.celery.link import Link
from headrace.executors.celery.sending import Sender
from headrace.executors.celery.sight import Sight
from headrace.executors.celery.site import CelerySite
from headrace.executors.celery.watch import Watch
from headrace.model.farm import Fence
from headrace.ports.executor import Call
from headrace.ports.job_store import JobStore

LOG = logging.getLogger("headrace.celery")


@dataclass(slots=True)
class _Parts:
    """What works while the executor is open."""

    link: Link
    sender: Sender
    sight: Sight
    watch: Watch
    tasks: list[asyncio.Task[None]]


class CeleryExecutor:
    """Runs the jobs of some queues on a farm of Celery workers. It begins with the first question about its room."""

    def __init__(self, site: CelerySite, jobs: JobStore, serves: Callable[[str], bool], *, longest: timedelta) -> None:
        """`longest`: the longest timeout that a task has."""
        self._site, self._jobs, self._serves, self._longest = site, jobs, serves, longest
        self._parts: _Parts | None = None
        self._telling: set[asyncio.Task[None]] = set()

    def serves(self, queue: str) -> bool:
        """Whether the jobs of a queue run there."""
        return self._serves(queue)

    async def begin(self) -> None:
        """Nothing: it connects while others go on."""

    def room(self, queue: str, taken: Mapping[str, int]) -> int:
        """Return how many more jobs of a queue the farm can start for this worker."""
        return self._open().sight.room(queue, taken)

    def want(self, queue: str, slots: int) -> None:
        """Do nothing: who starts processes of a Celery farm decides how many there are."""

    async def run(self, call: Call) -> Any:
        """Send a call and return its Completion; what was stored of it counts, and not what the broker says.

        Raises ExecutorCrashedError when the process that ran it died, ExecutorLostError when its worker is gone,
        nobody began it, or nobody ended it long after its time.
        """
        parts, fence = self._open(), Fence(call.job.id, call.job.attempt, call.session)
        out = parts.watch.add(fence, call.job.queue, call.timeout)
        parts.sender.send(fence, call.job.queue)
        try:
            return await out.ended
        except asyncio.CancelledError:
            self._tell_to_stop(parts, fence)
            raise
        finally:
            parts.watch.remove(fence)

    def _tell_to_stop(self, parts: _Parts, fence: Fence) -> None:
        # Lost, it is found by the farm itself: the attempt does not own its job any more.
        task = asyncio.create_task(parts.link.tell_stop(fence))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _open(self) -> _Parts:
        if self._parts is None:
            link, sender = Link(self._site), Sender(self._site, self._site.celery(self._longest))
            sight = Sight(link)
            watch = Watch(link, self._jobs, sight, sender.send)
            work = {"send": sender.run, "see": sight.run, "watch": watch.run, "listen": watch.listen}
            tasks = [asyncio.create_task(run(), name=f"headrace-celery-{name}") for name, run in work.items()]
            self._parts = _Parts(link, sender, sight, watch, tasks)
        return self._parts

    async def close(self) -> None:
        """Wait for nothing any more; a later call begins anew."""
        parts, self._parts = self._parts, None
        if parts is None:
            return
        await end_tasks(parts.tasks)
        await asyncio.gather(*self._telling, return_exceptions=True)
        await parts.sight.close()
        await parts.sender.close()
        await parts.link.close()
