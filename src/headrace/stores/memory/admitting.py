"""Admitting: shares first, within a share the claim order, of a lane only its first job."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from headrace.model.admission import Admitted
from headrace.model.job import Claim, ClaimedJob
from headrace.model.limits import queue_cap
from headrace.stores.memory import claims
from headrace.stores.memory.caps import count_usage
from headrace.stores.memory.gate import Keeper, Obstacle
from headrace.stores.memory.lanes import Find, Lane
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State

#: Start tag of the share, place of the job, name of its lane. Names are never equal.
Candidate = tuple[float, datetime, UUID, str]


async def admit_jobs(state: State, claim: Claim, grants: Mapping[str, float] | None) -> Admitted:
    """Start up to `claim.limit` jobs of a gated queue under the session."""
    if claim.queue not in state.limits.gated:
        return Admitted([], gated=False)
    async with state.limit_locks.locked([f"gate:{claim.queue}"], state.turn):
        names = frozenset(state.ready.of(claim.queue))
        # Lock, then count: other queues share caps, buckets and breakers with this one.
        async with state.limit_locks.locked(_limits(state, claim.queue), state.turn):
            usage = count_usage(state)
            await state.turn()
            if not state.alive(claim.session) or claims.paused(state, claim.queue):
                return Admitted([])
            return Admission(state, claim, Keeper(state, usage, grants), names).run()


def _limits(state: State, queue: str) -> Iterator[str]:
    yield queue_cap(queue)
    for lane in state.ready.of(queue).values():
        yield from (*lane.gate.caps, *(name for name, _ in lane.gate.limits), *lane.gate.breakers)


class Admission:
    """One admission. Starting and reserving only ever take room: a lane that is held up stays so until the end."""

    def __init__(self, state: State, claim: Claim, keeper: Keeper, names: frozenset[str]) -> None:
        """`names` are the lanes whose limits are locked; one that came since has to wait for the next admission."""
        self._state, self._claim, self._keeper = state, claim, keeper
        self._lanes = {name: lane for name, lane in state.ready.of(claim.queue).items() if name in names}
        self._shares = state.limits.shares[claim.queue]
        self._find: Find = partial(claims.claimable, state)
        self._candidates: list[Candidate] = []
        self._jobs: list[ClaimedJob] = []
        self._look_at: datetime | None = None
        self._more = False

    def run(self) -> Admitted:
        """Admit."""
        self._shares.lower()
        for name in self._lanes:
            self._propose(name)
        while self._candidates and not self._more:
            tag, _, _, name = heapq.heappop(self._candidates)
            lane = self._lanes[name]
            if tag < self._shares.start_tag(lane.gate.fair_key):
                self._propose(name)  # Another lane of its share was served since.
            else:
                self._serve(name, lane)
        self._tidy_shares()
        return Admitted(self._jobs, look_in=self._look_in(), spent=dict(self._keeper.spent))

    def _tidy_shares(self) -> None:
        lanes = self._state.ready.of(self._claim.queue).values()
        waiting = {lane.gate.fair_key for lane in lanes if lane.first(self._find) is not None}
        if self._jobs and not waiting:
            self._shares.rest()
        else:
            self._shares.forget(waiting)

    def _propose(self, name: str) -> None:
        lane = self._lanes[name]
        job = lane.first(self._find)
        if job is not None:
            assert job.sort_at is not None
            tag = self._shares.start_tag(lane.gate.fair_key)
            heapq.heappush(self._candidates, (tag, job.sort_at, job.id, name))

    def _serve(self, name: str, lane: Lane) -> None:
        job = lane.first(self._find)
        assert job is not None
        if obstacles := list(self._obstacles(job)):
            self._look_again(self._keeper.hold(job, obstacles))
        elif len(self._jobs) == self._claim.limit:
            self._more = True
        else:
            lane.pop()
            self._start(job)
            self._propose(name)

    def _obstacles(self, job: Job) -> Iterator[Obstacle]:
        keeper = self._keeper
        return keeper.obstacles_to_refusal(job) if keeper.refusal(job) else keeper.obstacles(job)

    def _start(self, job: Job) -> None:
        refused = self._keeper.refusal(job)
        self._state.start(job, self._claim.session)
        self._keeper.start(job, refused=refused is not None)
        self._jobs.append(claims.as_claimed(job, gated=True, refused=refused))

    def _look_again(self, at: datetime | None) -> None:
        if at is not None:
            self._look_at = at if self._look_at is None else min(at, self._look_at)

    def _look_in(self) -> timedelta | None:
        if self._more:
            return timedelta()
        return None if self._look_at is None else self._look_at - self._state.now()
