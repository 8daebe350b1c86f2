"""Races between connections: locks in one order, caps that hold, answers that are never computed from a stale view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.model.batch import BatchState, ItemPage, NewBatch
from headrace.model.errors import ConflictError, InvalidInputError, KeyHeldError
from headrace.model.job import CancelAnswer, Claim, JobSpec, JobState, NewJob
from headrace.model.limits import Gate
from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Transaction
from headrace.stores.postgres.queries import load_query
from headrace.stores.postgres.rows import claim_values
from tests.integration.postgres_setup import (
    ARGS,
    SPEC,
    admit,
    claim,
    connection,
    done,
    enqueue,
    register,
    schema_stores,
)
from tests.waiting import wait_until

CAPPED = JobSpec("capped", "gated", gate=Gate(caps=("task:one",)))


@asynccontextmanager
async def held(schema: str, table: str, ids: list[UUID]) -> AsyncIterator[Any]:
    """Hold rows of a table in an open transaction of another connection."""
    async with connection() as other:
        transaction = other.transaction()
        await transaction.start()
        await other.execute(f'SELECT FROM "{schema}"."{table}" WHERE id = ANY($1) FOR UPDATE', ids)
        yield transaction
        if other.is_in_transaction():
            await transaction.rollback()


async def lock_waits(schema: str, count: int = 1) -> None:
    """Wait until `count` statements on a schema wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 in query) > 0"
    async with connection() as opened:

        async def waiting() -> bool:
            return bool(await opened.fetchval(query, schema) >= count)

        await wait_until(waiting, message=f"{count} statements to wait for a lock")


async def test_claims_pass_over_rows_that_others_hold() -> None:
    """A row locked elsewhere neither blocks a claim nor is claimed."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        ids = sorted(await enqueue(stores, 3))
        async with held(schema, "jobs", ids[:1]):
            assert [job.id for job in await claim(stores, session)] == ids[1:]
        assert [job.id for job in await claim(stores, session)] == ids[:1]


async def test_many_claimers_share_jobs_exactly_once() -> None:
    """Eight claimers of 2,000 jobs, some behind a gate: together they get each job once."""
    async with schema_stores() as (_, stores):
        sessions = [await register(stores) for _ in range(8)]
        ids = await enqueue(stores, 1500) + await enqueue(stores, 500, CAPPED)
        found: list[UUID] = []

        async def drain(session: UUID) -> None:
            while jobs := [*await claim(stores, session, 37), *await admit(stores, session, 37)]:
                found.extend(job.id for job in jobs)

        await asyncio.gather(*(drain(session) for session in sessions))
        # A claimer may have seen nothing while another held the rows it looked at.
        await drain(sessions[0])
        assert sorted(found) == sorted(ids)


async def test_a_deadlock_is_tried_again_inside() -> None:
    """The server breaks a deadlock; both transactions end well and no caller sees it."""
    async with schema_stores() as (schema, stores), connection() as other:
        first, second = [await stores.batches.create_batch(NewBatch(SPEC), None) for _ in range(2)]
        hold = f'SELECT FROM "{schema}".batches WHERE id = $1 FOR UPDATE'
        transaction = other.transaction()
        await transaction.start()
        await other.execute("SET LOCAL deadlock_timeout = '10s'")  # so that the other side is the victim
        await other.execute(hold, second)
        turns = 0

        async def work(tx: Transaction) -> int:
            nonlocal turns
            turns += 1
            await tx.fetch("lock_batch", batch_id=first)
            await tx.fetch("lock_batch", batch_id=second)
            return turns

        inside: Any = stores.batches
        ours = asyncio.create_task(inside._database.run(work))
        await lock_waits(schema)
        await asyncio.wait_for(other.execute(hold, first), 20)
        await transaction.commit()
        assert await asyncio.wait_for(ours, 20) >= 2


async def test_endings_of_the_same_jobs_in_any_order_do_not_deadlock() -> None:
    """Completions, cancels, rescues and pruning hammer the same 300 rows: each job ends once, no error surfaces."""
    async with schema_stores(max_pool_size=16) as (schema, stores):
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * 300)
        alive, dead = await register(stores), await register(stores)
        jobs = await claim(stores, alive, 150) + await claim(stores, dead, 100)
        await stores.sessions.close_session(dead)
        by_session = {alive: jobs[:150], dead: jobs[150:]}
        accepted: list[UUID] = []

        async def complete(session: UUID, *, backwards: bool) -> None:
            part = by_session[session][::-1] if backwards else by_session[session]
            for start in range(0, len(part), 30):
                accepted.extend(await stores.jobs.complete_jobs(session, done(part[start : start + 30])))

        async def rescue() -> None:
            for _ in range(10):
                await stores.jobs.rescue_jobs(limit=20)

        async def settle() -> None:
            await stores.batches.cancel_batch(batch_id)
            for _ in range(10):
                await stores.batches.settle_cancelled(batch_id, limit=20)
                await stores.batches.close_batches([batch_id])

        turns = [complete(s, backwards=b) for s in (alive, dead) for b in (False, True)]
        await asyncio.gather(*turns, rescue(), settle(), rescue())
        while await stores.batches.settle_cancelled(batch_id, limit=100):
            pass
        await stores.batches.close_batches([batch_id])

        assert len(accepted) == len(set(accepted))
        async with connection() as opened:
            assert await opened.fetchval(f'SELECT count(*) FROM "{schema}".finished_jobs') == 300
        progress = await stores.inspect.batch_progress(batch_id)
        assert (progress.done, progress.running, progress.waiting) == (300, 0, 0)


async def test_a_cancel_that_meets_a_claim_takes_effect_once() -> None:
    """Cancel and claim of one job at the same moment: it is cancelled unrun, or runs and is asked to stop."""
    async with schema_stores() as (_, stores):
        session = await register(stores)
        answers = set()
        for _ in range(60):
            [job_id] = await enqueue(stores, 1)
            jobs, answer = await asyncio.gather(claim(stores, session), stores.control.cancel_job(job_id))
            view = await stores.inspect.get_job(job_id)
            assert view is not None
            if answer is CancelAnswer.CANCELLED:
                assert (jobs, view.state) == ([], JobState.CANCELLED)
            else:
                assert (answer, [job.id for job in jobs]) == (CancelAnswer.REQUESTED, [job_id])
                assert (view.state, view.cancel_requested) == (JobState.RUNNING, True)
            answers.add(answer)
        assert answers <= {CancelAnswer.CANCELLED, CancelAnswer.REQUESTED}


async def test_a_cancel_waits_for_a_claim_that_commits_late() -> None:
    """A claim holds the row when the cancel comes: the cancel waits for it and then asks the worker."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        [job_id] = await enqueue(stores, 1)
        query = load_query("claim_jobs", schema)
        async with connection() as other:
            transaction = other.transaction()
            await transaction.start()
            values = {"session": session, "now": None, **claim_values(Claim(session, "default", 1))}
            assert len(await other.fetch(query.numbered, *query.arguments(values))) == 1
            cancel = asyncio.create_task(stores.control.cancel_job(job_id))
            await lock_waits(schema)
            await transaction.commit()
            assert await cancel is CancelAnswer.REQUESTED


async def test_a_second_submitter_waits_for_the_first_and_gets_its_answer() -> None:
    """While a transaction that inserts a key is open, others wait: for its id if it commits, else for the key."""
    async with schema_stores() as (schema, stores):
        assert stores.foreign is not None
        for commits in (True, False):
            key = f"key-{commits}"
            first, second = (NewJob(SPEC, ARGS, key=key, body_hash="1") for _ in range(2))
            async with connection() as other:
                transaction = other.transaction()
                await transaction.start()
                await stores.foreign.insert_jobs_on(other, [first])
                waiting = asyncio.create_task(stores.jobs.insert_jobs([second]))
                await lock_waits(schema)
                await (transaction.commit() if commits else transaction.rollback())
            assert await waiting == [first.id if commits else second.id]


async def test_waiting_for_a_key_is_bounded() -> None:
    """A key held longer than the lock timeout is an error of its own that says what to do; a batch key likewise."""
    bounded = schema_stores(lock_timeout=timedelta(milliseconds=100))
    async with bounded as (schema, stores), connection() as other, other.transaction():
        await other.execute(
            f"""INSERT INTO "{schema}".idempotency_keys (scope, key, id, body_hash)
            SELECT s, 'k', gen_random_uuid(), '1' FROM unnest(ARRAY['job:work', 'batch:work']) AS s"""
        )
        with pytest.raises(KeyHeldError, match="Commit or roll back"):
            await stores.jobs.insert_jobs([NewJob(SPEC, ARGS, key="k", body_hash="1")])
        with pytest.raises(KeyHeldError, match="Commit or roll back"):
            await stores.batches.create_batch(NewBatch(SPEC, key="k", body_hash="1"), [ARGS])


async def test_submitters_of_the_same_keys_in_any_order_do_not_deadlock() -> None:
    """Twenty submits of the same 50 keys, forwards and backwards: one id per key, no error."""
    async with schema_stores(max_pool_size=20) as (_, stores):

        async def submit(turn: int) -> dict[str | None, UUID]:
            jobs = [NewJob(SPEC, ARGS, key=f"k{n}", body_hash="1") for n in range(50)][:: 1 if turn % 2 else -1]
            ids = await stores.jobs.insert_jobs(jobs)
            return {job.key: job_id for job, job_id in zip(jobs, ids, strict=True)}

        answers = await asyncio.gather(*(submit(turn) for turn in range(20)))
        assert all(answer == answers[0] for answer in answers)
        assert len(await stores.inspect.known_jobs(list(answers[0].values()))) == 50


async def test_concurrent_submits_of_one_batch_key_give_one_batch() -> None:
    """Ten submitters at once get the same batch, with its items once; one with other items gets the conflict."""
    async with schema_stores(max_pool_size=20) as (_, stores):
        news = [NewBatch(SPEC, key="review", body_hash="h") for _ in range(10)]
        ids = await asyncio.gather(*(stores.batches.create_batch(new, [ARGS] * 100) for new in news))
        assert len(set(ids)) == 1
        assert (await stores.inspect.batch_progress(ids[0])).waiting == 100
        assert len(await stores.inspect.list_batches()) == 1
        with pytest.raises(ConflictError, match="review"):
            await stores.batches.create_batch(NewBatch(SPEC, key="review", body_hash="other"), [ARGS])


async def test_the_last_completions_close_their_batch_once() -> None:
    """Two workers end the last items of a batch at the same moment, each tries to close it: one does, 40 times."""
    async with schema_stores() as (_, stores):
        session = await register(stores)
        callback = JobSpec("report", queue="reports")
        for _ in range(40):
            batch_id = await stores.batches.create_batch(NewBatch(SPEC, on_close=callback), [ARGS] * 2)
            jobs = await claim(stores, session)

            async def end(index: int, jobs: Any = jobs, batch_id: UUID = batch_id) -> int:
                await stores.jobs.complete_jobs(session, done([jobs[index]]))
                return len(await stores.batches.close_batches([batch_id]))

            assert sum(await asyncio.gather(end(0), end(1))) == 1
        assert len(await stores.inspect.list_jobs(queue="reports", limit=100)) == 40


async def test_a_closer_that_counted_before_a_retry_closes_nothing() -> None:
    """A retry opens a new round while a closer waits for the batch row: the closer's count is stale and is dropped."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS])
        await stores.jobs.complete_jobs(session, done(await claim(stores, session), JobState.FAILED))
        [failed] = await stores.inspect.list_jobs(state=JobState.FAILED)

        async with held(schema, "batches", [batch_id]) as holder:
            closer = asyncio.create_task(stores.batches.close_batches([batch_id]))
            await lock_waits(schema)
            retry = asyncio.create_task(stores.control.retry_job(failed.id))
            await lock_waits(schema, 2)
            await holder.rollback()
        await retry
        closed = await closer
        view = await stores.inspect.get_batch(batch_id)
        assert view is not None
        # Whoever came first: the retry runs, and its batch is not closed.
        assert (view.state, (await stores.inspect.batch_progress(batch_id)).waiting) == (BatchState.SEALED, 1)
        assert view.round == (2 if closed else 1)


async def test_a_close_whose_count_is_stale_is_refused() -> None:
    """The guard itself: the retry commits while the closer waits, and the closer closes nothing."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS])
        await stores.jobs.complete_jobs(session, done(await claim(stores, session), JobState.FAILED))
        [failed] = await stores.inspect.list_jobs(state=JobState.FAILED)
        async with held(schema, "batches", [batch_id]) as holder:
            closer = asyncio.create_task(stores.batches.close_batches([batch_id]))
            await lock_waits(schema)
            other = holder._connection
            for name, values in [
                ("note_change", {"batch_id": batch_id}),
                ("insert_retries", _one_retry(failed.id)),
            ]:
                query = load_query(name, schema)
                await other.execute(query.numbered, *query.arguments({**values, "now": None}))
            await holder.commit()
            assert await closer == []


def _one_retry(original: UUID) -> dict[str, Any]:
    from headrace.model.ids import uuid7
    from headrace.stores.postgres.rows import HEAD_STARTS

    return {"ids": [uuid7()], "originals": [original], "args": [None], "head_starts": HEAD_STARTS}


async def test_racing_retries_of_one_job_make_one_copy() -> None:
    """Ten retries of a dead letter, by id, by queue and by batch at once: one retry, which all of them name."""
    async with schema_stores(max_pool_size=20) as (_, stores):
        session = await register(stores)
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS])
        await stores.jobs.complete_jobs(session, done(await claim(stores, session), JobState.FAILED))
        await stores.batches.close_batches([batch_id])
        [failed] = await stores.inspect.list_jobs(state=JobState.FAILED)

        async def by_batch() -> None:
            with_conflict = await asyncio.gather(stores.batches.retry_failed(batch_id), return_exceptions=True)
            assert with_conflict[0] in (0, 1) or isinstance(with_conflict[0], ConflictError)

        ids = await asyncio.gather(
            *(stores.control.retry_job(failed.id) for _ in range(5)),
            *(stores.control.retry_queue("default", limit=10) for _ in range(3)),
            *(by_batch() for _ in range(2)),
        )
        [copy] = await stores.inspect.list_jobs(state=JobState.READY)
        assert set(ids[:5]) == {copy.id}
        assert copy.retry_of == failed.id
        view = await stores.inspect.get_batch(batch_id)
        assert view is not None
        assert view.round == 2


async def test_a_cursor_misses_nothing_when_transactions_commit_out_of_order() -> None:
    """An older transaction records an item after newer ones were read: reading on returns it, and not them."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * 3)
        early, late, last = await claim(stores, session)
        await stores.jobs.complete_jobs(session, done([early]))
        query = load_query("finish_jobs", schema)
        async with connection() as other:
            transaction = other.transaction()
            await transaction.start()
            await other.fetch(query.numbered, *query.arguments(_finishing(session, late)))
            await stores.jobs.complete_jobs(session, done([last]))
            page = await stores.inspect.read_items(batch_id, cursor="", limit=10)
            assert [item.index for item in page.items] == [0, 2]
            again = await stores.inspect.read_items(batch_id, cursor=page.cursor, limit=10)
            assert again == ItemPage((), page.cursor)
            from_item = await stores.inspect.read_items(batch_id, cursor=page.items[1].cursor, limit=10)
            assert [item.index for item in from_item.items] == [2]
            await transaction.commit()
        rest = await stores.inspect.read_items(batch_id, cursor=again.cursor, limit=10)
        assert [item.index for item in rest.items] == [1]
        end = await stores.inspect.read_items(batch_id, cursor=rest.cursor, limit=10)
        assert (end.items, end.cursor) == ((), rest.cursor)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_pages_are_whole_whatever_transactions_are_open(limit: int) -> None:
    """Each item comes once, in pages of any size, while transactions that recorded some commit one after another."""
    count, seen, cursor = 12, list[int](), ""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), [ARGS] * count)
        jobs = await claim(stores, session, count)
        query = load_query("finish_jobs", schema)
        async with AsyncExitStack() as stack:
            others = [await stack.enter_async_context(connection()) for _ in range(count // 3)]
            opened = [other.transaction() for other in others]
            for place, (other, transaction) in enumerate(zip(others, opened, strict=True)):
                await transaction.start()
                one, two, three = jobs[3 * place : 3 * place + 3]
                await other.fetch(query.numbered, *query.arguments(_finishing(session, one)))
                await stores.jobs.complete_jobs(session, done([two, three]))
            for transaction in [None, *opened[::2], *opened[1::2]]:
                if transaction is not None:
                    await transaction.commit()
                page = await stores.inspect.read_items(batch_id, cursor=cursor, limit=limit)
                seen, cursor = seen + [item.index for item in page.items], page.cursor
        while (page := await stores.inspect.read_items(batch_id, cursor=cursor, limit=limit)).items:
            assert len(page.items) <= limit
            seen, cursor = seen + [item.index for item in page.items], page.cursor
    assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("snapshots", ["5:4:/", "/5:9:4", "0:9:/", "5:9:7,6/", "5:9:9/", "5:9/", ""])
async def test_a_cursor_with_a_snapshot_that_is_none_is_refused(snapshots: str) -> None:
    """The server is not asked about it."""
    async with schema_stores() as (_, stores):
        with pytest.raises(InvalidInputError, match="cursor"):
            await stores.inspect.read_items(uuid4(), cursor=f"1:2/{snapshots}", limit=10)


def _finishing(session: UUID, job: Any) -> dict[str, Any]:
    one = {"ids": [job.id], "attempts": [job.attempt], "results": [None], "endings": [None]}
    return {"session": session, **one, "now": None, **claim_values(Claim(session, "", 0))}


async def test_appending_holds_off_sealing_and_sealing_appending() -> None:
    """A slice that is being appended is part of the total; after the seal no slice gets in."""
    async with schema_stores() as (schema, stores):
        batch_id = await stores.batches.create_batch(NewBatch(SPEC), None)
        async with connection() as other:
            transaction = other.transaction()
            await transaction.start()
            await other.execute(f'SELECT FROM "{schema}".batches WHERE id = $1 FOR SHARE', batch_id)
            seal = asyncio.create_task(stores.batches.seal_batch(batch_id, total=1))
            await lock_waits(schema)
            await other.execute(f"INSERT INTO \"{schema}\".batch_slices VALUES ($1, 0, 1, 'hash', now())", batch_id)
            await transaction.commit()
            await seal
        view = await stores.inspect.get_batch(batch_id)
        assert view is not None
        assert (view.state, view.total) == (BatchState.SEALED, 1)


async def test_one_of_many_candidates_leads() -> None:
    """Twenty sessions want to lead at once: one does; when it resigns another begins the next term."""
    async with schema_stores(max_pool_size=20) as (_, stores):
        sessions = [await register(stores) for _ in range(20)]
        lease = timedelta(seconds=60)
        terms = await asyncio.gather(*(stores.sessions.lead(session, lease=lease) for session in sessions))
        [term] = [term for term in terms if term is not None]
        assert term.term == 1
        await stores.sessions.resign(term)
        following = await stores.sessions.lead(sessions[0], lease=lease)
        assert following == LeaderTerm(sessions[0], 2)
