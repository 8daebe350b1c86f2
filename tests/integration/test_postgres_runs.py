"""Races of runs: siblings that end together, signals that cross parking, cancels beside what still ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace.model.job import Claim, ClaimedJob, Completion, JobSpec, JobState, NewJob, Park
from headrace.model.run import (
    NODE_SPEC,
    NODES_QUEUE,
    Arrival,
    Effects,
    Level,
    NewRun,
    NodeEnding,
    NodeState,
    RunState,
)
from headrace.ports.stores import Stores
from tests.integration.postgres_setup import ARGS, connection, register, schema_stores
from tests.integration.test_postgres_lock_order import cross, deadlocks
from tests.waiting import wait_until

#: Connections that complete at the same time: pools of so many.
RIVALS = 32
CHILD = JobSpec("child", "children")


def new_run(*jobs: NewJob, run_id: UUID | None = None) -> NewRun:
    """Return a run whose graph does not matter."""
    run = NewRun("flow", 1, "hash", "{}", "null", "{}", Level.NODE, "asked", jobs)
    return run if run_id is None else NewRun(*_fields(run), id=run_id)


def _fields(run: NewRun) -> tuple[Any, ...]:
    return (
        run.workflow, run.version, run.snapshot, run.graph, run.input, run.context, run.level, run.reason, run.jobs,
    )  # fmt: skip


async def start(stores: Stores, names: list[str]) -> UUID:
    """Start a run with a job of the default queue for each node."""
    run = new_run()
    jobs = tuple(NewJob(JobSpec("work"), ARGS, run_id=run.id, node=name) for name in names)
    return await stores.runs.start_run(new_run(*jobs, run_id=run.id))


def ended(job: ClaimedJob, *arrivals: Arrival, **facts: Any) -> Completion:
    """Return the end of a node's job with what it arrives at."""
    assert job.run_id is not None
    assert job.node is not None
    endings = (NodeEnding(job.node, NodeState.SUCCESS, output="1"),)
    effects = Effects(job.run_id, endings, arrivals, **facts)
    return Completion(job.id, job.attempt, JobState.SUCCEEDED, result="1", effects=effects)


def arrival(run_id: UUID, path: str, total: int, need: int, *, fired: int = 1) -> Arrival:
    """Return an arrival that offers a job of its own, as all siblings do."""
    return Arrival(path, total, need, NewJob(CHILD, ARGS, run_id=run_id, node=path), fired=fired)


async def claim_all(stores: Stores, session: UUID, queue: str = "default") -> list[ClaimedJob]:
    """Claim everything that is ready."""
    return await stores.jobs.claim_jobs(Claim(session, queue, 100_000))


async def sums(schema: str) -> dict[str, tuple[int, int]]:
    """Return what is left and what fired of each path."""
    async with connection() as opened:
        rows = await opened.fetch(f'SELECT path, remaining, fired FROM "{schema}".run_joins')
    return {row["path"]: (row["remaining"], row["fired"]) for row in rows}


@pytest.mark.parametrize("together", [1, 7])
async def test_siblings_that_end_together_start_each_child_once(together: int) -> None:
    """Of joins of all, any and some, completed over many connections: every child once, no sum lost, no deadlock."""
    count = 320
    # For each path: how many are needed, how many fire, and the queue of its job.
    joins = {
        "all": (count, count, "children"),
        "any": (1, count, "children"),
        "some": (count // 2, count, "children"),
        "few": (count // 2, count // 2 - 1, NODES_QUEUE),
        "none": (1, 0, NODES_QUEUE),
    }
    before = deadlocks()
    async with schema_stores(max_pool_size=2 * RIVALS + 2) as (schema, stores):
        session = await register(stores)
        run_id = await start(stores, [f"n{number}" for number in range(count)])
        jobs = await claim_all(stores, session)
        assert len(jobs) == count
        completions = []
        for number, job in enumerate(jobs):
            # Every other one names the paths in another order: the store must not lock by it.
            paths = list(joins)[:: 1 if number % 2 else -1]
            arrivals = [
                arrival(run_id, path, count, joins[path][0], fired=int(number < joins[path][1])) for path in paths
            ]
            completions.append(ended(job, *arrivals))
        groups = [completions[number : number + together] for number in range(0, count, together)]
        answers = await asyncio.gather(*(stores.jobs.complete_jobs(session, group) for group in groups))

        live = await stores.runs.live_nodes(run_id)
        found = await sums(schema)
        nodes = await stores.runs.read_nodes(run_id)
    assert sorted(job_id for answer in answers for job_id in answer) == sorted(job.id for job in jobs)
    assert Counter((node.node, node.queue) for node in live) == Counter(
        {(path, queue): 1 for path, (_, _, queue) in joins.items()}
    )
    assert found == {path: (0, fires) for path, (_, fires, _) in joins.items()}
    assert len(nodes) == count
    assert deadlocks() == before


async def test_completions_lock_sums_in_one_order() -> None:
    """Ends of two nodes that name the same paths in opposite orders take their rows by run and path."""
    paths = [f"k{number}" for number in range(9)]
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        run_id = await start(stores, ["first", "there", "back"])
        jobs = {job.node: job for job in await claim_all(stores, session)}
        arrivals = [arrival(run_id, path, 3, 3) for path in paths]
        await stores.jobs.complete_jobs(session, [ended(jobs["first"], *arrivals)])

        async def end(direction: int) -> object:
            job = jobs["there" if direction == 1 else "back"]
            return await stores.jobs.complete_jobs(session, [ended(job, *arrivals[::direction])])

        await cross(schema, 'SELECT FROM "{schema}".run_joins WHERE path = $1 FOR UPDATE', "k4", end)
        assert await sums(schema) == dict.fromkeys(paths, (0, 3))


async def test_two_of_one_run_at_the_same_instant_lose_no_arrival() -> None:
    """The last two of a join wait for one another at its row, and the second one decides: a thousand times."""
    rounds = 250
    async with schema_stores(max_pool_size=16) as (_, stores):
        session = await register(stores)
        for _ in range(4):
            runs = await asyncio.gather(*(start(stores, ["a", "b"]) for _ in range(rounds)))
            jobs = await claim_all(stores, session)
            ends = [ended(job, arrival(job.run_id, "c", 2, 2)) for job in jobs if job.run_id]
            await asyncio.gather(*(stores.jobs.complete_jobs(session, [end]) for end in ends))
            children = Counter(job.run_id for job in await claim_all(stores, session, "children"))
            assert children == Counter(dict.fromkeys(runs, 1))


async def test_a_signal_that_crosses_parking_wakes_the_job() -> None:
    """Thousands of jobs park while their signals are sent: none is left behind, whichever came first."""
    count = 2_000
    async with schema_stores(max_pool_size=24) as (_, stores):
        session = await register(stores)
        await stores.jobs.insert_jobs([NewJob(JobSpec("work"), ARGS) for _ in range(count)])
        jobs = await claim_all(stores, session)

        async def park(number: int) -> None:
            group = [
                Completion(job.id, job.attempt, JobState.PARKED, park=Park(f"k{place}"))
                for place, job in enumerate(jobs[number : number + 20], number)
            ]
            assert len(await stores.jobs.complete_jobs(session, group)) == 20

        async def send(number: int) -> None:
            for place in range(number + 19, number - 1, -1):
                assert await stores.signals.send_signal(f"k{place}", "1")

        starts = range(0, count, 20)
        await asyncio.gather(*(act(number) for number in starts for act in (park, send)))
        woken = await claim_all(stores, session)
    assert {job.id for job in woken} == {job.id for job in jobs}
    assert {job.attempt for job in woken} == {2}


async def test_a_park_waits_for_a_signal_that_is_being_sent() -> None:
    """A signal whose transaction is open when the job parks: the job is ready at once."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        [job_id] = await stores.jobs.insert_jobs([NewJob(JobSpec("work"), ARGS)])
        [job] = await claim_all(stores, session)
        async with connection() as other:
            transaction = other.transaction()
            await transaction.start()
            await other.execute(
                f'INSERT INTO "{schema}".signals (key, payload, sent_at, created_at) VALUES ($1, $2, now(), now())',
                "go",
                "7",
            )
            parking = asyncio.create_task(
                stores.jobs.complete_jobs(session, [Completion(job.id, 1, JobState.PARKED, park=Park("go"))])
            )
            await _lock_waits(schema)
            await transaction.commit()
        assert await parking == [job_id]
        assert [again.id for again in await claim_all(stores, session)] == [job_id]
        assert await stores.signals.read_signal("go") == "7"


async def test_a_signal_waits_for_a_job_that_is_being_parked() -> None:
    """A park whose transaction is open when its signal is sent: the job is woken."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        [job_id] = await stores.jobs.insert_jobs([NewJob(JobSpec("work"), ARGS)])
        await claim_all(stores, session)
        async with connection() as other:
            transaction = other.transaction()
            await transaction.start()
            await other.execute(f'INSERT INTO "{schema}".signals (key, created_at) VALUES ($1, now())', "go")
            await other.execute(
                f"""UPDATE "{schema}".jobs SET state = 'parked', parked_on = $2, session = NULL, started_at = NULL
                WHERE id = $1""",
                job_id,
                "go",
            )
            sending = asyncio.create_task(stores.signals.send_signal("go", "7"))
            await _lock_waits(schema)
            await transaction.commit()
        assert await sending
        assert [again.id for again in await claim_all(stores, session)] == [job_id]


async def test_what_ends_beside_a_cancel_leaves_nothing_behind() -> None:
    """Chains that go on while their runs are cancelled and swept: each run ends, and no job of it lives on."""
    async with schema_stores(max_pool_size=24) as (_, stores):
        session = await register(stores)
        runs = await asyncio.gather(*(start(stores, ["n0"]) for _ in range(40)))
        going = True

        async def work() -> None:
            while going:
                jobs = await stores.jobs.claim_jobs(Claim(session, "default", 8))
                ends = []
                for job in jobs:
                    number = int((job.node or "n0")[1:]) + 1
                    following = NewJob(JobSpec("work"), ARGS, run_id=job.run_id, node=f"n{number}")
                    ends.append(ended(job, jobs=(following,)))
                await stores.jobs.complete_jobs(session, ends)

        workers = [asyncio.create_task(work()) for _ in range(6)]
        swept: list[UUID] = []
        await asyncio.gather(*(stores.runs.cancel_run(run_id) for run_id in runs))

        async def over() -> bool:
            ended, _ = await stores.runs.sweep_runs(limit=10)
            swept.extend(ended)
            return len(swept) == len(runs)

        await wait_until(over, message="all runs to end")
        going = False
        await asyncio.gather(*workers)
        assert sorted(swept) == sorted(runs)
        for run_id in runs:
            assert await stores.runs.live_nodes(run_id) == []
        views = await stores.runs.final_runs(runs)
        assert {view.state for view in views.values()} == {RunState.CANCELLED}
        assert await stores.runs.unsettled_jobs(limit=10) == []


async def test_many_settlers_apply_each_job_once() -> None:
    """Processes that settle the same jobs at the same time: their effects are applied once."""
    count, before = 50, deadlocks()
    async with schema_stores(max_pool_size=24) as (schema, stores):
        session = await register(stores)
        run_id = await start(stores, [f"n{number}" for number in range(count)])
        jobs = await claim_all(stores, session)
        await stores.jobs.complete_jobs(session, [Completion(job.id, job.attempt, JobState.CANCELLED) for job in jobs])
        unsettled = await stores.runs.unsettled_jobs(limit=1_000)
        assert {each.job_id for each in unsettled} == {job.id for job in jobs}

        async def settle(direction: int) -> list[UUID]:
            settled = [
                (
                    each.job_id,
                    Effects(
                        run_id,
                        (NodeEnding(each.node or "", NodeState.CANCELLED),),
                        (arrival(run_id, "all", count, 1, fired=0),),
                    ),
                )
                for each in unsettled[::direction]
            ]
            return await stores.runs.settle_jobs(settled)

        answers = await asyncio.gather(*(settle(1 if number % 2 else -1) for number in range(12)))
        [live] = await stores.runs.live_nodes(run_id)
        found = await sums(schema)
    assert sorted(job_id for answer in answers for job_id in answer) == sorted(job.id for job in jobs)
    assert (live.node, live.queue) == ("all", NODE_SPEC.queue)
    assert found == {"all": (0, 0)}
    assert deadlocks() == before


async def test_starts_with_one_key_make_one_run() -> None:
    """Rivals that start a run under the same key: one is stored, with its jobs, and all are told its id."""
    async with schema_stores(max_pool_size=24) as (_, stores):

        async def begin() -> UUID:
            run = NewRun(*_fields(new_run(NewJob(CHILD, ARGS))), key="order-1", body_hash="b")
            return await stores.runs.start_run(run)

        ids = set(await asyncio.gather(*(begin() for _ in range(16))))
        session = await register(stores)
        assert len(ids) == 1
        assert len(await stores.runs.list_runs()) == 1
        assert len(await claim_all(stores, session, "children")) == 1


async def test_a_start_beside_a_prune_keeps_its_graph() -> None:
    """Runs that start while the last ones of their graph are pruned: every graph can be loaded."""
    async with schema_stores(max_pool_size=16) as (schema, stores):
        for _ in range(30):
            first = await stores.runs.start_run(new_run())
            async with connection() as opened:
                await opened.execute(
                    f"""UPDATE "{schema}".runs SET state = 'failed', finished_at = now() WHERE id = $1""", first
                )
            pruning = stores.runs.prune_runs(older_than=timedelta(), limit=10)
            _, second = await asyncio.gather(pruning, stores.runs.start_run(new_run()))
            assert await stores.runs.load_graph("hash") == "{}"
            async with connection() as opened:
                await opened.execute(f'DELETE FROM "{schema}".runs WHERE id = $1', second)


async def test_a_graph_that_a_start_shares_is_not_pruned_before_it_is_seen() -> None:
    """A start that is not committed yet, while the last run of its graph is pruned: its graph can be loaded."""
    async with schema_stores() as (schema, stores):
        first = await stores.runs.start_run(new_run())
        async with connection() as other:
            await other.execute(
                f"""UPDATE "{schema}".runs SET state = 'failed', finished_at = now() WHERE id = $1""", first
            )
            transaction = other.transaction()
            await transaction.start()
            await other.execute(f'LOCK TABLE "{schema}".jobs IN SHARE MODE')
            starting = asyncio.create_task(stores.runs.start_run(new_run(NewJob(CHILD, ARGS))))
            await _lock_waits(schema)
            assert await stores.runs.prune_runs(older_than=timedelta(), limit=10) == 1
            await transaction.commit()
        await starting
        assert await stores.runs.load_graph("hash") == "{}"


async def _lock_waits(schema: str) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 in query) > 0"
    async with connection() as opened:

        async def waiting() -> bool:
            return bool(await opened.fetchval(query, schema) >= 1)

        await wait_until(waiting, message="a statement to wait for a lock")
