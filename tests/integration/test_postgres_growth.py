"""Growth: what runs all the time costs the same with a big table, and dead rows do not pile up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from headrace.model.job import JobState
from headrace.model.stats import Retention
from headrace.ports.stores import Stores
from headrace.stores.postgres import figures, inspect, open_postgres_stores, pruning, sweeps
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.queries import load_query
from tests.backends.server import PostgresServer
from tests.integration.postgres_setup import (
    claim,
    connection,
    database,
    done,
    enqueue,
    register,
    schema_stores,
)
from tests.waiting import wait_until

#: Ids rise with time, as those of callers do.
READY = """INSERT INTO "{schema}".jobs (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts,
    args)
  SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000000)::bigint), 16, '0')
      || lpad(to_hex(n), 16, '0'))::uuid, $2, now() + n * interval '1 microsecond',
    CASE $2 WHEN 'scheduled' THEN now() + interval '1 day' END, now(), $3, 'work', 5, 4, '{{"args":[1],"kwargs":{{}}}}'
  FROM generate_series(1, $1::int) AS n"""
FINISHED = """INSERT INTO "{schema}".finished_jobs (id, created_at, finished_at, attempt, priority, failures, crashes,
    max_attempts, at_most_once, cancel_requested, state, queue, task, args)
  SELECT gen_random_uuid(), now(), now() - interval '10 days' + n / 100 * interval '1 second', 1, 5, 0, 0, 4, false,
    false, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END, 'default', 'work', '{{}}'
  FROM generate_series(1, $1::int) AS n"""
VACUUMED = "SELECT autovacuum_count, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2"
UPDATED = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2"


async def load(schema: str, count: int, *, state: str = "ready", queue: str = "default") -> None:
    """Insert many jobs by one statement."""
    async with connection() as opened:
        await opened.execute(READY.format(schema=schema), count, state, queue)


async def ask(schema: str, query: str, *values: Any) -> Any:
    """Return the one value that a query on the tables of a schema gives."""
    async with connection() as opened:
        await opened.execute(f'SET search_path = "{schema}"')
        return await opened.fetchval(query, *values)


# Claims


async def pages_of_a_claim(opened: Database, session: UUID) -> int:
    """Return how many pages a claim of 100 touches as a worker's connection does it."""
    query = load_query("claim_jobs", opened.schema)
    values = {"now": "NULL", "session": f"'{session}'", "queue": "'default'", "limit": "100"}
    values |= {"after_at": "NULL", "after_id": "NULL"}
    link = await opened.connect()
    await link.execute(f"PREPARE growth AS {query.numbered}")
    given = ", ".join(values[name] for name in query.parameters)
    rows = await link.fetch(f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE growth ({given})")
    await link.close()
    numbers = dict(word.split("=") for word in rows[1][0].split() if "=" in word)
    return int(numbers.get("hit", 0)) + int(numbers.get("read", 0))


async def test_a_claim_touches_no_more_pages_in_a_big_table() -> None:
    """With 60,000 ready and 6,000 delayed jobs a claim reads at most 1.3 times the pages it reads with 1,000."""
    async with database(pinned=True) as opened, connection() as bare:
        session = uuid4()
        await bare.execute(
            f"""INSERT INTO "{opened.schema}".sessions (id, start_time, started_at, expires_at, pid, host,
              hostname, queues)
            VALUES ($1, 1, now(), now() + interval '1 hour', 1, 'h', 'h', '{{}}')""",
            session,
        )
        await load(opened.schema, 1_000)
        small = await pages_of_a_claim(opened, session)
        await load(opened.schema, 60_000)
        await load(opened.schema, 6_000, state="scheduled")
        big = await pages_of_a_claim(opened, session)
    assert small > 100
    assert big <= 1.3 * small


# Sweeps


async def test_a_search_finds_all_jobs_of_a_dead_session_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search through many slices, cut short by its limit again and again, takes back each job once, then ends."""
    monkeypatch.setattr(sweeps, "SLICE", 3)
    monkeypatch.setattr(sweeps, "PATROL", 0)
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        await load(schema, 2_000)
        lost = {job.id for job in await claim(stores, session, 500)}
        await stores.sessions.close_session(session)
        taken: list[UUID] = []
        while found := (await stores.jobs.rescue_jobs(limit=70)).released:
            assert len(found) <= 70
            taken += found
        assert len(taken) == len(lost) == 500
        assert set(taken) == lost
        assert await ask(schema, "SELECT searched_at >= expires_at AND NOT swept FROM sessions")


async def test_what_is_committed_late_is_found_by_the_next_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session is searched for again when the time since its end has doubled, and no more after a minute."""
    monkeypatch.setattr(sweeps, "PATROL", 0)
    late = "UPDATE jobs SET state = 'running', session = (SELECT id FROM sessions), started_at = now() RETURNING id"
    earlier = "UPDATE sessions SET expires_at = expires_at - $1::interval, searched_at = searched_at - $2::interval"
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        await enqueue(stores, 1)
        await stores.sessions.close_session(session)
        await ask(schema, "UPDATE sessions SET swept = false")
        await stores.jobs.rescue_jobs(limit=10)
        job_id = await ask(schema, late)
        await ask(schema, earlier, timedelta(seconds=20), timedelta(seconds=5))
        assert (await stores.jobs.rescue_jobs(limit=10)).released == ()
        await ask(schema, earlier, timedelta(seconds=20), timedelta(seconds=30))
        assert (await stores.jobs.rescue_jobs(limit=10)).released == (job_id,)
        assert not await ask(schema, "SELECT swept FROM sessions")
        await ask(schema, earlier, timedelta(seconds=90), timedelta(seconds=90))
        await stores.jobs.rescue_jobs(limit=10)
        assert await ask(schema, "SELECT swept FROM sessions")


async def test_patrols_come_by_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose session is not even known is found by the sweeps that have no reason, within one turn of them."""
    monkeypatch.setattr(sweeps, "PATROL", 5)
    async with schema_stores() as (schema, stores):
        await load(schema, 1_000)
        pages = await ask(schema, "SELECT pg_relation_size('jobs') / 8192")
        lost = await ask(
            schema,
            """UPDATE jobs SET state = 'running', session = gen_random_uuid(), started_at = now()
            WHERE id = (SELECT id FROM jobs ORDER BY ctid DESC LIMIT 1) RETURNING id""",
        )
        turns = [(await stores.jobs.rescue_jobs(limit=10)).released for _ in range(pages // 5 + 2)]
    assert pages > 10
    assert (lost,) in turns
    assert turns[0] == ()


async def test_overdue_attempts_are_found_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader looks at one slice of the table a round, and has been everywhere after as many rounds as slices."""
    monkeypatch.setattr(sweeps, "SLICE", 5)
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        term = await stores.sessions.lead(session, lease=timedelta(hours=1))
        assert term is not None
        await load(schema, 1_000)
        await ask(schema, "UPDATE jobs SET timeout = interval '1 second'")
        pages = await ask(schema, "SELECT pg_relation_size('jobs') / 8192")
        late = {job.id for job in await claim(stores, session, 300)}
        await ask(schema, "UPDATE jobs SET started_at = now() - interval '1 hour' WHERE state = 'running'")
        found: list[UUID] = []
        for _ in range(pages // 5 + 20):
            found += (await stores.jobs.fail_overdue_jobs(grace=timedelta(), limit=1_000, term=term)).released
    assert len(found) == 300
    assert set(found) == late


# Read models


async def test_figures_of_big_tables_are_estimates_that_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much is estimated within a third and named as such; what is rare is counted, and small tables are."""
    async with schema_stores() as (schema, stores):
        await load(schema, 6_000)
        await load(schema, 40, queue="rare")
        await load(schema, 30, state="scheduled", queue="rare")
        async with connection() as opened:
            await opened.execute(FINISHED.format(schema=schema), 5_000)
        exact = {stats.name: stats for stats in await stores.inspect.queue_stats()}
        # Of 60 pages a third is more than three deviations, of 20 less than two: which pages are read is not up to us.
        for name, pages in {"COUNTED_PAGES": 60, "SAMPLED_PAGES": 60, "BOUND": 500}.items():
            monkeypatch.setattr(figures, name, pages)
        guessed = {stats.name: stats for stats in await stores.inspect.queue_stats()}

    assert [stats.estimated for stats in exact.values()] == [(), ()]
    assert (exact["default"].ready, exact["default"].succeeded, exact["default"].failed) == (6_000, 4_900, 100)
    assert {"ready", "succeeded"} <= set(guessed["default"].estimated)
    assert guessed["default"].ready == pytest.approx(6_000, rel=1 / 3)
    assert guessed["default"].succeeded == pytest.approx(4_900, rel=1 / 3)
    assert "failed" not in guessed["default"].estimated
    assert guessed["default"].failed == 100
    assert not {"ready", "scheduled"} & set(guessed["rare"].estimated)
    assert (guessed["rare"].ready, guessed["rare"].scheduled) == (40, 30)
    ages = [stats["rare"].oldest_ready_age for stats in (exact, guessed)]
    assert None not in ages
    assert abs(ages[0] - ages[1]) < timedelta(seconds=30)


async def test_sessions_of_a_big_table_show_what_their_workers_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running jobs are counted while that is cheap; then a live session shows its last heartbeat, an ended one none."""
    monkeypatch.setattr(figures, "COUNTED_PAGES", 0)
    async with schema_stores() as (_, stores):
        session, ended = await register(stores), await register(stores)
        await enqueue(stores, 3)
        await claim(stores, session, 2)
        for each in (session, ended):
            await stores.sessions.renew_session(
                each, lease=timedelta(minutes=1), stats={"headrace.jobs.running": 7, "headrace.jobs.unacked": 2}
            )
        await stores.sessions.close_session(ended)
        running = {view.id: view.running for view in await stores.inspect.list_sessions()}
    assert running == {session: 9, ended: 0}


async def test_rare_jobs_are_listed_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits, runs or failed in a queue is listed though thousands of newer jobs of another lie before it."""
    monkeypatch.setattr(inspect, "WALK", 50)
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        await load(schema, 3, queue="rare")
        [failed] = await enqueue(stores, 1)
        await stores.jobs.complete_jobs(session, done(await claim(stores, session, 1), JobState.FAILED))
        running = UUID("00000000-0000-7000-8000-000000000001")  # what runs is older than what waits
        await enqueue(stores, 1)
        await claim(stores, session, 1)
        await ask(schema, "UPDATE jobs SET id = $1 WHERE state = 'running'", running)
        await load(schema, 2_000)
        async with connection() as opened:
            await opened.execute(FINISHED.format(schema=schema).replace("'failed'", "'succeeded'"), 2_000)
        rare = await stores.inspect.list_jobs(queue="rare")
        dead = await stores.inspect.list_jobs(state=JobState.FAILED)
        busy = await stores.inspect.list_jobs(state=JobState.RUNNING)
    assert [view.queue for view in rare] == ["rare"] * 3
    assert [view.id for view in dead] == [failed]
    assert [view.id for view in busy] == [running]


# Retention


async def test_pruning_works_in_slices() -> None:
    """Calls remove no more than their limit each, until nothing is left."""
    async with schema_stores() as (schema, stores), connection() as opened:
        await opened.execute(FINISHED.format(schema=schema), 20_000)
        # As after a while: what comes all at once is planned for as an empty table until it is analysed.
        await opened.execute(f'ANALYZE "{schema}".finished_jobs')
        kept = Retention(failed=timedelta(days=7))
        removed = [(await stores.jobs.prune_jobs(kept, limit=1_000)).removed["jobs"] for _ in range(21)]
        left = await ask(schema, "SELECT count(*) FROM finished_jobs")
    assert removed == [1_000] * 20 + [0]
    assert left == 0


async def test_pruning_passes_what_must_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices full of items of a batch that is not closed do not end a walk: what comes after them goes."""
    monkeypatch.setattr(pruning, "SEEN", 50)
    async with schema_stores() as (schema, stores), connection() as opened:
        await opened.execute(FINISHED.format(schema=schema), 1_000)
        young = timedelta(days=10) - timedelta(seconds=5)
        unclosed = "UPDATE finished_jobs SET batch_id = gen_random_uuid() WHERE finished_at < now() - $1::interval"
        await ask(schema, unclosed, young)
        stay = await ask(schema, "SELECT count(*) FROM finished_jobs WHERE batch_id IS NOT NULL")
        removed = (await stores.jobs.prune_jobs(Retention(failed=timedelta()), limit=5_000)).removed["jobs"]
    assert 300 < stay < 700
    assert removed == 1_000 - stay


async def test_pruning_blocks_neither_claims_nor_endings() -> None:
    """While a slice is removed and not committed, jobs come, are claimed and end; a held row is left for later."""
    async with schema_stores(lock_timeout=timedelta(seconds=1)) as (schema, stores), connection() as opened:
        await opened.execute(FINISHED.format(schema=schema), 300)
        session = await register(stores)
        held = await ask(schema, "SELECT id FROM finished_jobs WHERE state = 'succeeded' LIMIT 1")
        async with connection() as retrier:
            holding = retrier.transaction()
            await holding.start()
            await retrier.fetch(f'SELECT FROM "{schema}".finished_jobs WHERE id = $1 FOR UPDATE', held)
            query = load_query("prune_succeeded", schema)
            values = {
                "now": None,
                "queue": None,
                "retention": timedelta(days=1),
                "after": None,
                "slice": 500,
                "limit": 500,
            }
            removing = opened.transaction()
            await removing.start()
            [row] = await opened.fetch(query.numbered, *query.arguments(values))
            await enqueue(stores, 20)
            jobs = await claim(stores, session, 20)
            assert len(await stores.jobs.complete_jobs(session, done(jobs))) == 20
            await removing.commit()
            await holding.rollback()
        left = await ask(schema, "SELECT count(*) FROM finished_jobs WHERE finished_at < now() - interval '1 day'")
    assert (row["removed"], left) == (293, 7)


# Dead rows


@asynccontextmanager
async def eager_server() -> AsyncIterator[tuple[Stores, Any]]:
    """Open stores on a server of their own whose autovacuum looks each second instead of each minute."""
    server = PostgresServer()
    try:
        bare = await asyncpg.connect(server.dsn)
        await bare.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
        await bare.execute("SELECT pg_reload_conf()")
        stores = await open_postgres_stores(server.dsn, auto_migrate=True)
        yield stores, bare
        await stores.close()
        await bare.close()
    finally:
        server.remove()


async def test_dead_rows_are_removed_whatever_the_size_of_the_table() -> None:
    """Among 60,000 delayed jobs, 8,000 dead rows bring the vacuum, which a share of the table would not."""
    async with eager_server() as (stores, bare):
        session = await register(stores)
        await bare.execute(READY.format(schema="headrace"), 60_000, "scheduled", "default")
        await bare.execute("VACUUM ANALYZE headrace.jobs")

        async def cleaned() -> bool:
            row = await bare.fetchrow(VACUUMED, "headrace", "jobs")
            return row["autovacuum_count"] > 0 and row["n_dead_tup"] < 5_000

        for _ in range(8):
            await enqueue(stores, 500)
            await stores.jobs.complete_jobs(session, done(await claim(stores, session, 500)))
        await wait_until(cleaned, timedelta(seconds=60), message="autovacuum of jobs")


async def test_heartbeats_are_updates_in_place() -> None:
    """A thousand renewals write no index entry, and so leave nothing that only a vacuum removes.

    On a server of its own: a snapshot that another test keeps open would keep old rows, and so fill the page.
    """
    async with eager_server() as (stores, bare):
        session = await register(stores)
        stats = {f"headrace.counter_{n}": n for n in range(30)}
        for _ in range(1_000):
            await stores.sessions.renew_session(session, lease=timedelta(minutes=1), stats=stats)
            await stores.sessions.lead(session, lease=timedelta(minutes=1))
        # Connections tell of their counts when they close.
        await stores.close()
        for table in ("sessions", "leader"):
            row = await bare.fetchrow(UPDATED, "headrace", table)
            assert row["n_tup_upd"] >= 990
            assert row["n_tup_hot_upd"] >= 0.9 * row["n_tup_upd"]
