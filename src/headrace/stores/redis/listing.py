"""Finding jobs to list, newest first, in scripts that are short each.

The jobs of a queue are walked from the newest on, which finds exactly those asked for, up to a bound. What a state has
few of may lie beyond it: that is looked for where jobs of that state are kept.
"""

from __future__ import annotations

from heapq import nlargest
from uuid import UUID

from headrace.model.job import JobState
from headrace.stores.redis.namespace import Namespace

#: Jobs that one script looks at, and jobs that one listing walks at most.
PAGE, WALK = 500, 5_000
#: Jobs that are looked for at each end of where a state has them, beyond those wanted.
BEYOND = 100

#: When a job came (microseconds), and its id in 32 hex digits: newest first is the order of these.
Place = tuple[int, str]


async def find_jobs(
    namespace: Namespace, *, state: JobState | None, queue: str | None, batch_id: UUID | None, limit: int
) -> list[str]:
    """Return ids of the newest jobs asked for, newest first."""
    found: set[Place] = set()
    names = await _queues(namespace, queue, batch_id)
    for name in names:
        wanted = (name, state.value if state else "", batch_id.hex if batch_id else "")
        places, ended = await _walk(namespace, wanted, limit, max(PAGE, WALK // len(names)))
        found |= places
        if not ended and len(places) < limit and state is not None and batch_id is None:
            found |= _places(await namespace.run("state_jobs", name, state, min(limit + BEYOND, PAGE)))
    if batch_id is not None and len(found) < limit and state is None:
        found |= _places(await namespace.run("batch_jobs", batch_id.hex, min(limit, PAGE)))
    return [job_id for _, job_id in nlargest(limit, found)]


async def _queues(namespace: Namespace, queue: str | None, batch_id: UUID | None) -> list[str]:
    if queue is not None:
        return [queue]
    if batch_id is not None:
        rows = await namespace.run("read_batches", batch_id.hex)
        return [row[row.index("queue") + 1] for _, row in rows]
    names, _ = await namespace.run("list_queues")
    return sorted(names)


async def _walk(namespace: Namespace, wanted: tuple[str, str, str], limit: int, most: int) -> tuple[set[Place], bool]:
    """Return what was found among the newest jobs of a queue, and whether there are no others."""
    places: set[Place] = set()
    walked = 0
    while len(places) < limit and walked < most:
        # Without a condition the first ones are those wanted.
        page = PAGE if any(wanted[1:]) else min(limit, PAGE)
        looked_at, found = await namespace.run("walk_jobs", *wanted, walked, page)
        places |= _places(found)
        walked += looked_at
        if looked_at < page:
            return places, True
    return places, False


def _places(pairs: list[str]) -> set[Place]:
    return {(int(at), job_id) for at, job_id in zip(pairs[::2], pairs[1::2], strict=True)}
