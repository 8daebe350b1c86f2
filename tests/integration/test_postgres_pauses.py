"""Pauses on PostgreSQL: what claims read beside held jobs, and jobs that statements left behind which began before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.model.batch import HELD_LATE, NewBatch
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
    """A job made ready behind a pause is held; one held behind a resume is let go, and is looked for long enough."""
    clock = FakeClock()
    async with fresh_schema() as schema, stores_on(schema, clock) as stores, connection() as opened:
        on = Scenario(stores, clock)
        session, term = await on.worker(lease=timedelta(hours=1)), await on.term()

        async def sweep() -> None:
            await stores.batches.sweep_batches(term=term, seal_timeout=MINUTE, limit=10)

        async def looked_for() -> bool:
            return bool(await opened.fetchval(f'SELECT resumed_at IS NOT NULL FROM "{schema}".batches'))

        batch_id = await on.batch(1)
        await stores.batches.pause_batch(batch_id)
        await stores.batches.settle_paused(batch_id, limit=ALL)
        held = await opened.fetchval(f'SELECT parked_on FROM "{schema}".jobs')
        await opened.execute(f"""UPDATE "{schema}".jobs SET state = 'ready', parked_on = NULL""")
        await sweep()
        assert await on.claim(session) == []

        await stores.batches.resume_batch(batch_id)
        await stores.batches.settle_paused(batch_id, limit=ALL)
        await opened.execute(f"""UPDATE "{schema}".jobs SET state = 'parked', parked_on = $1""", held)
        clock.advance(HELD_LATE / 2)
        await sweep()
        assert await looked_for()
        assert len(await on.claim(session)) == 1
        clock.advance(HELD_LATE)
        await sweep()
        assert not await looked_for()
