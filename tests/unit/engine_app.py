"""Apps on the memory store with short intervals, and what tests of the engine do again and again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace import App, JobHandle
from headrace.engine.worker import Worker
from headrace.model.job import Claim, ClaimedJob, JobState, JobView
from headrace.model.session import NewSession, ProcessId
from headrace.settings import QueueSettings, RecoverySettings, Settings, WorkerSettings
from tests.waiting import wait_until

MILLISECONDS = timedelta(milliseconds=1)

#: Everything that waits, waits briefly; leases are long, so that a busy machine loses none.
QUICK = Settings(
    queue=QueueSettings(type="memory"),
    worker=WorkerSettings(poll_interval=20 * MILLISECONDS, heartbeat_interval=30 * MILLISECONDS),
    recovery=RecoverySettings(check_interval=30 * MILLISECONDS, aggregate_interval=30 * MILLISECONDS),
)


def quick_app(
    *, lifespan: Callable[[App], AbstractAsyncContextManager[Any]] | None = None, settings: Settings = QUICK,
    **worker: Any,
) -> App:  # fmt: skip
    """Return an app on an empty memory store; `worker` changes `[worker]` settings."""
    return App(settings=replace(settings, worker=replace(settings.worker, **worker)), lifespan=lifespan)


async def view_of(app: App, job: JobHandle[Any] | UUID) -> JobView:
    """Return everything known of a job."""
    view = await app.runtime.stores.inspect.get_job(job if isinstance(job, UUID) else job.id)
    assert view is not None
    return view


async def until_state(app: App, job: JobHandle[Any], *states: JobState) -> JobView:
    """Wait until a job is in one of `states` and return it."""

    async def look() -> JobView | None:
        view = await view_of(app, job)
        return view if view.state in states else None

    view = await wait_until(look, message=f"{job} to be {states}")
    assert view is not None
    return view


async def until_final(app: App, job: JobHandle[Any]) -> JobView:
    """Wait until a job is final and return it."""
    return await until_state(app, job, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


async def run_one(app: App, job: JobHandle[Any]) -> JobView:
    """Work the app until `job` is final and return it."""
    async with app.worker():
        return await until_final(app, job)


async def crash_with(app: App, job: JobHandle[Any], *, queue: str = "default") -> ClaimedJob:
    """Let a worker claim `job` and die: its lease ends, and a sweep takes the job back."""
    stores = app.runtime.stores
    session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {queue: 1}, timedelta(hours=1))
    await stores.sessions.register_session(session)
    [claimed] = await stores.jobs.claim_jobs(Claim(session.id, queue, 1))
    assert claimed.id == job.id
    await stores.sessions.expire_sessions([session.id])
    await stores.jobs.rescue_jobs(limit=10)
    return claimed


def shift_of(worker: Worker) -> Any:
    """Return the current shift of a worker, which must have one."""
    assert worker.session is not None
    return worker.session
