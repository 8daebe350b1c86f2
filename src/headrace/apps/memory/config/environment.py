"""From a file to variables of the environment, which every child process and every node of the cluster is given too."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from importlib.util import find_spec

from headrace.apps.memory.config.values import POOLS, RunConfig
from headrace.apps.memory.opening import KINDS
from headrace.model.durations import format_duration

LOG = logging.getLogger("headrace.memory")

#: Slots grow above so many jobs that could start, and shrink below so many; looked at so often.
GROW_ABOVE, SHRINK_BELOW, RESIZE_INTERVAL = 1_000, 100, timedelta(seconds=30)


def to_environment(config: RunConfig) -> dict[str, str]:
    """Return the settings that a file stands for, as variables of the environment.

    Slots of each queue are those of its pool, and no more run at once in the whole cluster than the smaller of
    the pool's most and `max_concurrent`. `timeout_seconds` is of a call of the model: a job makes several, and each
    is a checkpoint. Where OpenTelemetry is not installed, traces are left out with a warning. What the environment has
    already should win, as ever: `{**to_environment(config), **os.environ}`.

    >>> from headrace.apps.memory.config.values import RunConfig
    >>> variables = to_environment(RunConfig())
    >>> json.loads(variables["HEADRACE_QUEUES"])["memory_process"]["max_slots"]
    50
    >>> variables["HEADRACE_MEMORY_BATCH_WINDOW"]
    '5s'
    """
    return {
        "HEADRACE_QUEUES": _compact(_queues(config)),
        "HEADRACE_RAY_RESOURCES": _compact(_resources(config)),
        "HEADRACE_WORKER_RESIZE_INTERVAL": format_duration(RESIZE_INTERVAL),
        **dict(_memory(config)),
        **_tracing(config),
    }


def _queues(config: RunConfig) -> dict[str, dict[str, int]]:
    queues = {}
    for kind, task in config.tasks.items():
        pool = POOLS[kind].capped(task.max_concurrent)
        queues[KINDS[kind]] = {
            "concurrency": pool.most,
            "min_slots": pool.least,
            "max_slots": pool.most,
            "start_slots": pool.start,
            "grow_above": GROW_ABOVE,
            "shrink_below": SHRINK_BELOW,
        }
    return queues


def _resources(config: RunConfig) -> dict[str, dict[str, float]]:
    return {KINDS[kind]: {"num_cpus": task.num_cpus, "num_gpus": task.num_gpus} for kind, task in config.tasks.items()}


def _memory(config: RunConfig) -> Iterator[tuple[str, str]]:
    given, tasks = config.optimization, config.tasks
    yield "HEADRACE_MEMORY_ENABLE_BATCHING", _flag(given.enable_batching)
    yield "HEADRACE_MEMORY_BATCH_WINDOW", format_duration(given.batch_window)
    yield "HEADRACE_MEMORY_MAX_BATCH_SIZE", str(given.max_batch_size)
    yield "HEADRACE_MEMORY_ENABLE_CACHING", _flag(given.enable_caching)
    yield "HEADRACE_MEMORY_CACHE_SIZE_MB", str(given.cache_size_mb)
    yield "HEADRACE_MEMORY_CACHE_TTL", format_duration(given.cache_ttl)
    yield "HEADRACE_MEMORY_METRICS_INTERVAL", format_duration(config.monitoring.metrics_interval)
    yield "HEADRACE_MEMORY_CONSUME_BATCH_SIZE", str(tasks["consume"].batch_size)
    yield "HEADRACE_MEMORY_STORAGE_BATCH_SIZE", str(tasks["storage"].batch_size)
    timeout = tasks["process"].timeout
    if timeout is not None:
        yield "HEADRACE_LLM_TIMEOUT", format_duration(timeout)


def _tracing(config: RunConfig) -> dict[str, str]:
    if not config.monitoring.enable_tracing:
        return {"HEADRACE_TELEMETRY_ENABLED": "false"}
    if find_spec("opentelemetry") is None:
        LOG.warning("monitoring.enable_tracing needs the extra headrace[otel], which is not installed: no traces")
        return {"HEADRACE_TELEMETRY_ENABLED": "false"}
    return {
        "HEADRACE_TELEMETRY_ENABLED": "true",
        # OpenTelemetry's own variables of its sampler.
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": f"{config.monitoring.trace_sample_rate:g}",
    }


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _flag(value: bool) -> str:
    return "true" if value else "false"
