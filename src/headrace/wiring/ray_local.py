"""From settings and a file to a local Ray cluster, and to the cluster that a worker is to join."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import ConfigError
from headrace.ray_settings import parse_size
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.executors.ray.local_cluster import LocalCluster
    from headrace.executors.ray.local_plan import Machine
    from headrace.executors.ray.local_state import LocalState, NodeSize

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
    """What is asked of a local cluster: its nodes, or a file that says them."""

    nodes: int = 1
    #: of each node; None: an even share
    cpus: int | None = None
    #: object store of each node, such as "512MB"; empty: as usual
    store: str = ""
    file: Path | None = None


def start_local(settings: Settings, asked: Asked, port: int | None) -> tuple[LocalState, bool]:
    """Start a local cluster, and return it, and whether it was started now.

    Raises ConfigError, InvalidInputError, BrokerUnavailableError.
    """
    if find_spec("ray") is None:
        raise ConfigError("a Ray cluster needs ray: pip install 'headrace[ray]'")
    from headrace.executors.ray.local_plan import cut, even_plan

    cluster = local_cluster(settings)
    if (running := cluster.state()) is not None:
        return running, False
    machine = this_machine()
    if asked.file is not None:
        return cluster.up(cut(read_nodes(asked.file), machine), port)
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


def read_nodes(file: Path) -> list[NodeSize]:
    """Return the nodes that `ray.cluster` of a YAML file asks for, the head node first. Raises ConfigError."""
    import yaml

    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{file} cannot be read as YAML: {' '.join(str(error).split())}") from None
    ray = said.get("ray") if isinstance(said, dict) else None
    if not isinstance(ray, dict) or not isinstance(ray.get("cluster"), dict):
        raise ConfigError(f"{file} has no table ray.cluster, which says what its nodes have")
    return nodes_of(ray["cluster"])


def nodes_of(cluster: Mapping[str, Any]) -> list[NodeSize]:
    """Return the nodes that a table `ray.cluster` asks for. Raises ConfigError.

    >>> head = {"resources": {"cpu": 16, "memory": "32GB", "object_store_memory": "8GB"}}
    >>> len(nodes_of({"head_node": head, "worker_nodes": [{"resources": {"cpu": 32}, "count": 3}]}))
    4
    """
    from headrace.executors.ray.local_plan import MOST_NODES

    _know(cluster, "ray.cluster", {"head_node", "worker_nodes"})
    found = [_size(cluster.get("head_node", {}), "ray.cluster.head_node", {"resources"})]
    workers = cluster.get("worker_nodes", [])
    if not isinstance(workers, list):
        raise ConfigError(f"ray.cluster.worker_nodes must be a list, got {type(workers).__name__}")
    for number, said in enumerate(workers):
        where = f"ray.cluster.worker_nodes[{number}]"
        size = _size(said, where, {"resources", "count"})
        found += [size] * _whole(said.get("count", 1), f"{where}.count", most=MOST_NODES)
    if len(found) > MOST_NODES:
        raise ConfigError(f"ray.cluster must have at most {MOST_NODES} nodes on one machine, got {len(found)}")
    return found


def _size(said: Any, where: str, known: set[str]) -> NodeSize:
    from headrace.executors.ray.local_state import NodeSize

    _know(said, where, known)
    resources = said.get("resources", {})
    where = f"{where}.resources"
    _know(resources, where, {"cpu", "gpu", "memory", "object_store_memory"})
    cpus = _whole(resources.get("cpu", 1), f"{where}.cpu", most=10_000)
    store = parse_size(f"{where}.object_store_memory", str(resources.get("object_store_memory", "")))
    return NodeSize(cpus, store, parse_size(f"{where}.memory", str(resources.get("memory", ""))))


def _know(said: Any, where: str, known: set[str]) -> None:
    if not isinstance(said, dict):
        raise ConfigError(f"{where} must be a table, got {type(said).__name__}")
    if strange := sorted(str(name) for name in said if name not in known):
        raise ConfigError(f"{where} has {', '.join(sorted(known))}, got {strange[0]!r}")


def _whole(value: Any, name: str, *, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ConfigError(f"{name} must be a whole number from 1 to {most:,}, got {value!r}")
    return value
