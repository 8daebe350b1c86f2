"""Measure what growth costs: latencies with a million jobs, and ten minutes of steady work.

Run ``python benchmarks/growth.py latency`` (about three minutes) or ``python benchmarks/growth.py soak [SECONDS]
[JOBS A SECOND]`` (default: 600 s at 500/s). Both start a PostgreSQL of their own (fsync and synchronous_commit on,
other settings default) and remove it. The figures of docs/decisions/0002-growth.md come from here.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
from spike_hot_path import postgres

from headrace.model.job import Claim, ClaimedJob, Completion, JobError, JobSpec, JobState, NewJob
from headrace.model.session import LeaderTerm, NewSession, ProcessId
from headrace.model.stats import Retention
from headrace.ports.stores import Stores
from headrace.stores.postgres import open_postgres_stores
from headrace.stores.postgres.database import PINNED_PLANS
from headrace.stores.postgres.queries import load_query
from headrace.stores.postgres.rows import claim_values

ARGS = '{"args":[123],"kwargs":{}}'
BATCH = UUID("00000000-0000-7000-8000-00000000ba7c")
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)

LOAD = """INSERT INTO jobs (id, state, sort_at, run_at, created_at, started_at, session, timeout, queue, task, priority,
    max_attempts, args)
  SELECT uuidv7(), $1::text, now() + n * interval '1 microsecond',
    CASE $1 WHEN 'scheduled' THEN now() + n * interval '1 s' + interval '1 hour' END, now(),
    CASE $1 WHEN 'running' THEN now() END,
    CASE $1 WHEN 'running' THEN (SELECT array_agg(id) FROM sessions)[1 + n % 50] END, interval '1 hour', 'default',
    'work', 5, 4, '{"args":[123],"kwargs":{}}'
  FROM generate_series(1, $2::int) AS n"""
HISTORY = """INSERT INTO finished_jobs (id, batch_id, ordinal, created_at, started_at, finished_at, attempt, priority,
    failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, args, result)
  SELECT uuidv7(), CASE WHEN n % 500 = 0 THEN $1::uuid END, n, now(), now(),
    now() - interval '6 days' + n / 100 * interval '50 ms', 1, 5, 0, 0, 4, false, false,
    CASE WHEN n % 100 = 7 THEN 'failed' ELSE 'succeeded' END, 'default', 'work', '{"args":[123],"kwargs":{}}',
    '{"value":123}'
  FROM generate_series(1, $2::int) AS n"""
SESSIONS = """INSERT INTO sessions (id, start_time, started_at, expires_at, pid, host, hostname, queues)
  SELECT gen_random_uuid(), n, now(), now() + interval '1 day', n, 'host', 'host.example', '{"default": 64}'
  FROM generate_series(1, 50) AS n"""
BATCH_ROW = """INSERT INTO batches (id, created_at, opened_at, sealed_at, total, priority, max_attempts, at_most_once,
    state, queue, task, body_hash)
  VALUES ($1::uuid, now(), now(), now(), 2001, 5, 4, false, 'sealed', 'default', 'work', 'x')"""
BATCH_JOB = """INSERT INTO jobs (id, batch_id, ordinal, state, sort_at, run_at, created_at, queue, task, priority,
    max_attempts, args)
  VALUES
    (uuidv7(), $1::uuid, 2000, 'scheduled', now(), now() + interval '1 day', now(), 'default', 'work', 5, 4, '{}')"""
END_ONE = """INSERT INTO sessions (id, start_time, started_at, expires_at, pid, host, hostname, queues)
  VALUES (gen_random_uuid(), 1, now(), now(), 1, 'host', 'host.example', '{}')"""
#: What a drain leaves: each job was updated by its claim and deleted by its end.
CLAIM_MANY = """UPDATE jobs SET state = 'running', session = gen_random_uuid(), started_at = now(), attempt = 1
  WHERE id IN (SELECT id FROM jobs WHERE state = 'ready' ORDER BY sort_at LIMIT $1::int)"""
END_MANY = "DELETE FROM jobs WHERE state = 'running' AND attempt = 1"
SERVERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace'"
VACUUM_OFF = "ALTER TABLE jobs SET (autovacuum_enabled = off)"


@dataclass
class Timings:
    """Milliseconds of wall and server CPU time of one kind of call."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        wall = sorted(self.wall)
        return f"{statistics.median(wall):.2f} / {wall[int(len(wall) * 0.99)]:.2f} ({statistics.median(self.cpu):.2f})"


class Bench:
    """One schema: a connection as the hot ones of a worker are, a bare one, and the stores for everything else."""

    def __init__(self, schema: str, hot: Any, bare: Any, stores: Stores) -> None:
        self.schema, self.stores, self.run, self.bare = schema, stores, bare.execute, bare
        self._hot, self._pid = hot, hot.get_server_pid()
        self.session = NewSession(ProcessId("me", 1, 1), "me", {"default": 100}, DAY)

    async def call(self, name: str, **values: Any) -> list[Any]:
        """Run a hot statement."""
        query = load_query(name, self.schema)
        rows: list[Any] = await self._hot.fetch(query.numbered, *query.arguments({"now": None, **values}))
        return rows

    async def claim(self, size: int, timings: Timings) -> None:
        """Claim and end `size` jobs and insert as many; the claim is timed."""
        cpu, begun = cpu_of(self._pid), time.perf_counter()
        session = self.session.id
        rows = await self.call("claim_jobs", session=session, **claim_values(Claim(session, "default", size)))
        timings.wall.append((time.perf_counter() - begun) * 1000)
        timings.cpu.append(cpu_of(self._pid) - cpu)
        assert len(rows) == size
        ended = [Completion(row["id"], row["attempt"], JobState.SUCCEEDED) for row in rows]
        await self.stores.jobs.complete_jobs(self.session.id, ended)
        await self.stores.jobs.insert_jobs([NewJob(JobSpec("work"), ARGS) for _ in range(size)])

    async def time(self, work: Callable[[], Awaitable[Any]], turns: int = 7) -> Timings:
        """Time a verb of the stores; the CPU is that of all servers of our pools."""
        timings = Timings()
        for _ in range(turns):
            pids = [row["pid"] for row in await self.bare.fetch(SERVERS)]
            cpu, begun = cpu_of(*pids), time.perf_counter()
            await work()
            timings.wall.append((time.perf_counter() - begun) * 1000)
            timings.cpu.append(cpu_of(*pids) - cpu)
        return timings


def cpu_of(*pids: int) -> float:
    """Return the CPU milliseconds that processes have used."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e6


@asynccontextmanager
async def bench(dsn: str, schema: str) -> AsyncIterator[Bench]:
    """Open an empty, migrated schema with a live session."""
    stores = await open_postgres_stores(dsn, schema=schema, auto_migrate=True)
    paths = {"search_path": schema, "jit": "off"}
    hot = await asyncpg.connect(dsn, server_settings={**PINNED_PLANS, **paths})
    bare = await asyncpg.connect(dsn, server_settings=paths)
    try:
        opened = Bench(schema, hot, bare, stores)
        await stores.sessions.register_session(opened.session)
        await bare.execute(SESSIONS)
        await bare.execute(BATCH_ROW, BATCH)
        await bare.execute(BATCH_JOB, BATCH)
        await bare.execute(VACUUM_OFF)
        yield opened
    finally:
        await bare.close()
        await hot.close()
        await stores.close()


async def compare_claims(small: Bench, big: Bench) -> dict[str, object]:
    """Time claims in both schemas in turns, so that drift of the machine meets both alike."""
    found: dict[str, object] = {}
    for size, turns in ((1, 400), (100, 100)):
        pair = Timings(), Timings()
        for _ in range(turns):
            await small.claim(size, pair[0])
            await big.claim(size, pair[1])
        ratios = [statistics.median(pair[1].cpu) / statistics.median(pair[0].cpu)]
        ratios.append(statistics.median(pair[1].wall) / statistics.median(pair[0].wall))
        found[f"claim {size}, 1,000 ready"], found[f"claim {size}"] = pair
        found[f"claim {size}, CPU and wall ratio of the medians"] = " and ".join(f"{ratio:.2f}" for ratio in ratios)
    return found


async def measure(small: Bench, big: Bench, term: LeaderTerm) -> dict[str, object]:
    """Time everything that runs all the time, or again and again."""
    jobs, inspect, batches = big.stores.jobs, big.stores.inspect, big.stores.batches
    found = await compare_claims(small, big)
    verbs: dict[str, Callable[[], Awaitable[Any]]] = {
        "stage": lambda: jobs.stage_jobs(limit=1000),
        "renew": lambda: big.stores.sessions.renew_session(big.session.id, lease=DAY, stats={}),
        "rescue": lambda: jobs.rescue_jobs(limit=1000),
        "overdue": lambda: jobs.fail_overdue_jobs(grace=MINUTE, limit=1000, term=term),
        "queue_stats": inspect.queue_stats,
        "list_sessions": inspect.list_sessions,
        "list_jobs failed": lambda: inspect.list_jobs(state=JobState.FAILED, queue="default", limit=50),
        "list_jobs of a rare queue": lambda: inspect.list_jobs(queue="rare", limit=50),
        "batch_progress": lambda: inspect.batch_progress(BATCH),
        "close_batches": lambda: batches.close_batches([BATCH]),
        "sweep_batches": lambda: batches.sweep_batches(term=term, seal_timeout=DAY, limit=1000),
        "prune, nothing old": lambda: jobs.prune_jobs(Retention(), limit=1000, term=term),
    }
    for name, verb in verbs.items():
        found[name] = await big.time(verb)
    await big.run(END_ONE)
    found["rescue, a session ended"] = await big.time(verbs["rescue"], 1)
    found["rescue, two seconds later"] = await big.time(verbs["rescue"], 1)
    return {name: str(value) for name, value in found.items()}


async def latency(dsn: str) -> None:
    """Print p50 / p99 in ms (server CPU, median) of each statement, scene by scene."""
    columns: dict[str, dict[str, object]] = {}
    async with bench(dsn, "small") as small, bench(dsn, "big") as big, AsyncExitStack() as stack:
        term = await big.stores.sessions.lead(big.session.id, lease=DAY)
        assert term is not None
        await small.run(LOAD, "ready", 1_000)

        async def scene(name: str) -> None:
            begun = time.perf_counter()
            await big.run("CHECKPOINT")
            columns[name] = await measure(small, big, term)
            print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
            await small.run("VACUUM jobs")

        await big.run(LOAD, "ready", 1_000)
        await scene("1,000 ready")
        for state, count in (("ready", 999_000), ("scheduled", 100_000), ("running", 10_000)):
            await big.run(LOAD, state, count)
        await big.run("VACUUM ANALYZE jobs")
        await scene("1,000,000 ready, 100,000 delayed, 10,000 running")
        await big.run(HISTORY, BATCH, 1_000_000)
        await big.run("VACUUM ANALYZE finished_jobs")
        await scene("and 1,000,000 finished")
        await drain(big, 500_000)
        await scene("after 500,000 went, not vacuumed")
        await pin_snapshot(stack, dsn)
        await drain(big, 50_000)
        await scene("and a snapshot is open since before 50,000 more went")
    print_table(columns)


async def drain(bench: Bench, count: int) -> None:
    """Leave what `count` jobs leave that were claimed and ended."""
    await bench.run(CLAIM_MANY, count)
    await bench.run(END_MANY)


async def pin_snapshot(stack: AsyncExitStack, dsn: str) -> None:
    """Hold a snapshot, as a long report or a backup does."""
    holder = await asyncpg.connect(dsn)
    stack.push_async_callback(holder.close)
    await holder.transaction(isolation="repeatable_read").start()
    await holder.fetch("SELECT count(*) FROM big.leader")


def print_table(columns: dict[str, dict[str, object]]) -> None:
    """Print the scenes as columns."""
    print(f"\n| ms: p50 / p99 (server CPU) | {' | '.join(columns)} |")
    print("|---" * (1 + len(columns)) + "|")
    for name in next(iter(columns.values())):
        print(f"| {name} | {' | '.join(str(cells[name]) for cells in columns.values())} |")


TABLES = """SELECT s.relname AS name, pg_relation_size(s.relid) / 1024 AS heap,
    pg_indexes_size(s.relid) / 1024 AS indexes, s.n_dead_tup AS dead, s.autovacuum_count AS vacuums
  FROM pg_stat_user_tables AS s WHERE s.schemaname = $1"""
TICK = 0.05
#: So short that history reaches its final size within the run: what is inserted is what is pruned.
KEPT = Retention(*(timedelta(minutes=2),) * 4)


class Soak:
    """Steady work on one schema: jobs come, run, fail now and then, and are forgotten."""

    def __init__(self, opened: Bench, term: LeaderTerm, rate: int) -> None:
        self._bench, self._term, self._rate = opened, term, rate
        self._jobs, self._session = opened.stores.jobs, opened.session.id
        self.claims, self.ended, self.pruned, self.came = Timings(), 0, 0, 0

    async def enqueue(self) -> None:
        """Insert one job in ten with a key, at the rate, whatever the workers do."""
        begun = time.perf_counter()
        while True:
            count = int((time.perf_counter() - begun) * self._rate) - self.came
            keys = [f"k{self.came + n}" if n % 10 == 0 else None for n in range(count)]
            if count:
                await self._jobs.insert_jobs([NewJob(JobSpec("work"), ARGS, key=key) for key in keys])
            self.came += count
            await asyncio.sleep(TICK)

    async def work(self) -> None:
        """Claim and end jobs; one attempt in twenty fails and is tried again."""
        while True:
            begun = time.perf_counter()
            jobs = await self._jobs.claim_jobs(Claim(self._session, "default", 100))
            self.claims.wall.append((time.perf_counter() - begun) * 1000)
            ended = [_ending(job) for job in jobs]
            if ended:
                await self._jobs.complete_jobs(self._session, ended)
            self.ended += sum(completion.state.final for completion in ended)
            await asyncio.sleep(TICK)

    async def keep_house(self) -> None:
        """Do what the loops of a worker and of the leader do."""
        stores = self._bench.stores
        while True:
            await stores.sessions.renew_session(self._session, lease=DAY, stats={})
            await stores.sessions.lead(self._session, lease=DAY)
            await self._jobs.stage_jobs(limit=1000)
            await self._jobs.rescue_jobs(limit=1000)
            await self._jobs.fail_overdue_jobs(grace=MINUTE, limit=1000, term=self._term)
            await stores.batches.sweep_batches(term=self._term, seal_timeout=DAY, limit=1000)
            removed = 1_000
            while removed >= 1_000:
                pruned = await self._jobs.prune_jobs(KEPT, limit=1_000, term=self._term)
                removed = pruned.removed["jobs"]
                self.pruned += removed
            await asyncio.sleep(2)


def _ending(job: ClaimedJob) -> Completion:
    if job.attempt == 1 and job.id.int % 20 == 0:
        return Completion(job.id, job.attempt, JobState.READY, charged=True, error=JobError("E", "again"))
    return Completion(job.id, job.attempt, JobState.SUCCEEDED, result='{"value":123}')


async def soak(dsn: str, seconds: int, rate: int) -> None:
    """Print, every ten seconds, dead rows, sizes and claim latencies under `rate` jobs a second."""
    async with bench(dsn, "soak") as opened:
        await opened.run("ALTER TABLE jobs RESET (autovacuum_enabled)")
        term = await opened.stores.sessions.lead(opened.session.id, lease=DAY)
        assert term is not None
        running = Soak(opened, term, rate)
        tasks = [asyncio.create_task(duty()) for duty in (running.enqueue, running.work, running.keep_house)]
        print(
            "| s | waiting | ended | pruned | dead: jobs / history / keys / attempts / sessions"
            " | jobs heap + indexes KiB | history heap + indexes KiB | vacuums of jobs | claim ms p50 / p99 |"
        )
        print("|---" * 9 + "|")
        for turn in range(1, seconds // 10 + 1):
            await asyncio.wait(tasks, timeout=10)
            for task in tasks:
                if task.done():
                    task.result()
            found = {row["name"]: row for row in await opened.bare.fetch(TABLES, "soak")}
            print(_sample(turn * 10, running, found), flush=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _sample(second: int, running: Soak, found: dict[str, Any]) -> str:
    wall, running.claims.wall = sorted(running.claims.wall), []
    jobs, history = found["jobs"], found["finished_jobs"]
    dead = [found[name]["dead"] for name in ("jobs", "finished_jobs", "idempotency_keys", "attempts", "sessions")]
    cells: list[object] = [second, running.came - running.ended, running.ended, running.pruned]
    cells += [" / ".join(map(str, dead)), f"{jobs['heap']} + {jobs['indexes']}"]
    cells += [f"{history['heap']} + {history['indexes']}", jobs["vacuums"]]
    cells += [f"{statistics.median(wall):.2f} / {wall[int(len(wall) * 0.99)]:.2f}"]
    return f"| {' | '.join(map(str, cells))} |"


async def claims(dsn: str) -> None:
    """Print only how the claim compares, in a few seconds, for a quiet machine."""
    async with bench(dsn, "small") as small, bench(dsn, "big") as big:
        await small.run(LOAD, "ready", 1_000)
        for state, count in (("ready", 1_000_000), ("scheduled", 100_000), ("running", 10_000)):
            await big.run(LOAD, state, count)
        await big.run("VACUUM ANALYZE jobs")
        await big.run("CHECKPOINT")
        for name, value in (await compare_claims(small, big)).items():
            print(f"{name}: {value}")


def options() -> argparse.Namespace:
    """Return what the command line asks for; a mistake ends with 2."""
    parser = argparse.ArgumentParser(description="Measure what a million jobs and steady work cost.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("latency", help="every statement beside big and small tables, about three minutes")
    kinds.add_parser("claims", help="claims alone, for a quiet machine")
    steady = kinds.add_parser("soak", help="dead rows, sizes and claims under steady work")
    steady.add_argument("seconds", type=int, nargs="?", default=600, help="default 600")
    steady.add_argument("rate", type=int, nargs="?", default=500, help="jobs a second, default 500")
    return parser.parse_args()


if __name__ == "__main__":
    asked = options()
    with postgres() as address:
        if asked.kind == "soak":
            asyncio.run(soak(address, asked.seconds, asked.rate))
        else:
            asyncio.run({"latency": latency, "claims": claims}[asked.kind](address))
