"""Admission on Redis beside thousands of shares that are held up: how much one script asks the server."""

from __future__ import annotations

import re
from uuid import UUID

from headrace.model.job import Claim, JobSpec, NewJob
from headrace.model.limits import Declared, Gate, Rate
from headrace.stores.redis.admission import ADMITTED_PART
from headrace.testing.clock import FakeClock
from tests.backends.redis import open_test_stores
from tests.backends.valkey import shared_server
from tests.conformance.scenario import SPEC, Scenario

#: So many that a look at each of them for each of the others would keep the server for seconds.
SHARES = 5_000


async def test_shares_behind_a_reservation_are_looked_at_once() -> None:
    """Of 5,000 tenants that lack units which a dear job keeps each is asked once, and who needs less comes through."""
    clock = FakeClock()
    async with open_test_stores(clock) as stores:
        on = Scenario(stores, clock)
        session = await on.worker()
        await on.gate.declare_limits(Declared({}, {"a": Rate(0.001, 100), "b": Rate(0.0001, 100)}))
        await on.limiter.take({"a": 50.0})
        await _insert(on, [Gate(fair_key="dear", limits=(("a", 100.0), ("b", 90.0)))])
        tenants = [Gate(fair_key=f"t{number}", limits=(("b", None),)) for number in range(SHARES)]
        await _insert(on, tenants, cost=50.0)
        (cheap,) = await _insert(on, [Gate(fair_key="cheap", limits=(("b", None),))], cost=5.0)
        before = _commands()
        admitted = await on.gate.admit_jobs(Claim(session, SPEC.queue, ADMITTED_PART))
        # Of each its lanes and a row.
        assert _commands() - before < 2.5 * SHARES
        assert [job.id for job in admitted.jobs] == [cheap]


async def test_shares_behind_a_full_key_are_looked_at_once() -> None:
    """Of 5,000 tenants behind a full key each is asked once, not again for each job admitted beside them."""
    clock = FakeClock()
    async with open_test_stores(clock) as stores:
        on = Scenario(stores, clock)
        session = await on.worker()
        await _insert(on, [Gate(fair_key=f"t{number}", key="one", key_limit=1) for number in range(SHARES)])
        assert len((await on.gate.admit_jobs(Claim(session, SPEC.queue, 1))).jobs) == 1
        await _insert(on, [Gate(fair_key="free")] * ADMITTED_PART)
        before = _commands()
        admitted = await on.gate.admit_jobs(Claim(session, SPEC.queue, ADMITTED_PART))
        assert _commands() - before < 1.5 * SHARES
        assert len(admitted.jobs) == ADMITTED_PART


async def _insert(on: Scenario, gates: list[Gate], *, cost: float = 1.0) -> list[UUID]:
    jobs = [NewJob(JobSpec(SPEC.task, gate=gate, cost=cost), '{"args":[],"kwargs":{}}') for gate in gates]
    for first in range(0, len(jobs), 1_000):
        await on.stores.jobs.insert_jobs(jobs[first : first + 1_000])
    return [job.id for job in jobs]


def _commands() -> int:
    """Return how many commands the server has run, those within scripts included."""
    return sum(int(calls) for calls in re.findall(r"calls=(\d+)", shared_server().call("INFO", "commandstats")))
