"""From settings to a local Ray cluster, and to the cluster that a worker is to join."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.model.errors import ConfigError
from headrace.ray_settings import parse_size
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.executors.ray.local_cluster import LocalCluster
    from headrace.executors.ray.local_plan import Machine
    from headrace.executors.ray.local_state import LocalState

_AUTO = "auto"


def cluster_address(settings: Settings) -> str:
    """Return where the cluster is, and set this process up to join it.

    With "auto" it is the one that `headrace ray up` has started in the app's directory; where none runs it stays
    "auto", which Ray reads as the cluster that this machine is a node of. To be called before Ray connects.
    """
    if settings.ray.address != _AUTO:
        return settings.ray.address
    from headrace.executors.ray.joining import join

    state = local_cluster(settings).state()
    if state is None:
        return _AUTO
    join(state)
    return state.address


def local_cluster(settings: Settings) -> LocalCluster:
    """Return the cluster of the app's directory, whether or not it runs."""
    from headrace.executors.ray.local_cluster import LocalCluster

    return LocalCluster(settings.directory)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a local cluster: so many nodes alike, or those of a larger one, cut to this machine."""

    nodes: int = 1
    #: of each node; None: an even share
    cpus: int | None = None
    #: object store of each node, such as "512MB"; empty: as usual
    store: str = ""
    #: CPUs, bytes of object store and bytes of memory of each, the head node first; None: `nodes` alike
    larger: Sequence[tuple[float, int, int]] | None = None


def start_local(settings: Settings, asked: Asked, port: int | None) -> tuple[LocalState, bool]:
    """Start a local cluster, and return it, and whether it was started now.

    Raises ConfigError, InvalidInputError, BrokerUnavailableError.
    """
    if find_spec("ray") is None:
        raise ConfigError("a Ray cluster needs ray: pip install 'headrace[ray]'")
    from headrace.executors.ray.local_plan import MOST_NODES, cut, even_plan
    from headrace.executors.ray.local_state import NodeSize

    cluster = local_cluster(settings)
    if (running := cluster.state()) is not None:
        return running, False
    machine = this_machine()
    if asked.larger is not None:
        if len(asked.larger) > MOST_NODES:
            rule = f"must have at most {MOST_NODES} nodes on one machine"
            raise ConfigError(f"ray.cluster {rule}, got {len(asked.larger)}")
        sizes = [NodeSize(max(int(cpus), 1), store, memory) for cpus, store, memory in asked.larger]
        return cluster.up(cut(sizes, machine), port)
    store_bytes = parse_size("--object-store-memory", asked.store) or None
    return cluster.up(even_plan(asked.nodes, asked.cpus, store_bytes, machine), port)


def this_machine() -> Machine:
    """Return what this machine has."""
    from headrace.executors.ray.local_plan import Machine

    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                pages = int(line.split()[1]) * 1024
    return Machine(os.cpu_count() or 1, pages)
