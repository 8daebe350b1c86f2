"""The predicate of the gate: what keeps a job from starting. Admission and `explain_job` ask the same."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from headrace.model.admission import WaitReason
from headrace.model.breaker import BreakerState
from headrace.model.limits import Rate, queue_cap
from headrace.stores.memory.breakers import Breaker
from headrace.stores.memory.buckets import NOW, Buckets
from headrace.stores.memory.caps import Usage, caps_of, key_holder
from headrace.stores.memory.lanes import gate_of
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State

#: What flowed in is not an exact number.
ENOUGH = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing that keeps a job from starting; `until` says when that ends if time alone ends it.

    `lack` is how long units have to flow in before there are enough; None where it is not units that are missing.
    """

    reason: WaitReason
    subject: str
    until: datetime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    lack: timedelta | None = None


class Keeper:
    """The gate at one instant: what is used, and what the buckets hold."""

    def __init__(
        self, state: State, usage: Usage, grants: Mapping[str, float] | None = None, *, buckets: Buckets | None = None
    ) -> None:
        """`buckets` stand for those of the store."""
        self._buckets = state.limits.buckets if buckets is None else buckets
        self._state, self._limits, self._now = state, state.limits, state.now()
        self._usage, self._grants = usage, grants
        self.spent: dict[str, float] = {}
        self.short: dict[str, float] = {}
        self._reserved: dict[str, float] = defaultdict(float)

    def obstacles(self, job: Job) -> Iterator[Obstacle]:
        """Yield what keeps a job from starting, in the order of `WaitReason`."""
        yield from self._shut_breakers(job)
        yield from self._short_buckets(job)
        yield from self._full_caps(job)

    def room(self, job: Job) -> int | None:
        """Return how many more jobs the caps that a job counts against let start; None: there is none."""
        caps = {name: self._limits.cap(name) for name in caps_of(job)}
        return min((cap - self._usage.caps[name] for name, cap in caps.items() if cap is not None), default=None)

    def units_room(self, job: Job) -> int | None:
        """Return how many such jobs the units of its rate limits let start, if one may; None: it has none."""
        rated = ((self._buckets[name], units) for name, units in self._units(job).items())
        levels = [(bucket.level_at(self._now), units) for bucket, units in rated if bucket.rate is not None]
        # One that takes more than the burst starts when the bucket is full.
        return min((max(1, math.floor(level / units * ENOUGH)) for level, units in levels), default=None)

    def most_of_lane(self, job: Job) -> int | None:
        """Return how many jobs with the gate of one could start at once whatever the caps; None: any number."""
        gate = gate_of(job.spec)
        cap, used = self._limits.key_cap(job.spec.queue, gate), self._usage.keys[job.spec.queue, gate.key or ""]
        tried = any(
            self._limits.breakers[key].record.state is not BreakerState.CLOSED
            for key in gate.breakers
            if key in self._limits.breakers
        )
        most = None if gate.key is None or cap is None else cap - used
        return most if not tried else 1 if most is None else min(1, most)

    def refusal(self, job: Job) -> str | None:
        """Return why a job has to be failed without running: an open breaker whose rule says so."""
        for key, breaker in self._shut(job):
            if breaker.refuses:
                when = f"tries again at {breaker.until:%Y-%m-%d %H:%M:%S} UTC" if breaker.until else "is being tried"
                return f"The circuit breaker {key!r} is open; it {when}."
        return None

    def obstacles_to_refusal(self, job: Job) -> Iterator[Obstacle]:
        """Yield what keeps a job from being refused: it takes room under its caps, but no units."""
        yield from self._full_caps(job)

    def hold(self, job: Job, obstacles: Sequence[Obstacle]) -> datetime | None:
        """Let a job wait behind its obstacles, and return when to look again; None: no time is known.

        One that lacks nothing but units reserves them for the rest of this admission, where nobody did so before it.
        """
        lacks = {obstacle.subject: obstacle.lack for obstacle in obstacles if obstacle.lack is not None}
        if len(lacks) < len(obstacles):
            opens = [self._opens(obstacle) for obstacle in obstacles if obstacle.lack is None]
            known = [at for at in opens if at is not None]
            return max(known) if len(known) == len(opens) else None
        if any(self._reserved[name] for name in lacks):
            return None
        wait = max(lacks.values())
        for name, units in self._units(job).items():
            if self._grants is not None and name in lacks:
                self.short[name] = units
            if (rate := self._rate(name)) is not None:
                # What flows in until the job can start need not be kept for it.
                self._reserved[name] += units if lacks.get(name) == wait else rate.needed(units, wait)
        return self._now + wait if self._grants is None else None

    def _rate(self, name: str) -> Rate | None:
        rate = self._buckets[name].rate
        # Of grants a job takes no more than there are: whoever gives them keeps the debt of one dearer than the burst.
        return rate if rate is None or self._grants is None else replace(rate, burst=math.inf)

    def _opens(self, obstacle: Obstacle) -> datetime | None:
        closed = obstacle.reason is WaitReason.RATE
        return self._buckets[obstacle.subject].closed_until if closed else obstacle.until

    def start(self, job: Job, *, refused: bool) -> None:
        """Take the room and the units of a job that was just started, and make it the probe of what it tries."""
        self._usage.add(job)
        self._limits.shares[job.spec.queue].started(gate_of(job.spec).fair_key, job.spec.cost)
        if refused:
            return
        for name, units in self._units(job).items():
            if self._grants is None:
                self._buckets[name].change(-units, self._now)
            else:
                self.spent[name] = self.spent.get(name, 0.0) + units
        for key in gate_of(job.spec).breakers:
            if key in self._limits.breakers:
                self._limits.breakers[key].started(job.id, job.attempt)

    def _shut(self, job: Job) -> Iterator[tuple[str, Breaker]]:
        for key in sorted(gate_of(job.spec).breakers):
            breaker = self._limits.breakers.get(key)
            if breaker is None or breaker.record.probe == (job.id, job.attempt):
                continue
            if not breaker.passes(self._now, self._runs):
                yield key, breaker

    def _runs(self, job_id: UUID, attempt: int) -> bool:
        job = self._state.running.get(job_id)
        return job is not None and job.attempt == attempt

    def _shut_breakers(self, job: Job) -> Iterator[Obstacle]:
        for key, breaker in self._shut(job):
            yield Obstacle(WaitReason.BREAKER, key, breaker.until, {"state": breaker.record.state.value})

    def _units(self, job: Job) -> Mapping[str, float]:
        """Return what a job takes of each bucket that exists; of that of its queue one unit."""
        limits = ((queue_cap(job.spec.queue), 1.0), *gate_of(job.spec).limits)
        units: dict[str, float] = defaultdict(float)
        for name, amount in limits:
            if name in self._buckets:
                units[name] += job.spec.cost if amount is None else amount
        return dict(sorted(units.items()))

    def _short_buckets(self, job: Job) -> Iterator[Obstacle]:
        for name, units in self._units(job).items():
            bucket, closed = self._buckets[name], NOW
            if self._grants is None:
                level, closed = bucket.level_at(self._now), bucket.closed(self._now)
            else:
                level = self._grants.get(name, 0.0) - self.spent.get(name, 0.0)
            rate = self._rate(name)
            lack = rate.missing(level - self._reserved[name], units) if rate else NOW
            if wait := max(lack, closed):
                until = self._now + wait if self._grants is None else None
                facts = {"level": level, "units": units}
                yield Obstacle(WaitReason.RATE, name, until, facts, None if closed else lack)

    def _full_caps(self, job: Job) -> Iterator[Obstacle]:
        for name in caps_of(job):
            cap, used = self._limits.cap(name), self._usage.caps[name]
            if cap is not None and used >= cap:
                yield Obstacle(WaitReason.CAP, name, None, {"cap": cap, "running": used})
        gate = gate_of(job.spec)
        cap, used = self._limits.key_cap(job.spec.queue, gate), self._usage.keys[job.spec.queue, gate.key or ""]
        if gate.key is not None and cap is not None and used >= cap:
            holder = key_holder(self._state, job) if gate.in_order else None
            held = {} if holder is None else {"held_by": str(holder.id)}
            yield Obstacle(WaitReason.CAP, gate.key, None, {"cap": cap, "running": used, **held})
