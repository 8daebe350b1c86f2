"""Where a claimer gets its jobs: straight from the queue while that has no gate, through the gate from then on.

A queue without a gate pays for it with one call where a claim came back empty, at most twice per poll: once by the
poll's own timer and once for a hint. Where the code declares gates for the queue, each empty claim is followed by that
call until the first such job has come, which therefore waits for no poll.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from headrace.model.admission import Admitted
from headrace.model.job import Claim, ClaimedJob
from headrace.ports.job_store import JobStore

#: A gate that has more to give but gave nothing is asked again after this long.
PAUSE_SECONDS = 0.002

Admit = Callable[[Claim], Awaitable[Admitted]]


@dataclass(frozen=True, slots=True)
class Supplied:
    """What one call brought. `backlog`: there is surely more; `look_in`: seconds until time alone brings more."""

    jobs: list[ClaimedJob]
    backlog: bool = False
    look_in: float | None = None


class Supply:
    """Takes jobs of one queue. It may be wrong about the gate for one call, never longer."""

    def __init__(self, jobs: JobStore, admit: Admit, *, poll_seconds: float, gate_expected: bool = False) -> None:
        """`admit` is `Admission.admit_jobs`, or takes grants for it."""
        self._jobs = jobs
        self._admit = admit
        self._pause = 0.0 if gate_expected else poll_seconds * 0.9
        #: Whether the queue was gated when the gate was asked last.
        self.gated = False
        #: When the gate of an ungated queue was asked last, after polls and after hints.
        self._asked_at = {True: -math.inf, False: -math.inf}

    async def take(self, claim: Claim, *, hinted: bool = False) -> Supplied:
        """Take up to `claim.limit` jobs. Raises StoreUnavailableError: the call may have taken some."""
        if not self.gated:
            supplied = await self._claim(claim)
            if supplied.jobs or not self._asks(hinted):
                return supplied
        return await self._pass(claim)

    async def _claim(self, claim: Claim) -> Supplied:
        jobs = await self._jobs.claim_jobs(claim)
        return Supplied(jobs, backlog=len(jobs) == claim.limit > 0)

    def _asks(self, hinted: bool) -> bool:
        """Whether to ask if a queue that gave nothing has got a gate."""
        now = asyncio.get_running_loop().time()
        if now - self._asked_at[hinted] < self._pause:
            return False
        self._asked_at[hinted] = now
        return True

    async def _pass(self, claim: Claim) -> Supplied:
        was_gated = self.gated
        admitted = await self._admit(claim)
        self.gated = admitted.gated
        if not admitted.gated:
            return await self._claim(claim) if was_gated else Supplied([])
        if admitted.look_in is None:
            return Supplied(admitted.jobs)
        seconds = max(0.0, admitted.look_in.total_seconds())
        if not seconds and admitted.jobs:
            return Supplied(admitted.jobs, backlog=True)
        return Supplied(admitted.jobs, look_in=max(seconds, PAUSE_SECONDS))
