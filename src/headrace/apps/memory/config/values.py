"""What a file of `headrace memory run --config` says, with the usual values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class NodeResources:
    """What one node of the cluster offers."""

    cpu: float
    #: bytes
    memory: int
    gpu: float = 0.0
    #: bytes of Ray's object store; None: as much as Ray takes by itself
    object_store_memory: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerNodes:
    """Nodes that are alike."""

    resources: NodeResources
    count: int = 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """`ray.cluster`: what `headrace ray up` starts."""

    head: NodeResources = NodeResources(cpu=16, memory=32 * GB, object_store_memory=8 * GB)
    workers: tuple[WorkerNodes, ...] = (WorkerNodes(NodeResources(cpu=32, memory=64 * GB, gpu=2), 3),)


@dataclass(frozen=True, slots=True)
class Pool:
    """How many jobs of a kind one worker runs at once: it begins with `start`, and keeps between the others."""

    least: int
    most: int
    start: int

    def capped(self, concurrent: int) -> Pool:
        """Return it with no more than so many at once: the smaller cap counts.

        >>> Pool(10, 100, 20).capped(50), Pool(10, 100, 20).capped(5)
        (Pool(least=10, most=50, start=20), Pool(least=5, most=5, start=5))
        """
        most = min(self.most, concurrent)
        return Pool(min(self.least, most), most, min(self.start, most))


#: By kind of work.
POOLS: Mapping[str, Pool] = MappingProxyType(
    {"consume": Pool(5, 20, 10), "buffer": Pool(3, 10, 5), "process": Pool(10, 100, 20), "storage": Pool(5, 30, 10)}
)


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """`task_configs.KIND_tasks`: what a job of a kind takes, and how many run at once in the whole cluster."""

    num_cpus: float
    max_concurrent: int
    num_gpus: float = 0.0
    #: changes of one step (consume), or rows of one statement (storage); None of the others
    batch_size: int | None = None
    #: of one call of the model (process); None of the others
    timeout: timedelta | None = None


TASKS: Mapping[str, TaskConfig] = MappingProxyType(
    {
        "consume": TaskConfig(0.5, 20, batch_size=100),
        "buffer": TaskConfig(1.0, 10),
        "process": TaskConfig(2.0, 50, num_gpus=0.1, timeout=timedelta(seconds=30)),
        "storage": TaskConfig(0.5, 30, batch_size=500),
    }
)


@dataclass(frozen=True, slots=True)
class Optimization:
    """`optimization`: batching and the cache of results."""

    enable_batching: bool = True
    batch_window: timedelta = timedelta(seconds=5)
    max_batch_size: int = 20
    enable_caching: bool = True
    cache_size_mb: int = 1024
    cache_ttl: timedelta = timedelta(seconds=3600)


@dataclass(frozen=True, slots=True)
class Monitoring:
    """`monitoring`: figures and traces."""

    metrics_interval: timedelta = timedelta(seconds=10)
    enable_tracing: bool = True
    #: share of the traces that are sent, 0 to 1
    trace_sample_rate: float = 0.1


@dataclass(frozen=True, slots=True)
class RunConfig:
    """All of a file."""

    cluster: Cluster = Cluster()
    #: by kind of work
    tasks: Mapping[str, TaskConfig] = field(default_factory=lambda: TASKS)
    optimization: Optimization = Optimization()
    monitoring: Monitoring = Monitoring()
