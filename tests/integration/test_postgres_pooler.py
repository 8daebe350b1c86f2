"""Behind a pooler in transaction mode: nothing of a session is relied on, and hints take their own way or none.

`TEST_POSTGRES_POOLED=1 pytest tests/conformance` runs the whole conformance suite through PgBouncer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headrace.model.batch import BatchState, NewBatch
from headrace.model.errors import KeyHeldError
from headrace.model.job import JobSpec, NewJob
from headrace.model.limits import Declared, Gate
from tests.backends.pooler import PGBOUNCER, pgbouncer
from tests.backends.postgres import empty_schema, stores_on
from tests.integration.postgres_setup import (
    ARGS,
    SPEC,
    admit,
    claim,
    connection,
    done,
    enqueue,
    register,
    shared_server,
)
from tests.waiting import wait_until

GATED = JobSpec("work", "gated", gate=Gate(caps=("task:k",)))


@pytest.fixture
async def schema() -> AsyncIterator[str]:
    """Name an empty schema."""
    async with empty_schema() as name:
        yield name


@pytest.fixture
def pooler() -> Any:
    """Run PgBouncer with fewer servers than the stores have connections."""
    if PGBOUNCER is None:
        pytest.skip("PgBouncer is not installed (Debian: apt-get install pgbouncer)")
    with pgbouncer(shared_server()) as address:
        yield address


async def test_a_pooled_store_leaves_nothing_in_its_sessions(schema: str) -> None:
    """No named statement and no setting stays behind on a connection that others use next."""
    async with stores_on(schema, None, dsn=shared_server().dsn, pooled=True) as stores:
        session = await register(stores)
        await stores.admission.declare_limits(Declared(caps={"task:k": 1}))
        await enqueue(stores, 3)
        await enqueue(stores, 3, GATED)
        started = [*await claim(stores, session), *await admit(stores, session)]
        await stores.jobs.complete_jobs(session, done(started))
        inside: Any = stores.jobs
        for pool in (inside._hot._pool, inside._database._pool):
            assert pool._idle
            for opened in pool._idle:
                assert await opened.fetch("SELECT name FROM pg_prepared_statements") == []
                for name in ("lock_timeout", "plan_cache_mode", "enable_seqscan"):
                    kept = await opened.fetchrow("SELECT setting = reset_val FROM pg_settings WHERE name = $1", name)
                    assert kept[0]


async def test_work_goes_through_a_pooler(schema: str, pooler: str) -> None:
    """Twelve workers on three server connections: every job ends once, caps and batches hold, keys are unique."""
    async with stores_on(schema, None, dsn=pooler, pooled=True, max_pool_size=20) as stores:
        await stores.admission.declare_limits(Declared(caps={"task:k": 2}))
        sessions = [await register(stores) for _ in range(12)]
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * 200)
        jobs = [NewJob(GATED, ARGS, key=str(n), body_hash="1") for n in range(40)]
        answers = await asyncio.gather(*(stores.jobs.insert_jobs(jobs) for _ in range(4)))
        assert answers[0] == answers[1] == answers[2] == answers[3]
        finished: set[Any] = set()

        async def work(session: Any) -> None:
            while len(finished) < 240:
                capped = await admit(stores, session, 7)
                assert len(capped) <= 2
                found = [*capped, *await claim(stores, session, 7)]
                ended = await stores.jobs.complete_jobs(session, done(found))
                assert finished.isdisjoint(ended)
                finished.update(ended)

        await asyncio.gather(*(work(session) for session in sessions))
        await stores.batches.close_batches([batch_id])
        view = await stores.inspect.get_batch(batch_id)
        assert view is not None
        assert view.state is BatchState.CLOSED


async def test_the_bounds_hold_behind_a_pooler(schema: str, pooler: str) -> None:
    """The lock timeout travels with each transaction."""
    bounded = stores_on(schema, None, dsn=pooler, pooled=True, lock_timeout=timedelta(milliseconds=100))
    async with bounded as stores, connection() as other, other.transaction():
        await other.execute(
            f"INSERT INTO \"{schema}\".idempotency_keys VALUES ('job:work', 'k', gen_random_uuid(), '1')"
        )
        with pytest.raises(KeyHeldError):
            await stores.jobs.insert_jobs([NewJob(SPEC, ARGS, key="k", body_hash="1")])


async def test_hints_take_a_way_past_the_pooler(schema: str, pooler: str) -> None:
    """With `listen_dsn` hints sent through the pooler are heard; without it the store polls and says so."""
    direct = shared_server().dsn
    past = stores_on(schema, None, dsn=pooler, pooled=True, listen_dsn=direct)
    async with past as listening, stores_on(schema, None, dsn=pooler, pooled=True) as polling:
        heard: list[str] = []
        await listening.notifier.subscribe(heard.append)
        polling.notifier.hint("queue:a")
        await wait_until(lambda: heard == ["queue:a"])
        await polling.jobs.insert_jobs([NewJob(SPEC, ARGS)])
        await wait_until(lambda: heard == ["queue:a", "queue:default"])
        assert any("poll-only" in note for note in (await polling.inspect.store_info()).notes)
        assert not any("poll-only" in note for note in (await listening.inspect.store_info()).notes)
