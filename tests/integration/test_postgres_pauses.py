"""Pauses on PostgreSQL: what claims read beside held jobs, and jobs that statements left behind which began before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.model.batch import NewBatch
from headrace.model.job import JobState, Park
from headrace.model.session import LeaderTerm
from headrace.ports.stores import Stores
from headrace.stores.postgres.queries import load_query
from headrace.testing.clock import FakeClock
from tests.backends.postgres import fresh_schema, stores_on
from tests.conformance.scenario import ALL, MINUTE, SPEC, Scenario, items
from tests.integration.postgres_setup import connection

#: What was found in the claim index by the statements of this transaction.
FOUND = """SELECT pg_stat_get_xact_tuples_returned(c.oid) FROM pg_class AS c
  WHERE c.relname = 'jobs_claim' AND c.relnamespace = to_regnamespace($1)"""


async def claimed(opened: Any, schema: str, session: Any) -> tuple[int, int]:
    """Return how many jobs a claim of ten takes, and how many entries of its index it reads; it is taken back."""
    query = load_query("claim_jobs", schema)
    values = {"session": session, "queue": "default", "limit": 10, "after_at": None, "after_id": None, "now": None}
    transaction = opened.transaction()
    await transaction.start()
    before = await opened.fetchval(FOUND, schema)
    rows = await opened.fetch(query.numbered, *query.arguments(values))
    after = await opened.fetchval(FOUND, schema)
    await transaction.rollback()
    return len(rows), after - before


async def sweep(stores: Stores, term: LeaderTerm) -> None:
    """Do what the leader does again and again."""
    await stores.batches.sweep_batches(term=term, seal_timeout=MINUTE, limit=10)


async def test_a_claim_reads_no_more_beside_a_paused_batch() -> None:
    """Of 3,000 held jobs at the head of a queue a claim meets none, once the table was vacuumed."""
    async with fresh_schema() as schema, stores_on(schema, None) as stores, connection() as opened:
        on = Scenario(stores, FakeClock())
        session = await on.worker(lease=timedelta(hours=1))
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), items(3_000))
        assert await claimed(opened, schema, session) == (10, 10)
        await stores.batches.pause_batch(batch_id)
        assert await stores.batches.settle_paused(batch_id, limit=ALL) == 3_000
        await on.enqueue(20)
        await opened.execute(f'VACUUM "{schema}".jobs')
        assert await claimed(opened, schema, session) == (10, 10)


async def test_the_sweep_finds_what_a_statement_missed_that_began_before() -> None:
    """A job made ready behind a pause is held; one held behind a resume is let go, however late it comes."""
    clock = FakeClock()
    async with fresh_schema() as schema, stores_on(schema, clock) as stores, connection() as opened:
        on = Scenario(stores, clock)
        session, term = await on.worker(lease=timedelta(hours=9)), await on.term()
        batch_id = await on.batch(1)
        await stores.batches.pause_batch(batch_id)
        await stores.batches.settle_paused(batch_id, limit=ALL)
        held = await opened.fetchval(f'SELECT parked_on FROM "{schema}".jobs')
        await opened.execute(f"""UPDATE "{schema}".jobs SET state = 'ready', parked_on = NULL""")
        await sweep(stores, term)
        assert await on.claim(session) == []

        await stores.batches.resume_batch(batch_id)
        await stores.batches.settle_paused(batch_id, limit=ALL)
        await opened.execute(f"""UPDATE "{schema}".jobs SET state = 'parked', parked_on = $1""", held)
        clock.advance(timedelta(hours=8))
        await sweep(stores, term)
        assert len(await on.claim(session)) == 1


async def test_the_sweep_finds_every_batch_that_holds_anything() -> None:
    """Several batches that were resumed, between jobs that are parked on signals: each is let go, and nothing else."""
    clock = FakeClock()
    async with fresh_schema() as schema, stores_on(schema, clock) as stores:
        on = Scenario(stores, clock)
        session, term = await on.worker(), await on.term()
        await on.enqueue(3)
        for job, key in zip(await on.claim(session), (chr(30), " ", "z"), strict=True):
            await on.end(session, job, state=JobState.PARKED, park=Park(key, None))
        batches = [await on.batch(2) for _ in range(3)]
        for batch_id in batches:
            await stores.batches.pause_batch(batch_id)
            await stores.batches.settle_paused(batch_id, limit=ALL)
            await stores.batches.resume_batch(batch_id)
        assert await on.claim(session) == []
        await sweep(stores, term)
        assert sorted(str(job.batch_id) for job in await on.claim(session)) == sorted([*map(str, batches)] * 2)
