"""Ready jobs in claim order, in lanes: one heap per queue and gate, so that a saturated gate slows no other."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from headrace.model.job import JobSpec, Place
from headrace.model.limits import Gate
from headrace.stores.memory.rows import Job

#: The gate of jobs that have none.
OPEN_GATE = Gate()
Find = Callable[[UUID], Job | None]


def gate_of(spec: JobSpec) -> Gate:
    """Return the gate of a job; an empty one where it has none."""
    return spec.gate or OPEN_GATE


def lane_name(spec: JobSpec) -> str:
    """Return the name of a job's lane in its queue."""
    return gate_of(spec).text


@dataclass(slots=True)
class Lane:
    """A heap of (sort_at, id). An entry whose job has left is dropped when it comes to the top."""

    gate: Gate
    heap: list[Place] = field(default_factory=list)

    def first(self, find: Find) -> Job | None:
        """Return the first job that `find` still knows as claimable, or None."""
        while self.heap:
            if (job := find(self.heap[0][1])) is not None:
                return job
            heapq.heappop(self.heap)
        return None

    def pop(self) -> None:
        """Remove the first job."""
        heapq.heappop(self.heap)


class Lanes:
    """The lanes of all queues. An empty one is forgotten when its queue is looked at."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, Lane]] = {}

    def push(self, job: Job) -> None:
        """Add a job that became ready."""
        assert job.sort_at is not None
        spec = job.spec
        lanes, name = self._queues.setdefault(spec.queue, {}), lane_name(spec)
        lane = lanes.get(name)
        if lane is None:
            lane = lanes[name] = Lane(gate_of(spec))
        heapq.heappush(lane.heap, (job.sort_at, job.id))

    def drop(self, queue: str, name: str, ids: Collection[UUID]) -> None:
        """Remove jobs of a lane that wait no more and may be pushed again."""
        lane = self._queues[queue][name]
        lane.heap[:] = [place for place in lane.heap if place[1] not in ids]
        heapq.heapify(lane.heap)

    def of(self, queue: str) -> Mapping[str, Lane]:
        """Return the lanes of a queue by name."""
        lanes = {name: lane for name, lane in self._queues.get(queue, {}).items() if lane.heap}
        if queue in self._queues:
            self._queues[queue] = lanes
        return lanes

    def pop(self, queue: str, names: Iterable[str], find: Find, *, after: Place | None = None) -> Job | None:
        """Remove and return the first job of these lanes behind `after` that `find` knows as claimable, or None."""
        lanes = self._queues.get(queue, {})
        heaps = [lanes[name].heap for name in names if name in lanes]
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
