"""Invariant of shares: of two fair keys that both have jobs waiting, neither gets far ahead of the other.

Start-time fair queueing bounds the lead by one job of each, in cost per weight; the weight may change in between.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from headrace.model.job import ClaimedJob
from headrace.stores.memory.claims import claimable
from headrace.stores.memory.lanes import gate_of
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.referee import Referee

#: One more than the bound of two jobs: a weight that changes moves a tag by at most another.
JOBS_AHEAD = 3

Pair = tuple[str, str, str]


class ShareRules:
    """Keeps the lead of each fair key over each other one, since both have something waiting."""

    def __init__(self, referee: Referee) -> None:
        self._referee, self._state = referee, referee.state
        #: Fair keys with jobs waiting when an admission arrived, by the number of its call.
        self._there: dict[int, set[str]] = {}
        self._leads: dict[Pair, float] = {}

    def before(self, request: Request) -> None:
        """Note who has jobs waiting: what comes while an admission is under way may miss it."""
        if request.verb == "admit_jobs":
            self._there[request.number] = set(self._waiting(request.args[0].queue))

    def after(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        """Count what an admission served."""
        if request.verb != "admit_jobs":
            return
        there = self._there.pop(request.number)
        if error is None:
            self._count(request.args[0].queue, there, result.jobs)

    def _waiting(self, queue: str) -> Counter[str]:
        jobs = (job for job in self._state.jobs.values() if job.spec.queue == queue and job.spec.gate is not None)
        keys = ((job.id, gate_of(job.spec).fair_key) for job in jobs)
        return Counter(key for job_id, key in keys if key is not None and claimable(self._state, job_id) is not None)

    def _count(self, queue: str, there: set[str], served: list[ClaimedJob]) -> None:
        jobs = [self._state.running[job.id] for job in served]
        left = self._waiting(queue)
        at_rest = there - set(left)
        left.update(key for job in jobs if (key := gate_of(job.spec).fair_key) is not None)
        for job in jobs:
            key = gate_of(job.spec).fair_key
            if key is not None:
                rivals = [other for other in there if other != key and left[other] > 0 and key in there]
                for other in sorted(rivals):
                    self._lead(queue, key, other, job.spec.cost)
                left[key] -= 1
        self._leads = {
            pair: lead for pair, lead in self._leads.items()
            if pair[0] != queue or not at_rest.intersection(pair[1:])
        }  # fmt: skip

    def _lead(self, queue: str, key: str, other: str, cost: float) -> None:
        weights = self._state.limits.shares[queue].weights
        ahead = self._leads.get((queue, key, other), 0.0) + cost / weights.get(key, 1.0)
        self._leads[queue, key, other], self._leads[queue, other, key] = ahead, -ahead
        # A key waits with jobs of one cost here, 2 at most.
        if ahead > JOBS_AHEAD * 2:
            self._referee.breach("shares are even", f"{key} is {ahead:g} ahead of {other}, which waits, in {queue}")

    def thorough(self) -> None:
        """Nothing beyond each call."""
