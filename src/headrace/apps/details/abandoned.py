"""Batches that nobody goes on with: their jobs were cancelled, or failed for good, without telling the end.

Whoever looks at such a batch or follows it ends it; and a job does once a minute, for those who only wait for the
message of its end. The same job gives up parts that nothing answers.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.apps.details.ending import end_early
from headrace.apps.details.means import Means
from headrace.apps.details.names import FLOW_TASK, INTAKE_TASK
from headrace.apps.details.silence import give_up_silent
from headrace.model.job import JobState, JobView

if TYPE_CHECKING:
    from headrace import App

SWEEP_TASK, SWEEP_QUEUE = "details_sweep", "details.sweep"
#: How a batch ends whose last job ended so.
STATUS = {JobState.CANCELLED: "cancelled", JobState.FAILED: "failed"}
#: Jobs of one task and state that are looked at, the newest.
MOST = 100


def register_sweep(app: App, means: Means) -> None:
    """Add the task that ends batches which nobody goes on with."""
    known: set[UUID] = set()

    @app.cron("* * * * *", name=SWEEP_TASK, queue=SWEEP_QUEUE)
    async def details_sweep() -> None:
        """End batches whose jobs were cancelled, or failed for good; those that this process knows are passed over.

        Coordinators of parts that are silent for too long go on without them.
        """
        await give_up_silent(app)
        found = await _candidates(app)
        for batch_id in found - known:
            job = await app.runtime.stores.inspect.get_job(batch_id)
            if job is not None and await means.ending(str(batch_id)) is None:
                await end_abandoned(means, job)
        known.clear()
        known.update(found)


async def end_abandoned(means: Means, job: JobView) -> str | None:
    """End a batch whose last job was cancelled, or failed for good, and return how; None: somebody goes on with it.

    `job`: that of its intake. Of one whose feed was removed meanwhile nobody is told again.
    """
    last: JobView | None = job
    for flow in flow_of(job):
        last = await means.app.runtime.stores.inspect.get_job(flow)
    status = None if last is None else STATUS.get(last.state)
    if last is None or status is None:
        return None
    kept = means.app.runtime.settings.recovery.keep_feeds
    if (last.finished_at or last.created_at) + kept > datetime.now(UTC):
        await end_early(means, kwargs_of(job), str(job.id), status)
    return status


async def kept_end(means: Means, job: JobView) -> dict[str, Any] | None:
    """Return what a batch has come to by its jobs alone: its feed may have been removed. None: it has not ended.

    `job`: that of its intake. A flow that is not to be found was kept as long as it is to be: it succeeded.
    """
    last: JobView | None = job
    for flow in flow_of(job):
        last = await means.app.runtime.stores.inspect.get_job(flow)
    if last is None:
        return {"status": "completed"}
    if last.task == FLOW_TASK and last.state is JobState.SUCCEEDED:
        return dict(last.result)
    return {"status": STATUS[last.state]} if last.state in STATUS else None


async def _candidates(app: App) -> set[UUID]:
    """Return the batches of which a job was cancelled, or failed for good."""
    inspect, found = app.runtime.stores.inspect, set[UUID]()
    for state in STATUS:
        found |= {job.id for job in await inspect.list_jobs(task=INTAKE_TASK, state=state, limit=MOST, brief=True)}
        flows = await inspect.list_jobs(task=FLOW_TASK, state=state, limit=MOST)
        found |= {UUID(kwargs_of(job)["batch_id"]) for job in flows}
    return found


def kwargs_of(job: JobView) -> dict[str, Any]:
    """Return the arguments of a job."""
    kwargs: dict[str, Any] = (json.loads(job.args) if isinstance(job.args, str) else job.args)["kwargs"]
    return kwargs


def flow_of(job: JobView) -> list[UUID]:
    """Return the id of the job that sees to a batch, where its intake has ended; batches of before tell none."""
    flow = UUID(str(job.result)) if job.state is JobState.SUCCEEDED and job.result else job.id
    return [] if flow == job.id else [flow]
