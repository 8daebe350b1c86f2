"""Background duties: they start, stop, wake and survive; and what each does in one step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import ClassVar

import pytest

from headrace.engine import outage
from headrace.engine.host import this_host, this_process
from headrace.engine.loops.aggregator import Aggregator
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.loops.pruner import Pruner
from headrace.engine.loops.rescuer import Rescuer
from headrace.engine.loops.stager import Stager
from headrace.engine.telemetry import Telemetry
from headrace.model.batch import BatchState, NewBatch
from headrace.model.errors import InvalidInputError, StorageResetError, StoreUnavailableError
from headrace.model.ids import uuid7
from headrace.model.job import Claim, Completion, JobSpec, JobState, NewJob
from headrace.model.session import NewSession, ProcessId
from headrace.model.stats import Retention
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.waiting import wait_until

TICK = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)
ARGS = '{"args":[],"kwargs":{}}'


@pytest.fixture
def clock() -> FakeClock:
    """Return the time of the store."""
    return FakeClock()


@pytest.fixture
async def stores(clock: FakeClock) -> AsyncIterator[Stores]:
    """Open an empty store."""
    stores = open_memory_stores(clock)
    yield stores
    await stores.close()


def aggregator(stores: Stores, leadership: Leadership, seal_timeout: timedelta = HOUR) -> Aggregator:
    """Return an aggregator that works all the time."""
    return Aggregator(stores, leadership, interval=TICK, seal_timeout=seal_timeout)


LOOPS: dict[str, Callable[[Stores, timedelta], Loop]] = {
    "leadership": lambda stores, every: Leadership(stores, uuid7(), every),
    "stager": Stager,
    "rescuer": lambda stores, every: Rescuer(stores, Telemetry(), every),
    "aggregator": lambda stores, every: Aggregator(
        stores, Leadership(stores, uuid7()), interval=every, seal_timeout=HOUR
    ),
    "pruner": lambda stores, every: Pruner(stores, Leadership(stores, uuid7()), Retention(), every),
}


@pytest.mark.parametrize("name", LOOPS)
async def test_a_duty_starts_and_stops_in_any_order(stores: Stores, name: str) -> None:
    """Fifty times: stop before start, start twice, stop at any moment, stop twice; no task is left."""
    before = asyncio.all_tasks()
    loop = LOOPS[name](stores, TICK)
    assert loop.name == name
    for number in range(50):
        await loop.stop()
        loop.start()
        loop.start()
        assert len(asyncio.all_tasks()) == len(before) + 1
        for _ in range(number % 7):
            await asyncio.sleep(0)
        await loop.stop()
        await loop.stop()
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("name", LOOPS)
def test_a_duty_needs_an_interval(stores: Stores, name: str) -> None:
    """An interval of nothing is refused, naming the duty."""
    with pytest.raises(InvalidInputError, match=rf"{name}\.interval"):
        LOOPS[name](stores, timedelta())


class Counting(Loop):
    """A duty that counts its steps, and may fail."""

    name: ClassVar[str] = "counting"

    def __init__(self, interval: timedelta) -> None:
        super().__init__(interval)
        self.steps = 0
        self.faults: list[Exception] = []

    async def step(self) -> None:
        """Count."""
        self.steps += 1
        if self.faults:
            raise self.faults.pop()


async def test_a_duty_survives_what_goes_wrong() -> None:
    """A step that fails, in whatever way, is tried again at the next turn."""
    loop = Counting(TICK)
    loop.faults = [RuntimeError("a bug"), StoreUnavailableError("away"), KeyError("x")]
    loop.start()
    await wait_until(lambda: loop.steps > 5)
    await loop.stop()
    steps = loop.steps
    await asyncio.sleep(0)
    assert (loop.faults, loop.steps) == ([], steps)


async def test_a_duty_runs_at_once_and_sooner_when_it_is_woken() -> None:
    """The first step comes with the start, another with each `wake`, and one in time after `wake_in`."""
    loop = Counting(HOUR)
    loop.start()
    await wait_until(lambda: loop.steps == 1)
    loop.wake()
    await wait_until(lambda: loop.steps == 2)
    loop.wake_in(0.01)
    await wait_until(lambda: loop.steps == 3)
    loop.wake_in(7_200)
    await loop.stop()
    assert loop.steps == 3


async def session(stores: Stores, *, process: ProcessId | None = None) -> NewSession:
    """Register a session with a lease of an hour."""
    new = NewSession(process or ProcessId("elsewhere", 1, 1), "host", {"default": 9}, HOUR)
    await stores.sessions.register_session(new)
    return new


async def running(stores: Stores, owner: NewSession, **spec: object) -> NewJob:
    """Return a job that runs under a session."""
    job = NewJob(JobSpec("work", **spec), ARGS)  # type: ignore[arg-type]
    await stores.jobs.insert_jobs([job])
    assert [claimed.id for claimed in await stores.jobs.claim_jobs(Claim(owner.id, "default", 9))] == [job.id]
    return job


async def state_of(stores: Stores, job: NewJob) -> JobState:
    """Return the state of a job."""
    view = await stores.inspect.get_job(job.id)
    assert view is not None
    return view.state


async def test_the_rescuer_expires_processes_of_this_host_that_are_gone(stores: Stores) -> None:
    """A session whose process has ended on this host, or whose pid is another process by now, is over at once."""
    here = this_process()
    gone = ProcessId(this_host(), 2**22 + 1, 5)
    reused = ProcessId(this_host(), here.pid, here.start_time + 1)
    owners = [await session(stores, process=process) for process in (here, gone, reused)]
    jobs = [await running(stores, owner) for owner in owners]
    telemetry = Telemetry()
    await Rescuer(stores, telemetry).step()
    assert [await state_of(stores, job) for job in jobs] == [JobState.RUNNING, JobState.READY, JobState.READY]
    assert telemetry.value("headrace.jobs.rescue") == 2


async def test_the_rescuer_leaves_other_hosts_to_their_lease(stores: Stores, clock: FakeClock) -> None:
    """Of another host only the lease is known: when it ends the jobs come back, and their queues are hinted."""
    job = await running(stores, await session(stores))
    heard: list[str] = []
    await stores.notifier.subscribe(heard.append)
    rescuer = Rescuer(stores, Telemetry())
    await rescuer.step()
    assert await state_of(stores, job) is JobState.RUNNING
    clock.advance(HOUR)
    await rescuer.step()
    assert await state_of(stores, job) is JobState.READY
    await wait_until(lambda: "queue:default" in heard)


async def test_the_rescuer_closes_batches_that_lost_their_last_job(stores: Stores, clock: FakeClock) -> None:
    """An at-most-once item of a dead worker fails, and with it its batch is done."""
    owner = await session(stores)
    batch = NewBatch(JobSpec("work", at_most_once=True))
    await stores.batches.create_batch(batch, [ARGS])
    await stores.jobs.claim_jobs(Claim(owner.id, "default", 1))
    clock.advance(HOUR)
    await Rescuer(stores, Telemetry()).step()
    view = await stores.inspect.get_batch(batch.id)
    assert view is not None
    assert view.state is BatchState.CLOSED


async def test_the_stager_moves_what_is_due(stores: Stores, clock: FakeClock) -> None:
    """A scheduled job becomes ready when its time has come, by the store's clock, and its queue is hinted."""
    job = NewJob(JobSpec("work"), ARGS, run_at=clock.now() + HOUR)
    await stores.jobs.insert_jobs([job])
    heard: list[str] = []
    await stores.notifier.subscribe(heard.append)
    stager = Stager(stores)
    await stager.step()
    assert await state_of(stores, job) is JobState.SCHEDULED
    clock.advance(HOUR)
    await stager.step()
    assert await state_of(stores, job) is JobState.READY
    await wait_until(lambda: heard == ["queue:default"])


async def test_one_process_leads(stores: Stores, clock: FakeClock) -> None:
    """Of many one leads; another takes over when it resigns, or when its term has run out."""
    first, second = Leadership(stores, uuid7()), Leadership(stores, uuid7())
    for leader in (first, second, first):
        await leader.step()
    assert (first.term is not None, second.term) == (True, None)
    await first.resign()
    await second.step()
    assert (first.term, second.term is not None) == (None, True)
    clock.advance(timedelta(seconds=11))
    await first.step()
    assert first.term is not None
    assert second.term is not None
    assert first.term.term > second.term.term
    await second.step()
    assert second.term is None


async def test_a_leader_that_cannot_ask_leads_no_more(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer of the store nobody believes to lead."""
    leader = Leadership(stores, uuid7())
    await leader.step()

    async def away(session: object, *, lease: timedelta, role: object) -> None:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(stores.sessions, "lead", away)
    with pytest.raises(StoreUnavailableError):
        await leader.step()
    assert leader.term is None


async def test_only_the_leader_aggregates(stores: Stores) -> None:
    """The pass closes what nobody closed, and does nothing on a process that does not lead."""
    owner, batch = await session(stores), NewBatch(JobSpec("work"))
    await stores.batches.create_batch(batch, [ARGS])
    [claimed] = await stores.jobs.claim_jobs(Claim(owner.id, "default", 1))
    await stores.jobs.complete_jobs(owner.id, [Completion(claimed.id, 1, JobState.SUCCEEDED, batch_id=batch.id)])
    leadership = Leadership(stores, uuid7())
    await aggregator(stores, leadership).step()
    view = await stores.inspect.get_batch(batch.id)
    assert view is not None
    assert view.state is BatchState.SEALED
    await leadership.step()
    await aggregator(stores, leadership).step()
    view = await stores.inspect.get_batch(batch.id)
    assert view is not None
    assert view.state is BatchState.CLOSED


async def test_the_aggregator_abandons_silent_batches(stores: Stores, clock: FakeClock) -> None:
    """An open batch whose submitter fell silent for the seal timeout becomes abandoned."""
    batch, leadership = NewBatch(JobSpec("work")), Leadership(stores, uuid7())
    await stores.batches.create_batch(batch, None)
    clock.advance(2 * HOUR)
    await leadership.step()
    await aggregator(stores, leadership).step()
    view = await stores.inspect.get_batch(batch.id)
    assert view is not None
    assert view.state is BatchState.ABANDONED


@pytest.mark.parametrize(("most", "state"), [(3, JobState.READY), (1, JobState.FAILED)])
async def test_the_aggregator_ends_what_is_stuck(stores: Stores, clock: FakeClock, most: int, state: JobState) -> None:
    """An attempt far beyond its timeout is taken from its worker: retried while attempts are left, else failed."""
    job = await running(stores, await session(stores), timeout=timedelta(seconds=5), max_attempts=most)
    leadership = Leadership(stores, uuid7())
    clock.advance(timedelta(seconds=14))
    await leadership.step()
    await aggregator(stores, leadership).step()
    assert await state_of(stores, job) is JobState.RUNNING
    clock.advance(timedelta(seconds=2))
    await aggregator(stores, leadership).step()
    assert await state_of(stores, job) is state


async def test_the_pruner_comes_back_while_slices_are_full(
    stores: Stores, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """History beyond its retention leaves in bounded slices, one after another, on the leader only."""
    monkeypatch.setattr("headrace.engine.loops.pruner.SLICE", 10)
    jobs = [NewJob(JobSpec("work"), ARGS) for _ in range(35)]
    await stores.jobs.insert_jobs(jobs)
    for job in jobs:
        await stores.control.cancel_job(job.id)
    clock.advance(timedelta(days=8))
    leadership = Leadership(stores, uuid7())
    pruner = Pruner(stores, leadership, Retention(), HOUR)
    await pruner.step()
    assert len(await stores.inspect.list_jobs(limit=100)) == 35
    await leadership.step()
    pruner.start()

    async def gone() -> bool:
        return not await stores.inspect.list_jobs(limit=100)

    await wait_until(gone)
    await pruner.stop()


async def test_an_outage_is_not_said_with_every_try(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A loop says once that the store does not answer, at once what else is wrong with it, and both again in time."""
    tries: list[StoreUnavailableError] = []

    class Failing(Loop):
        name = "failing"

        async def step(self) -> None:
            tries.append(StorageResetError() if len(tries) % 2 else StoreUnavailableError())
            raise tries[-1]

    loop = Failing(TICK)
    with caplog.at_level(logging.WARNING, "headrace.loops"):
        loop.start()
        await wait_until(lambda: len(tries) > 50)
        assert [record.args[1].code for record in caplog.records] == ["store_unavailable", "storage_reset"]  # type: ignore[union-attr, index]
        monkeypatch.setattr(outage, "AGAIN_SECONDS", 0.001)
        await wait_until(lambda: len(caplog.records) > 4)
        await loop.stop()
    assert all(text.startswith("failing does not get on, trying again: The store") for text in caplog.messages)
