"""What only the memory store promises: threads, cost, and its place in the bundle of ports."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.clock import SystemClock
from headrace.model.batch import NewBatch
from headrace.model.job import Claim, Completion, JobSpec, JobState, NewJob
from headrace.model.session import NewSession, ProcessId
from headrace.ports.stores import Stores
from headrace.stores.memory import claims, open_memory_stores
from headrace.stores.memory.notifier import MemoryNotifier
from headrace.testing.clock import FakeClock

ARGS = '{"args":[],"kwargs":{}}'
SPEC = JobSpec("work")


async def register(stores: Stores) -> UUID:
    """Register a session that lives for long."""
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 1}, timedelta(hours=1))
    await stores.sessions.register_session(session)
    return session.id


async def test_it_lives_in_this_process() -> None:
    """It says that nothing is durable, has no connection of its own to open, and is no caller's database."""
    stores = open_memory_stores()
    info = await stores.inspect.store_info()

    assert (info.kind, info.durable) == ("memory", False)
    assert (stores.private_sessions, stores.foreign) == (None, None)
    await stores.close()
    await stores.close()


async def test_two_stores_share_nothing() -> None:
    """Each opening is a memory of its own."""
    first, second = open_memory_stores(), open_memory_stores()
    await first.jobs.insert_jobs([NewJob(SPEC, ARGS)])

    assert await second.inspect.list_jobs() == []


async def test_its_time_is_the_machines_unless_told_otherwise() -> None:
    """Without a clock it follows this machine's; with one, that one alone."""
    before = SystemClock().now()
    now = (await open_memory_stores().inspect.store_info()).now
    clock = FakeClock()

    assert now is not None
    assert before <= now <= SystemClock().now()
    assert (await open_memory_stores(clock).inspect.store_info()).now == clock.now()


def test_threads_with_their_own_loops_share_jobs_exactly_once() -> None:
    """Workers in several threads claim and finish two thousand jobs: each once, none lost."""
    stores = open_memory_stores()
    ids = asyncio.run(stores.jobs.insert_jobs([NewJob(SPEC, ARGS) for _ in range(2_000)]))
    done: list[UUID] = []

    async def work() -> None:
        session = await register(stores)
        while jobs := await stores.jobs.claim_jobs(Claim(session, "default", 3)):
            ended = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
            done.extend(await stores.jobs.complete_jobs(session, ended))

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert sorted(done) == sorted(ids)


async def test_a_claim_looks_at_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a claim follows its limit, not the length of the queue."""
    looked: list[UUID] = []
    claimable = claims.claimable
    monkeypatch.setattr(claims, "claimable", lambda state, job_id: looked.append(job_id) or claimable(state, job_id))
    stores = open_memory_stores()
    session = await register(stores)
    await stores.jobs.insert_jobs([NewJob(SPEC, ARGS) for _ in range(2_000)])
    for _ in range(10):
        await stores.jobs.claim_jobs(Claim(session, "default", 10))

    assert len(looked) == 100


async def test_a_cancelled_batch_is_looked_at_once() -> None:
    """Items of a batch being cancelled are passed over for good: later claims do not meet them again."""
    stores = open_memory_stores()
    session = await register(stores)
    batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * 1_000)
    await stores.batches.cancel_batch(batch_id)
    await stores.jobs.claim_jobs(Claim(session, "default", 1))

    assert stores.jobs._state.ready.of("default") == {}  # type: ignore[attr-defined]


def test_a_hint_to_a_loop_that_ended_does_no_harm() -> None:
    """A subscriber whose event loop is closed is passed over; others hear the hint."""
    notifier = MemoryNotifier()
    asyncio.run(notifier.subscribe(lambda _: None))  # type: ignore[arg-type]
    heard: list[str] = []

    async def listen() -> None:
        await notifier.subscribe(heard.append)
        notifier.hint("done")
        await asyncio.sleep(0)

    asyncio.run(listen())
    notifier.hint("done")
    assert heard == ["done"]
