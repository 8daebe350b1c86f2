"""The gate on PostgreSQL: admission, what limits it, and why a job waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from headrace.model.admission import (
    Admitted,
    BreakerView,
    CapView,
    Explanation,
    LimitKind,
    LimitsView,
    RateView,
    ShareView,
)
from headrace.model.breaker import BreakerReport, BreakerState
from headrace.model.elastic import Eligible
from headrace.model.errors import NotFoundError
from headrace.model.job import Claim
from headrace.model.limits import Declared, Level, Rate
from headrace.stores.postgres import breaker_reports, explaining
from headrace.stores.postgres.breaker_reports import breaker_record, breaker_rule
from headrace.stores.postgres.database import Database, Row, Transaction
from headrace.stores.postgres.rows import admitted_jobs

_QUEUE = "queue:"
#: Between two looks for what others have not ended, in seconds; one takes a millisecond.
_PAUSE = 0.01


class PostgresAdmission:
    """`ports.admission.Admission`; `hot` has connections with pinned plans.

    Locks: the gate of a queue, then rows of limits, rates and breakers, each by name, then jobs, then shares. A gate is
    only ever held by one statement: a worker that freezes must not hold up the others.
    """

    def __init__(self, database: Database, hot: Database) -> None:
        self._database, self._hot = database, hot

    async def admit_jobs(self, claim: Claim, *, grants: Mapping[str, float] | None = None) -> Admitted:
        """Start what the gate lets pass; one statement."""
        granted = None if grants is None else json.dumps(dict(grants))
        *rows, last = await self._hot.fetch(
            "admit_jobs", session=claim.session, queue=claim.queue, limit=claim.limit, grants=granted
        )
        spent = json.loads(last["spent"] or "{}")
        short = json.loads(last["short"] or "{}")
        return Admitted(admitted_jobs(rows), gated=last["gated"], look_in=last["look_in"], spent=spent, short=short)

    async def declare_limits(self, declared: Declared) -> None:
        """Store what an app declares; what operators set stays in force."""

        async def work(tx: Transaction) -> None:
            caps = sorted(declared.caps)
            await tx.fetch("declare_caps", keys=caps, caps=[declared.caps[key] for key in caps])
            await declare_rates(tx, declared.rates, empty=False)
            await breaker_reports.declare_breakers(tx, declared.breakers)

        await self._gate(declared.rates, caps=declared.caps)
        await self._database.run(work)

    async def report_calls(self, reports: Sequence[BreakerReport]) -> None:
        """Count endings of attempts behind breakers."""
        await breaker_reports.report_calls(self._database, reports)

    async def explain_job(self, job_id: UUID, *, levels: Mapping[str, Level] | None = None) -> Explanation | None:
        """Say why a job is not running."""
        return await explaining.explain_job(self._database, job_id, levels)

    async def eligible_jobs(self, queue: str, *, at_most: int, levels: Mapping[str, Level] | None = None) -> Eligible:
        """Count what could start if there were slots."""
        return await explaining.eligible_jobs(self._database, queue, at_most, levels)

    async def list_limits(self, *, most_shares: int | None = None) -> LimitsView:
        """Return limits as they stand."""
        breakers = await self._database.fetch("list_breakers", keys=None)
        return LimitsView(
            caps=tuple(CapView(**dict(row)) for row in await self._database.fetch("list_caps")),
            rates=await self.list_rates(),
            breakers=tuple(BreakerView(row["key"], breaker_rule(row), breaker_record(row)) for row in breakers),
            shares=tuple(ShareView(**dict(row)) for row in await self._shares(most_shares)),
        )

    async def _shares(self, most: int | None) -> list[Row]:
        return [] if most == 0 else await self._database.fetch("list_shares", most=most)

    async def list_rates(self) -> tuple[RateView, ...]:
        """Return the rates alone."""
        return tuple(_rate_view(row) for row in await self._database.fetch("list_rates"))

    async def set_cap(self, key: str, cap: int | None) -> None:
        """Override a cap, or return to the declared one."""
        if cap is not None:
            await self._gate(caps=[key])
        await self._database.fetch("set_cap", key=key, cap=cap)

    async def set_rate(self, name: str, rate: Rate | None) -> None:
        """Override a rate, or return to the declared one."""
        per_second, burst = (None, None) if rate is None else (rate.per_second, rate.burst)
        if rate is not None:
            await self._gate([name])
        await self._database.fetch("set_rate", name=name, per_second=per_second, burst=burst)

    async def set_weight(self, queue: str, fair_key: str, weight: float) -> None:
        """Set the weight of a fair key in a queue."""
        if weight == 1:
            await self._database.fetch("forget_weight", queue=queue, fair_key=fair_key)
        else:
            await self._database.fetch("set_weight", queue=queue, fair_key=fair_key, weight=weight)

    async def set_breaker(self, key: str, state: BreakerState) -> None:
        """Open or close a breaker by hand."""
        if not await self._database.fetch("set_breaker", key=key, closed=state is BreakerState.CLOSED):
            raise NotFoundError(f"There is no circuit breaker {key!r}. It is declared by a worker whose tasks name it.")

    async def forget_limit(self, name: str) -> frozenset[LimitKind]:
        """Remove a cap, rate or breaker."""
        rows = await self._database.fetch("forget_limit", name=name, kinds=list(LimitKind))
        return frozenset(LimitKind(row["kind"]) for row in rows)

    async def _gate(self, rates: Iterable[str] = (), *, caps: Iterable[str] = ()) -> None:
        """Make the queues gated whose cap or rate is named, and before a new cap count what runs there already.

        It includes what claims start that saw no gate: they are waited for. No lock is held while waiting.
        """
        capped = _queues(caps)
        if queues := sorted({*capped, *_queues(rates)}):
            await self._database.fetch("gate_queues", queues=queues)
        if not capped:
            return
        keys, among = [_QUEUE + queue for queue in capped], None
        with contextlib.suppress(TimeoutError):
            # No transaction of ours outlasts that.
            async with asyncio.timeout(self._database.options.statement_timeout.total_seconds()):
                while rows := await self._database.fetch("claims_in_flight", caps=keys, among=among):
                    among = [row["id"] for row in rows]
                    await asyncio.sleep(_PAUSE)
                while await self._database.fetch("count_in", caps=keys):  # noqa: ASYNC110 - no event tells of rows
                    await asyncio.sleep(_PAUSE)


async def declare_rates(tx: Transaction | Database, rates: Mapping[str, Rate], *, empty: bool) -> None:
    """Set declared rates; a bucket that was not known is full, or `empty`."""
    names = sorted(rates)
    per_seconds, bursts = [rates[name].per_second for name in names], [rates[name].burst for name in names]
    await tx.fetch("declare_rates", names=names, per_seconds=per_seconds, bursts=bursts, empty=empty)


def _queues(names: Iterable[str]) -> list[str]:
    return sorted({name.removeprefix(_QUEUE) for name in names if name.startswith(_QUEUE)})


def _rate_view(row: Row) -> RateView:
    return RateView(
        name=row["name"],
        declared=_rate(row["per_second"], row["burst"]),
        override=_rate(row["override_per_second"], row["override_burst"]),
        level=row["level"],
        closed_until=row["closed_until"],
    )


def _rate(per_second: Any, burst: Any) -> Rate | None:
    return None if burst is None else Rate(per_second, burst)
