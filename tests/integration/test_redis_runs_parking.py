"""Parked jobs on Redis: the order at the gate that they leave and come back to, and wake-ups that race with parking."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.job import ClaimedJob, Completion, JobState, Park
from headrace.model.limits import Gate
from headrace.ports.stores import Stores
from headrace.stores.redis import RedisSite
from headrace.stores.redis.connection import Server
from headrace.testing.clock import FakeClock
from tests.backends.redis import stores_on
from tests.conformance.scenario import ALL, DAY, MINUTE, SECOND, Scenario
from tests.integration.test_redis_scripts import check_order, keys_of
from tests.waiting import wait_until

MILLISECOND = timedelta(milliseconds=1)
NOTHING = timedelta()


@pytest.fixture
async def real(site: RedisSite) -> AsyncIterator[Stores]:
    """Open stores on the namespace, under the clock of the server."""
    async with stores_on(site, None) as stores:
        yield stores


# Orders


@pytest.mark.parametrize("seed", range(4))
async def test_parked_jobs_keep_the_order_at_the_gate(on: Scenario, server: Server, site: RedisSite, seed: int) -> None:
    """Whatever parks, wakes and ends, the derived order of the gate is that of its lanes, and no key is left held."""
    chosen, session, held = random.Random(seed), await on.worker(lease=DAY), list[ClaimedJob]()
    gates = [Gate(fair_key=fair, key=key, key_limit=1 if key else None) for fair in "ab" for key in ("k", "l", None)]
    for step in range(40):
        on.clock.advance(chosen.choice([NOTHING, SECOND]))
        await on.enqueue(chosen.randint(0, 2), gate=chosen.choice(gates), priority=chosen.randint(0, 9))
        held += await on.admit(session, chosen.randint(0, 3))
        if held:
            job = held.pop(chosen.randrange(len(held)))
            park = chosen.choice([Park(f"s{step}"), Park(wait=SECOND), Park(f"s{step - 1}", MINUTE), None])
            state = JobState.SUCCEEDED if park is None else JobState.PARKED
            await on.stores.jobs.complete_jobs(session, [Completion(job.id, job.attempt, state, park=park)])
        await on.stores.signals.send_signal(f"s{chosen.randint(0, step)}", "1")
        parked = await on.stores.inspect.list_jobs(state=JobState.PARKED)
        if parked and chosen.random() < 0.2:
            await on.stores.control.cancel_job(chosen.choice(parked).id)
        await on.stores.jobs.stage_jobs(limit=100)
        await check_order(server, site, await on.admit(session, 0))

    await work_off(on, session, held)
    left = {name.partition(":")[0] for name in await keys_of(server, site)}
    assert not left & {"keys", "holds", "parked", "sleepers", "lane", "ready", "scheduled"}


async def work_off(on: Scenario, session: UUID, held: list[ClaimedJob]) -> None:
    """End everything that is left, and cancel what is parked for good."""
    while True:
        parked = await on.stores.inspect.list_jobs(state=JobState.PARKED, limit=ALL)
        for view in parked:
            await on.stores.control.cancel_job(view.id)
        held += await on.admit(session)
        if not held and not parked:
            return
        await on.end(session, *held)
        held = []


# Under the clock of the server


async def test_no_signal_is_lost_between_parking_and_waking(real: Stores) -> None:
    """Jobs that park while their signals are sent, on many connections at once, are all ready in the end."""
    on = Scenario(real, FakeClock())
    session = await on.worker(lease=MINUTE)
    await on.enqueue(200)
    jobs = await on.claim(session)
    acts = [
        *(on.end(session, job, state=JobState.PARKED, park=Park(str(job.id))) for job in jobs),
        *(real.signals.send_signal(str(job.id), "1") for job in jobs),
    ]
    random.Random(1).shuffle(acts)
    await asyncio.gather(*acts)

    assert {job.id: job.attempt for job in await on.claim(session)} == {job.id: 2 for job in jobs}


async def test_a_parked_job_wakes_in_its_time(real: Stores) -> None:
    """By the clock of the server: not before, and with the first sweep after."""
    on = Scenario(real, FakeClock())
    session, job = await on.start(await on.worker(lease=MINUTE))
    await on.end(session, job, state=JobState.PARKED, park=Park("k", DAY))
    session, soon = await on.start(session)
    await on.end(session, soon, state=JobState.PARKED, park=Park("l", 50 * MILLISECOND))
    view = await on.job(soon.id)
    assert (view.state, view.run_at is not None) == (JobState.PARKED, True)

    async def woken() -> bool:
        return bool(await real.jobs.stage_jobs(limit=10))

    await wait_until(woken)
    assert await on.states([job.id, soon.id]) == [JobState.PARKED, JobState.READY]
