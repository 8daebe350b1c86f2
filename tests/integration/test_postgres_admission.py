"""The gate on PostgreSQL: what races, locks and indexes have to do with it. What it admits is tested by conformance."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from headrace.model.admission import Admitted
from headrace.model.breaker import BreakerReport, BreakerRule, BreakerState
from headrace.model.job import Claim, JobSpec, NewJob
from headrace.model.limits import Declared, Gate, Rate
from headrace.ports.admission import Admission
from headrace.ports.stores import Stores
from headrace.stores.postgres.database import PINNED_PLANS, Database, DatabaseOptions
from headrace.stores.postgres.migrate import known_migrations
from headrace.stores.postgres.queries import load_query, read_sql
from tests.backends.postgres import empty_schema
from tests.integration.postgres_setup import (
    ARGS,
    connection,
    done,
    enqueue,
    new_schema_name,
    register,
    schema_stores,
    shared_server,
)
from tests.waiting import wait_until

#: How long claimers race in a test of every run.
RACE = 1.5
#: More rows than an admission may read, in a few lanes.
LOAD = """INSERT INTO "{schema}".jobs (id, state, sort_at, created_at, queue, task, priority, max_attempts, args, lane)
  SELECT gen_random_uuid(), 'ready', now() + n * interval '1 microsecond', now(), $1, 'work', 5, 4, '{{}}',
    replace($2, 'N', (n % $3::int)::text)
  FROM generate_series(1, $4::int) AS n"""
GATED = 'INSERT INTO "{schema}".queues (name, gated) VALUES ($1, true) ON CONFLICT DO NOTHING'


def gate_of(stores: Stores) -> Admission:
    """Return the admission port."""
    assert stores.admission is not None
    return stores.admission


async def admit(stores: Stores, session: UUID, limit: int = 10, *, queue: str = "default") -> Admitted:
    """Admit jobs of a queue."""
    return await gate_of(stores).admit_jobs(Claim(session, queue, limit))


async def load(schema: str, queue: str, lane: str, lanes: int, jobs: int) -> None:
    """Insert many jobs in so many lanes; N in the text of a lane is its number."""
    async with connection() as opened:
        await opened.execute(GATED.format(schema=schema), queue)
        await opened.execute(LOAD.format(schema=schema), queue, lane, lanes, jobs)


#: By queue: its lanes, how many of them, and at most how many jobs of a lane and of the queue run.
BOUNDS = {
    "one": ('{"caps":["task:one"]}', 1, 1, 1),
    "five": ('{"fair":"N"}', 8, 5, 5),
    "keys": ('{"key":"N","key_limit":1}', 6, 1, 6),
    "pairs": ('{"key":"N","key_limit":2,"caps":["task:nine"]}', 6, 2, 9),
}


async def test_eight_racing_connections_keep_every_cap_and_key() -> None:
    """While eight connections admit and finish, no look at the rows finds more of a cap, queue or key than allowed."""
    async with schema_stores(max_pool_size=20) as (schema, stores):
        await gate_of(stores).declare_limits(Declared(caps={"task:one": 1, "queue:five": 5, "task:nine": 9}))
        for queue, (lane, lanes, _, _) in BOUNDS.items():
            await load(schema, queue, lane, lanes, 4_000)
        ended: Counter[str] = Counter()
        stop = time.monotonic() + RACE

        async def work() -> None:
            session = await register(stores)
            while time.monotonic() < stop:
                for queue in BOUNDS:
                    jobs = (await admit(stores, session, 7, queue=queue)).jobs
                    await asyncio.sleep(0)
                    await stores.jobs.complete_jobs(session, done(jobs))
                    ended[queue] += len(jobs)

        looks = asyncio.create_task(_watch(schema, stop))
        await asyncio.gather(*(work() for _ in range(8)))
        assert await looks > 10
        assert all(ended[queue] > 5 for queue in BOUNDS), ended


async def _watch(schema: str, stop: float) -> int:
    """Look at the running rows again and again; return how often some ran."""
    looks = 0
    query = f"SELECT queue, lane, count(*) FROM \"{schema}\".jobs WHERE state = 'running' GROUP BY queue, lane"
    async with connection() as opened:
        while time.monotonic() < stop:
            rows = await opened.fetch(query)
            for queue, (_, _, each, whole) in BOUNDS.items():
                counts = [row["count"] for row in rows if row["queue"] == queue]
                assert max(counts, default=0) <= each, rows
                assert sum(counts) <= whole, rows
            looks += bool(rows)
    return looks


@pytest.mark.parametrize(
    "lane",
    [
        '{"fair":"N"}',
        '{"key":"N","key_limit":1}',
        '{"fair":"N","caps":["task:work"],"limits":{"api":1},"breakers":["api"]}',
    ],
)
async def test_an_admission_reads_heads_and_not_backlogs(lane: str) -> None:
    """It scans no big table and fetches a few rows for each lane and job, also by plans made when nothing waited."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        limits = Declared({"task:work": 100}, {"api": Rate(100.0, 100.0)}, {"api": BreakerRule()})
        await gate_of(stores).declare_limits(limits)
        async with connection() as opened:
            for name, value in PINNED_PLANS.items():
                await opened.execute(f"SET {name} = {value}")
            query = load_query("admit_jobs", schema)
            for pages in (0, 10):
                await _pretend_emptied(opened, schema, pages)
                await _reads(opened, query, session, schema)
            await load(schema, "default", lane, 20, 6_000)
            rows, read = await _reads(opened, query, session, schema)
        assert len(rows) == 11
        assert read["scans"] == 0
        assert read["rows"] < 300, read


async def _pretend_emptied(opened: Any, schema: str, pages: int) -> None:
    """Give the big tables the statistics of tables that were analysed when all their rows were gone."""
    await opened.execute(
        """UPDATE pg_class SET relpages = $2, reltuples = 0
        WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'i')""",
        schema, pages,
    )  # fmt: skip


async def _reads(opened: Any, query: Any, session: UUID, schema: str) -> tuple[list[Any], Any]:
    """Admit ten jobs, and tell what that read of the two big tables."""
    values = {"session": session, "queue": "default", "limit": 10, "now": None, "grants": None}
    async with opened.transaction():
        rows = await opened.fetch(query.numbered, *query.arguments(values))
        read = await opened.fetchrow(
            """SELECT sum(seq_scan) AS scans, sum(idx_tup_fetch) AS rows FROM pg_stat_xact_user_tables
            WHERE schemaname = $1 AND relname IN ('jobs', 'finished_jobs')""",
            schema,
        )
    return rows, read


async def test_a_job_that_somebody_holds_is_passed_over() -> None:
    """A row that a cancel has in its hands keeps no admission waiting; the next of its lane starts."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        first, second, _ = sorted(await enqueue(stores, 3, JobSpec("work", gate=Gate(fair_key="a"))))
        async with connection() as other, other.transaction():
            await other.execute(f'SELECT FROM "{schema}".jobs WHERE id = $1 FOR UPDATE', first)
            async with asyncio.timeout(3):
                assert [job.id for job in (await admit(stores, session, 1)).jobs] == [second]
        assert [job.id for job in (await admit(stores, session, 1)).jobs] == [first]


async def test_enqueueing_waits_for_no_other_once_a_queue_is_gated() -> None:
    """Only the first job with a gate writes the row of its queue; others do not even lock it."""
    spec = JobSpec("work", gate=Gate(fair_key="a"))
    async with schema_stores(lock_timeout=timedelta(seconds=20)) as (schema, stores):
        await enqueue(stores, 1, spec)
        async with connection() as other, other.transaction():
            await other.execute(f'SELECT FROM "{schema}".queues FOR UPDATE')
            async with asyncio.timeout(3):
                await enqueue(stores, 1, spec)
                await enqueue(stores, 5, spec)


async def test_a_queue_is_gated_when_its_first_gated_job_is() -> None:
    """Enqueued in the caller's own transaction, the job gates its queue with the commit, and never else."""
    async with schema_stores() as (_, stores), connection() as own:
        assert stores.foreign is not None
        session = await register(stores)
        job = NewJob(JobSpec("work", gate=Gate(key="k", key_limit=1)), ARGS)
        transaction = own.transaction()
        await transaction.start()
        await stores.foreign.insert_jobs_on(own, [job])
        assert not (await admit(stores, session)).gated
        await transaction.rollback()
        assert not (await admit(stores, session)).gated
        async with own.transaction():
            await stores.foreign.insert_jobs_on(own, [job])
        admitted = await admit(stores, session)
        assert (admitted.gated, [started.id for started in admitted.jobs]) == (True, [job.id])


async def test_what_runs_already_counts_under_a_new_cap_of_its_queue() -> None:
    """Jobs that were claimed before their queue had a cap fill it."""
    async with schema_stores() as (_, stores):
        session = await register(stores)
        await enqueue(stores, 3)
        [running] = await stores.jobs.claim_jobs(Claim(session, "default", 1))
        await gate_of(stores).set_cap("queue:default", None)  # which is not a cap yet
        await gate_of(stores).declare_limits(Declared(caps={"queue:default": 1}))
        assert (await admit(stores, session)).jobs == []
        await stores.jobs.complete_jobs(session, done([running]))
        assert len((await admit(stores, session)).jobs) == 1


async def test_a_claim_that_ends_after_its_queue_got_a_cap_counts_under_it() -> None:
    """A new cap waits for a claim that began when the queue had no gate, and not for one that begins later."""
    async with schema_stores() as (schema, stores), connection() as other, connection() as later:
        session, query = await register(stores), load_query("claim_jobs", schema)
        await enqueue(stores, 6)
        values = {"session": session, "queue": "default", "limit": 3, "after_at": None, "after_id": None, "now": None}
        early, late = other.transaction(), later.transaction()
        await early.start()
        assert len(await other.fetch(query.numbered, *query.arguments(values))) == 3
        capping = asyncio.create_task(gate_of(stores).set_cap("queue:default", 2))

        async def waits() -> bool:
            looked = "SELECT FROM pg_stat_activity WHERE state = 'idle' AND query LIKE $1"
            return capping.done() or bool(await later.fetch(looked, f'%virtualtransaction%"{schema}".%'))

        await wait_until(waits, message="the cap to wait for the claim")
        await late.start()
        assert await later.fetch(query.numbered, *query.arguments(values)) == []
        assert not capping.done()
        await early.commit()
        await capping
        await late.rollback()
        assert (await admit(stores, session)).jobs == []


async def test_a_running_job_that_somebody_holds_counts_under_a_new_cap() -> None:
    """A row that is locked, as while a step is stored, is waited for: no cap is in force before all are counted."""
    async with schema_stores() as (schema, stores), connection() as early, connection() as late, connection() as eyes:
        session = await register(stores)
        await enqueue(stores, 3)
        [running] = await stores.jobs.claim_jobs(Claim(session, "default", 1))
        claiming, storing = early.transaction(), late.transaction()
        await claiming.start()
        await early.execute(f'LOCK TABLE "{schema}".jobs IN ROW SHARE MODE')
        capping = asyncio.create_task(gate_of(stores).set_cap("queue:default", 1))

        async def waits_for(part: str) -> bool:
            looked = "SELECT FROM pg_stat_activity WHERE state = 'idle' AND query LIKE $1"
            return capping.done() or bool(await eyes.fetch(looked, f'%{part}%"{schema}".%'))

        await wait_until(lambda: waits_for("virtualtransaction"), message="the cap to wait for the claim")
        await storing.start()
        await late.fetch(f'SELECT FROM "{schema}".jobs WHERE id = $1 FOR SHARE', running.id)
        await claiming.rollback()
        await wait_until(lambda: waits_for("counted AS"), message="the cap to wait for the row")
        await storing.rollback()
        await capping
        assert (await admit(stores, session)).jobs == []


async def test_plain_jobs_that_admission_started_count_under_the_cap_of_their_queue() -> None:
    """Jobs without a gate that run in a gated queue are known by their lane, one admission after the other."""
    async with schema_stores() as (_, stores):
        session = await register(stores)
        await gate_of(stores).declare_limits(Declared(caps={"queue:default": 2}))
        await enqueue(stores, 5)
        assert [len((await admit(stores, session, 1)).jobs) for _ in range(4)] == [1, 1, 0, 0]


async def test_lanes_of_one_key_start_one_job_together() -> None:
    """Of two lanes with the same concurrency key one admission starts no more than the key allows."""
    async with schema_stores() as (_, stores):
        session = await register(stores)
        for cap in ("task:a", "task:b"):
            await enqueue(stores, 3, JobSpec("work", gate=Gate(key="k", key_limit=1, caps=(cap,))))
        assert len((await admit(stores, session)).jobs) == 1
        assert len((await admit(stores, session)).jobs) == 0


async def test_callers_that_wait_for_a_bucket_see_what_the_one_before_left() -> None:
    """Three that take at the same moment wait for the row, and each goes by the level that it finds then."""
    async with schema_stores() as (schema, stores):
        assert stores.limiter is not None
        limiter = stores.limiter
        await gate_of(stores).declare_limits(Declared(rates={"api": Rate(0.001, 2.0)}))
        async with connection() as other:
            held = other.transaction()
            await held.start()
            await other.execute(f'SELECT FROM "{schema}".rates FOR UPDATE')
            takers = [asyncio.create_task(limiter.take({"api": 1.0})) for _ in range(3)]
            await all_wait(schema, len(takers))
            await held.rollback()
        taken = [(await taker).units for taker in takers]
        assert sorted(taken, key=len) == [{}, {"api": 1.0}, {"api": 1.0}]


async def all_wait(schema: str, count: int) -> None:
    """Wait until so many statements on a schema wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 in query) > 0"
    async with connection() as opened:

        async def waiting() -> bool:
            return bool(await opened.fetchval(query, schema) == count)

        await wait_until(waiting, message="all calls to wait for a lock")


async def test_admissions_that_wait_for_a_breaker_see_the_probe_of_the_one_before() -> None:
    """Two queues behind one breaker that may be tried: both wait for its row, and one job starts."""
    async with schema_stores() as (schema, stores), connection() as other:
        gate, session = gate_of(stores), await register(stores)
        rule = BreakerRule(failures=1, cooldown=timedelta(microseconds=1))
        await gate.declare_limits(Declared(breakers={"api": rule}))
        for queue in ("left", "right"):
            await enqueue(stores, 1, JobSpec("work", queue=queue, gate=Gate(breakers=("api",))))
        await gate.report_calls([BreakerReport("api", uuid4(), 1, succeeded=False)])
        holding = other.transaction()
        await holding.start()
        await other.fetch(f'SELECT FROM "{schema}".breakers FOR UPDATE')
        looks = [asyncio.create_task(admit(stores, session, queue=queue)) for queue in ("left", "right")]
        await all_wait(schema, 2)
        await holding.rollback()
        assert sorted([len((await look).jobs) for look in looks]) == [0, 1]


async def test_reports_that_race_are_all_counted() -> None:
    """Eight that report failures of one breaker at the same time lose none: it opens with the last and not before."""
    async with schema_stores(max_pool_size=12) as (_, stores):
        gate = gate_of(stores)
        await gate.declare_limits(Declared(breakers={"api": BreakerRule(failures=41), "other": BreakerRule()}))

        async def report(count: int) -> None:
            for _ in range(count):
                await gate.report_calls([BreakerReport("api", uuid4(), 1, succeeded=False)])

        await asyncio.gather(*(report(5) for _ in range(8)))
        [api, _] = (await gate.list_limits()).breakers
        assert (api.record.state, api.record.failures, api.record.calls) == ("closed", 40, 40)
        await report(1)
        assert (await gate.list_limits()).breakers[0].record.state == "open"


async def test_a_breaker_outlives_two_billion_reports() -> None:
    """Each report, probe and command counts up how often a breaker changed: none of them has an end to count to."""
    async with schema_stores() as (schema, stores):
        gate, session = gate_of(stores), await register(stores)
        rule = BreakerRule(failures=1, cooldown=timedelta(microseconds=1))
        await gate.declare_limits(Declared(breakers={"api": rule}))
        await enqueue(stores, 1, JobSpec("work", gate=Gate(breakers=("api",))))

        async def state_of_old_age(after: Callable[[], Awaitable[Any]]) -> str:
            async with connection() as opened:
                await opened.execute(f'UPDATE "{schema}".breakers SET version = 2147483647')
            await after()
            return (await gate.list_limits()).breakers[0].record.state

        failure = BreakerReport("api", uuid4(), 1, succeeded=False)
        assert await state_of_old_age(lambda: gate.report_calls([failure])) == "open"
        assert await state_of_old_age(lambda: admit(stores, session)) == "half_open"
        assert await state_of_old_age(lambda: gate.set_breaker("api", BreakerState.CLOSED)) == "closed"
        assert await state_of_old_age(lambda: gate.report_calls([failure])) == "open"


async def test_an_admission_of_nothing_waits_for_no_disk() -> None:
    """Polls of a saturated queue commit without a flush: they have nothing to make durable but locks."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        await gate_of(stores).declare_limits(Declared(caps={"task:none": 0}))
        await enqueue(stores, 1, JobSpec("work", gate=Gate(caps=("task:none",))))
        query = load_query("admit_jobs", schema)
        values = {"session": session, "queue": "default", "limit": 10, "now": None, "grants": None}
        async with connection() as opened, opened.transaction():
            await opened.execute("SET LOCAL synchronous_commit = on")
            await opened.fetch(query.numbered, *query.arguments(values))
            assert await opened.fetchval("SHOW synchronous_commit") == "off"


async def test_our_statements_read_what_was_committed_while_they_waited() -> None:
    """A server whose transactions keep one snapshot by default changes nothing: counts behind a lock must be fresh."""
    stricter = "options=-c%20default_transaction_isolation=serializable"
    async with empty_schema() as schema:
        options = DatabaseOptions(f"{shared_server().dsn}&{stricter}", schema=schema)
        for pooled in (False, True):
            opened = Database(replace(options, pooled=pooled))
            found = await opened.run(lambda tx: tx._connection.fetchval("SHOW transaction_isolation"))
            own = await opened.connect()
            found = [found, "" if pooled else await own.fetchval("SHOW transaction_isolation")]
            await own.close()
            await opened.close()
            assert found == ["read committed", "" if pooled else "read committed"]


async def test_jobs_of_the_release_before_get_their_lanes() -> None:
    """The migration turns keys of caps into gates, for waiting and ended jobs and batches, and gates their queues."""
    schema = new_schema_name()
    async with connection() as opened:
        await opened.execute(f'CREATE SCHEMA "{schema}"')
        await opened.execute(read_sql("queries/create_migrations.sql", schema))
        await _migrate(opened, schema, slice(0, 5))
        await opened.execute(
            f"""INSERT INTO "{schema}".jobs (id, state, sort_at, created_at, queue, task, priority, max_attempts, args,
              limit_key)
            SELECT gen_random_uuid(), 'ready', now(), now(), q, 'x', 5, 4, '{{}}', k
            FROM (VALUES ('capped', 'task:x"y'), ('plain', NULL)) AS v (q, k)"""
        )
        await _migrate(opened, schema, slice(5, None))
        lanes = dict(await opened.fetch(f'SELECT queue, lane FROM "{schema}".jobs'))
        gated = await opened.fetch(f'SELECT name FROM "{schema}".queues WHERE gated')
        await opened.execute(f'DROP SCHEMA "{schema}" CASCADE')
    assert lanes == {"capped": Gate(caps=('task:x"y',)).text, "plain": None}
    assert [row["name"] for row in gated] == ["capped"]


async def _migrate(opened: asyncpg.Connection[Any], schema: str, which: slice) -> None:
    migrations: Sequence[Any] = known_migrations()[which]
    for migration in migrations:
        await opened.execute(read_sql(f"migrations/{migration.name}.sql", schema))
