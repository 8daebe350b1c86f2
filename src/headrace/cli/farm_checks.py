"""What `headrace doctor` says of a Celery farm: whether its broker answers, and who serves what."""

from __future__ import annotations

from headrace.celery_settings import CELERY
from headrace.cli.finding import Finding, Status
from headrace.model.errors import BrokerUnavailableError, ConfigError
from headrace.ports.stores import Stores
from headrace.settings import Settings
from headrace.wiring.farm import farm_workers
from headrace.wiring.farm_explaining import START


async def farm_findings(stores: Stores, settings: Settings) -> list[Finding]:
    """Return what there is to say of the farm; nothing where no queue runs on one."""
    if CELERY not in settings.executors.values():
        return []
    try:
        workers = await farm_workers(settings)
    except (BrokerUnavailableError, ConfigError) as error:
        return [Finding("celery", Status.FAIL, f"no job of a Celery queue starts: {error}")]
    served = {queue for worker in workers if not worker.closing for queue in worker.queues}
    if not served:
        return [Finding("celery", Status.WARN, "no Celery worker is alive: jobs of its queues stay ready", START)]
    waiting = [one.name for one in await stores.inspect.queue_stats() if one.ready or one.running]
    unserved = sorted(name for name in waiting if settings.executor_of(name) == CELERY and name not in served)
    if unserved:
        return [Finding("celery", Status.WARN, _unserved(name), f"{START} --queue {name}") for name in unserved]
    open_ones = [worker for worker in workers if not worker.closing]
    slots = sum(worker.slots for worker in open_ones)
    return [Finding("celery", Status.OK, f"{len(open_ones)} workers are alive, {slots} slots in all")]


def _unserved(queue: str) -> str:
    return f"no Celery worker serves queue {queue}: its jobs stay ready"
