"""Which queues the end of a job may have given jobs to."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.model.run import NODES_QUEUE, Effects


def queues_of(effects: Iterable[Effects]) -> frozenset[str]:
    """Return the queues that effects may have given jobs to."""
    found: set[str] = set()
    for one in effects:
        found |= {job.spec.queue for job in one.jobs}
        found |= {arrival.job.spec.queue for arrival in one.arrivals if arrival.job is not None}
        if one.arrivals:
            found.add(NODES_QUEUE)  # of those that are passed over
    return frozenset(found)
