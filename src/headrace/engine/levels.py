"""How rates stand that a limiter beside the store counts: what is shown of them comes from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from headrace.engine.late_limiter import soon
from headrace.model.admission import Explanation, LimitsView, RateView, WaitReason
from headrace.model.elastic import Eligible
from headrace.model.errors import StoreUnavailableError
from headrace.model.limits import Level
from headrace.ports.limiter import Limiter
from headrace.ports.stores import Stores

#: A bucket that is not known there will be declared again by the next worker, and begins empty.
_UNKNOWN = Level(0.0)


async def list_limits(stores: Stores, limiter: Limiter, *, most_shares: int | None = None) -> LimitsView:
    """Return all limits, rates as they stand where they are counted; None for levels while that server is away."""
    view = await stores.admission.list_limits(most_shares=most_shares)
    if limiter is stores.limiter:
        return view
    levels = await _levels(limiter, view.rates)
    now = (await stores.inspect.store_info()).now or datetime.now(UTC)
    return replace(view, rates=tuple(_standing(rate, levels, now) for rate in view.rates))


async def explain_job(stores: Stores, limiter: Limiter, job_id: UUID) -> Explanation | None:
    """Say why a job is not running, by the buckets where they are counted; None for an unknown id.

    While that server is away no job with a rate limit starts: the reason is then a rate whose `level` is None.
    """
    if limiter is stores.limiter:
        return await stores.admission.explain_job(job_id)
    levels = await _levels(limiter, await stores.admission.list_rates())
    if levels is not None:
        return await stores.admission.explain_job(job_id, levels=levels)
    why = await stores.admission.explain_job(job_id, levels={})
    if why is None or why.reason is not WaitReason.RATE:
        return why
    return replace(why, until=None, facts={**why.facts, "level": None})


async def eligible_jobs(stores: Stores, limiter: Limiter, queue: str, at_most: int) -> Eligible:
    """Count what could start of a queue, by the buckets where they are counted; see `Admission.eligible_jobs`.

    While that server is away nothing that has a rate limit could start.
    """
    if limiter is stores.limiter:
        return await stores.admission.eligible_jobs(queue, at_most=at_most)
    levels = await _levels(limiter, await stores.admission.list_rates())
    return await stores.admission.eligible_jobs(queue, at_most=at_most, levels=levels or {})


async def _levels(limiter: Limiter, rates: Iterable[RateView]) -> Mapping[str, Level] | None:
    """Return how rates stand; None: the server is away."""
    try:
        return await soon(limiter.levels([rate.name for rate in rates if rate.rate is not None]))
    except StoreUnavailableError:
        return None


def _standing(rate: RateView, levels: Mapping[str, Level] | None, now: datetime) -> RateView:
    if levels is None:
        return replace(rate, level=None, closed_until=None)
    level = levels.get(rate.name, _UNKNOWN)
    return replace(rate, level=level.units, closed_until=now + level.closed if level.closed else None)
