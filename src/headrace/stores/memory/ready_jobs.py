"""Ready jobs in claim order: one heap per queue and limit key, so that a saturated key slows no other."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from uuid import UUID

from headrace.model.job import Place
from headrace.stores.memory.rows import Job

Lane = tuple[str, str | None]


class ReadyJobs:
    """Heaps of (sort_at, id). An entry whose job has left is dropped when it comes to the top."""

    def __init__(self) -> None:
        self._heaps: dict[Lane, list[Place]] = {}

    def push(self, job: Job) -> None:
        """Add a job that became ready."""
        assert job.sort_at is not None
        heapq.heappush(self._heaps.setdefault((job.spec.queue, job.spec.limit_key), []), (job.sort_at, job.id))

    def pop(
        self, lanes: Iterable[Lane], find: Callable[[UUID], Job | None], *, after: Place | None = None
    ) -> Job | None:
        """Remove and return the first job of `lanes` behind `after` that `find` still knows as claimable, or None."""
        heaps = [heap for lane in lanes if (heap := self._heaps.get(lane))]
        before: list[tuple[list[Place], Place]] = []
        try:
            while heaps := [heap for heap in heaps if heap]:
                heap = min(heaps, key=lambda heap: heap[0])
                place = heapq.heappop(heap)
                if after is not None and place <= after:
                    before.append((heap, place))
                elif (job := find(place[1])) is not None:
                    return job
            return None
        finally:
            for heap, place in before:
                heapq.heappush(heap, place)
