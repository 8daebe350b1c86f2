"""The admission port: the one gate before jobs that have one.

A job with a gate (`JobSpec.gate`) is stored in a *lane*, the jobs of its queue with an equal gate, where `claim_jobs`
does not see it. The first such job, and a cap or rate declared for the queue, makes the queue *gated*: from then on
`claim_jobs` gives nothing of it, and `admit_jobs` gives everything, jobs without a gate included (as a lane of an
empty gate). So an ungated queue pays nothing, and in a gated one nothing slips past the gate.

Admitting and starting are one step, under the gate's lock of the queue: what runs is counted from running rows, which
cannot leak, and a job is admitted only into a free slot, so that waiting jobs hold none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from headrace.model.admission import Admitted, Explanation, LimitKind, LimitsView, RateView
from headrace.model.breaker import BreakerReport, BreakerState
from headrace.model.elastic import Eligible
from headrace.model.job import Claim
from headrace.model.limits import Declared, Level, Rate


class Admission(Protocol):
    """Fair shares, caps, rate limits and breakers. All methods raise StoreUnavailableError."""

    async def admit_jobs(self, claim: Claim, *, grants: Mapping[str, float] | None = None) -> Admitted:
        """Move up to `claim.limit` ready jobs of a gated queue to running under the session.

        Shares come first: the fair keys of the queue are served by weighted start-time fair queueing
        (`model/fairness.py`), jobs without a fair key being one more share; within a share the order is that of
        `claim_jobs`. Of a lane only the first waiting job counts: if it may not start, none of its lane does, and no
        other lane waits for that. A job starts if its queue is not paused, its batch not being cancelled, every
        breaker lets it pass, every bucket (`queue:NAME` among them) has the units, and every cap (`queue:NAME`, those
        it names, its concurrency key) has room. Starting it takes the units and the room, and moves the share's tag.

        A bucket is served in this order too: the first job that lacks nothing but units has what it will need of all
        its buckets kept from those who come after it in this admission, less what flows in until it can start. So a
        dear job waits no longer than its units (or a burst) take, and then for its turn. This holds within a queue.
        Nothing is kept of caps: a job with two caps starts when both have room at once, however long that takes.

        A running job counts against its caps in every queue; against a concurrency key in its own queue. With
        `key_limit` 1 a job that ran before and waits for its next run (retry, snooze, parked) keeps the key, and comes
        back to the place it had. A fair key or bucket that is not known has weight 1, or is no limit.

        `grants` are units taken beforehand from a limiter that is not this store; the buckets of the store itself are
        then left alone, and a bucket that is not among the grants gives nothing; nor does one of which less was granted
        than a job takes, dearer than the burst or not. What they were too few for is told (`short`).

        A job behind an open breaker whose rule says FAIL comes back with `refused` set: the caller fails it without
        running it.

        Never more than the free slots, nothing to a session that is not alive; `claim.after` is ignored.
        """
        ...

    async def declare_limits(self, declared: Declared) -> None:
        """Store what an app declares. An operator's `set_cap` and `set_rate` stay in force; levels are kept."""
        ...

    async def report_calls(self, reports: Sequence[BreakerReport]) -> None:
        """Count endings of attempts behind breakers, by `model.breaker.record_call`; unknown keys are ignored.

        May be lost with the process that calls: a probe is known by its running job, not by its report.
        """
        ...

    async def explain_job(self, job_id: UUID, *, levels: Mapping[str, Level] | None = None) -> Explanation | None:
        """Say why a job is not running, by the predicate of `admit_jobs` or `claim_jobs`; None for an unknown id.

        `levels` are those of a limiter that is not this store; the buckets of the store itself then say only which
        rates there are, and one that is not among the levels is empty.
        """
        ...

    async def eligible_jobs(self, queue: str, *, at_most: int, levels: Mapping[str, Level] | None = None) -> Eligible:
        """Count the ready jobs that could start now if there were slots, by the predicate of `explain_job`.

        No further than `at_most` for each live worker that serves the queue. Nothing of a paused queue. Behind a gate a
        lane counts with all its jobs if the first of them may start; those of a concurrency key no further than the
        key has room, those behind a breaker that is being tried as one. Neither units nor room under caps are shared
        out among lanes: `Eligible.room` says how many the caps let start, `Eligible.units` how many the rates do. Of a
        queue with very many lanes a store may look at a thousand more than it counts jobs, and jobs of a batch that is
        being cancelled may count until it is.

        Takes no lock, and costs about as much as an admission that starts nothing. `levels` as for `explain_job`.
        """
        ...

    async def list_limits(self, *, most_shares: int | None = None) -> LimitsView:
        """Return caps, rates, breakers and shares as they stand; of shares, which may be many, the first so many."""
        ...

    async def list_rates(self) -> tuple[RateView, ...]:
        """Return the rates of `list_limits` alone, without what has to be counted for the others."""
        ...

    async def set_cap(self, key: str, cap: int | None) -> None:
        """Override a cap at run time, for running workers too; None returns to the declared one. Zero stops.

        "key:QUEUE:KEY" is the cap of a concurrency key, in place of the `key_limit` of its jobs.
        """
        ...

    async def set_rate(self, name: str, rate: Rate | None) -> None:
        """Override a rate at run time; None returns to the declared one. The level is kept, at most the new burst."""
        ...

    async def set_weight(self, queue: str, fair_key: str, weight: float) -> None:
        """Set the weight of a fair key in a queue; it acts with the next admission. 1 is that of keys without one."""
        ...

    async def set_breaker(self, key: str, state: BreakerState) -> None:
        """Open a breaker by hand (for its cooldown), or close it. Raises NotFoundError for an unknown key."""
        ...

    async def forget_limit(self, name: str) -> frozenset[LimitKind]:
        """Remove the cap, the rate and the breaker of this name, with overrides, level and record; return which it was.

        Jobs that name it are no longer limited by it, those that run go on. Whoever declares it again, or overrides it,
        makes it anew: the bucket full, the breaker closed, and under the cap what runs counts. A queue stays gated.
        """
        ...
