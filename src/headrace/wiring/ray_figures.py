"""Figures of the Ray cluster as Prometheus reads them: its nodes, and what they have and have free."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.model.errors import BrokerUnavailableError, ConfigError
from headrace.ray_settings import RAY
from headrace.settings import Settings
from headrace.wiring.ray import nodes_alive

if TYPE_CHECKING:
    from headrace.executors.ray.fitting import Node

LOG = logging.getLogger("headrace.ray")

UP, NODES, RESOURCE = "headrace_ray_up", "headrace_ray_nodes", "headrace_ray_resource"
#: Names of Ray that say how much there is; others name single nodes.
RESOURCES = ("CPU", "GPU", "memory", "object_store_memory")


async def ray_figures(settings: Settings) -> str:
    """Return the figures; nothing where no queue runs on Ray. Who reads them needs none of the code that runs there."""
    if RAY not in settings.executors.values():
        return ""
    try:
        return expose_ray(await nodes_alive(settings))
    except (BrokerUnavailableError, ConfigError) as error:
        LOG.info("no figures of the Ray cluster: %s", error)
        return expose_ray(None)


def expose_ray(nodes: Iterable[Node] | None) -> str:
    """Return the figures of nodes; None: the cluster does not answer.

    >>> print(expose_ray(None).splitlines()[-1])
    headrace_ray_up 0
    """
    return "\n".join(_lines(None if nodes is None else list(nodes))) + "\n"


def _lines(nodes: list[Node] | None) -> Iterator[str]:
    yield f"# HELP {UP} 1 while the Ray cluster answers."
    yield f"# TYPE {UP} gauge"
    yield f"{UP} {int(nodes is not None)}"
    if nodes is None:
        return
    yield f"# HELP {NODES} Nodes of the Ray cluster that are alive."
    yield f"# TYPE {NODES} gauge"
    yield f"{NODES} {len(nodes)}"
    yield f"# HELP {RESOURCE} What the nodes have in all, and what of it is free; memory in bytes."
    yield f"# TYPE {RESOURCE} gauge"
    for name in RESOURCES:
        sides = {"total": (node.total for node in nodes), "free": (node.free for node in nodes)}
        for state, amounts in sides.items():
            yield f'{RESOURCE}{{resource="{name}",state="{state}"}} {sum(one.get(name, 0.0) for one in amounts):.15g}'
