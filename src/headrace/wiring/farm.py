"""From settings to farms, and what there is to one of Celery: its connections, its workers, who is alive."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

from headrace.celery_settings import CELERY, LOCAL
from headrace.engine.attempt import Proceed, compose
from headrace.engine.middleware.breaker import BreakerMiddleware
from headrace.engine.middleware.park import park
from headrace.engine.middleware.retry import RetryMiddleware
from headrace.engine.middleware.time_limit import limit_time
from headrace.engine.middleware.usage import meter_usage
from headrace.engine.registry import Registry
from headrace.executors.inline import InlineExecutor
from headrace.model.errors import ConfigError
from headrace.model.farm import FarmWorker
from headrace.ports.executor import Executor, Farm
from headrace.ports.job_store import JobStore
from headrace.ray_settings import RAY
from headrace.settings import Settings
from headrace.wiring.farms import Farms
from headrace.wiring.ray import make_ray_farm

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.executors.celery.link import Link
    from headrace.executors.celery.site import CelerySite
    from headrace.executors.celery.worker import Process

_MODULES = ("celery", "redis")


def make_farm(app: App, settings: Settings, jobs: JobStore) -> Farm | None:
    """Return what runs jobs on farms as the settings say; None where no queue runs on one. Raises ConfigError."""
    named = set(settings.executors.values())
    farms = [_make_celery_farm(settings, app.registry, jobs)] if CELERY in named else []
    if RAY in named:
        farms.append(make_ray_farm(app, settings, jobs))
    return farms[0] if len(farms) == 1 else Farms(farms) if farms else None


def _make_celery_farm(settings: Settings, registry: Registry, jobs: JobStore) -> Farm:
    site = celery_site(settings)
    for task in registry:
        if task.gather is not None and settings.executor_of(task.spec.queue) == CELERY:
            queue = task.spec.queue
            raise ConfigError(
                f"task {task.name!r} takes jobs together (batch_size) and cannot run on Celery, which takes one at a "
                f'time; write executor = "local" into [queues.{queue}], or give the task a queue of its own'
            )
    from headrace.executors.celery.executor import CeleryExecutor

    return CeleryExecutor(
        site, jobs, lambda queue: settings.executor_of(queue) == CELERY, longest=_longest(settings, registry)
    )


def farms_out(settings: Settings, queue: str) -> bool:
    """Whether the jobs of a queue run on a farm."""
    return settings.executor_of(queue) != LOCAL


def farm_queues(app: App) -> list[str]:
    """Return the queues of an app's tasks that run on the farm."""
    return [queue for queue in app.registry.queues() if app.settings.executor_of(queue) == CELERY]


def celery_site(settings: Settings) -> CelerySite:
    """Return where the farm is. Raises ConfigError where there can be none."""
    if settings.queue.type == "memory" or not settings.queue.enable_persistence:
        raise ConfigError(
            'executor = "celery" needs a store that other processes reach: use PostgreSQL or Redis, not memory'
        )
    if not settings.celery.broker_url:
        raise ConfigError('executor = "celery" needs a broker: set [celery] broker_url to redis://HOST')
    if missing := [name for name in _MODULES if find_spec(name) is None]:
        raise ConfigError(f"the Celery farm needs {' and '.join(missing)}: pip install 'headrace[celery]'")
    from headrace.executors.celery.site import CelerySite

    return CelerySite(settings.celery.broker_url, settings.celery.queue_prefix)


def _longest(settings: Settings, registry: Registry) -> timedelta:
    from headrace.executors.celery.site import longest_timeout

    return longest_timeout((task.spec.timeout for task in registry), settings.worker.max_processing_time)


def open_link(settings: Settings) -> Link:
    """Return the connections of one event loop to the broker."""
    from headrace.executors.celery.link import Link

    return Link(celery_site(settings))


async def farm_workers(settings: Settings) -> Collection[FarmWorker]:
    """Return the workers of the farm that are alive. Raises ConfigError, BrokerUnavailableError."""
    from headrace.executors.celery.presence import look

    link = open_link(settings)
    try:
        await link.check()
        return (await look(link.client, link.site)).workers.values()
    finally:
        await link.close()


def run_farm_worker(app: App, queues: Collection[str], process: Process, *, concurrency: int, level: str) -> int:
    """Be a worker of the farm until SIGTERM; return the exit code."""
    from headrace.executors.celery.worker import WorkerOptions, run_worker

    options = WorkerOptions(queues, concurrency, _longest(app.settings, app.registry), level)
    return run_worker(celery_site(app.settings), process, options)


def compose_farm() -> tuple[Executor, Proceed]:
    """Return how a process of the farm runs a handler: policy and time are decided there, as in a worker."""
    return InlineExecutor(), compose([RetryMiddleware(), BreakerMiddleware(), park, limit_time, meter_usage])
