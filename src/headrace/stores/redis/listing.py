"""Finding jobs to list, newest first, in scripts that are short each.

The jobs of a queue are walked from the newest on, which finds exactly those asked for, up to a bound. What a state has
few of may lie beyond it: that is looked for where jobs of that state are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from uuid import UUID

from headrace.model.job import JobState, Made
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import micros

#: Jobs that one script looks at, and jobs that one listing walks at most.
PAGE, WALK = 500, 5_000
#: Jobs that are looked for at each end of where a state has them, beyond those wanted.
BEYOND = 100

#: When a job came (microseconds), and its id in 32 hex digits: newest first is the order of these.
Place = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs are looked for."""

    state: JobState | None = None
    queue: str | None = None
    task: str | None = None
    batch_id: UUID | None = None
    #: Those made before it.
    before: Made | None = None

    @property
    def conditions(self) -> tuple[str, str, str]:
        """State, task and batch, as scripts take them."""
        return self.state or "", self.task or "", self.batch_id.hex if self.batch_id else ""

    def is_older(self, place: Place) -> bool:
        """Whether a job was made before where the list goes on."""
        return self.before is None or place < (micros(self.before[0]), self.before[1].hex)


def before_words(before: Made | None) -> tuple[str, str]:
    """Return the place before which a list goes on, as scripts take it."""
    return ("", "") if before is None else (str(micros(before[0])), before[1].hex)


async def find_jobs(namespace: Namespace, wanted: Wanted, *, limit: int) -> list[str]:
    """Return ids of the newest jobs asked for, newest first."""
    found: set[Place] = set()
    names = await _queues(namespace, wanted.queue, wanted.batch_id)
    state, batch_id = wanted.state, wanted.batch_id
    for name in names:
        places, ended = await _walk(namespace, name, wanted, limit, max(PAGE, WALK // len(names)))
        found |= places
        if not ended and len(places) < limit and state is not None and batch_id is None:
            found |= _places(await namespace.run("state_jobs", name, state, min(limit + BEYOND, PAGE)))
    if batch_id is not None and len(found) < limit and state is None:
        found |= _places(await namespace.run("batch_jobs", batch_id.hex, min(limit, PAGE)))
    return [job_id for _, job_id in nlargest(limit, filter(wanted.is_older, found))]


async def _queues(namespace: Namespace, queue: str | None, batch_id: UUID | None) -> list[str]:
    if queue is not None:
        return [queue]
    if batch_id is not None:
        rows = await namespace.run("read_batches", batch_id.hex)
        return [row[row.index("queue") + 1] for _, row in rows]
    names, _ = await namespace.run("list_queues")
    return sorted(names)


async def _walk(namespace: Namespace, name: str, wanted: Wanted, limit: int, most: int) -> tuple[set[Place], bool]:
    """Return what was found among the newest jobs of a queue, and whether there are no others."""
    places: set[Place] = set()
    walked = 0
    # Without a condition the first ones are those wanted.
    page = PAGE if any(wanted.conditions) else min(limit, PAGE)
    words = (name, *wanted.conditions, *before_words(wanted.before))
    while len(places) < limit and walked < most:
        looked_at, found = await namespace.run("walk_jobs", *words, walked, page)
        places |= set(filter(wanted.is_older, _places(found)))
        walked += looked_at
        if looked_at < page:
            return places, True
    return places, False


def _places(pairs: list[str]) -> set[Place]:
    return {(int(at), job_id) for at, job_id in zip(pairs[::2], pairs[1::2], strict=True)}
