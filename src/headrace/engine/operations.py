"""What operators do to jobs and queues; the command line and the HTTP service share it."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from headrace.engine.closing import close_batches
from headrace.model.errors import NotFoundError
from headrace.model.job import CancelAnswer
from headrace.model.names import check_reason
from headrace.model.stats import Pruned, QueueStats, Retention
from headrace.ports.inspect import Inspect
from headrace.ports.stores import Stores

#: Rows of one transaction; longer work is done in several.
SLICE = 1_000


async def find_queue(inspect: Inspect, name: str) -> QueueStats:
    """Return a queue that has jobs, live workers or a setting. Raises NotFoundError naming those there are."""
    queues = await inspect.queue_stats()
    for queue in queues:
        if queue.name == name:
            return queue
    known = ", ".join(queue.name for queue in queues) or "none yet"
    raise NotFoundError(f"no queue {name!r} has jobs, workers or a setting; there are: {known}")


async def cancel_job(stores: Stores, job_id: UUID) -> CancelAnswer:
    """Cancel a job, and close its batch if it was the last. Raises NotFoundError."""
    answer = await stores.control.cancel_job(job_id)
    job = await stores.inspect.get_job(job_id)
    stores.notifier.hint("done")
    if answer is CancelAnswer.CANCELLED and job is not None and job.batch_id is not None:
        await close_batches(stores, [job.batch_id])
    return answer


async def retry_job(stores: Stores, job_id: UUID) -> UUID:
    """Run a failed or cancelled job again as a new one and return its id. Raises NotFoundError, InvalidInputError."""
    new_id = await stores.control.retry_job(job_id)
    await _hint_queue(stores, new_id)
    return new_id


async def retry_once(stores: Stores, job_id: UUID) -> tuple[UUID, bool]:
    """Do what `retry_job` does, and return also whether the new job was not there before. Raises as it does."""
    made = await stores.control.retry_jobs({job_id: None})
    if job_id not in made:
        # It was retried before, or else this says why it cannot be.
        return await retry_job(stores, job_id), False
    await _hint_queue(stores, made[job_id])
    return made[job_id], True


async def _hint_queue(stores: Stores, job_id: UUID) -> None:
    job = await stores.inspect.get_job(job_id)
    if job is not None:
        stores.notifier.hint(f"queue:{job.queue}")


async def retry_queue(stores: Stores, queue: str) -> int:
    """Run the failed jobs of a queue again that were not retried before; return how many.

    What fails once more meanwhile is left: else this might never end.
    """
    began = (await stores.inspect.store_info()).now
    count, last = 0, SLICE
    while last == SLICE:
        last = len(await stores.control.retry_queue(queue, limit=SLICE, until=began))
        count += last
        stores.notifier.hint(f"queue:{queue}")
    return count


async def set_queue_paused(stores: Stores, queue: str, *, paused: bool, reason: str | None = None) -> None:
    """Pause or resume the claims of a queue; running jobs go on. Raises InvalidInputError for a wrong reason."""
    if reason:
        check_reason("reason", reason)
    await stores.control.set_queue_paused(queue, paused=paused, reason=reason)
    if not paused:
        stores.notifier.hint(f"queue:{queue}")


async def clean_up(stores: Stores, retention: Retention, *, queue: str | None = None) -> Pruned:
    """Remove history older than `retention`, slice by slice; return what was removed."""
    removed: Counter[str] = Counter()
    while True:
        pruned = await stores.jobs.prune_jobs(retention, limit=SLICE, queue=queue)
        removed.update(pruned.removed)
        if max(pruned.removed.values(), default=0) < SLICE:
            return Pruned(dict(removed))
