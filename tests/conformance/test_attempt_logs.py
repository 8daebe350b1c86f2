"""Logs of attempts: kept with every kind of ending, under its fence, bounded by attempts, and gone with the job."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.attempt_log import MAX_ATTEMPTS, AttemptLog, LogLine, encode_line, encode_log
from headrace.model.job import Claim, Completion, JobError, JobState, Park
from headrace.model.stats import Retention
from tests.conformance.scenario import DAY, LEASE, SECOND, Scenario

LINE = LogLine(datetime(2031, 1, 31, 12, tzinfo=UTC), "info", 'page "3" é\n\\u0000 \U0001f41d')
LOG = encode_log([encode_line(LINE)], 2)
ERROR = JobError("ValueError", "no such thing")


async def kept(on: Scenario, job_id: UUID) -> list[int]:
    """Return the attempts of a job that have a log, each as it was given."""
    logs = await on.stores.inspect.attempt_logs(job_id)
    assert logs == [AttemptLog(log.attempt, (LINE,), dropped=2) for log in logs]
    return [log.attempt for log in logs]


@pytest.mark.parametrize(
    ("state", "facts"),
    [
        (JobState.SUCCEEDED, {"result": "1"}),
        (JobState.FAILED, {"error": ERROR, "charged": True}),
        (JobState.CANCELLED, {"error": ERROR}),
        (JobState.SCHEDULED, {"delay": SECOND}),
        (JobState.SCHEDULED, {"delay": SECOND, "error": ERROR, "charged": True}),
        (JobState.READY, {}),
        (JobState.PARKED, {"park": Park(wait=SECOND)}),
    ],
)
async def test_every_ending_keeps_what_was_logged(on: Scenario, state: JobState, facts: dict[str, object]) -> None:
    """Of two jobs that end alike, the one that logged something has its log, the other none."""
    session = await on.worker()
    await on.enqueue(2)
    told, silent = await on.claim(session)
    done = [Completion(job.id, job.attempt, state, **facts) for job in (told, silent)]  # type: ignore[arg-type]
    await on.stores.jobs.complete_jobs(session, [replace(done[0], log=LOG), done[1]])
    assert (await kept(on, told.id), await kept(on, silent.id)) == ([1], [])
    assert await on.states([told.id, silent.id]) == [state, state]
    assert await kept(on, uuid4()) == []


async def test_an_ending_that_claims_keeps_it_too(on: Scenario) -> None:
    """The log goes along where the ending takes a claim along, and its job has its result."""
    session, job = await on.start()
    done = [Completion(job.id, 1, JobState.SUCCEEDED, result='"x"', log=LOG)]
    ended, _ = await on.stores.jobs.exchange_jobs(session, done, Claim(session, "default", 1))
    assert (ended, await kept(on, job.id), (await on.job(job.id)).result) == ([job.id], [1], "x")


async def test_each_attempt_has_its_own_log(on: Scenario) -> None:
    """Attempts that went back keep theirs beside the last one's, oldest first."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.READY, charged=True, error=ERROR, log=LOG)
    [job] = await on.claim(session)
    await on.end(session, job, state=JobState.READY)
    [job] = await on.claim(session)
    await on.end(session, job, log=LOG)
    assert await kept(on, job.id) == [1, 3]


async def test_a_refused_ending_keeps_nothing(on: Scenario) -> None:
    """Each part of the fence holds alone: what it refuses changes nothing, and no more does what a rescue overtook."""
    session, job = await on.start()
    for state in (JobState.SUCCEEDED, JobState.READY):
        assert await on.end(session, replace(job, attempt=2), state=state, log=LOG) == []
        assert await on.end(await on.worker(), job, state=state, log=LOG) == []
    assert (await on.job(job.id)).state is JobState.RUNNING
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    for state in (JobState.SUCCEEDED, JobState.READY):
        assert await on.end(session, job, state=state, log=LOG) == []
    assert await kept(on, job.id) == []


async def test_a_cancel_that_came_first_keeps_the_log(on: Scenario) -> None:
    """An attempt that would go back and is cancelled instead has ended all the same."""
    session, job = await on.start()
    await on.stores.control.cancel_job(job.id)
    await on.end(session, job, state=JobState.SCHEDULED, delay=SECOND, log=LOG)
    assert (await on.job(job.id)).state is JobState.CANCELLED
    assert await kept(on, job.id) == [1]


@pytest.mark.parametrize("state", [JobState.READY, JobState.PARKED])
async def test_only_the_last_attempts_keep_theirs(on: Scenario, state: JobState) -> None:
    """A job that goes back without end keeps as many logs as there may be, the last one's among them."""
    session, job = await on.start()
    for _ in range(MAX_ATTEMPTS + 4):
        park = Park(wait=timedelta()) if state is JobState.PARKED else None
        await on.end(session, job, state=state, park=park, log=LOG)
        await on.stores.jobs.stage_jobs(limit=10)
        [job] = await on.claim(session)
    await on.end(session, job, log=LOG)
    assert await kept(on, job.id) == list(range(job.attempt - MAX_ATTEMPTS + 1, job.attempt + 1))


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED])
async def test_it_goes_with_its_job(on: Scenario, state: JobState) -> None:
    """A job that is pruned takes its logs along."""
    session, job = await on.start()
    await on.end(session, job, state=state, log=LOG)
    on.clock.advance(2 * DAY)
    removed = await on.stores.jobs.prune_jobs(Retention(DAY, DAY, DAY, DAY), limit=10)
    assert (removed.removed["jobs"], await kept(on, job.id)) == (1, [])
