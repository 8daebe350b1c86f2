"""Invariants of circuit breakers: nothing passes an open one, one probe at a time, refusals only by rule."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.model.breaker import BreakerState
from headrace.model.job import ClaimedJob
from headrace.stores.memory.breakers import Breaker
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.referee import Referee

Attempt = tuple[UUID, int]


class BreakerRules:
    """Follows every breaker from call to call: where it stood, until when it is shut, who tries it."""

    def __init__(self, referee: Referee) -> None:
        self._referee, self._state = referee, referee.state
        self._stood: dict[str, BreakerState] = {}
        self._shut_until: dict[str, datetime] = {}
        self._probes: dict[str, set[Attempt]] = {}
        self.probes = 0

    def before(self, request: Request) -> None:
        """Nothing to prepare."""

    def after(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        """Check what an admission let pass, by where the breakers stood before it."""
        if request.verb == "admit_jobs" and error is None:
            for job in result.jobs:
                self._check(job)
        for key, breaker in self._state.limits.breakers.items():
            self._follow(key, breaker)

    def _follow(self, key: str, breaker: Breaker) -> None:
        state = breaker.record.state
        if state is BreakerState.OPEN and self._stood.get(key) is not BreakerState.OPEN:
            self._shut_until[key] = self._state.now() + breaker.rule.cooldown
        if state is not BreakerState.HALF_OPEN:
            self._probes.pop(key, None)
        self._stood[key] = state

    def _check(self, admitted: ClaimedJob) -> None:
        job = self._state.running[admitted.id]
        keys = job.spec.gate.breakers if job.spec.gate is not None else ()
        shut = [key for key in keys if self._stood.get(key, BreakerState.CLOSED) is not BreakerState.CLOSED]
        if admitted.refused is not None:
            if not any(self._state.limits.breakers[key].refuses for key in shut):
                self._referee.breach("refused by an open breaker alone", f"job {job.id} was refused behind {keys}")
            return
        for key in shut:
            self._pass(key, (job.id, job.attempt))

    def _pass(self, key: str, attempt: Attempt) -> None:
        if self._stood[key] is BreakerState.OPEN and self._state.now() < self._shut_until[key]:
            what = f"job {attempt[0]} passed {key}, which is open until {self._shut_until[key]}"
            self._referee.breach("nothing passes an open breaker", what)
        probes = {known for known in self._probes.get(key, ()) if self._runs(known)} | {attempt}
        if len(probes) > 1:
            self._referee.breach("one probe at a time", f"{probes} try {key}")
        self._probes[key] = probes
        self._stood[key] = BreakerState.HALF_OPEN
        self.probes += 1

    def _runs(self, attempt: Attempt) -> bool:
        job = self._state.running.get(attempt[0])
        return job is not None and job.attempt == attempt[1]

    def thorough(self) -> None:
        """Nothing beyond each call."""
