"""Scatter and aggregate on PostgreSQL: workers keep off the batch row, and progress is true at every moment."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from headrace.model.batch import NewBatch, Progress
from headrace.ports.stores import Stores
from tests.integration.postgres_setup import ARGS, SPEC, claim, connection, done, register, schema_stores

ITEMS = 200


async def batch_row(schema: str, batch_id: UUID) -> tuple[Any, ...]:
    """Return a batch as it is stored, with the transaction that wrote it last."""
    async with connection() as opened:
        row = await opened.fetchrow(f'SELECT xmin::text, * FROM "{schema}".batches WHERE id = $1', batch_id)
    return tuple(row)


async def test_a_worker_never_touches_the_row_of_its_batch() -> None:
    """Items are claimed and ended while another transaction holds the batch row, and the row is not written."""
    async with schema_stores() as (schema, stores), connection() as other:
        session = await register(stores)
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * 3)
        before = await batch_row(schema, batch_id)
        async with other.transaction(), asyncio.timeout(10):
            await other.execute(f'SELECT FROM "{schema}".batches WHERE id = $1 FOR UPDATE', batch_id)
            jobs = await claim(stores, session, 2)
            assert len(await stores.jobs.complete_jobs(session, done(jobs))) == 2
        assert await batch_row(schema, batch_id) == before


async def test_progress_adds_up_at_every_moment() -> None:
    """However items move while they are counted, each is counted once: one statement sees one moment."""
    async with schema_stores() as (_, stores):
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * ITEMS)
        work = asyncio.gather(*(work_off(stores) for _ in range(3)))
        seen = []
        while not work.done():
            seen.append(await stores.inspect.batch_progress(batch_id))
        await work
        seen.append(await stores.inspect.batch_progress(batch_id))

    assert {counted(progress) for progress in seen} == {ITEMS}
    assert seen[-1].succeeded == ITEMS
    assert len(set(seen)) > 2


async def work_off(stores: Stores) -> None:
    """Claim and end jobs, a few at a time, until none is left."""
    session = await register(stores)
    while jobs := await claim(stores, session, 5):
        await stores.jobs.complete_jobs(session, done(jobs))


def counted(progress: Progress) -> int:
    """Return how many items a progress speaks of."""
    return progress.done + progress.running + progress.waiting
