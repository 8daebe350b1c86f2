"""From settings to a Ray cluster: what sends jobs to it, and which nodes are alive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.daemon_threads import DaemonThreads
from headrace.engine.registry import Registry
from headrace.model.errors import BrokerUnavailableError, ConfigError
from headrace.ports.executor import Farm
from headrace.ports.job_store import JobStore
from headrace.ray_settings import RAY
from headrace.settings import Settings
from headrace.wiring.ray_local import cluster_address
from headrace.wiring.ray_luggage import pack

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.executors.ray.fitting import Node

LOG = logging.getLogger("headrace.ray")

#: Whose `work` Ray's processes call.
_ENTRY = "headrace.ray_process"
#: A cluster that does not answer for so long is away.
_PEEK_SECONDS = 10.0


def make_ray_farm(app: App, settings: Settings, jobs: JobStore) -> Farm:
    """Return what runs jobs on the cluster that the settings name. Raises ConfigError."""
    check_site(settings)
    _check_tasks(settings, app.registry)
    # Before Ray is imported.
    address = cluster_address(settings)
    from headrace.executors.ray.executor import RayExecutor
    from headrace.executors.ray.site import RaySite

    _check_needs(settings, app.registry)
    ray, luggage = settings.ray, pack(app, settings)
    site = RaySite(address, ray.namespace, _runtime_env(settings), _ENTRY, luggage.text)
    return RayExecutor(site, jobs, lambda queue: settings.executor_of(queue) == RAY, ray.amounts)


def check_site(settings: Settings) -> None:
    """Raise ConfigError where there can be no cluster."""
    if settings.queue.type == "memory" or not settings.queue.enable_persistence:
        raise ConfigError(
            'executor = "ray" needs a store that other processes reach: use PostgreSQL or Redis, not memory'
        )
    _check_extra()
    folders = {"ray.working_dir": [settings.ray.working_dir], "ray.py_modules": settings.ray.py_modules}
    for name, paths in folders.items():
        for path in paths:
            if path and "://" not in path and not Path(path).is_dir():
                raise ConfigError(f"{name} must be a folder, or the URI of a package, and there is none at {path!r}")
    if settings.ray.working_dir and Path(settings.ray.working_dir).resolve() == settings.directory.resolve():
        raise ConfigError(
            f"ray.working_dir must be another folder than `directory`, {str(settings.directory)!r}, in which this "
            "machine keeps tokens and an embedded database: Ray would copy them to each node"
        )


def _check_extra() -> None:
    if find_spec("ray") is None:
        raise ConfigError("the Ray cluster needs ray: pip install 'headrace[ray]'")


def _check_tasks(settings: Settings, registry: Registry) -> None:
    for task in registry:
        queue = task.spec.queue
        if settings.executor_of(queue) != RAY:
            continue
        local = f'write executor = "local" into [queues.{queue}]'
        if task.gather is not None:
            raise ConfigError(
                f"task {task.name!r} takes jobs together (batch_size) and cannot run on Ray, which takes one at a "
                f"time; {local}, or give the task a queue of its own"
            )
        if not task.importable:
            raise ConfigError(
                f"task {task.name!r} cannot run on Ray, as no other process finds it: move it to the top level of a "
                f"module, or {local}"
            )


def _check_needs(settings: Settings, registry: Registry) -> None:
    from headrace.executors.ray.cluster import check_need

    queues = {task.spec.queue for task in registry if settings.executor_of(task.spec.queue) == RAY}
    for queue in sorted(queues):
        try:
            check_need(settings.ray.amounts(queue))
        except ValueError as error:
            raise ConfigError(
                f"ray.resources.{queue}: Ray refuses {needs_in_words(settings, queue)}: {error}"
            ) from None
    for queue in sorted(settings.ray.resources.keys() - queues):
        LOG.warning("[ray.resources.%s] counts for nothing: no queue of that name is on Ray", queue)


def _runtime_env(settings: Settings) -> Mapping[str, Any]:
    ray = settings.ray
    given = {
        "working_dir": ray.working_dir, "excludes": _own_files(settings), "py_modules": list(ray.py_modules),
        "pip": list(ray.pip),
    }  # fmt: skip
    return {name: value for name, value in given.items() if value}


def _own_files(settings: Settings) -> list[str]:
    """Return what is not copied though it is in the folder: what this machine keeps for itself, such as a token."""
    folder, own = Path(settings.ray.working_dir), settings.directory.resolve()
    if not settings.ray.working_dir or not own.is_relative_to(folder.resolve()):
        return []
    return [f"/{own.relative_to(folder.resolve())}/"]


async def ray_nodes(settings: Settings) -> Collection[Node]:
    """Return the nodes of the cluster that jobs run on. Raises ConfigError, BrokerUnavailableError."""
    check_site(settings)
    return await nodes_alive(settings)


async def nodes_alive(settings: Settings) -> Collection[Node]:
    """Return the nodes of the cluster, whoever runs jobs there. Raises ConfigError, BrokerUnavailableError."""
    _check_extra()
    address = cluster_address(settings)
    from headrace.executors.ray.cluster import peek

    threads = DaemonThreads()
    try:
        async with asyncio.timeout(_PEEK_SECONDS):
            nodes: list[Node] = await threads.run(lambda: peek(address))
            return nodes
    except Exception as error:
        raise BrokerUnavailableError(
            f"the Ray cluster does not answer ({type(error).__name__}); check [ray] address, and that it runs"
        ) from None
    finally:
        threads.end()


def needs_in_words(settings: Settings, queue: str) -> str:
    """Return what a job of a queue takes, in words."""
    from headrace.executors.ray.fitting import in_words

    return in_words(settings.ray.amounts(queue))


def unfit_queues(settings: Settings, nodes: Collection[Node], queues: Collection[str]) -> list[str]:
    """Return those queues on Ray for whose jobs no node is large enough."""
    from headrace.executors.ray.fitting import capacity, wanted

    found = [queue for queue in queues if settings.executor_of(queue) == RAY]
    return sorted(queue for queue in found if not capacity(wanted(settings.ray.amounts(queue), nodes), list(nodes)))
