"""Sweeping: an ended session is looked at as long as something may run under it, and not longer."""

from __future__ import annotations

from tests.integration.postgres_setup import claim, connection, done, enqueue, register, schema_stores


async def swept(schema: str) -> list[bool]:
    """Return which sessions no rescuer looks at any more, in the order of their start."""
    async with connection() as opened:
        rows = await opened.fetch(f'SELECT swept FROM "{schema}".sessions ORDER BY started_at')
    return [row["swept"] for row in rows]


async def test_a_worker_that_stops_cleanly_costs_no_rescuer_a_scan() -> None:
    """Closed with nothing running, a session counts as swept at once; with a job it does not, and the job is saved."""
    async with schema_stores() as (schema, stores):
        clean, busy = await register(stores), await register(stores)
        await enqueue(stores, 2)
        await stores.jobs.complete_jobs(clean, done(await claim(stores, clean, 1)))
        [job] = await claim(stores, busy, 1)
        await stores.jobs.rescue_jobs(limit=10)  # the first one of a process is thorough
        for session in (clean, busy):
            await stores.sessions.close_session(session)
        assert await swept(schema) == [True, False]

        assert (await stores.jobs.rescue_jobs(limit=10)).released == (job.id,)
