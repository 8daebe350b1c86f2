"""Pauses on Redis: what processes of the release before leave among the held jobs of a batch is never let go."""

from __future__ import annotations

from uuid import UUID, uuid4

from headrace.model.job import JobState
from headrace.model.stats import Retention
from headrace.stores.redis import RedisSite
from headrace.stores.redis.connection import Server
from tests.conformance.scenario import ALL, SECOND, Scenario

KEEP = Retention(succeeded=SECOND, failed=SECOND, cancelled=SECOND, answers=SECOND)


async def keep_held(server: Server, site: RedisSite, batch_id: UUID, *ids: UUID) -> None:
    """Put jobs among the held ones of a batch, before all others; who knows nothing of holding leaves them there."""
    await server.call("ZADD", _held(site, batch_id), *(word for job_id in ids for word in (0, job_id.hex)))


async def knows_held(server: Server, site: RedisSite, batch_id: UUID) -> bool:
    """Whether a batch has held jobs."""
    return bool(await server.call("EXISTS", _held(site, batch_id)))


def _held(site: RedisSite, batch_id: UUID) -> str:
    return f"{site.root}:batch:{batch_id.hex}:held"


async def hold(on: Scenario, count: int) -> UUID:
    """Hold all jobs of a new batch."""
    batch_id = await on.batch(count)
    await on.stores.batches.pause_batch(batch_id)
    assert await on.stores.batches.settle_paused(batch_id, limit=ALL) == count
    return batch_id


async def test_a_resume_lets_no_cancelled_job_go(on: Scenario, server: Server, site: RedisSite) -> None:
    """One that still stands among the held ones stays cancelled; the others are ready."""
    session = await on.worker()
    batch_id = await hold(on, 3)
    cancelled, *others = sorted(job.id for job in await on.stores.inspect.list_jobs(batch_id=batch_id))
    await on.stores.control.cancel_job(cancelled)
    await keep_held(server, site, batch_id, cancelled)

    await on.stores.batches.resume_batch(batch_id)
    assert await on.stores.batches.settle_paused(batch_id, limit=ALL) == 2
    assert [job.id for job in await on.claim(session)] == others
    assert await on.states([cancelled]) == [JobState.CANCELLED]
    assert not await knows_held(server, site, batch_id)


async def test_a_resume_passes_over_what_was_pruned(on: Scenario, server: Server, site: RedisSite) -> None:
    """A job that is gone still stands among the held ones: the resume comes to its end."""
    session = await on.worker()
    batch_id = await hold(on, 1)
    await keep_held(server, site, batch_id, uuid4())
    await on.stores.batches.resume_batch(batch_id)

    assert await on.stores.batches.settle_paused(batch_id, limit=ALL) == 1
    assert len(await on.claim(session)) == 1
    assert not await knows_held(server, site, batch_id)


async def test_a_pruned_batch_leaves_no_held_jobs(on: Scenario, server: Server, site: RedisSite) -> None:
    """The key goes with the batch, whatever still stands in it."""
    batch_id = await hold(on, 1)
    [held] = await on.stores.inspect.list_jobs(batch_id=batch_id)
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)
    await on.stores.batches.close_batches([batch_id])
    await keep_held(server, site, batch_id, held.id)
    on.clock.advance(2 * SECOND)
    await on.stores.jobs.prune_jobs(KEEP, limit=ALL)

    assert await on.stores.inspect.get_batch(batch_id) is None
    assert not await knows_held(server, site, batch_id)
