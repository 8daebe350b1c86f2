"""What the command line and the HTTP service ask of the system, so that both answer alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from headrace.engine import levels
from headrace.model.admission import Explanation
from headrace.model.attempt_log import AttemptLog
from headrace.model.batch import BatchItem, BatchView, Progress
from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError, NotFoundError
from headrace.model.explaining import Scene, sentence
from headrace.model.item_states import BatchStates
from headrace.model.job import AttemptRecord, JobState, JobView
from headrace.model.sentence import Sentence
from headrace.model.webhook import TASK as WEBHOOK_TASK
from headrace.ports.inspect import Inspect
from headrace.ports.limiter import Limiter
from headrace.ports.stores import Stores


async def show_job(inspect: Inspect, job_id: UUID) -> tuple[JobView, list[AttemptRecord]]:
    """Return a job and its ended attempts. Raises NotFoundError."""
    job = await inspect.get_job(job_id)
    if job is None:
        raise _no_job(job_id)
    return shown(job), await inspect.get_attempts(job_id)


async def show_logs(inspect: Inspect, job_id: UUID, attempt: int | None = None) -> list[AttemptLog]:
    """Return what was logged in the attempts of a job, or in one of them. Raises NotFoundError."""
    logs = await inspect.attempt_logs(job_id)
    if not logs and not await inspect.known_jobs([job_id]):
        raise _no_job(job_id)
    return [log for log in logs if attempt in (None, log.attempt)]


def logs_document(job_id: UUID, logs: Sequence[AttemptLog]) -> dict[str, Any]:
    """Return the logs of a job as one document."""
    return {"job": str(job_id), "attempts": to_json(logs)}


def _no_job(job_id: UUID) -> NotFoundError:
    return NotFoundError(f"no job {job_id}; it may have been pruned after its retention")


def shown(job: JobView) -> JobView:
    """Return a job as people may see it: of where a message goes, the site alone, for the rest may be a secret."""
    if job.task != WEBHOOK_TASK:
        return job
    subject, order = job.args["args"]
    parts = urlsplit(order["url"])
    site = {**order, "url": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"}
    return replace(job, args={**job.args, "args": [subject, site]})


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a job is not running: the explanation of the store, and the sentence that people read, also by `str`."""

    job: JobView
    explanation: Explanation
    said: Sentence

    @property
    def sentence(self) -> str:
        """The sentence, in English."""
        return str(self.said)

    def __str__(self) -> str:
        return self.sentence


async def explain_job(stores: Stores, limiter: Limiter, job_id: UUID) -> Explained:
    """Say why a job is not running, or what became of it. Raises NotFoundError, ConfigError."""
    job, _ = await show_job(stores.inspect, job_id)
    explained = await explain_view(stores, limiter, job)
    if explained is None:
        raise ConfigError("this store does not say why jobs wait")
    return explained


async def explain_view(stores: Stores, limiter: Limiter, job: JobView) -> Explained | None:
    """Say why a job that was just read is not running; None where the store cannot say it."""
    why = await levels.explain_job(stores, limiter, job.id)
    if why is None:
        return None
    if why.state is not job.state:  # it went on between the two readings
        job = await stores.inspect.get_job(job.id) or job
    held_by = why.facts.get("held_by")
    holder = None if held_by is None else await stores.inspect.get_job(UUID(str(held_by)))
    now = (await stores.inspect.store_info()).now or datetime.now(UTC)
    return Explained(job, why, sentence(Scene(job, why, now, holder)))


async def show_batch(inspect: Inspect, batch_id: UUID) -> tuple[BatchView, Progress]:
    """Return a batch and its progress. Raises NotFoundError."""
    batch = await inspect.get_batch(batch_id)
    if batch is None:
        raise NotFoundError(f"no batch {batch_id}; `headrace batch list` shows those there are")
    return batch, await inspect.batch_progress(batch_id)


def batch_document(view: BatchView, progress: Progress) -> dict[str, Any]:
    """Return a batch and its progress as one document."""
    document: dict[str, Any] = to_json(view)
    counts = to_json(progress)
    return document | {"progress": counts | {"done": progress.done, "percent": progress.percent}}


def states_document(states: BatchStates) -> dict[str, Any]:
    """Return what items of a batch are as one document."""
    return {"first": states.first, "states": states.letters, "end": states.end}


def item_document(item: BatchItem) -> dict[str, Any]:
    """Return a finished item of a batch: its result, or why it has none."""
    ending = {"result": item.result} if item.status is JobState.SUCCEEDED else {"error": to_json(item.error)}
    document = {"index": item.index, "status": item.status, **ending}
    return document | {"cost": item.cost, "job": str(item.job_id), "cursor": item.cursor}


def to_json(value: Any) -> Any:
    """Return a read model as JSON-able values: ids and instants as text, durations as `1h30m`."""
    if hasattr(value, "__dataclass_fields__"):
        return {key: to_json(item) for key, item in asdict(value).items()}
    match value:
        case dict():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_json(item) for item in value]
        case datetime():
            return value.isoformat()
        case timedelta():
            return format_duration(value)
        case Enum():
            return value.value
        case UUID():
            return str(value)
        case _:
            return value
