"""Memory: the file of `headrace memory run --config`, and the settings it becomes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import ConfigError
from headrace.apps.memory.config import (
    DEFAULT_FILE,
    POOLS,
    Cluster,
    Monitoring,
    NodeResources,
    Optimization,
    RunConfig,
    TaskConfig,
    WorkerNodes,
    parse_config,
    read_config,
    to_environment,
)
from headrace.memory_settings import MemorySettings, check_memory
from headrace.queue_settings import QueueTable
from headrace.settings import Settings, load_settings

#: Every key, each with another value than the usual one.
TOML = """
[ray.cluster.head_node.resources]
cpu = 4
memory = "8GiB"
object_store_memory = 1000000

[[ray.cluster.worker_nodes]]
resources = {cpu = 0.5, memory = "1.5GB", gpu = 1}
count = 2

[[ray.cluster.worker_nodes]]
resources = {cpu = 2}

[task_configs.consume_tasks]
num_cpus = 0.25
num_gpus = 0.5
max_concurrent = 4
batch_size = 50

[task_configs.buffer_tasks]
max_concurrent = 2

[task_configs.process_tasks]
num_cpus = 1
num_gpus = 0
max_concurrent = 200
timeout_seconds = 45.5

[task_configs.storage_tasks]
batch_size = 100

[optimization]
enable_batching = false
batch_window_seconds = 0.5
max_batch_size = 7
enable_caching = false
cache_size_mb = 3
cache_ttl_seconds = 60

[monitoring]
metrics_interval_seconds = 5
enable_tracing = false
trace_sample_rate = 1
"""
OTHER = RunConfig(
    cluster=Cluster(
        NodeResources(4, 8 * 1024**3, object_store_memory=1_000_000),
        (WorkerNodes(NodeResources(0.5, 1_500_000_000, gpu=1), 2), WorkerNodes(NodeResources(2, 64_000_000_000), 1)),
    ),
    tasks={
        "consume": TaskConfig(0.25, 4, 0.5, batch_size=50),
        "buffer": TaskConfig(1, 2),
        "process": TaskConfig(1, 200, 0, timeout=timedelta(seconds=45.5)),
        "storage": TaskConfig(0.5, 30, batch_size=100),
    },
    optimization=Optimization(False, timedelta(seconds=0.5), 7, False, 3, timedelta(seconds=60)),
    monitoring=Monitoring(timedelta(seconds=5), False, 1),
)


def written(tmp_path: Path, text: str, name: str = "config.yaml") -> Path:
    """A file with a text."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_default_file_says_the_usual_values() -> None:
    """What ships as an example is what counts without a file, and each number is that of the design."""
    config = read_config(DEFAULT_FILE)
    assert config == RunConfig() == parse_config({})
    assert config.cluster.head == NodeResources(16, 32_000_000_000, 0, 8_000_000_000)
    assert config.cluster.workers == (WorkerNodes(NodeResources(32, 64_000_000_000, 2), 3),)
    assert {kind: (task.num_cpus, task.num_gpus) for kind, task in config.tasks.items()} == {
        "consume": (0.5, 0), "buffer": (1, 0), "process": (2, 0.1), "storage": (0.5, 0)
    }  # fmt: skip
    assert {kind: (pool.least, pool.most, pool.start) for kind, pool in POOLS.items()} == {
        "consume": (5, 20, 10), "buffer": (3, 10, 5), "process": (10, 100, 20), "storage": (5, 30, 10)
    }  # fmt: skip


def test_every_key_is_read_from_toml_and_yaml(tmp_path: Path) -> None:
    """The same data in both forms are the same configuration; what is left out of a table has its usual value."""
    assert read_config(written(tmp_path, TOML, "config.toml")) == OTHER
    import tomllib

    import yaml

    assert read_config(written(tmp_path, yaml.safe_dump(tomllib.loads(TOML)))) == OTHER


def test_empty_tables_are_usual_ones(tmp_path: Path) -> None:
    """A key with nothing behind it, as YAML lets one write, is a key that is left out; so is an empty file."""
    assert read_config(written(tmp_path, "ray:\ntask_configs:\n  consume_tasks:\noptimization:\n")) == RunConfig()
    assert read_config(written(tmp_path, "")) == RunConfig()
    assert read_config(written(tmp_path, "ray: {cluster: {worker_nodes: []}}")).cluster.workers == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rey: {}", ["unknown key rey", "did you mean 'ray'?"]),
        ("task_configs: {proces_tasks: {}}", ["task_configs.proces_tasks", "'process_tasks'"]),
        ("task_configs: {buffer_tasks: {batch_size: 5}}", ["task_configs.buffer_tasks.batch_size", "max_concurrent"]),
        ("task_configs: {consume_tasks: {timeout_seconds: 5}}", ["unknown key", "consume_tasks.timeout_seconds"]),
        ("task_configs: {process_tasks: {max_concurrent: 0}}", ["process_tasks.max_concurrent", "from 1", "got 0"]),
        ("task_configs: {process_tasks: {max_concurrent: 1.5}}", ["must be a whole number", "got 1.5"]),
        ("task_configs: {process_tasks: {max_concurrent: true}}", ["must be a whole number", "got True"]),
        ("task_configs: {process_tasks: {num_cpus: 0}}", ["num_cpus must be a number from 0.001", "got 0"]),
        ("task_configs: {process_tasks: {num_cpus: '2'}}", ["num_cpus must be a number", "got '2'"]),
        ("task_configs: {process_tasks: {num_cpus: .nan}}", ["num_cpus must be a number", "got nan"]),
        ("task_configs: {process_tasks: {num_gpus: 1.5}}", ["num_gpus must be a share", "got 1.5"]),
        ("task_configs: {process_tasks: {timeout_seconds: 0.5}}", ["timeout_seconds must be a number from 1"]),
        ("task_configs: [1]", ["task_configs must be a table", "got [1]"]),
        ("optimization: {enable_caching: 'yes'}", ["optimization.enable_caching must be true or false", "got 'yes'"]),
        ("optimization: {max_batch_size: 101}", ["max_batch_size must be a whole number from 1 to 100", "got 101"]),
        ("monitoring: {trace_sample_rate: 1.1}", ["trace_sample_rate must be a number from 0 to 1", "got 1.1"]),
        ("ray: {cluster: {head_node: {resources: {memory: 32 G}}}}", ["head_node.resources.memory", "'32 G'"]),
        ("ray: {cluster: {head_node: {resources: {memory: 0B}}}}", ["memory must be more than nothing", "'0B'"]),
        ("ray: {cluster: {head_node: {cpu: 4}}}", ["unknown key ray.cluster.head_node.cpu", "resources"]),
        ("ray: {cluster: {worker_nodes: {count: 1}}}", ["worker_nodes must be a list of tables"]),
        ("ray: {cluster: {worker_nodes: [{}, {cuont: 1}]}}", ["worker_nodes[1].cuont", "did you mean 'count'?"]),
        ("[1, 2]", ["the file must be a table of keys"]),
        ("a: 1\na: 2", ["line 2", "'a' occurs twice"]),
        ("a: &x 1\nb: *x", ["line 2", "aliases"]),
        ("a: [", ["not valid YAML", "line"]),
    ],
)
def test_a_mistake_is_named_with_file_key_rule_and_value(tmp_path: Path, text: str, words: list[str]) -> None:
    """Unknown keys, wrong types and values out of bounds stop the start; nothing has a silent default."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    message = str(caught.value)
    assert [word for word in [str(path), *words] if word not in message] == []


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    """A file that is missing, broken or far too large, in both forms."""
    for name in ("none.yaml", "none.toml"):
        with pytest.raises(ConfigError, match=f"{name} cannot be read"):
            read_config(tmp_path / name)
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_config(written(tmp_path, "a = ", "config.toml"))
    for name in ("large.yaml", "large.toml"):
        with pytest.raises(ConfigError, match="larger than 256 KiB"):
            read_config(written(tmp_path, "#" * (256 * 1024 + 1), name))


@pytest.mark.parametrize("size", ["", "32G", "-1GB", "1e9", True, [1], 0])
def test_what_is_no_size_is_refused(tmp_path: Path, size: Any) -> None:
    """With the file, the key, and what one looks like; nothing is none either."""
    told = json.dumps({"ray": {"cluster": {"head_node": {"resources": {"memory": size}}}}})
    with pytest.raises(ConfigError, match=r"memory must be (a size such as|more than nothing)"):
        read_config(written(tmp_path, told))


def queues_of(variables: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """The tables of queues in the environment."""
    queues: dict[str, dict[str, int]] = json.loads(variables["HEADRACE_QUEUES"])
    return queues


def test_the_smaller_of_both_caps_counts() -> None:
    """A pool's most and `max_concurrent`; the least and the start never lie above that."""
    queues = queues_of(to_environment(RunConfig()))
    names = ("concurrency", "min_slots", "max_slots", "start_slots")
    assert {queue: tuple(table[name] for name in names) for queue, table in queues.items()} == {
        "memory_consume": (20, 5, 20, 10),
        "memory_buffer": (10, 3, 10, 5),
        "memory_process": (50, 10, 50, 20),
        "memory_storage": (30, 5, 30, 10),
    }
    assert {(table["grow_above"], table["shrink_below"]) for table in queues.values()} == {(1_000, 100)}
    other = queues_of(to_environment(OTHER))
    assert other["memory_buffer"] | {"min_slots": 2, "max_slots": 2, "start_slots": 2} == other["memory_buffer"]
    assert other["memory_process"]["max_slots"] == 100


def test_settings_are_those_of_the_file() -> None:
    """What `[memory]`, `[llm]` and `[telemetry]` read from the environment is what the file says."""
    mine = ("HEADRACE_MEMORY_", "HEADRACE_LLM_", "HEADRACE_TELEMETRY_")
    variables = {name: value for name, value in to_environment(OTHER).items() if name.startswith(mine)}
    settings = load_settings(environ=variables, file=Path("missing.toml"))
    expected = replace(
        MemorySettings(),
        enable_batching=False, batch_window=timedelta(seconds=0.5), max_batch_size=7, enable_caching=False,
        cache_size_mb=3, cache_ttl=timedelta(seconds=60), metrics_interval=timedelta(seconds=5),
        consume_batch_size=50, storage_batch_size=100,
    )  # fmt: skip
    assert settings.memory == expected
    assert settings.llm.timeout == timedelta(seconds=45.5)
    assert settings.telemetry.enabled is False


def test_the_usual_file_changes_no_setting_of_memory() -> None:
    """Its values are the defaults of `[memory]`: whoever starts without a file has the same."""
    mine = {name: value for name, value in to_environment(RunConfig()).items() if name.startswith("HEADRACE_MEMORY_")}
    assert load_settings(environ=mine, file=Path("missing.toml")).memory == MemorySettings()


@pytest.mark.skipif(
    not {"max_slots"} <= {item.name for item in fields(QueueTable)} or not hasattr(Settings(), "ray"),
    reason="needs elastic slots and the Ray executor",
)
def test_the_whole_environment_is_settings() -> None:
    """Every variable is known, and queues have their slots and what they take of the cluster."""
    environ = {name: value for name, value in to_environment(OTHER).items() if name.startswith("HEADRACE_")}
    settings: Any = load_settings(environ=environ, file=Path("missing.toml"))
    assert settings.queues["memory_process"].max_slots == 100
    assert settings.ray.amounts("memory_consume") == {"CPU": 0.25, "GPU": 0.5}
    assert settings.worker.resize_interval == timedelta(seconds=30)


@pytest.mark.parametrize("installed", [True, False])
def test_traces_are_sampled_where_they_can_be_made(
    installed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With OpenTelemetry its sampler is told the share; without it there is a warning, and the work goes on."""
    import headrace.apps.memory.config.environment as module

    monkeypatch.setattr(module, "find_spec", lambda _: object() if installed else None)
    variables = to_environment(RunConfig())
    assert variables["HEADRACE_TELEMETRY_ENABLED"] == str(installed).lower()
    assert variables.get("OTEL_TRACES_SAMPLER_ARG") == ("0.1" if installed else None)
    assert ("headrace[otel]" in caplog.text) is not installed


def test_tables_of_queues_stand_in_the_environment_too(tmp_path: Path) -> None:
    """Key by key they win over the file; other queues and keys of the file stay."""
    file = written(tmp_path, '[queues.llm]\nconcurrency = 5\nfair = "key"\n[queues.other]\nconcurrency = 1\n')
    environ = {"HEADRACE_QUEUES": '{"llm": {"concurrency": 9}, "more": {"alarm_age": "5m"}}'}
    queues = load_settings(environ=environ, file=file).queues
    assert (queues["llm"].concurrency, queues["llm"].fair, queues["other"].concurrency) == (9, "key", 1)
    assert queues["more"].alarm_age == timedelta(minutes=5)


@pytest.mark.parametrize("text", ["x", "[]", '{"llm": 5}', "null", '"text"'])
def test_what_is_no_table_of_queues_is_refused(text: str, tmp_path: Path) -> None:
    """With the variable and what one looks like."""
    with pytest.raises(ConfigError, match="HEADRACE_QUEUES must be JSON of tables by name"):
        load_settings(environ={"HEADRACE_QUEUES": text}, file=tmp_path / "missing.toml")


def test_a_wrong_queue_in_the_environment_stops_the_start(tmp_path: Path) -> None:
    """An unknown key and a wrong value are named as those of a file are."""
    for text, word in (('{"llm": {"concurency": 5}}', "concurrency"), ('{"llm": {"concurrency": 0}}', "concurrency")):
        with pytest.raises(ConfigError, match=word):
            load_settings(environ={"HEADRACE_QUEUES": text}, file=tmp_path / "missing.toml")


def test_a_sweep_is_no_rarer_than_its_schedule() -> None:
    """A longer pause than a minute would not be kept."""
    with pytest.raises(ConfigError, match=r"memory\.sweep_interval must be at most 1m"):
        check_memory(MemorySettings(sweep_interval=timedelta(minutes=2)))
    check_memory(MemorySettings(sweep_interval=timedelta(minutes=1)))


def test_flushes_are_kept_as_long_as_somebody_may_look_at_them() -> None:
    """Who waits for one looks at it until it has ended."""
    for kept in (timedelta(hours=23), timedelta(days=3651)):
        with pytest.raises(ConfigError, match=r"memory\.keep_flushes must be from 1d to 3650d, got"):
            check_memory(MemorySettings(keep_flushes=kept))
    check_memory(MemorySettings(keep_flushes=timedelta(days=1)))


def test_no_step_takes_more_changes_than_an_agent_may() -> None:
    """It is told as the key of the settings, and of the file."""
    with pytest.raises(ConfigError, match=r"memory\.consume_batch_size must be from 1 to 1,000"):
        check_memory(MemorySettings(consume_batch_size=1_001))
    with pytest.raises(ConfigError, match=r"consume_tasks\.batch_size must be a whole number from 1 to 1,000"):
        parse_config({"task_configs": {"consume_tasks": {"batch_size": 1_001}}})
    assert (
        parse_config({"task_configs": {"storage_tasks": {"batch_size": 10_000}}}).tasks["storage"].batch_size == 10_000
    )


@pytest.mark.parametrize("schema", ["pg_memory", "information_schema"])
def test_a_schema_of_the_servers_own_is_refused(schema: str) -> None:
    """Before tables are made in it."""
    with pytest.raises(ConfigError, match=rf"memory\.schema must be none of PostgreSQL's own.*{schema}"):
        check_memory(MemorySettings(schema=schema))
