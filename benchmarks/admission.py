"""Measure the gate on PostgreSQL: what an admission costs, and what it holds under racing claimers.

Run ``python benchmarks/admission.py lanes | saturated | cancelled | racing``. Each starts a PostgreSQL of its own
(fsync and synchronous_commit on, other settings default) and removes it. The figures of
docs/decisions/0005-admission.md come from here. Times are medians, `wall / p99 (server CPU)` in milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
from growth import Timings, cpu_of
from spike_hot_path import postgres

from headrace.model.fairness import jain_index
from headrace.model.job import Claim, ClaimedJob, Completion, JobState
from headrace.model.limits import Declared
from headrace.model.session import NewSession, ProcessId
from headrace.ports.stores import Stores
from headrace.stores.postgres import open_postgres_stores

DAY = timedelta(days=1)
SERVERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace'"
RUNNING = "SELECT queue, lane::json ->> 'key' AS key, count(*) FROM jobs WHERE state = 'running' GROUP BY 1, 2"
#: Lanes made by the server itself: one job each, or more.
LOAD = """INSERT INTO jobs (id, state, sort_at, created_at, queue, task, priority, max_attempts, args, lane)
  SELECT uuidv7(), 'ready', now() + n * interval '1 microsecond', now(), $1, 'work', 5, 4,
    json_build_object('args', json_build_array(l.lane), 'kwargs', '{}'::json), l.lane
  FROM generate_series(1, $4::int) AS n
    CROSS JOIN LATERAL (SELECT replace($2, 'N', (n % $3::int)::text) AS lane) AS l"""
GATED = "INSERT INTO queues (name, gated) VALUES ($1, true) ON CONFLICT DO NOTHING"


class Bench:
    """A schema with stores, a live session and a bare connection."""

    def __init__(self, stores: Stores, bare: Any) -> None:
        self.stores, self.bare = stores, bare
        self.session = UUID(int=0)

    async def worker(self) -> UUID:
        """Register a session."""
        session = NewSession(ProcessId("me", 1, 1), "me", {"default": 100}, DAY)
        await self.stores.sessions.register_session(session)
        return session.id

    async def load(self, lane: str, lanes: int, jobs: int, *, queue: str = "default") -> None:
        """Insert jobs in so many lanes; N in the lane's text is its number."""
        await self.bare.execute(GATED, queue)
        await self.bare.execute(LOAD, queue, lane, lanes, jobs)

    async def admit(self, limit: int, timings: Timings | None = None, *, queue: str = "default") -> list[ClaimedJob]:
        """Admit jobs, timed."""
        assert self.stores.admission is not None
        pids = [row["pid"] for row in await self.bare.fetch(SERVERS)]
        cpu, begun = cpu_of(*pids), time.perf_counter()
        admitted = await self.stores.admission.admit_jobs(Claim(self.session, queue, limit))
        if timings is not None:
            timings.wall.append((time.perf_counter() - begun) * 1000)
            timings.cpu.append(cpu_of(*pids) - cpu)
        return admitted.jobs

    async def end(self, jobs: list[ClaimedJob], session: UUID | None = None) -> None:
        """End jobs well."""
        done = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
        await self.stores.jobs.complete_jobs(session or self.session, done)


@asynccontextmanager
async def bench(dsn: str, schema: str) -> AsyncIterator[Bench]:
    """Open an empty, migrated schema with a live session."""
    stores = await open_postgres_stores(dsn, schema=schema, auto_migrate=True, max_pool_size=20, listen=False)
    bare = await asyncpg.connect(dsn, server_settings={"search_path": schema, "jit": "off"})
    try:
        opened = Bench(stores, bare)
        opened.session = await opened.worker()
        yield opened
    finally:
        await bare.close()
        await stores.close()


SHAPES = {
    "one share each": '{"fair":"tenant-N"}',
    "one key each, limit 1": '{"key":"user-N","key_limit":1,"caps":["task:work"]}',
    "a share, a cap, a rate, a breaker": '{"fair":"N","caps":["task:work"],"limits":{"api":1},"breakers":["api"]}',
}


async def lanes(dsn: str) -> None:
    """Print what one admission costs by the number of waiting lanes."""
    for shape, lane in SHAPES.items():
        for count in (1, 100, 1_000, 10_000):
            async with bench(dsn, f"l{abs(hash((shape, count)))}") as opened:
                await opened.load(lane, count, max(count * 3, 3_000))
                await opened.bare.execute("VACUUM ANALYZE jobs")
                found = {}
                for limit in (10, 100):
                    timings = Timings()
                    await opened.end(await opened.admit(limit))
                    for _ in range(7):
                        jobs = await opened.admit(limit, timings)
                        await opened.end(jobs)
                    found[limit] = f"{timings}, {len(jobs)} jobs"
                print(f"{shape}, {count} lanes: {found}", flush=True)


async def saturated(dsn: str) -> None:
    """Print what 50,000 jobs behind one busy key cost the admissions of other keys, in turns."""
    async with bench(dsn, "alone") as alone, bench(dsn, "beside") as beside:
        for opened in (alone, beside):
            await opened.load('{"key":"other-N","key_limit":1}', 50, 40_000)
        await beside.load('{"key":"busy","key_limit":1}', 1, 50_000)
        held = await beside.admit(51)
        await beside.end([job for job in held if "busy" not in lane_of(job)])
        pair = Timings(), Timings()
        for _ in range(200):
            for opened, timings in zip((alone, beside), pair, strict=True):
                jobs = await opened.admit(10, timings)
                assert len(jobs) == 10
                await opened.end(jobs)
        ratios = [statistics.median(getattr(pair[1], kind)) / statistics.median(getattr(pair[0], kind))
                  for kind in ("wall", "cpu")]  # fmt: skip
        print(f"alone {pair[0]}, beside 50,000 jobs of a busy key {pair[1]}, wall and CPU ratio {ratios}")


def lane_of(job: ClaimedJob) -> str:
    """Return the lane of a job that was loaded: its argument."""
    return str(json.loads(job.args)["args"][0])


BIG = '{"fair":"big"}'


async def cancelled(dsn: str) -> None:
    """Print how a flow is served that has just cancelled 100,000 jobs."""
    async with bench(dsn, "cancelled") as opened:
        await opened.bare.execute("ALTER TABLE jobs SET (autovacuum_enabled = off)")
        await opened.load('{"fair":"tenant-N"}', 10, 5_000)
        await opened.load(BIG, 1, 100_000)
        await opened.admit(110)
        await opened.bare.execute("DELETE FROM jobs WHERE lane = $1 AND state = 'ready'", BIG)
        await opened.load(BIG, 1, 200)
        for turn in range(4):
            timings = Timings()
            jobs = await opened.admit(110, timings)
            own = sum(lane_of(job) == BIG for job in jobs)
            print(f"admission {turn + 1} after the cancel: {timings}, of {len(jobs)} jobs {own} its own")


async def racing(dsn: str) -> None:
    """Print what eight racing claimers held: caps of 1 and 5, keys of 1 and 2, and the shares of eight flows."""
    async with bench(dsn, "racing") as opened:
        assert opened.stores.admission is not None
        await opened.stores.admission.declare_limits(Declared(caps={"task:one": 1, "queue:five": 5}))
        await opened.load('{"caps":["task:one"]}', 1, 20_000, queue="one")
        await opened.load('{"fair":"N"}', 8, 20_000, queue="five")
        await opened.load('{"key":"N","key_limit":1}', 20, 20_000, queue="keys")
        await opened.load('{"key":"N","key_limit":2,"caps":["task:none"]}', 20, 20_000, queue="pairs")
        bounds = {"one": 1, "five": 5, "keys": 1, "pairs": 2}
        over: list[str] = []
        ended: Counter[str] = Counter()
        stop = time.monotonic() + 10

        async def work() -> None:
            session = await opened.worker()
            while time.monotonic() < stop:
                for queue in bounds:
                    admitted = await opened.stores.admission.admit_jobs(Claim(session, queue, 7))  # type: ignore[union-attr]
                    await asyncio.sleep(0)
                    await opened.end(admitted.jobs, session)
                    ended[queue] += len(admitted.jobs)

        async def watch() -> None:
            while time.monotonic() < stop:
                rows = await opened.bare.fetch(RUNNING)
                over.extend(str(dict(row)) for row in rows if row["count"] > bounds[row["queue"]])

        await asyncio.gather(*(work() for _ in range(8)), watch())
        print(f"ended in 10 s {dict(ended)}, over a bound: {over or 'never'}")
    await shares(dsn)


async def shares(dsn: str) -> None:
    """Print Jain's index of eight equal flows of unequal backlogs under four racing claimers."""
    async with bench(dsn, "shares") as opened:
        for flow in range(8):
            await opened.load(f'{{"fair":"{flow}"}}', 1, 3_000 * (flow + 1))
        served: Counter[str] = Counter()
        stop = time.monotonic() + 5

        async def work() -> None:
            session = await opened.worker()
            while time.monotonic() < stop:
                admitted = await opened.stores.admission.admit_jobs(Claim(session, "default", 3))  # type: ignore[union-attr]
                served.update(lane_of(job) for job in admitted.jobs)
                await opened.end(admitted.jobs, session)

        await asyncio.gather(*(work() for _ in range(4)))
        print(f"Jain {jain_index([float(count) for count in served.values()]):.4f}, {dict(served)}")


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = {"lanes": lanes, "saturated": saturated, "cancelled": cancelled, "racing": racing}
    parser.add_argument("what", choices=verbs)
    chosen = parser.parse_args()
    with postgres() as dsn:
        asyncio.run(verbs[chosen.what](dsn))


if __name__ == "__main__":
    sys.exit(main())
