"""Outbox: events go in with the end of a job or node, or with the caller's transaction, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from headrace.model.errors import FenceLostError, InvalidInputError
from headrace.model.event import Outgoing
from headrace.model.job import Claim, ClaimedJob, Completion, JobState
from headrace.model.run import Effects, Level, NodeEnding
from headrace.ports.foreign_intake import ForeignIntake
from tests.backends import server
from tests.conformance.events import Events, as_stored, row
from tests.conformance.runs import Runs, success
from tests.conformance.scenario import Scenario
from tests.waiting import wait_until

Complete = Callable[[Scenario, UUID, list[Completion]], Awaitable[list[UUID]]]


async def complete(on: Scenario, session: UUID, done: list[Completion]) -> list[UUID]:
    """Complete jobs."""
    return await on.stores.jobs.complete_jobs(session, done)


async def exchange(on: Scenario, session: UUID, done: list[Completion]) -> list[UUID]:
    """Complete jobs and claim."""
    accepted, _ = await on.stores.jobs.exchange_jobs(session, done, Claim(session, "default", 1))
    return accepted


WAYS = pytest.mark.parametrize("complete", [complete, exchange])


def ending(job: ClaimedJob, *events: Outgoing, state: JobState = JobState.SUCCEEDED, attempt: int = 0) -> Completion:
    """Return how a job ends, with its events."""
    return Completion(job.id, attempt or job.attempt, state, events=events)


@WAYS
async def test_events_leave_with_the_success_of_their_job(on: Scenario, events: Events, complete: Complete) -> None:
    """In their order, as they were given, among jobs without any; the relay is told."""
    session = await on.worker()
    await on.enqueue(3)
    first, plain, second = await on.claim(session)
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    rows = [row(number, correlation_id="c") for number in range(3)]
    done = [ending(first, *rows[:2]), ending(plain), ending(second, rows[2])]

    assert sorted(await complete(on, session, done)) == sorted([first.id, plain.id, second.id])
    waiting = [waiting.outgoing for waiting in await events.outbox.waiting_events(limit=10)]
    assert waiting == [as_stored(one, on.clock.now()) for one in rows]
    assert await events.logged() == [0, 1, 2]
    assert set(await on.states([first.id, plain.id, second.id])) == {JobState.SUCCEEDED}
    await wait_until(lambda: "events" in heard)


@WAYS
async def test_of_jobs_that_were_not_ended_nothing_leaves(on: Scenario, events: Events, complete: Complete) -> None:
    """Another attempt's, another session's, and one that has ended: only what was ended now is told."""
    session = await on.worker()
    _, mine = await on.start(session)
    _, other = await on.start()
    _, ended = await on.start(session)
    await on.end(session, ended)
    done = [ending(mine, row(1), attempt=2), ending(other, row(2)), ending(ended, row(3))]
    assert await complete(on, session, done) == []
    assert (await events.waiting(), await events.logged()) == ([], [])

    assert await complete(on, session, [*done[1:], ending(mine, row(4))]) == [mine.id]
    assert (await events.waiting(), await events.logged()) == ([4], [4])


@WAYS
async def test_events_are_told_once(on: Scenario, events: Events, complete: Complete) -> None:
    """Completing again, after an answer was lost, adds nothing."""
    session, job = await on.start()
    done = [ending(job, row(1))]

    assert [await complete(on, session, done) for _ in range(2)] == [[job.id], []]
    assert await events.waiting() == [1]


@WAYS
@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED, JobState.READY, JobState.SCHEDULED])
async def test_only_a_success_tells(on: Scenario, events: Events, complete: Complete, state: JobState) -> None:
    """What failed, was cancelled or goes on has not happened."""
    session, job = await on.start()

    assert await complete(on, session, [ending(job, row(1), state=state)]) == [job.id]
    assert (await events.waiting(), await events.logged()) == ([], [])


@WAYS
async def test_events_leave_with_the_success_of_a_node(
    on: Scenario, events: Events, runs: Runs, complete: Complete
) -> None:
    """Those of the completion, once; those of the endings within its effects are the same, and not told again."""
    run_id, [job] = await runs.begin("a")
    out = row(1)
    effects = Effects(run_id, (replace(success("a"), events=(out, row(2))),))
    done = replace(ending(job, out), effects=effects)

    assert await complete(on, await runs.session(), [done]) == [job.id]
    assert await events.waiting() == [1]
    assert await runs.store.read_nodes(run_id) == [replace(success("a"), finished_at=on.clock.now())]


async def save(runs: Runs, job: ClaimedJob, *endings: NodeEnding, attempt: int = 1) -> None:
    """Keep endings under the fence of the job of a whole run."""
    assert job.run_id is not None
    await runs.store.save_nodes(job.run_id, endings, job_id=job.id, attempt=attempt, session=await runs.session())


async def test_events_leave_with_the_endings_that_are_kept(on: Scenario, events: Events, runs: Runs) -> None:
    """Of each path those of its first ending; the endings are read without them."""
    run_id, [job] = await runs.begin(None, level=Level.WORKFLOW)
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await save(runs, job, replace(success("a"), events=(row("a1"), row("a2"))), success("b"))
    await wait_until(lambda: "events" in heard)
    await save(runs, job, replace(success("a"), events=(row("a3"),)), replace(success("c"), events=(row("c1"),)))
    await save(runs, job, replace(success("b"), events=(row("b1"),)))

    assert await events.waiting() == await events.logged() == ["a1", "a2", "c1"]
    endings = await runs.store.read_nodes(run_id)
    assert [(end.path, end.events) for end in endings] == [("a", ()), ("b", ()), ("c", ())]


async def test_of_endings_that_are_not_kept_nothing_leaves(events: Events, runs: Runs) -> None:
    """The fence is lost: neither ending nor event."""
    run_id, [job] = await runs.begin(None, level=Level.WORKFLOW)

    with pytest.raises(FenceLostError):
        await save(runs, job, replace(success("a"), events=(row(1),)), attempt=2)
    assert (await events.logged(), await runs.store.read_nodes(run_id)) == ([], [])


@pytest.fixture
def foreign(on: Scenario, events: Events) -> ForeignIntake:
    """Return the port that writes on the caller's connection."""
    assert events.stores is on.stores.events
    if on.stores.foreign is None:
        pytest.skip("this store is nobody else's database")
    return on.stores.foreign


@pytest.fixture
async def connection(foreign: ForeignIntake) -> AsyncIterator[asyncpg.Connection]:
    """Open a connection of the caller's own."""
    assert foreign is not None
    opened = await asyncpg.connect(server.shared_server().dsn)
    yield opened
    await opened.close()


async def test_what_commits_late_is_not_missed(
    on: Scenario, events: Events, foreign: ForeignIntake, connection: asyncpg.Connection
) -> None:
    """Rows put in later are published and gone before an early writer commits: then its rows are there, all of them."""
    early = [row(number, key="late") for number in range(3)]
    transaction = connection.transaction()
    await transaction.start()
    await foreign.insert_events_on(connection, early)
    for number in range(3):
        published = await events.put(row(["later", number]))
        assert await events.waiting() == [["later", number]]
        await events.outbox.mark_published(published)
    await transaction.commit()

    waiting = [waiting.outgoing for waiting in await events.outbox.waiting_events(limit=10)]
    assert waiting == [as_stored(one, on.clock.now()) for one in early]
    assert len(await events.logged()) == 6


async def test_what_is_rolled_back_never_was(
    events: Events, foreign: ForeignIntake, connection: asyncpg.Connection
) -> None:
    """Neither in the outbox nor in the log, and its id is free again."""
    out = row(1)
    transaction = connection.transaction()
    await transaction.start()
    await foreign.insert_events_on(connection, [out, row(2)])
    await transaction.rollback()
    assert (await events.waiting(), await events.logged()) == ([], [])

    await foreign.insert_events_on(connection, [out])
    assert await events.waiting() == [1]


async def test_events_of_the_callers_transaction_leave_in_their_order(
    events: Events, foreign: ForeignIntake, connection: asyncpg.Connection
) -> None:
    """Over several calls; a known id changes nothing there either."""
    known = row(0)
    await events.put(known)
    async with connection.transaction():
        await foreign.insert_events_on(connection, [row(1), known, row(2)])
        await foreign.insert_events_on(connection, [row(3)])

    assert await events.waiting() == [0, 1, 2, 3]


async def test_what_cannot_be_put_in_is_said(
    events: Events, foreign: ForeignIntake, connection: asyncpg.Connection
) -> None:
    """A connection of another kind, and an event whose id is none of ours; the transaction can go on."""
    async with connection.transaction():
        with pytest.raises(InvalidInputError):
            await foreign.insert_events_on(connection, [row(1), row(2, id=f"x{uuid4()}")])
        with pytest.raises(InvalidInputError):
            await foreign.insert_events_on(object(), [row(3)])
        await foreign.insert_events_on(connection, [row(4)])

    assert await events.waiting() == [4]
