"""Claimers and gates: when the gate is asked, when again, and what an ack, a lost answer and a refusal do."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Breaker, JobHandle
from headrace.engine import claimer as module
from headrace.engine import shift
from headrace.engine.claimer import Claimer
from headrace.engine.supply import Admit, Supply
from headrace.engine.telemetry import Telemetry
from headrace.model.admission import Admitted
from headrace.model.breaker import BreakerState
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob, JobSpec, JobState, NewJob
from headrace.model.limits import Gate
from headrace.model.session import NewSession, ProcessId
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from tests.unit.engine_app import quick_app, until_final, until_state
from tests.waiting import wait_until

SLOW_POLL = timedelta(minutes=1)
GATED = JobSpec("work", gate=Gate(fair_key="a"))


class Calls:
    """A store's claims and admissions, counted; the answers of some admissions get lost."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.claims = self.admissions = 0
        self.losing = 0

    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Claim."""
        self.claims += 1
        return await self._stores.jobs.claim_jobs(claim)

    async def claimed_jobs(self, session: UUID, *, queue: str) -> list[ClaimedJob]:
        """Look what the session holds."""
        return await self._stores.jobs.claimed_jobs(session, queue=queue)

    async def admit_jobs(self, claim: Claim) -> Admitted:
        """Admit, and perhaps lose the answer."""
        assert self._stores.admission is not None
        self.admissions += 1
        admitted = await self._stores.admission.admit_jobs(claim)
        if self.losing:
            self.losing -= 1
            raise StoreUnavailableError
        return admitted


class Bench:
    """A claimer on the memory store; jobs run until the test ends them."""

    def __init__(self, *, slots: int = 4, poll: timedelta = SLOW_POLL, admit: Admit | None = None) -> None:
        self.stores = open_memory_stores()
        self.session = NewSession(ProcessId("host", 1, 1), "host", {"default": slots}, timedelta(minutes=1))
        self.calls = Calls(self.stores)
        self.begun: list[ClaimedJob] = []
        self.told = 0
        self.claimer = Claimer(
            self.calls,  # type: ignore[arg-type]
            Claim(self.session.id, "default", slots), batch_size=slots, poll_interval=poll,
            telemetry=Telemetry(), on_claimed=self.begun.append, known=self._known, acks_waiting=lambda: 0,
            admit=admit or self.calls.admit_jobs, on_more=self._tell,
        )  # fmt: skip

    def _known(self) -> set[tuple[UUID, int]]:
        return {(job.id, job.attempt) for job in self.begun}

    def _tell(self) -> None:
        self.told += 1

    async def open(self, *specs: JobSpec) -> None:
        """Enqueue a job of each and start."""
        await self.stores.sessions.register_session(self.session)
        await self.add(*specs)
        self.claimer.start()

    async def add(self, *specs: JobSpec) -> None:
        """Enqueue a job of each."""
        if specs:
            await self.stores.jobs.insert_jobs([NewJob(spec, '{"args":[],"kwargs":{}}') for spec in specs])


async def closed(bench: Bench) -> None:
    """Stop a bench in time."""
    await asyncio.wait_for(bench.claimer.stop(), 5)


async def test_a_queue_without_a_gate_is_claimed_and_its_gate_hardly_asked() -> None:
    """Claims that bring jobs ask nothing; of those that come back empty one per poll and one per poll of hints do."""
    stores = open_memory_stores()
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 4}, timedelta(minutes=1))
    await stores.sessions.register_session(session)
    calls = Calls(stores)
    supply = Supply(calls, calls.admit_jobs, poll_seconds=60.0)  # type: ignore[arg-type]
    await stores.jobs.insert_jobs([NewJob(JobSpec("work"), "{}") for _ in range(8)])
    for _ in range(2):
        assert (await supply.take(Claim(session.id, "default", 4))).backlog
    assert calls.admissions == 0
    for hinted in (False, True, False, True, True, False):
        assert (await supply.take(Claim(session.id, "default", 4), hinted=hinted)).jobs == []
    assert (calls.claims, calls.admissions) == (8, 2)


async def test_the_first_job_behind_a_gate_waits_for_no_poll() -> None:
    """The hint that announces it finds the queue gated, although polls found it without a gate before."""
    bench = Bench()
    await bench.open()
    await wait_until(lambda: bench.calls.admissions == 1)
    await bench.add(GATED)
    bench.claimer.hint()
    await wait_until(lambda: len(bench.begun) == 1)
    assert bench.begun[0].gated
    await closed(bench)


async def test_a_gated_queue_is_not_claimed_any_more() -> None:
    """Once the gate has answered, each look is one call, and jobs without a gate come through it as well."""
    bench = Bench()
    await bench.open(GATED)
    await wait_until(lambda: len(bench.begun) == 1)
    claims = bench.calls.claims
    await bench.add(JobSpec("work"), GATED)
    bench.claimer.hint()
    await wait_until(lambda: len(bench.begun) == 3)
    assert bench.calls.claims == claims
    assert all(job.gated for job in bench.begun)
    await closed(bench)


async def test_a_queue_that_lost_its_gate_is_claimed_again() -> None:
    """The store forgot that the queue is gated, as an emptied one does: the same look claims."""
    answers = [Admitted([]), Admitted([], gated=False)]

    async def admit(_claim: Claim) -> Admitted:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    bench = Bench(admit=admit)
    await bench.open()
    await wait_until(lambda: len(answers) == 1)
    await bench.add(JobSpec("work"))
    bench.claimer.hint()
    await wait_until(lambda: len(bench.begun) == 1)
    await closed(bench)


async def test_jobs_of_an_admission_that_was_not_answered_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the gate let through runs although its answer was lost, once."""
    monkeypatch.setattr(module, "LOOK_AFTER_SECONDS", (0.0,))
    bench = Bench(poll=timedelta(milliseconds=10))
    bench.calls.losing = 1
    await bench.open(GATED, GATED)
    await wait_until(lambda: len(bench.begun) == 2)
    assert len(bench._known()) == 2
    assert bench.calls.losing == 0
    await closed(bench)


@pytest.mark.parametrize(("look_in", "slow"), [(0.0, False), (0.05, False), (None, True)])
async def test_the_gate_says_when_to_look_again(look_in: float | None, slow: bool) -> None:
    """With the poll far away a second look comes when time alone lets jobs through, and never without that."""
    looks: list[float] = []

    async def admit(_claim: Claim) -> Admitted:
        looks.append(asyncio.get_running_loop().time())
        return Admitted([], look_in=None if look_in is None or len(looks) > 1 else timedelta(seconds=look_in))

    bench = Bench(admit=admit)
    await bench.open()
    if slow:
        await asyncio.sleep(0.2)
        assert len(looks) == 1
    else:
        await wait_until(lambda: len(looks) == 2)
        assert looks[1] - looks[0] >= (look_in or 0.0)
    await closed(bench)


async def test_a_flood_of_hints_before_a_closed_gate_is_no_flood_of_looks() -> None:
    """Two hundred hints while nothing can pass lead to a few looks; the end of a job leads to one at once."""
    looks: list[float] = []

    async def admit(_claim: Claim) -> Admitted:
        looks.append(asyncio.get_running_loop().time())
        return Admitted([])

    bench = Bench(admit=admit)
    await bench.open()
    began = asyncio.get_running_loop().time()
    for _ in range(200):
        bench.claimer.hint()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    seconds = asyncio.get_running_loop().time() - began
    assert len(looks) <= 4 + seconds / module.VAIN_SECONDS
    await asyncio.sleep(2 * module.VAIN_SECONDS)
    before = len(looks)
    bench.claimer.make_room()
    await wait_until(lambda: len(looks) == before + 1)
    await closed(bench)


async def test_room_that_cannot_be_used_here_is_told_to_others() -> None:
    """Jobs ended while all slots are taken, or after the claimer stopped: somebody else has to look."""
    bench = Bench(slots=1)
    await bench.open(GATED, GATED)
    await wait_until(lambda: len(bench.begun) == 1)
    bench.claimer.make_room()
    assert bench.told == 1
    bench.claimer.release()
    await wait_until(lambda: len(bench.begun) == 2)
    await closed(bench)
    bench.claimer.make_room()
    assert bench.told == 2


async def test_what_a_look_leaves_for_want_of_slots_is_told_to_others() -> None:
    """After an end that made room this worker fills its slots and finds that there is more."""
    bench = Bench(slots=1)
    await bench.open(GATED)
    await wait_until(lambda: len(bench.begun) == 1)
    await wait_until(lambda: not bench.claimer._claiming)
    await bench.add(GATED, GATED)
    bench.claimer.release()
    bench.claimer.make_room()
    await wait_until(lambda: len(bench.begun) == 2)
    await wait_until(lambda: bench.told == 1)
    await closed(bench)


async def run_all(app: App, *handles: JobHandle[Any]) -> None:
    """Wait until all jobs are final."""
    for handle in handles:
        await until_final(app, handle)


async def test_a_chain_behind_a_cap_of_one_waits_for_no_poll() -> None:
    """Each end lets the next job start at once, although the next poll is a minute away."""
    app = quick_app(poll_interval=SLOW_POLL)

    @app.task(concurrency=1)
    async def step(number: int) -> int:
        return number

    async with app.worker():
        batch = await app.submit(step, range(200))
        await batch.wait(timeout=10)


async def test_a_slot_of_another_worker_is_used_at_once() -> None:
    """A worker without a free slot ends a job of a full cap: the other, which is idle, starts the next one."""
    app = quick_app(poll_interval=SLOW_POLL)
    release: dict[str, asyncio.Event] = {name: asyncio.Event() for name in ("capped", "free")}
    started: list[str] = []

    @app.task(queue="q", concurrency=1)
    async def capped(number: int) -> None:
        started.append(f"capped {number}")
        await release["capped"].wait() if number == 0 else None

    @app.task(queue="q")
    async def free() -> None:
        started.append("free")
        await release["free"].wait()

    async with app.worker(concurrency=1):
        first = await capped.enqueue(0)
        await wait_until(lambda: started == ["capped 0"])
        async with app.worker(concurrency=1):
            blocker = await free.enqueue()
            await wait_until(lambda: "free" in started)
            second = await capped.enqueue(1)
            release["capped"].set()
            await run_all(app, first, second)
            assert not release["free"].is_set()
            release["free"].set()
            await until_final(app, blocker)


async def test_jobs_behind_an_open_breaker_fail_without_running() -> None:
    """`on_open="fail"`: such a job ends at once with kind `breaker_open`, and is not charged with a failure."""
    app = quick_app(poll_interval=SLOW_POLL)
    ran: list[int] = []

    @app.task(breaker=Breaker("api", failures=1, cooldown="1h", on_open="fail"))
    async def call(number: int) -> int:
        ran.append(number)
        return number

    async with app.worker():
        await until_final(app, await call.enqueue(0))
        await app.limits.set_breaker("api", BreakerState.OPEN)
        views = [await until_final(app, await call.enqueue(number)) for number in (1, 2)]
        assert [view.state for view in views] == [JobState.FAILED, JobState.FAILED]
        assert {view.error.kind for view in views if view.error} == {"breaker_open"}
        assert all(view.error is not None and "api" in view.error.message for view in views)
        assert [view.failures for view in views] == [0, 0]
        await app.limits.set_breaker("api", "closed")
        await until_final(app, await call.enqueue(3))
    assert ran == [0, 3]


async def test_an_unknown_task_leaves_the_gate_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gated job of a task that this worker does not know is put back, and gives the room that it took."""
    monkeypatch.setattr(shift, "UNKNOWN_TASK_DELAY", timedelta(seconds=0.3))
    app, old = quick_app(poll_interval=SLOW_POLL), quick_app(poll_interval=SLOW_POLL)

    @app.task(queue="q", concurrency=1)
    async def new() -> str:
        return "new"

    @old.task(queue="q")
    async def plain() -> str:
        return "old"

    async with app:
        handle = await new.enqueue()
        old._runtime, old._users = app._runtime, 1
        async with old.worker():
            await until_state(app, handle, JobState.SCHEDULED)
        async with app.worker():
            view = await until_final(app, handle)
    assert (view.state, view.failures) == (JobState.SUCCEEDED, 0)


async def test_a_stopping_worker_hands_its_room_to_others() -> None:
    """The last end of a worker that claims no more lets a job start elsewhere before any poll."""
    app = quick_app(poll_interval=SLOW_POLL)
    release = asyncio.Event()
    started: list[int] = []

    @app.task(concurrency=1)
    async def work(number: int) -> None:
        started.append(number)
        await release.wait() if number == 0 else None

    async with app:
        stopping = app.worker(grace=30)
        await stopping.__aenter__()
        first = await work.enqueue(0)
        await wait_until(lambda: started == [0])
        async with app.worker():
            second = await work.enqueue(1)
            leaving = asyncio.create_task(stopping.__aexit__(None, None, None))
            await asyncio.sleep(0.05)
            release.set()
            await run_all(app, first, second)
            await leaving
    assert started == [0, 1]
