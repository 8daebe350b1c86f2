"""Every write of a leader names its term, and without a current one it changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.model.batch import BatchState
from headrace.model.job import JobState
from headrace.model.session import LeaderTerm
from headrace.model.stats import Retention
from tests.conformance.scenario import DAY, SECOND, Scenario, part

NO_TIME = timedelta()
NOTHING_KEPT = Retention(NO_TIME, NO_TIME, NO_TIME, NO_TIME)

Duty = Callable[[Scenario, LeaderTerm], Awaitable[object]]


async def sweep_overdue(on: Scenario, term: LeaderTerm) -> object:
    """End attempts that ran too long."""
    return await on.stores.jobs.fail_overdue_jobs(grace=NO_TIME, limit=10, term=term)


async def sweep_batches(on: Scenario, term: LeaderTerm) -> object:
    """Close, settle and abandon."""
    return await on.stores.batches.sweep_batches(term=term, seal_timeout=NO_TIME, limit=10)


async def prune(on: Scenario, term: LeaderTerm) -> object:
    """Remove everything that is over."""
    return await on.stores.jobs.prune_jobs(NOTHING_KEPT, limit=10, term=term)


async def work_for_a_leader(on: Scenario) -> Callable[[], Awaitable[list[object]]]:
    """Leave something to every duty of a leader, and return how to read it."""
    session = await on.worker(lease=DAY)
    cancelled, opened = await on.batch(1), await on.open_batch()
    await on.stores.batches.cancel_batch(cancelled)
    done = await on.batch(1)
    await on.work_off(session, [JobState.SUCCEEDED])
    await on.stores.batches.append_slice(part(opened, 0, 1))
    await on.end(*await on.start(session, queue="other"))
    _, late = await on.start(session, queue="slow", timeout=SECOND)
    on.clock.advance(2 * SECOND)

    async def read() -> list[object]:
        batches = [await on.stores.inspect.get_batch(batch_id) for batch_id in (done, cancelled, opened)]
        return [await on.stores.inspect.list_jobs(limit=100), batches, await on.job(late.id)]

    return read


async def a_term_of_before(on: Scenario) -> LeaderTerm:
    """Return the former term of a session that leads again."""
    former = await on.term(SECOND)
    on.clock.advance(SECOND)
    current = await on.stores.sessions.lead(former.session, lease=DAY)
    assert current is not None
    assert current.term > former.term
    return former


async def a_term_of_someone_else(on: Scenario) -> LeaderTerm:
    """Return the current number under another session."""
    return replace(await on.term(DAY), session=uuid4())


async def a_term_that_ended(on: Scenario) -> LeaderTerm:
    """Return a term whose lease ends now, while nobody follows."""
    term = await on.term(SECOND)
    on.clock.advance(SECOND)
    return term


@pytest.mark.parametrize("duty", [sweep_overdue, sweep_batches, prune])
@pytest.mark.parametrize("false_term", [a_term_of_before, a_term_of_someone_else, a_term_that_ended])
async def test_a_term_that_does_not_hold_changes_nothing(
    on: Scenario, duty: Duty, false_term: Callable[[Scenario], Awaitable[LeaderTerm]]
) -> None:
    """Under a former term, another's or an ended one no duty of the leader touches a row."""
    term = await false_term(on)
    read = await work_for_a_leader(on)
    before = await read()

    await duty(on, term)
    assert await read() == before


@pytest.mark.parametrize("duty", [sweep_overdue, sweep_batches, prune])
async def test_the_term_of_now_does_its_duty(on: Scenario, duty: Duty) -> None:
    """The same duties find their work under the term that holds."""
    term = await on.term(DAY)
    read = await work_for_a_leader(on)
    before = await read()

    await duty(on, term)
    assert await read() != before


async def test_every_part_of_a_sweep_needs_the_term(on: Scenario) -> None:
    """Closing, settling and abandoning all happen under the term that holds, and none without it."""
    read = await work_for_a_leader(on)
    batches = [view.id for view in await on.stores.inspect.list_batches()]
    before = await read()
    await sweep_batches(on, LeaderTerm(uuid4(), 1))
    assert await read() == before

    await sweep_batches(on, await on.term(DAY))
    states = {(await on.view(batch_id)).state for batch_id in batches}
    assert states == {BatchState.CLOSED, BatchState.ABANDONED}
