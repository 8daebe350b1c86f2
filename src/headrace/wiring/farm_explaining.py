"""Why a job of a farm waits, where the store alone does not know it."""

from __future__ import annotations

from dataclasses import replace

from headrace.celery_settings import CELERY
from headrace.engine.queries import Explained
from headrace.model.admission import WaitReason
from headrace.model.errors import BrokerUnavailableError, ConfigError
from headrace.model.sentence import Sentence, say
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
        said = await find(settings, queue)
    except (BrokerUnavailableError, ConfigError) as error:
        said = say(
            "queue {queue} runs on {name}, and no job of it starts: {error}", queue=queue, name=name, error=error
        )
    return explained if said is None else replace(explained, said=said)


async def _of_celery(settings: Settings, queue: str) -> Sentence | None:
    """Return why no worker of a Celery farm takes a job of a queue; None when one does."""
    served = any(queue in worker.queues and not worker.closing for worker in await farm_workers(settings))
    if served:
        return None
    return say("no Celery worker serves queue {queue} (start one: `{command}`)", queue=queue, command=START)


async def _of_ray(settings: Settings, queue: str) -> Sentence | None:
    """Return why no node of a Ray cluster takes a job of a queue; None when one could."""
    fits = not unfit_queues(settings, await ray_nodes(settings), [queue])
    return None if fits else unfit(settings, queue)


def unfit(settings: Settings, queue: str) -> Sentence:
    """Say that no node is large enough for a job of a queue."""
    return say(
        "no node of the Ray cluster is large enough for a job of queue {queue} ({needs})",
        queue=queue, needs=needs_in_words(settings, queue),
    )  # fmt: skip


_SENTENCES = {CELERY: ("Celery", _of_celery), RAY: ("Ray", _of_ray)}
