"""RunStore.save_nodes: the job of a whole run keeps how its nodes ended, under its fence."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from headrace.model.errors import FenceLostError
from headrace.model.job import ClaimedJob, JobError, JobState
from headrace.model.run import Level, NodeEnding, NodeState, RunEnding, RunState
from tests.conformance.runs import Runs, success
from tests.conformance.scenario import LEASE, SECOND, Scenario

ERROR = JobError("ValueError", "no such thing", "Traceback …")


async def start(runs: Runs) -> tuple[UUID, ClaimedJob]:
    """Start a run at workflow level and claim its job."""
    run_id, [job] = await runs.begin(None, level=Level.WORKFLOW)
    return run_id, job


async def save(runs: Runs, job: ClaimedJob, *endings: NodeEnding, **fence: UUID | int) -> None:
    """Keep endings under the fence of a job, but for what is said of it."""
    assert job.run_id is not None
    chosen = {"job_id": job.id, "attempt": job.attempt, "session": await runs.session(), **fence}
    await runs.store.save_nodes(job.run_id, endings, **chosen)  # type: ignore[arg-type]


async def test_endings_are_kept(on: Scenario, runs: Runs) -> None:
    """As they are, with the store's time, in their order."""
    run_id, job = await start(runs)
    first = success("a", artifact="h", attempts=2, started_at=on.clock.now())
    on.clock.advance(SECOND)
    await save(runs, job, first, NodeEnding("b", NodeState.SKIPPED))
    then = on.clock.now()
    on.clock.advance(SECOND)
    await save(runs, job, NodeEnding("c", NodeState.FAILED, error=ERROR))

    assert await runs.store.read_nodes(run_id) == [
        replace(first, finished_at=then),
        NodeEnding("b", NodeState.SKIPPED, finished_at=then),
        NodeEnding("c", NodeState.FAILED, error=ERROR, finished_at=on.clock.now()),
    ]


async def test_the_first_ending_stands(runs: Runs) -> None:
    """Saving a path again changes nothing; others of the call are kept."""
    run_id, job = await start(runs)
    await save(runs, job, success("a", "1"))
    await save(runs, job, success("a", "2"), success("b", "3"))

    assert [(end.path, end.output) for end in await runs.store.read_nodes(run_id)] == [("a", "1"), ("b", "3")]


async def test_saving_nothing_is_a_call_too(runs: Runs) -> None:
    """It keeps nothing, under the fence like any other."""
    run_id, job = await start(runs)
    await save(runs, job)

    assert await runs.paths(run_id) == []


async def test_another_fence_saves_nothing(on: Scenario, runs: Runs) -> None:
    """Of another attempt, session or job: FenceLostError."""
    run_id, job = await start(runs)

    for fence in ({"attempt": 2}, {"attempt": 0}, {"session": await on.worker()}, {"job_id": uuid4()}):
        with pytest.raises(FenceLostError):
            await save(runs, job, success("a"), **fence)
    assert await runs.paths(run_id) == []


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.READY])
async def test_an_attempt_that_ended_saves_nothing(runs: Runs, state: JobState) -> None:
    """Whether its job is final or went back."""
    run_id, job = await start(runs)
    await runs.lose(job, state)

    with pytest.raises(FenceLostError):
        await save(runs, job, success("a"))
    assert await runs.paths(run_id) == []


async def test_an_attempt_that_was_rescued_saves_nothing(on: Scenario, runs: Runs) -> None:
    """The next one does, and finds what the lost one saved before."""
    run_id = await runs.start(None)
    lost = await on.worker()
    [job] = await on.claim(lost)
    await save(runs, job, success("a"), session=lost)
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    [again] = await runs.claim()

    with pytest.raises(FenceLostError):
        await save(runs, job, success("b"), session=lost)
    await save(runs, again, success("c"))
    assert await runs.paths(run_id) == ["a", "c"]


async def test_the_end_keeps_what_was_saved(runs: Runs) -> None:
    """The ends of a job and what it saved before are one list."""
    run_id, job = await start(runs)
    await save(runs, job, success("a", "1"))
    await runs.done(job, endings=(success("a", "2"), success("/", "3")), ending=RunEnding(RunState.SUCCEEDED, "3"))

    assert [(end.path, end.output) for end in await runs.store.read_nodes(run_id)] == [("a", "1"), ("/", "3")]


async def test_a_run_that_is_being_cancelled_keeps_endings(runs: Runs) -> None:
    """What its job did until it stopped is not lost."""
    run_id, job = await start(runs)
    await runs.store.cancel_run(run_id)
    await runs.swept(limit=10)
    await save(runs, job, success("a"))

    assert await runs.paths(run_id) == ["a"]
