"""What the gate of the memory store keeps, and what a look behind it costs."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.job import Claim, Completion, JobSpec, JobState, NewJob
from headrace.model.limits import Gate
from headrace.model.session import NewSession, ProcessId
from headrace.ports.stores import Stores
from headrace.stores.memory import claims, stores_over
from headrace.stores.memory.notifier import MemoryNotifier
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State
from headrace.testing.clock import FakeClock

ARGS = '{"args":[],"kwargs":{}}'


@pytest.fixture
def state() -> State:
    """Return empty tables."""
    return State(FakeClock())


@pytest.fixture
def stores(state: State) -> Stores:
    """Return stores over the tables."""
    return stores_over(state, MemoryNotifier())


async def register(stores: Stores) -> UUID:
    """Register a session that lives for long."""
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 1}, timedelta(hours=1))
    await stores.sessions.register_session(session)
    return session.id


async def admit(stores: Stores, session: UUID, limit: int) -> list[UUID]:
    """Admit jobs and end them; return their ids."""
    assert stores.admission is not None
    jobs = (await stores.admission.admit_jobs(Claim(session, "default", limit))).jobs
    done = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
    return await stores.jobs.complete_jobs(session, done)


async def test_a_gate_forgets_what_is_over(stores: Stores, state: State) -> None:
    """Lanes that are empty, and the tags of fair keys that are owed nothing, are gone after the next admissions."""
    session = await register(stores)
    new = [NewJob(JobSpec("work", gate=Gate(fair_key=str(number))), ARGS) for number in range(500)]
    await stores.jobs.insert_jobs(new)
    assert len(await admit(stores, session, 1_000)) == 500
    await stores.jobs.insert_jobs([NewJob(JobSpec("work", gate=Gate(fair_key="0")), ARGS) for _ in range(3)])
    for _ in range(3):
        await admit(stores, session, 1)

    assert state.ready.of("default") == {}
    assert len(state.limits.shares["default"].finish) <= 1


async def test_the_index_of_kept_keys_follows_the_jobs(stores: Stores, state: State) -> None:
    """A job keeps its key while it waits for a retry, and neither before, while it runs, nor once it is cancelled."""
    session = await register(stores)
    await stores.jobs.insert_jobs([NewJob(JobSpec("work", gate=Gate(key="k", key_limit=1)), ARGS)])
    assert not state.keeping
    assert stores.admission is not None
    [job] = (await stores.admission.admit_jobs(Claim(session, "default", 1))).jobs
    assert not state.keeping
    retry = Completion(job.id, job.attempt, JobState.SCHEDULED, delay=timedelta(seconds=1))
    await stores.jobs.complete_jobs(session, [retry])
    assert set(state.keeping) == {job.id}

    await stores.control.cancel_job(job.id)
    assert not state.keeping


async def test_an_admission_looks_at_heads_alone(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand jobs behind one key cost an admission no more than one of them."""
    session = await register(stores)
    gate = Gate(key="k", key_limit=1)
    await stores.jobs.insert_jobs([NewJob(JobSpec("work", gate=gate), ARGS) for _ in range(2_000)])
    assert stores.admission is not None
    await stores.admission.admit_jobs(Claim(session, "default", 1))
    looked: list[UUID] = []
    claimable = claims.claimable

    def look(state: State, job_id: UUID) -> Job | None:
        looked.append(job_id)
        return claimable(state, job_id)

    monkeypatch.setattr(claims, "claimable", look)
    for _ in range(10):
        await stores.admission.admit_jobs(Claim(session, "default", 10))

    assert len(looked) <= 10 * 3
