"""Invariants of the gate: caps, keys in order, rates, and that nothing slips past it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.model.admission import Admitted
from headrace.model.job import ClaimedJob, JobState, Place
from headrace.model.limits import Gate, Rate, queue_cap
from headrace.stores.memory.claims import claimable
from headrace.stores.memory.rows import Job
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.referee import Referee

#: What levels of buckets may be wrong by: they are floats.
TOLERANCE = 1e-6
NO_GATE = Gate()


@dataclass(slots=True)
class Meter:
    """A bucket by the referee's own account."""

    rate: Rate
    level: float
    at: datetime

    def settle(self, now: datetime) -> None:
        """Let time fill it."""
        self.level, self.at = self.rate.after(self.level, now - self.at), now


class GateRules:
    """Keeps its own account of places and buckets, counts what runs, and compares."""

    def __init__(self, referee: Referee) -> None:
        self._referee, self._state = referee, referee.state
        #: Queues that a job or a limit made gated before the call that is looked at.
        self._gated: set[str] = set()
        #: Where each job stood when it was ready for the first time.
        self._places: dict[UUID, Place] = {}
        self._meters: dict[str, Meter] = {}
        self._declared: dict[str, int] = {}
        self._overrides: dict[str, int] = {}
        self.counts: Counter[str] = Counter()

    def before(self, request: Request) -> None:
        """Nothing to prepare."""

    def after(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        """Check what a claim or an admission started, and note what it has to be measured by."""
        self._follow_rates()
        if request.verb in ("claim_jobs", "exchange_jobs"):
            self._check_claim(moved)
        elif request.verb == "admit_jobs" and error is None:
            self._check_admission(request, moved, result)
        self._note(moved)
        if error is None:
            self._follow_caps(request)

    def _breach(self, invariant: str, what: str) -> None:
        self._referee.breach(invariant, what)

    def _note(self, moved: list[UUID]) -> None:
        for job in filter(None, map(self._state.jobs.get, moved)):
            if job.sort_at is not None:
                self._places.setdefault(job.id, (job.sort_at, job.id))
            if job.spec.gate is not None:
                self._gated.add(job.spec.queue)

    def _follow_caps(self, request: Request) -> None:
        match request.verb:
            case "declare_limits":
                self._declared.update(request.args[0].caps)
            case "set_cap":
                key, cap = request.args
                self._overrides.pop(key, None)
                if cap is not None:
                    self._overrides[key] = cap
                    self._gated.update({key.removeprefix("queue:")} - {key})

    def _check_claim(self, moved: list[UUID]) -> None:
        for job in filter(None, map(self._state.running.get, moved)):
            if job.spec.queue in self._gated:
                self._breach("nothing slips past the gate", f"job {job.id} of {job.spec.queue} was claimed")

    def _check_admission(self, request: Request, moved: list[UUID], result: Admitted) -> None:
        claim = request.args[0]
        if [job.id for job in result.jobs] != moved or len(moved) > claim.limit:
            what = f"{moved} were started and {[job.id for job in result.jobs]} returned, of at most {claim.limit}"
            self._breach("an admission is what was started", what)
        for admitted in result.jobs:
            job = self._state.running[admitted.id]
            gate = job.spec.gate or NO_GATE
            self._check_caps(job, gate)
            self._check_key(job, gate)
            if admitted.refused is None:
                self._check_rates(job, gate)
            self._count(gate, admitted)

    def _count(self, gate: Gate, admitted: ClaimedJob) -> None:
        self.counts["gate: admitted"] += 1
        self.counts["gate: refused"] += admitted.refused is not None
        self.counts["gate: admitted in order"] += gate.in_order

    def _check_caps(self, job: Job, gate: Gate) -> None:
        for name in {queue_cap(job.spec.queue), *gate.caps}:
            cap = self._overrides.get(name, self._declared.get(name))
            used = sum(name in (queue_cap(other.spec.queue), *(other.spec.gate or NO_GATE).caps)
                       for other in self._state.running.values())  # fmt: skip
            if cap is not None and used > cap:
                self._breach("nothing over a cap", f"job {job.id} is one of {used} under {name}, whose cap is {cap}")

    def _check_key(self, job: Job, gate: Gate) -> None:
        if gate.key is None or gate.key_limit is None:
            return
        others = [other for other in self._state.jobs.values() if other is not job and _key(other) == _key(job)]
        running = 1 + sum(other.state is JobState.RUNNING for other in others)
        if running > gate.key_limit:
            self._breach("so many of a key at a time", f"job {job.id} is one of {running} of {gate.key}")
        for other in others if gate.in_order else ():
            kept = other.attempt > 0 and other.state in (JobState.SCHEDULED, JobState.PARKED)
            waits = other.spec.gate == gate and claimable(self._state, other.id) is not None
            if kept or (waits and self._places[other.id] < self._places[job.id]):
                what = f"job {job.id} of {gate.key} started before {other.id}, which is {other.state}"
                self._breach("jobs of a key start in order", what)

    def _follow_rates(self) -> None:
        """Take over rates that were declared or set; levels are kept, and never above the burst."""
        now = self._state.now()
        for name, bucket in self._state.limits.buckets.items():
            meter = self._meters.get(name)
            if bucket.rate is None or (meter is not None and meter.rate == bucket.rate):
                continue
            if meter is None:
                meter = self._meters[name] = Meter(bucket.rate, bucket.rate.burst, now)
            meter.settle(now)
            meter.rate, meter.level = bucket.rate, min(meter.level, bucket.rate.burst)

    def _check_rates(self, job: Job, gate: Gate) -> None:
        for name, units in gate.limits:
            meter = self._meters.get(name)
            if meter is None:
                continue
            meter.settle(self._state.now())
            need = job.spec.cost if units is None else units
            if meter.level < min(need, meter.rate.burst) - TOLERANCE:
                what = f"job {job.id} took {need} of {name}, which holds at most {meter.level:.6f}"
                self._breach("never over burst and rate", what)
            meter.level -= need

    def thorough(self) -> None:
        """Nothing beyond each call."""


def _key(job: Job) -> tuple[str, str | None]:
    return job.spec.queue, (job.spec.gate or NO_GATE).key
