"""`[scheduler.hybrid]`, `[scheduler.distributed]` and `[blob_storage]`: how runs are worked, where large values lie."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError

MODES = ("hybrid", "workflow_level", "node_level")
STRATEGIES = ("by_dependency_depth", "by_node_type")
BLOB_STORAGES = ("local", "s3", "minio", "memory")


@dataclass(frozen=True, slots=True)
class HybridSettings:
    """`[scheduler.hybrid]`: whether a run is worked by one job in one process, or node by node, each a job."""

    #: "workflow_level", "node_level", or "hybrid", which decides for each run by the two thresholds
    default_mode: str = "hybrid"
    #: hybrid: graphs of more nodes than this are worked node by node
    workflow_level_threshold: int = 10
    #: hybrid: a run that is worked for longer than this goes on node by node
    node_level_threshold: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class DistributedSettings:
    """`[scheduler.distributed]`: how runs are worked node by node."""

    #: which nodes that are ready start first: "by_dependency_depth" (the longest way to the end) or "by_node_type"
    priority_strategy: str = "by_dependency_depth"
    #: time between sweeps for what the ends of nodes set going
    dependency_check_interval: timedelta = timedelta(seconds=1)
    #: attempts beyond the first for nodes whose task declares no retry policy
    max_retries: int = 3
    #: execution timeout of nodes that declare none
    default_timeout: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """`[scheduler]`: how runs of workflows are worked."""

    hybrid: HybridSettings = HybridSettings()
    distributed: DistributedSettings = DistributedSettings()


@dataclass(frozen=True, slots=True)
class BlobSettings:
    """`[blob_storage]`: where values of runs above 64 KiB lie; all processes must see the same."""

    #: "local" (a folder), "s3" or "minio" (need headrace[s3]), or "memory" for tests, as "local" is with a store in
    #: memory unless `path` is given
    type: str = "local"
    #: folder of "local"; empty: `blobs` in `directory`
    path: Path | None = None
    #: bucket of "s3" or "minio"
    bucket: str = ""
    #: address of the server, https://… or, on this machine, http://…; empty with "s3": that of AWS
    endpoint: str = ""
    #: region of the bucket; empty: us-east-1, or with "s3" and no endpoint what the environment of AWS says
    region: str = ""
    #: who asks; empty with "s3": the credentials of the environment or the machine, as AWS has them
    access_key: str = field(default="", repr=False)
    #: goes with `access_key`
    secret_key: str = field(default="", repr=False)


def check_scheduler(scheduler: SchedulerSettings) -> None:
    """Check the rules of `[scheduler.…]`. Raises ConfigError."""
    hybrid, distributed = scheduler.hybrid, scheduler.distributed
    _one_of("scheduler.hybrid.default_mode", hybrid.default_mode, MODES)
    threshold = hybrid.workflow_level_threshold
    _require(threshold >= 0, "scheduler.hybrid.workflow_level_threshold", "must be at least 0", threshold)
    _one_of("scheduler.distributed.priority_strategy", distributed.priority_strategy, STRATEGIES)
    retries = distributed.max_retries
    _require(0 <= retries <= 99, "scheduler.distributed.max_retries", "must be from 0 to 99", retries)
    for name, duration in {
        "scheduler.hybrid.node_level_threshold": hybrid.node_level_threshold,
        "scheduler.distributed.dependency_check_interval": distributed.dependency_check_interval,
        "scheduler.distributed.default_timeout": distributed.default_timeout,
    }.items():
        _require(duration > timedelta(), name, "must be longer than zero", format_duration(duration))


def check_blobs(blobs: BlobSettings) -> None:
    """Check the rules of `[blob_storage]`. Raises ConfigError, never with a key in it."""
    _one_of("blob_storage.type", blobs.type, BLOB_STORAGES)
    remote = blobs.type in ("s3", "minio")
    for name in ("bucket", "endpoint", "region", "access_key", "secret_key"):
        fix = 'goes with type = "s3" or "minio": write that, or leave the key out'
        _require(remote or not getattr(blobs, name), f"blob_storage.{name}", fix, f"type = {blobs.type!r}")
    _require(blobs.path is None or blobs.type == "local", "blob_storage.path", 'goes with type = "local"', blobs.type)
    if remote:
        _check_remote(blobs)


def _check_remote(blobs: BlobSettings) -> None:
    needed = ("bucket", "endpoint", "access_key", "secret_key") if blobs.type == "minio" else ("bucket",)
    for name in needed:
        _require(
            bool(getattr(blobs, name)), f"blob_storage.{name}", f'must be given with type = "{blobs.type}"', "none"
        )
    paired = bool(blobs.access_key) == bool(blobs.secret_key)
    _require(paired, "blob_storage.access_key", "and blob_storage.secret_key must be given both, or neither", "one")
    if blobs.endpoint:
        _check_endpoint(blobs.endpoint)


def _check_endpoint(endpoint: str) -> None:
    # Never with the value: people write user and password into addresses.
    rule = "must be a URL such as https://storage.example:9000, with neither user nor path behind it"
    parts = _split(endpoint)
    whole = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    bare = parts is not None and not (parts.username or parts.password or parts.query or parts.path.strip("/"))
    _require(whole and bare, "blob_storage.endpoint", rule, "another text")
    safe = parts is not None and (parts.scheme == "https" or _is_here(parts.hostname or ""))
    fix = "must begin with https://: values would cross the network in the clear; http:// is for 127.0.0.1 and the like"
    _require(safe, "blob_storage.endpoint", fix, "http://…")


def _split(endpoint: str) -> SplitResult | None:
    try:
        parts = urlsplit(endpoint)
        _ = parts.port  # which is read first here
    except ValueError:
        return None
    return parts


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    shown = ", ".join(f'"{word}"' for word in allowed)
    _require(value in allowed, name, f"must be one of {shown}", repr(value))


def _require(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ConfigError(f"{name} {rule}, got {value}")
