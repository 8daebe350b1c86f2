"""From the data of a file to what it says: only known keys, each of its type and within its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headrace import ConfigError
from headrace.apps.memory.config.section import Section
from headrace.apps.memory.config.values import (
    TASKS,
    Cluster,
    Monitoring,
    NodeResources,
    Optimization,
    RunConfig,
    TaskConfig,
    WorkerNodes,
)

_RESOURCES = ("cpu", "memory", "gpu", "object_store_memory")
_OPTIMIZATION = (
    *("enable_batching", "batch_window_seconds", "max_batch_size"),
    *("enable_caching", "cache_size_mb", "cache_ttl_seconds"),
)
_MONITORING = ("metrics_interval_seconds", "enable_tracing", "trace_sample_rate")
#: What `[memory]` allows, too.
MOST_BATCH, MOST_ROWS = 100, {"consume": 1_000, "storage": 10_000}


def parse_config(data: Any, file: str = "config") -> RunConfig:
    """Return what a file says; what it leaves out has its usual value. Raises ConfigError naming file, key and rule.

    >>> config = parse_config({"task_configs": {"process_tasks": {"max_concurrent": 8}}}, "small.yaml")
    >>> config.tasks["process"].max_concurrent, config.tasks["process"].num_cpus
    (8, 2.0)
    """
    top = Section.of(file, "", data, ("ray", "task_configs", "optimization", "monitoring"))
    return RunConfig(
        cluster=_cluster(top.inner("ray", ("cluster",)).inner("cluster", ("head_node", "worker_nodes"))),
        tasks=_tasks(top.inner("task_configs", [f"{kind}_tasks" for kind in TASKS])),
        optimization=_optimization(top.inner("optimization", _OPTIMIZATION)),
        monitoring=_monitoring(top.inner("monitoring", _MONITORING)),
    )


def _cluster(given: Section) -> Cluster:
    usual = Cluster()
    head = _node(given.inner("head_node", ("resources",)), usual.head)
    rows = given.rows("worker_nodes", ("resources", "count"))
    if rows is None:
        return Cluster(head, usual.workers)
    like = usual.workers[0].resources
    workers = tuple(WorkerNodes(_node(row, like), row.whole("count", 1, least=0, most=10_000)) for row in rows)
    return Cluster(head, workers)


def _node(given: Section, usual: NodeResources) -> NodeResources:
    """Return what a node offers; one whose resources are given has no GPU unless they say so."""
    resources = given.inner("resources", _RESOURCES)
    if not resources.table:
        return usual
    return NodeResources(
        cpu=resources.number("cpu", usual.cpu, least=0.1, most=10_000),
        memory=resources.size("memory", usual.memory),
        gpu=resources.number("gpu", 0, most=1_000),
        object_store_memory=resources.optional("object_store_memory", lambda key: resources.size(key, 1)),
    )


def _tasks(given: Section) -> Mapping[str, TaskConfig]:
    return MappingProxyType({kind: _task(given, kind, usual) for kind, usual in TASKS.items()})


def _task(given: Section, kind: str, usual: TaskConfig) -> TaskConfig:
    known = ["num_cpus", "num_gpus", "max_concurrent"]
    known += ["batch_size"] if usual.batch_size is not None else []
    known += ["timeout_seconds"] if usual.timeout is not None else []
    section = given.inner(f"{kind}_tasks", known)
    gpus = section.number("num_gpus", usual.num_gpus, most=1_000)
    if gpus > 1 and gpus != int(gpus):
        raise ConfigError(
            f"{given.file}: {section.path}.num_gpus must be a share from 0 to 1 or a whole number, got {gpus}"
        )
    size = usual.batch_size
    return TaskConfig(
        num_cpus=section.number("num_cpus", usual.num_cpus, least=0.001, most=1_000),
        max_concurrent=section.whole("max_concurrent", usual.max_concurrent),
        num_gpus=gpus,
        batch_size=None if size is None else section.whole("batch_size", size, most=MOST_ROWS[kind]),
        timeout=None if usual.timeout is None else section.seconds("timeout_seconds", usual.timeout, least=1),
    )


def _optimization(given: Section) -> Optimization:
    usual = Optimization()
    return Optimization(
        enable_batching=given.flag("enable_batching", usual.enable_batching),
        batch_window=given.seconds("batch_window_seconds", usual.batch_window, least=0),
        max_batch_size=given.whole("max_batch_size", usual.max_batch_size, most=MOST_BATCH),
        enable_caching=given.flag("enable_caching", usual.enable_caching),
        cache_size_mb=given.whole("cache_size_mb", usual.cache_size_mb, most=1_000_000),
        cache_ttl=given.seconds("cache_ttl_seconds", usual.cache_ttl, least=1),
    )


def _monitoring(given: Section) -> Monitoring:
    usual = Monitoring()
    return Monitoring(
        metrics_interval=given.seconds("metrics_interval_seconds", usual.metrics_interval, least=0.1),
        enable_tracing=given.flag("enable_tracing", usual.enable_tracing),
        trace_sample_rate=given.number("trace_sample_rate", usual.trace_sample_rate, most=1),
    )
