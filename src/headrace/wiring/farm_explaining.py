"""Why a job of a Celery farm waits, where the store alone does not know it."""

from __future__ import annotations

from dataclasses import replace

from headrace.celery_settings import CELERY
from headrace.engine.queries import Explained
from headrace.model.admission import WaitReason
from headrace.model.errors import BrokerUnavailableError, ConfigError
from headrace.settings import Settings
from headrace.wiring.farm import farm_workers

START = "headrace celery worker MODULE:app"


async def with_farm(settings: Settings, explained: Explained) -> Explained:
    """Return an explanation that names the farm, where that is what a job waits for."""
    queue, why = explained.job.queue, explained.explanation.reason
    if why is not WaitReason.ORDER or settings.executor_of(queue) != CELERY:
        return explained
    try:
        served = any(queue in worker.queues and not worker.closing for worker in await farm_workers(settings))
    except (BrokerUnavailableError, ConfigError) as error:
        return replace(explained, sentence=f"queue {queue} runs on Celery, and no job of it starts: {error}")
    if served:
        return explained
    sentence = f"no Celery worker serves queue {queue} (start one: `{START}`)"
    return replace(explained, sentence=sentence)
