"""JobStore.claim_jobs under caps: how many jobs of a limit key run at once, over all workers."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from headrace.model.job import JobState
from tests.conformance.scenario import LEASE, SECOND, Scenario


async def test_capped_jobs_are_left_alone_without_their_key(on: Scenario) -> None:
    """A claim that does not name a limit key takes none of its jobs."""
    session = await on.worker()
    await on.enqueue(limit_key="llm")
    [plain] = await on.enqueue()

    assert [job.id for job in await on.claim(session)] == [plain]
    assert await on.claim(session, limit_keys=["other"]) == []


async def test_a_cap_limits_what_runs_at_once(on: Scenario) -> None:
    """No more jobs of a key run than its cap says, within one claim and over many."""
    session = await on.worker()
    await on.stores.control.set_caps({"llm": 3})
    await on.enqueue(10, limit_key="llm")

    assert len(await on.claim(session, 2, limit_keys=["llm"])) == 2
    assert len(await on.claim(session, limit_keys=["llm"])) == 1
    assert await on.claim(session, limit_keys=["llm"]) == []


async def test_a_cap_holds_over_workers_and_queues(on: Scenario) -> None:
    """A cap counts every running job of its key, whoever runs it and whatever its queue."""
    await on.stores.control.set_caps({"llm": 2})
    await on.start(queue="left", limit_key=None)
    await on.enqueue(2, queue="left", limit_key="llm")
    await on.enqueue(2, queue="right", limit_key="llm")

    assert len(await on.claim(await on.worker(), 1, queue="left", limit_keys=["llm"])) == 1
    assert len(await on.claim(await on.worker(), queue="right", limit_keys=["llm"])) == 1
    assert await on.claim(await on.worker(), queue="left", limit_keys=["llm"]) == []


async def test_an_ended_job_frees_its_place(on: Scenario) -> None:
    """A place is free again once its job ended, went back, or was rescued."""
    session = await on.worker()
    await on.stores.control.set_caps({"llm": 1})
    await on.enqueue(3, limit_key="llm")

    [first] = await on.claim(session, limit_keys=["llm"])
    await on.end(session, first)
    [second] = await on.claim(session, limit_keys=["llm"])
    await on.end(session, second, state=JobState.SCHEDULED, delay=SECOND)
    [third] = await on.claim(session, limit_keys=["llm"])
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    [again] = await on.claim(await on.worker(), 1, limit_keys=["llm"])
    assert again.id == third.id


async def test_a_key_without_a_cap_is_not_limited(on: Scenario) -> None:
    """A key whose cap was never set limits nothing."""
    session = await on.worker()
    await on.enqueue(20, limit_key="free")

    assert len(await on.claim(session, limit_keys=["free"])) == 20


async def test_a_cap_of_zero_lets_nothing_run(on: Scenario) -> None:
    """A cap of zero holds every job of its key back."""
    session = await on.worker()
    await on.stores.control.set_caps({"llm": 0})
    await on.enqueue(2, limit_key="llm")

    assert await on.claim(session, limit_keys=["llm"]) == []


async def test_a_new_cap_counts_from_the_next_claim(on: Scenario) -> None:
    """Caps can be raised and lowered at any time; a lowered one stops no running job. Other keys keep theirs."""
    session = await on.worker()
    await on.stores.control.set_caps({"llm": 1, "mail": 1})
    await on.enqueue(5, limit_key="llm")
    await on.enqueue(2, limit_key="mail")
    keys = ["llm", "mail"]

    assert len(await on.claim(session, limit_keys=keys)) == 2
    await on.stores.control.set_caps({"llm": 3})
    assert len(await on.claim(session, limit_keys=keys)) == 2
    await on.stores.control.set_caps({"llm": 1})
    assert await on.claim(session, limit_keys=keys) == []


async def test_a_saturated_key_holds_up_no_other_job(on: Scenario) -> None:
    """Jobs of other keys, and those without one, pass a key whose cap is reached."""
    session = await on.worker()
    await on.stores.control.set_caps({"llm": 1, "mail": 1})
    await on.enqueue(50, limit_key="llm")
    on.clock.advance(SECOND)
    [mail] = await on.enqueue(limit_key="mail")
    plain = await on.enqueue(3)

    claimed = [job.id for job in await on.claim(session, 5, limit_keys=["llm", "mail"])]
    assert len(claimed) == 5
    assert {mail, *plain} <= set(claimed)


async def test_capped_and_plain_jobs_come_in_one_order(on: Scenario) -> None:
    """A claim over several keys takes the jobs that became ready first, whatever their key."""
    session = await on.worker()
    await on.stores.control.set_caps({"llm": 10})
    ids: list[UUID] = []
    for key in ("llm", None, "llm", None, "free", None):
        ids += await on.enqueue(limit_key=key)
        on.clock.advance(SECOND)

    claimed = [job.id for job in await on.claim(session, 4, limit_keys=["llm", "free"])]
    claimed += [job.id for job in await on.claim(session, limit_keys=["llm", "free"])]
    assert claimed == ids


@pytest.mark.parametrize("cap", [1, 3])
async def test_eight_claimers_never_run_over_a_cap(on: Scenario, cap: int) -> None:
    """Eight claimers that claim and finish at the same time never run more jobs of a key than its cap."""
    await on.stores.control.set_caps({"llm": cap})
    ids = await on.enqueue(60, limit_key="llm")
    done: list[UUID] = []
    running: set[UUID] = set()
    most = 0

    async def work() -> None:
        nonlocal most
        session = await on.worker()
        while len(done) < len(ids):
            jobs = await on.claim(session, 5, limit_keys=["llm"])
            running.update(job.id for job in jobs)
            most = max(most, len(running))
            await asyncio.sleep(0)
            # Out of the count before the store frees the places: a job is never counted when it no longer runs.
            running.difference_update(job.id for job in jobs)
            done.extend(await on.end(session, *jobs))

    await asyncio.gather(*(work() for _ in range(8)))
    assert sorted(done) == ids
    assert most == cap


async def test_a_dead_session_claims_no_capped_job(on: Scenario) -> None:
    """At the end of its lease a session claims nothing more, under a cap as without one."""
    session = await on.worker()
    await on.stores.control.set_caps({"llm": 5})
    await on.enqueue(2, limit_key="llm")
    await on.enqueue(1)

    assert len(await on.claim(session, 1, limit_keys=["llm"])) == 1
    on.clock.advance(LEASE)
    assert await on.claim(session, limit_keys=["llm"]) == []
    assert await on.claim(session) == []
