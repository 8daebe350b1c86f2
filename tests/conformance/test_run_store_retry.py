"""The retry verbs leave the jobs of runs alone: a run is repeated from a node, not a job of it."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.model.errors import ConflictError
from headrace.model.job import JobState
from tests.conformance.runs import Runs
from tests.conformance.scenario import SECOND, Scenario


async def failed(on: Scenario, runs: Runs) -> tuple[UUID, UUID, UUID]:
    """Let a job of a run fail and then one of none; return the run and both."""
    run_id, [of_run] = await runs.begin("a")
    await runs.done(of_run, JobState.FAILED)
    on.clock.advance(SECOND)
    [plain] = await on.enqueue()
    [job] = await runs.claim()
    await runs.lose(job)
    on.clock.advance(SECOND)
    return run_id, of_run.id, plain


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
async def test_a_job_of_a_run_is_not_retried(on: Scenario, runs: Runs, state: JobState) -> None:
    """ConflictError names the run and what to do instead."""
    run_id, [job] = await runs.begin("a")
    await runs.done(job, state)

    with pytest.raises(ConflictError, match=f"belongs to run {run_id}: use `headrace run rerun {run_id} --from a`"):
        await on.stores.control.retry_job(job.id)
    assert await runs.claim() == []


async def test_retries_of_many_leave_jobs_of_runs_out(on: Scenario, runs: Runs) -> None:
    """Others of the call are retried."""
    _, of_run, plain = await failed(on, runs)

    assert list(await on.stores.control.retry_jobs({of_run: None, plain: None})) == [plain]
    assert len(await runs.claim()) == 1


async def test_retries_of_a_queue_leave_jobs_of_runs_out(on: Scenario, runs: Runs) -> None:
    """They do not use up its limit either."""
    _, _, plain = await failed(on, runs)

    [copy] = await on.stores.control.retry_queue("default", limit=1)
    assert (await on.job(copy)).retry_of == plain
    assert await on.stores.control.retry_queue("default", limit=10) == []


async def test_a_dead_letter_names_run_and_node(on: Scenario, runs: Runs) -> None:
    """Who finds the failure finds where to run it again."""
    run_id, of_run, plain = await failed(on, runs)

    page = await on.stores.inspect.dead_letters()
    assert {letter.id: (letter.run_id, letter.node) for letter in page.letters} == {
        of_run: (run_id, "a"),
        plain: (None, None),
    }
