"""Why a job of a farm waits, where the store alone does not know it."""

from __future__ import annotations

from dataclasses import replace

from headrace.celery_settings import CELERY
from headrace.engine.queries import Explained
from headrace.model.admission import WaitReason
from headrace.model.errors import BrokerUnavailableError, ConfigError
from headrace.ray_settings import RAY
from headrace.settings import Settings
from headrace.wiring.farm import farm_workers
from headrace.wiring.ray import needs_in_words, ray_nodes, unfit_queues

START = "headrace celery worker MODULE:app"


async def with_farm(settings: Settings, explained: Explained) -> Explained:
    """Return an explanation that names the farm, where that is what a job waits for."""
    queue, why = explained.job.queue, explained.explanation.reason
    executor = settings.executor_of(queue)
    if why is not WaitReason.ORDER or executor not in _SENTENCES:
        return explained
    name, find = _SENTENCES[executor]
    try:
        sentence = await find(settings, queue)
    except (BrokerUnavailableError, ConfigError) as error:
        sentence = f"queue {queue} runs on {name}, and no job of it starts: {error}"
    return replace(explained, sentence=sentence) if sentence else explained


async def _of_celery(settings: Settings, queue: str) -> str:
    """Return why no worker of a Celery farm takes a job of a queue; empty when one does."""
    served = any(queue in worker.queues and not worker.closing for worker in await farm_workers(settings))
    return "" if served else f"no Celery worker serves queue {queue} (start one: `{START}`)"


async def _of_ray(settings: Settings, queue: str) -> str:
    """Return why no node of a Ray cluster takes a job of a queue; empty when one could."""
    fits = not unfit_queues(settings, await ray_nodes(settings), [queue])
    return "" if fits else unfit(settings, queue)


def unfit(settings: Settings, queue: str) -> str:
    """Say that no node is large enough for a job of a queue."""
    return f"no node of the Ray cluster is large enough for a job of queue {queue} ({needs_in_words(settings, queue)})"


_SENTENCES = {CELERY: ("Celery", _of_celery), RAY: ("Ray", _of_ray)}
