"""A worker with elastic slots over the memory store on virtual time: minutes of a bursty load take a moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

from headrace import App
from headrace.engine.attempt import compose
from headrace.engine.attempts import AttemptFactory
from headrace.engine.loops.resizer import ElasticOptions
from headrace.engine.middleware.park import park
from headrace.engine.middleware.retry import RetryMiddleware
from headrace.engine.registry import RunsIn
from headrace.engine.shift import ShiftOptions
from headrace.engine.telemetry import SLOTS
from headrace.engine.worker import DutyOptions, Worker
from headrace.executors.inline import InlineExecutor
from headrace.llm.quota import Quotas, QuotaWait
from headrace.model.elastic import ElasticSlots
from headrace.model.job import JobSpec, JobState, NewJob
from headrace.model.limits import Declared, Gate
from headrace.model.parking import KEEP_SLOT, ParkRequested, waits_for_limit
from headrace.model.quota import Estimate, Pool, PoolLimits
from headrace.model.usage import Usage
from headrace.stores.memory import open_memory_stores
from headrace.testing.simulation.loop import WORLD, VirtualLoop
from tests.conformance.scenario import ARGS, item
from tests.unit.quota_world import LoopClock

#: Marks that a test reaches with few jobs.
RULE = ElasticSlots(least=4, most=40, start=8, grow_above=100, shrink_below=10)
#: Of one job; 8 slots do 16 a second.
SECONDS = 0.5
INTERVAL = timedelta(seconds=2)
QUEUE = "work"


class World:
    """A store, its workers, and the sizes that they had."""

    def __init__(self, loop: VirtualLoop, *, quota_per_second: float) -> None:
        self.loop, self.clock = loop, LoopClock(loop)
        self.stores = open_memory_stores(self.clock)
        self.quotas = Quotas(self.stores.limiter, random=random.Random(1))
        self._pool = Pool("fake:main:small", PoolLimits(requests_per_minute=quota_per_second * 60))
        self.workers: list[Worker] = []
        #: Sizes of each worker, second by second.
        self.sizes: list[list[int]] = []
        self.held_by: list[str | None] = []
        self.wanted: list[tuple[str, int]] = []
        self.most_running = 0

    async def start(self, workers: int = 1, *, rule: ElasticSlots = RULE) -> None:
        """Start so many workers."""
        for _ in range(workers):
            worker = self._worker(rule)
            self.workers.append(worker)
            self.sizes.append([])
            await worker.start()

    def _worker(self, rule: ElasticSlots) -> Worker:
        app = App("memory://")
        app.task(name="plain", queue=QUEUE)(self._plain)
        app.task(name="ask", queue=QUEUE)(self._ask)
        app.task(name="ask_together", queue=QUEUE, batch_size=4)(self._ask_together)
        factory = AttemptFactory(
            registry=app.registry, jobs=self.stores.jobs, executors={RunsIn.LOOP: InlineExecutor()},
            alone=InlineExecutor(), proceed=compose([RetryMiddleware(), park]), clock=self.clock,
            max_processing_time=timedelta(minutes=5),
        )  # fmt: skip
        return Worker(
            self.stores, factory, shift=ShiftOptions({QUEUE: 8}), duties=DutyOptions(), clock=self.clock,
            elastic=ElasticOptions({QUEUE: rule}, INTERVAL),
        )  # fmt: skip

    async def _plain(self) -> None:
        await asyncio.sleep(SECONDS)

    async def _ask(self) -> None:
        """Wait for the quota as the gateway does, then for the answer."""
        try:
            with waits_for_limit():
                reservation = await self.quotas.reserve(self._pool, Estimate(1, 1), longest=KEEP_SLOT)
        except QuotaWait as error:
            raise ParkRequested(error.wait, error.reason, limited=True) from None
        await asyncio.sleep(SECONDS)
        reservation.settle(Usage(input_tokens=1, output_tokens=1, calls=1))

    async def _ask_together(self, items: list[int]) -> list[None]:
        """Make one call for several jobs."""
        await self._ask()
        return [None for _ in items]

    async def declare(self, **limits: Any) -> None:
        """Declare limits."""
        await self.stores.admission.declare_limits(Declared(**limits))

    async def submit(self, count: int, *, task: str = "plain", gate: Gate | None = None) -> None:
        """Enqueue jobs."""
        spec = JobSpec(task, QUEUE, gate=gate)
        args = item(0) if task == "ask_together" else ARGS
        await self.stores.jobs.insert_jobs([NewJob(spec, args) for _ in range(count)])

    async def pass_time(self, seconds: int) -> None:
        """Let time pass, and note the sizes at each second."""
        for _ in range(seconds):
            await asyncio.sleep(1)
            for worker, sizes in zip(self.workers, self.sizes, strict=True):
                assert worker.session is not None
                sizes.append(worker.session.queues[QUEUE])
            running = await self.stores.inspect.live_jobs(QUEUE)
            self.most_running = max(self.most_running, running.get(JobState.RUNNING, 0))
            told = self.workers[0].telemetry.snapshot().get(SLOTS, {}).get(QUEUE, {})
            self.held_by.append(told.get("held_by"))

    async def left(self) -> int:
        """Return how many jobs have not ended."""
        return sum((await self.stores.inspect.live_jobs(QUEUE)).values())

    async def stop(self) -> None:
        """Stop all workers."""
        for worker in self.workers:
            await worker.stop(timedelta(seconds=5))
        await self.quotas.close()


def in_world(scenario: Callable[[World], Awaitable[None]], *, quota_per_second: float = 10.0) -> World:
    """Run a scenario on virtual time and return the world as it ended."""
    loop = VirtualLoop(None)
    random.seed(1)

    async def whole(world: World) -> None:
        try:
            await scenario(world)
        finally:
            await world.stop()

    try:
        world = World(loop, quota_per_second=quota_per_second)
        loop.run_until_complete(whole(world))
    finally:
        loop.dispose([WORLD])
    return world


def changes(sizes: list[int]) -> list[int]:
    """Return the sizes without repetitions."""
    return [size for number, size in enumerate(sizes) if number == 0 or size != sizes[number - 1]]


def turns(sizes: list[int]) -> int:
    """Count how often the direction changed."""
    steps = changes(sizes)
    ways = [after > before for before, after in pairwise(steps)]
    return sum(way != other for way, other in pairwise(ways))
