"""How large the nodes of a local cluster are: pure rules over what was asked for and what the machine has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.executors.ray.local_state import NodeSize
from headrace.model.errors import InvalidInputError

#: The least that Ray takes, rounded up.
LEAST_STORE_BYTES = 80_000_000
#: What a node gets unless more is asked for.
USUAL_STORE_BYTES = 256_000_000
#: More nodes than this are no help on one machine.
MOST_NODES = 8
#: The share of the free memory that the object stores may take, and that jobs may set apart.
STORE_SHARE, MEMORY_SHARE = 0.3, 0.5


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is."""

    cpus: int
    #: memory that is free now
    free_bytes: int


def even_plan(nodes: int, cpus: int | None, store_bytes: int | None, machine: Machine) -> list[NodeSize]:
    """Return nodes of one size: what was asked for each, else an even share of the machine.

    Raises InvalidInputError for object stores that do not fit into memory.

    >>> even_plan(2, None, None, Machine(4, 8_000_000_000))[0]
    NodeSize(cpus=2, object_store_bytes=256000000, memory_bytes=0)
    """
    if store_bytes is None:
        store_bytes = max(min(USUAL_STORE_BYTES, int(machine.free_bytes * STORE_SHARE) // nodes), LEAST_STORE_BYTES)
    if store_bytes < LEAST_STORE_BYTES:
        raise InvalidInputError("object-store-memory", f"must be at least {LEAST_STORE_BYTES} bytes", store_bytes)
    if store_bytes * nodes > machine.free_bytes:
        rule = f"must fit into the free memory ({machine.free_bytes} bytes), for {nodes} node{'s' * (nodes > 1)}"
        raise InvalidInputError("object-store-memory", rule, store_bytes)
    return [NodeSize(cpus or max(machine.cpus // nodes, 1), store_bytes)] * nodes


def cut(asked: Sequence[NodeSize], machine: Machine) -> list[NodeSize]:
    """Return nodes that were asked for a cluster of many machines, cut to this one: shares stay, at least one CPU each.

    >>> [node.cpus for node in cut([NodeSize(16, 8_000_000_000), *[NodeSize(32, 0)] * 3], Machine(8, 16_000_000_000))]
    [1, 2, 2, 2]
    """
    cpus = _share(machine.cpus, sum(size.cpus for size in asked))
    stores = _share(machine.free_bytes * STORE_SHARE, sum(size.object_store_bytes for size in asked))
    memory = _share(machine.free_bytes * MEMORY_SHARE, sum(size.memory_bytes for size in asked))
    return [
        NodeSize(
            max(int(size.cpus * cpus), 1), max(int(size.object_store_bytes * stores), LEAST_STORE_BYTES),
            int(size.memory_bytes * memory),
        )
        for size in asked
    ]  # fmt: skip


def _share(there: float, asked: float) -> float:
    return min(there / asked, 1.0) if asked else 1.0
