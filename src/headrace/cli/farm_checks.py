"""What `headrace doctor` says of farms: whether a broker or a cluster answers, and what is served there."""

from __future__ import annotations

from headrace.celery_settings import CELERY
from headrace.cli.finding import Finding, Status
from headrace.model.errors import BrokerUnavailableError, ConfigError
from headrace.ports.stores import Stores
from headrace.ray_settings import RAY
from headrace.settings import Settings
from headrace.wiring.farm import farm_workers
from headrace.wiring.farm_explaining import START, unfit
from headrace.wiring.ray import ray_nodes, unfit_queues


async def farm_findings(stores: Stores, settings: Settings) -> list[Finding]:
    """Return what there is to say of the farms; nothing where no queue runs on one."""
    named, found = set(settings.executors.values()), []
    for executor, name, find in ((CELERY, "Celery", _of_celery), (RAY, "Ray", _of_ray)):
        if executor not in named:
            continue
        try:
            found += await find(stores, settings)
        except (BrokerUnavailableError, ConfigError) as error:
            found.append(Finding(executor, Status.FAIL, f"no job of a {name} queue starts: {error}"))
    return found


async def _of_celery(stores: Stores, settings: Settings) -> list[Finding]:
    workers = await farm_workers(settings)
    served = {queue for worker in workers if not worker.closing for queue in worker.queues}
    if not served:
        return [Finding("celery", Status.WARN, "no Celery worker is alive: jobs of its queues stay ready", START)]
    waiting = await _waiting(stores, settings, CELERY)
    if unserved := sorted(set(waiting) - served):
        return [Finding("celery", Status.WARN, _unserved(name), f"{START} --queue {name}") for name in unserved]
    open_ones = [worker for worker in workers if not worker.closing]
    slots = sum(worker.slots for worker in open_ones)
    return [Finding("celery", Status.OK, f"{len(open_ones)} workers are alive, {slots} slots in all")]


async def _of_ray(stores: Stores, settings: Settings) -> list[Finding]:
    nodes = await ray_nodes(settings)
    asked = {*await _waiting(stores, settings, RAY), *settings.ray.resources}
    if too_large := unfit_queues(settings, nodes, sorted(asked)):
        fix = "add such a node, or write less into [ray.resources.{}]"
        return [Finding("ray", Status.WARN, f"{unfit(settings, name)}: its jobs stay ready", fix.format(name))
                for name in too_large]  # fmt: skip
    cpus = sum(node.total.get("CPU", 0.0) for node in nodes)
    return [Finding("ray", Status.OK, f"{len(nodes)} nodes are alive, {cpus:g} processors in all")]


async def _waiting(stores: Stores, settings: Settings, executor: str) -> list[str]:
    """Return the queues of an executor that have jobs."""
    used = [one.name for one in await stores.inspect.queue_stats() if one.ready or one.running]
    return [name for name in used if settings.executor_of(name) == executor]


def _unserved(queue: str) -> str:
    return f"no Celery worker serves queue {queue}: its jobs stay ready"
