"""Closing is tried after a completion has committed: endings that cannot see one another still close their batch."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.model.batch import NewBatch
from headrace.stores.postgres.completion import _finish
from headrace.stores.postgres.database import Transaction
from tests.integration.postgres_setup import ARGS, SPEC, claim, done, register, schema_stores


async def test_last_endings_that_cannot_see_each_other_close_their_batch() -> None:
    """The last but one is recorded and not committed while the last one ends: whoever closes then, finds it done."""
    async with schema_stores() as (_, stores):
        session = await register(stores)
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * 2)
        first, last = done(await claim(stores, session))
        recorded, may_commit = asyncio.Event(), asyncio.Event()

        async def work(tx: Transaction) -> None:
            await _finish(tx, session, [first], None)
            recorded.set()
            await may_commit.wait()

        inside: Any = stores.jobs
        ending = asyncio.create_task(inside._hot.run(work))
        await asyncio.wait_for(recorded.wait(), 20)
        assert await stores.jobs.complete_jobs(session, [last]) == [last.job_id]
        assert await stores.batches.close_batches([batch_id]) == []
        may_commit.set()
        await ending
        assert [closed.id for closed in await stores.batches.close_batches([batch_id])] == [batch_id]
