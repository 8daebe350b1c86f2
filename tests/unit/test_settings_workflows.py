"""The tables of runs and of large values: read, checked, and silent about keys; and what is opened by them."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.blobs.local import LocalBlobs
from headrace.blobs.memory import MemoryBlobs
from headrace.blobs.s3 import S3Blobs
from headrace.model.errors import ConfigError
from headrace.model.run import Level
from headrace.ports.blob_store import BlobStore
from headrace.settings import Settings, load_settings, use_store
from headrace.wiring.blobs import open_blobs
from headrace.workflow_settings import MODES, BlobSettings

ALL = """
[scheduler.hybrid]
default_mode = "workflow_level"
workflow_level_threshold = 0
node_level_threshold = "90s"
[scheduler.distributed]
priority_strategy = "by_node_type"
dependency_check_interval = "250ms"
max_retries = 0
default_timeout = "1h"
[worker]
node_processor_enabled = false
workflow_processor_enabled = false
[recovery]
keep_runs = "7d"
[blob_storage]
type = "minio"
endpoint = "http://127.0.0.1:9000"
bucket = "big"
region = "eu-central-1"
access_key = "who"
secret_key = "hush"
"""
MINIO = '[blob_storage]\ntype = "minio"\nbucket = "b"\naccess_key = "who"\nsecret_key = "hush"\nendpoint = '


def load(tmp_path: Path, text: str = "", **environ: str) -> Settings:
    """Load settings from a file with `text` and an environment."""
    file = tmp_path / "headrace.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(environ=environ, file=file)


def test_every_key_of_runs_is_read(tmp_path: Path) -> None:
    """All keys at once, from the file."""
    settings = load(tmp_path, ALL)
    hybrid, distributed = settings.scheduler.hybrid, settings.scheduler.distributed
    assert (hybrid.default_mode, hybrid.workflow_level_threshold) == ("workflow_level", 0)
    assert hybrid.node_level_threshold == timedelta(seconds=90)
    assert (distributed.priority_strategy, distributed.max_retries) == ("by_node_type", 0)
    assert distributed.dependency_check_interval == timedelta(milliseconds=250)
    assert distributed.default_timeout == timedelta(hours=1)
    assert (settings.worker.node_processor_enabled, settings.worker.workflow_processor_enabled) == (False, False)
    assert settings.recovery.keep_runs == timedelta(days=7)
    assert settings.blob_storage == BlobSettings(
        "minio", None, "big", "http://127.0.0.1:9000", "eu-central-1", "who", "hush"
    )


def test_the_defaults_are_those_of_the_design() -> None:
    """Without a file runs are worked by the thresholds, by depth, and large values lie in a folder."""
    settings = Settings()
    hybrid, distributed = settings.scheduler.hybrid, settings.scheduler.distributed
    assert (hybrid.default_mode, hybrid.workflow_level_threshold) == ("hybrid", 10)
    assert hybrid.node_level_threshold == timedelta(minutes=5)
    assert (distributed.priority_strategy, distributed.max_retries) == ("by_dependency_depth", 3)
    assert distributed.dependency_check_interval == timedelta(seconds=1)
    assert distributed.default_timeout == timedelta(minutes=10)
    assert (settings.blob_storage.type, settings.recovery.keep_runs) == ("local", timedelta(days=30))
    assert set(MODES) == {"hybrid", *Level}


def test_tables_within_tables_stand_in_the_environment_too(tmp_path: Path) -> None:
    """The environment wins over the file, also two tables deep."""
    settings = load(tmp_path, ALL, HEADRACE_SCHEDULER_HYBRID_DEFAULT_MODE="hybrid", HEADRACE_BLOB_STORAGE_BUCKET="b")
    assert (settings.scheduler.hybrid.default_mode, settings.blob_storage.bucket) == ("hybrid", "b")


MISTAKES = {
    "an unknown table": ("[scheduler.hybird]", {}, ["[scheduler] hybird", "did you mean 'hybrid'?"]),
    "an unknown key": ("[scheduler.hybrid]\nmode = 'x'", {}, ["[scheduler.hybrid] mode", "default_mode"]),
    "a table that is a value": ("[scheduler]\nhybrid = 3", {}, ["scheduler.hybrid must be a table",
                                                              "[scheduler.hybrid]"]),
    "an unknown variable": ("", {"HEADRACE_SCHEDULER_HYBRID_MODE": "x"}, ["HEADRACE_SCHEDULER_HYBRID_MODE"]),
    "a mode that is none": ("[scheduler.hybrid]\ndefault_mode = 'fast'", {}, [
        "scheduler.hybrid.default_mode", '"hybrid", "workflow_level", "node_level"', "'fast'"]),
    "fewer nodes than none": ("[scheduler.hybrid]\nworkflow_level_threshold = -1", {}, [
        "scheduler.hybrid.workflow_level_threshold", "at least 0", "-1"]),
    "text for nodes": ("[scheduler.hybrid]\nworkflow_level_threshold = 'few'", {}, ["whole number", "'few'"]),
    "no time": ("[scheduler.hybrid]\nnode_level_threshold = 0", {}, ["node_level_threshold", "longer than zero"]),
    "a strategy that is none": ("[scheduler.distributed]\npriority_strategy = 'luck'", {}, [
        "scheduler.distributed.priority_strategy", '"by_dependency_depth", "by_node_type"', "'luck'"]),
    "no pause": ("", {"HEADRACE_SCHEDULER_DISTRIBUTED_DEPENDENCY_CHECK_INTERVAL": "0"}, ["longer than zero", "0s"]),
    "no time for nodes": ("[scheduler.distributed]\ndefault_timeout = '0s'", {}, ["default_timeout", "longer"]),
    "too many retries": ("[scheduler.distributed]\nmax_retries = 100", {}, ["max_retries", "0 to 99", "100"]),
    "a word for truth": ("[worker]\nnode_processor_enabled = 'maybe'", {}, ["node_processor_enabled", "true or false"]),
    "no runs kept for ever": ("[recovery]\nkeep_runs = 'ever'", {}, ["recovery.keep_runs", "'ever'"]),
    "a storage that is none": ("[blob_storage]\ntype = 'tape'", {}, ["blob_storage.type", '"minio"', "'tape'"]),
    "a bucket without S3": ("[blob_storage]\nbucket = 'b'", {}, ["blob_storage.bucket", 'type = "s3"', "'local'"]),
    "a key without S3": ("[blob_storage]\nsecret_key = 'hush'", {}, ["blob_storage.secret_key", 'type = "s3"']),
    "a path of S3": ("[blob_storage]\ntype = 's3'\nbucket = 'b'\npath = 'x'", {}, ["blob_storage.path", '"local"']),
    "S3 without a bucket": ("[blob_storage]\ntype = 's3'", {}, ["blob_storage.bucket", "must be given"]),
    "MinIO without a server": (MINIO + "''", {}, ["blob_storage.endpoint", "must be given", '"minio"']),
    "MinIO without keys": ("[blob_storage]\ntype = 'minio'\nbucket = 'b'\nendpoint = 'http://[::1]:9'", {}, [
        "blob_storage.access_key", "must be given"]),
    "one key of two": ("[blob_storage]\ntype = 's3'\nbucket = 'b'\nsecret_key = 'hush'", {}, ["access_key", "both"]),
    "an address that is none": (MINIO + "'hush'", {}, ["blob_storage.endpoint", "https://", "another text"]),
    "an address with a port that is none": (MINIO + "'https://hush:port'", {}, ["blob_storage.endpoint", "https://"]),
    "an address with a key in it": (MINIO + "'https://who:hush@storage.example'", {}, ["neither user nor path"]),
    "an address with a path": (MINIO + "'https://storage.example/hush'", {}, ["neither user nor path"]),
    "values in the clear": (MINIO + "'http://storage.example:9000'", {}, ["blob_storage.endpoint", "in the clear"]),
    "values in the clear to one named alike": (MINIO + "'http://localhost.example'", {}, ["in the clear"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "environ", "words"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_named_with_its_fix(tmp_path: Path, text: str, environ: dict[str, str], words: list[str]) -> None:
    """A wrong key or value stops the start, naming key, rule and value, and never a key of the storage."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, **environ)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "hush" not in message


@pytest.mark.parametrize(
    "endpoint", ["https://storage.example", "http://127.0.0.1:9000/", "http://[::1]", "http://localhost:1"]
)
def test_addresses_that_are_allowed(tmp_path: Path, endpoint: str) -> None:
    """TLS everywhere, and without it on this machine alone."""
    assert load(tmp_path, f"{MINIO}'{endpoint}'").blob_storage.endpoint == endpoint


def test_keys_of_the_storage_are_not_shown(tmp_path: Path) -> None:
    """Neither the settings nor what is opened by them show a key."""
    settings = load(tmp_path, ALL)
    shown = repr(settings) + str(settings.blob_storage) + repr(opened(settings))
    assert "hush" not in shown
    assert "who" not in shown


def opened(settings: Settings) -> BlobStore:
    """Return what is opened, which connects to nothing yet."""
    return open_blobs(settings, AsyncExitStack())


def test_what_the_settings_open(tmp_path: Path) -> None:
    """A folder in the directory, one of its own, S3, or memory; a store in memory has its blobs there too."""
    settings = replace(Settings(), directory=tmp_path)
    local = opened(settings)
    assert isinstance(local, LocalBlobs)
    assert local._root == tmp_path / "blobs"
    in_memory = use_store(settings, "memory://")
    assert isinstance(opened(in_memory), MemoryBlobs)
    assert isinstance(opened(replace(settings, blob_storage=BlobSettings("memory"))), MemoryBlobs)
    named = opened(replace(in_memory, blob_storage=BlobSettings(path=tmp_path / "own")))
    assert isinstance(named, LocalBlobs)
    assert named._root == tmp_path / "own"
    assert isinstance(opened(load(tmp_path, ALL, HEADRACE_URL="memory://")), S3Blobs)
    assert list(tmp_path.iterdir()) == [tmp_path / "headrace.toml"]


async def test_what_is_opened_is_closed(tmp_path: Path) -> None:
    """The stack closes the storage."""
    async with AsyncExitStack() as stack:
        blobs = open_blobs(use_store(Settings(), "memory://"), stack)
        await blobs.put_blob("a", json.dumps(1).encode())
    assert [key async for key, _ in blobs.list_blobs("")] == []


def test_without_the_extra_s3_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where obstore is not installed the error names the extra; other storages do without it."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "headrace.blobs.s3", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'headrace\[s3\]'"):
        opened(load(tmp_path, ALL))
    assert isinstance(opened(replace(Settings(), directory=tmp_path)), LocalBlobs)
