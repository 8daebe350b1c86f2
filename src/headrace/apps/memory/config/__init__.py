"""The file of `headrace memory run --config`: resources, concurrency, batching, cache and monitoring, for a cluster."""

from __future__ import annotations

from pathlib import Path

from headrace.apps.memory.config.environment import to_environment
from headrace.apps.memory.config.parsing import parse_config
from headrace.apps.memory.config.reading import read_config
from headrace.apps.memory.config.values import (
    POOLS,
    Cluster,
    Monitoring,
    NodeResources,
    Optimization,
    Pool,
    RunConfig,
    TaskConfig,
    WorkerNodes,
)

#: The file with the usual values.
DEFAULT_FILE = Path(__file__).with_name("ray_task_config.yaml")

__all__ = [
    "DEFAULT_FILE",
    "POOLS",
    "Cluster",
    "Monitoring",
    "NodeResources",
    "Optimization",
    "Pool",
    "RunConfig",
    "TaskConfig",
    "WorkerNodes",
    "parse_config",
    "read_config",
    "to_environment",
]
