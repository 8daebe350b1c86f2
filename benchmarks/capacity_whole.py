"""Whole jobs through the public client and the shipped worker: what one costs in all, and how many go a second.

Server and worker are processes of their own. Their processor time is that of the whole server, with its checkpoints,
vacuum and hints, and of the worker without its start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

import asyncpg

from headrace.bench.contenders.ours import Headrace, HeadraceWide
from headrace.bench.drain import drain_filled
from headrace.bench.enqueue import enqueue
from headrace.bench.order import Order
from headrace.bench.processor import cpu_seconds
from headrace.bench.work import WorkerProcess, working

COUNTS = """SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS commits,
  (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS wal"""
CALLERS = 64


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    drain: int = 15_000
    bulk: int = 30_000
    #: seconds of each way to enqueue, of jobs one by one, and of enqueueing while a worker runs
    enqueue: float = 0.5
    trickle: float = 3.0
    flood: float = 2.0
    #: jobs a second, one by one: so few that each travels alone, and so many that some meet
    rate: int = 50
    brisk: int = 400


SHORT = Sizes(drain=1_000, bulk=1_000, enqueue=0.1, trickle=0.5, flood=0.3)

#: What a run of one arm found: jobs a second, microseconds and so on.
Figures = dict[str, float]


class Whole:
    """The arms, each with a worker of its own on one database."""

    def __init__(self, order: Order, sizes: Sizes, watch: Any) -> None:
        self._order, self._sizes, self._watch = order, sizes, watch
        self._narrow, self._wide = Headrace(order), HeadraceWide(order)

    def arms(self) -> dict[str, Callable[[], Awaitable[Figures]]]:
        """Return the arms by name."""
        return {
            "enqueue": self._enqueue,
            "drain, 400 slots": lambda: self._drain(self._wide),
            "drain, 10 slots": lambda: self._drain(self._narrow),
            "one by one": lambda: self._trickle(self._sizes.rate),
            "one by one, brisk": lambda: self._trickle(self._sizes.brisk),
            "64 callers and a worker": self._flood,
            "nothing, a second": self._idle,
        }

    async def open(self) -> None:
        """Make the tables and open the client."""
        await self._narrow.set_up()
        await self._narrow.open()

    async def close(self) -> None:
        """Close the client."""
        await self._narrow.close()

    async def _enqueue(self) -> Figures:
        order = Order(contender="", workload="", dsn="", jobs=self._sizes.bulk, seconds=self._sizes.enqueue)
        figures = await enqueue(self._narrow, order)
        await self._forget()
        return figures

    async def _drain(self, contender: Headrace) -> Figures:
        jobs = self._sizes.drain
        await self._narrow.fill(jobs)
        before, began = await self._counts(), await self._narrow.done()
        contender_done = contender.done
        contender.done = self._narrow.done  # type: ignore[method-assign] # one connection counts for both
        try:
            figures = await drain_filled(contender, Order(**_changed(self._order, jobs)), before=began)
        finally:
            contender.done = contender_done  # type: ignore[method-assign]
        return {**figures, **self._each(before, await self._counts(), jobs)}

    async def _trickle(self, rate: int) -> Figures:
        """Enqueue jobs when they are due, each by a call of its own."""
        async with self._ready() as worker:
            jobs, done = int(self._sizes.trickle * rate), await self._narrow.done()
            before, meter, begun = await self._counts(), self._cpu(worker), time.perf_counter()
            async with asyncio.TaskGroup() as calls:
                for number in range(jobs):
                    await asyncio.sleep(max(begun + number / rate - time.perf_counter(), 0))
                    calls.create_task(self._narrow.enqueue("noop", number))
            await self._until(done + jobs, worker)
            rate = round(jobs / (time.perf_counter() - begun))
            return {"rate": rate, **meter(jobs), **self._each(before, await self._counts(), jobs)}

    async def _idle(self) -> Figures:
        """Leave a worker alone; the figures are those of a second, not of a job."""
        async with self._ready() as worker:
            before, meter, begun = await self._counts(), self._cpu(worker), time.perf_counter()
            await asyncio.sleep(self._sizes.trickle)
            seconds = time.perf_counter() - begun
            figures = {name: us / seconds for name, us in meter(1).items()}
            return {**figures, **self._each(before, await self._counts(), seconds)}

    async def _flood(self) -> Figures:
        """Have 64 callers enqueue while the worker runs what they enqueue."""
        async with self._ready() as worker:
            before, done = await self._counts(), await self._narrow.done()
            meter, begun, sent = self._cpu(worker), time.perf_counter(), 0

            async def caller() -> None:
                nonlocal sent
                while time.perf_counter() - begun < self._sizes.flood:
                    sent += 1
                    await self._narrow.enqueue("noop", sent)

            await asyncio.gather(*(caller() for _ in range(CALLERS)))
            await self._until(done + sent, worker)
            per_second = sent / (time.perf_counter() - begun)
            return {"per_second": per_second, **meter(sent), **self._each(before, await self._counts(), sent)}

    @asynccontextmanager
    async def _ready(self) -> AsyncIterator[WorkerProcess]:
        """Run a worker that has done a job."""
        async with working(self._wide) as worker:
            done = await self._narrow.done()
            await self._narrow.enqueue("noop", 0)
            await self._until(done + 1, worker)
            yield worker
        await self._forget()

    async def _until(self, done: int, worker: WorkerProcess) -> None:
        async with asyncio.timeout(60):
            while await self._narrow.done() < done:
                worker.check()
                await asyncio.sleep(0.005)

    async def _forget(self) -> None:
        """Empty the tables, so that each arm finds the same."""
        await self._watch.execute("TRUNCATE headrace.jobs, headrace.finished_jobs")

    async def _counts(self) -> tuple[int, int]:
        row = await self._watch.fetchrow(COUNTS)
        return row["commits"], row["wal"]

    def _cpu(self, worker: WorkerProcess) -> Callable[[int], Figures]:
        """Return what tells the processor microseconds a job since now."""

        def now() -> dict[str, float]:
            pids = {"server_us": self._order.server_pid, "worker_us": worker.pid}
            return {
                "client_us": time.process_time(),
                **{name: cpu_seconds(pid) or 0.0 for name, pid in pids.items()},
            }

        before = now()
        return lambda jobs: {name: (value - before[name]) / jobs * 1e6 for name, value in now().items()}

    @staticmethod
    def _each(before: tuple[int, int], after: tuple[int, int], jobs: float) -> Figures:
        commits, wal = (new - old for new, old in zip(after, before, strict=True))
        return {"commits": commits / jobs, "wal_bytes": wal / jobs}


def _changed(order: Order, jobs: int) -> dict[str, Any]:
    return {**asdict(order), "workload": "drain", "jobs": jobs}


@asynccontextmanager
async def open_whole(dsn: str, server_pid: int | None, sizes: Sizes) -> AsyncIterator[Whole]:
    """Open the client on an empty database."""
    watch = await asyncpg.connect(dsn, server_settings={"jit": "off"})
    whole = Whole(Order(contender="headrace", workload="", dsn=dsn, server_pid=server_pid), sizes, watch)
    try:
        await whole.open()
        yield whole
    finally:
        await whole.close()
        await watch.close()
