"""The gate on Redis: fair shares, caps, rate limits and breakers. One script per verb."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from headrace.model.admission import Admitted, Explanation, LimitKind, LimitsView, RateView, WaitReason
from headrace.model.breaker import BreakerReport, BreakerState
from headrace.model.elastic import Eligible
from headrace.model.errors import NotFoundError
from headrace.model.job import Claim, ClaimedJob, JobState
from headrace.model.limits import Declared, Level, Rate
from headrace.stores.redis.limit_rows import breaker_view, cap_view, rate_view, rule_fields, share_view
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import admitted_jobs, instant, span, to_json

#: Jobs that one script admits at most: more would hold up everybody else.
ADMITTED_PART = 32


class RedisAdmission:
    """The admission port on Redis; what runs is counted from sets of running jobs."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def admit_jobs(self, claim: Claim, *, grants: Mapping[str, float] | None = None) -> Admitted:
        """Start what the gate lets pass, a part at a time."""
        jobs: list[ClaimedJob] = []
        spent: dict[str, float] = {}
        while True:
            rest = None if grants is None else {name: units - spent.get(name, 0.0) for name, units in grants.items()}
            part = min(ADMITTED_PART, claim.limit - len(jobs))
            # Where this fails, what earlier parts started is found as what a lost answer took is: by `claimed_jobs`.
            found = await self._admit_part(claim, part, rest)
            jobs += found.jobs
            for name, units in found.spent.items():
                spent[name] = spent.get(name, 0.0) + units
            if found.look_in != timedelta() or len(jobs) >= claim.limit:
                return replace(found, jobs=jobs, spent=spent)

    async def _admit_part(self, claim: Claim, limit: int, grants: Mapping[str, float] | None) -> Admitted:
        units = "" if grants is None else to_json(grants)
        gated, *answer = await self._namespace.run("admit_jobs", claim.session.hex, claim.queue, limit, units)
        if not gated:
            return Admitted([], gated=False)
        rows, look_in, spent, short = answer
        wait = None if int(look_in) < 0 else timedelta(microseconds=int(look_in))
        jobs = admitted_jobs(rows, claim.queue)
        return Admitted(jobs, look_in=wait, spent=json.loads(spent), short=json.loads(short))

    async def declare_limits(self, declared: Declared) -> None:
        """Store what an app declares; what operators set stays in force."""
        facts = {
            "caps": dict(declared.caps),
            "rates": {name: [repr(rate.per_second), repr(rate.burst)] for name, rate in declared.rates.items()},
            "breakers": {key: rule_fields(rule) for key, rule in declared.breakers.items()},
        }
        await self._namespace.run("declare_limits", to_json(facts))

    async def report_calls(self, reports: Sequence[BreakerReport]) -> None:
        """Count endings of attempts behind breakers."""
        words = [
            word
            for one in reports
            for word in (one.key, f"{one.job_id.hex} {one.attempt}", "1" if one.succeeded else "0")
        ]
        if words:
            await self._namespace.run("report_calls", *words)

    async def explain_job(self, job_id: UUID, *, levels: Mapping[str, Level] | None = None) -> Explanation | None:
        """Say why a job is not running."""
        row = await self._namespace.run("explain_job", job_id.hex, _stand(levels))
        if row is None:
            return None
        state, reason, subject, until, facts, ahead = row
        known = json.loads(facts)
        if ahead >= 0:
            known["ahead"] = ahead
        if "held_by" in known:
            known["held_by"] = str(UUID(known["held_by"]))
        if reason in (WaitReason.CANCELLING, WaitReason.BATCH_PAUSED):
            subject = str(UUID(subject))
        at = instant(str(until)) if int(until or 0) else None
        return Explanation(job_id, JobState(state), WaitReason(reason), subject, at, known)

    async def eligible_jobs(self, queue: str, *, at_most: int, levels: Mapping[str, Level] | None = None) -> Eligible:
        """Count what could start if there were slots."""
        counted = await self._namespace.run("eligible_jobs", queue, at_most, _stand(levels))
        jobs, room, held_by, workers, units = counted
        rooms = (None if most < 0 else most for most in (room, units))
        return Eligible(jobs, next(rooms), held_by or None, workers, next(rooms))

    async def list_limits(self, *, most_shares: int | None = None) -> LimitsView:
        """Return limits as they stand."""
        caps, breakers, shares = await self._namespace.run("list_limits", -1 if most_shares is None else most_shares)
        return LimitsView(
            caps=tuple(cap_view(*row) for row in caps),
            rates=await self.list_rates(),
            breakers=tuple(breaker_view(key, fields) for key, fields in breakers),
            shares=tuple(share_view(*row) for row in shares),
        )

    async def list_rates(self) -> tuple[RateView, ...]:
        """Return the rates alone."""
        return tuple(rate_view(*row) for row in await self._namespace.run("list_rates"))

    async def set_cap(self, key: str, cap: int | None) -> None:
        """Override a cap, or return to the declared one."""
        await self._namespace.run("set_cap", key, "" if cap is None else cap)

    async def set_rate(self, name: str, rate: Rate | None) -> None:
        """Override a rate, or return to the declared one."""
        figures = ("", "") if rate is None else (repr(rate.per_second), repr(rate.burst))
        await self._namespace.run("set_rate", name, *figures)

    async def set_weight(self, queue: str, fair_key: str, weight: float) -> None:
        """Set the weight of a fair key in a queue."""
        await self._namespace.run("set_weight", queue, fair_key, repr(weight))

    async def set_breaker(self, key: str, state: BreakerState) -> None:
        """Open or close a breaker by hand."""
        word = "closed" if state is BreakerState.CLOSED else "open"
        if not await self._namespace.run("set_breaker", key, word):
            raise NotFoundError(f"There is no circuit breaker {key!r}. It is declared by a worker whose tasks name it.")

    async def forget_limit(self, name: str) -> frozenset[LimitKind]:
        """Remove a cap, rate or breaker."""
        return frozenset(map(LimitKind, await self._namespace.run("forget_limit", name, *LimitKind)))


def _stand(levels: Mapping[str, Level] | None) -> str:
    """Return how buckets stand elsewhere, as scripts read it."""
    if levels is None:
        return ""
    return to_json({name: [level.units, span(level.closed)] for name, level in levels.items()})
