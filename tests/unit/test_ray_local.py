"""What a local cluster is made of: its plan, its file, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.cli.ray import _nodes_of
from headrace.executors.ray.fitting import Node
from headrace.executors.ray.local_plan import LEAST_STORE_BYTES, Machine, cut, even_plan
from headrace.executors.ray.local_state import LocalNode, LocalState, NodeSize, read_state, token_file, write_state
from headrace.executors.ray.process_groups import ProcessGroup
from headrace.hosting.processes import ProcessId
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.settings import Settings
from headrace.wiring import ray_local
from headrace.wiring.ray_figures import expose_ray
from headrace.wiring.ray_local import Asked, start_local

MACHINE = Machine(cpus=4, free_bytes=10_000_000_000)

FILE = """
ray:
  cluster:
    head_node:
      resources: {cpu: 16, memory: 32GB, object_store_memory: 8GB}
    worker_nodes:
      - resources: {cpu: 32, memory: 64GB, gpu: 2}
        count: 3
task_configs:
  consume_tasks: {num_cpus: 0.5}
"""


def test_nodes_share_the_machine_evenly() -> None:
    """Unless more is asked for; never less than Ray takes, never more than there is."""
    assert even_plan(3, None, None, MACHINE) == [NodeSize(1, 256_000_000)] * 3
    assert even_plan(1, 16, 500_000_000, MACHINE) == [NodeSize(16, 500_000_000)]
    assert even_plan(2, None, None, Machine(1, 300_000_000)) == [NodeSize(1, LEAST_STORE_BYTES)] * 2
    for store in (LEAST_STORE_BYTES - 1, 5_000_000_001):
        with pytest.raises(InvalidInputError, match="object-store-memory must"):
            even_plan(2, None, store, MACHINE)


def test_a_file_of_a_large_cluster_is_cut_to_this_machine(tmp_path: Path) -> None:
    """The file of `headrace memory run`; its other keys are not this command's."""
    (file := tmp_path / "ray.yaml").write_text(FILE)
    asked = _nodes_of(file)
    assert asked == [(16.0, 8_000_000_000, 32_000_000_000), *[(32.0, 0, 64_000_000_000)] * 3]
    nodes = cut([NodeSize(int(cpus), store, memory) for cpus, store, memory in asked], MACHINE)
    assert sum(node.cpus for node in nodes) == 4
    assert nodes[0].object_store_bytes == 3_000_000_000
    assert sum(node.memory_bytes for node in nodes) <= 5_000_000_000
    assert cut([NodeSize(2, LEAST_STORE_BYTES, 1_000)], MACHINE) == [NodeSize(2, LEAST_STORE_BYTES, 1_000)]


def test_a_cluster_of_many_nodes_is_refused(tmp_path: Path) -> None:
    """They are no help on one machine."""
    with pytest.raises(ConfigError, match="at most 8 nodes on one machine, got 9"):
        start_local(Settings(directory=tmp_path), Asked(larger=[(1.0, 0, 0)] * 9), None)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As this interpreter would find no Ray."""
    monkeypatch.setattr(ray_local, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'headrace\[ray\]'"):
        start_local(Settings(directory=tmp_path), Asked(), None)


def test_a_file_of_another_boot_counts_for_nothing(tmp_path: Path) -> None:
    """Its numbers of processes mean others by now. One that cannot be read is named."""
    group = ProcessGroup(7, (ProcessId(7, "1"),))
    node = LocalNode(NodeSize(1, LEAST_STORE_BYTES), group, group.members)
    state = LocalState("127.0.0.1:26379", tmp_path / "r", token_file(tmp_path), "2.60.0", (node,))
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    assert not state.is_running
    file = tmp_path / "ray.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "machine": "another"}))
    assert read_state(tmp_path) is None
    file.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_state(tmp_path)


def test_figures_of_a_cluster() -> None:
    """Sums over its nodes; one that does not answer has no others."""
    nodes = [
        Node("a", {"CPU": 2.0, "memory": 5_000_000_000.0}, {"CPU": 0.5, "memory": 4_000_000_000.0}),
        Node("b", {"CPU": 1.0, "GPU": 1.0}, {"CPU": 1.0}),
    ]
    told = expose_ray(nodes)
    for line in (
        "headrace_ray_up 1", "headrace_ray_nodes 2", 'headrace_ray_resource{resource="CPU",state="total"} 3',
        'headrace_ray_resource{resource="CPU",state="free"} 1.5',
        'headrace_ray_resource{resource="GPU",state="free"} 0',
        'headrace_ray_resource{resource="memory",state="total"} 5000000000',
    ):  # fmt: skip
        assert f"\n{line}\n" in told
    assert [line for line in expose_ray(None).splitlines() if not line.startswith("#")] == ["headrace_ray_up 0"]


def test_a_token_is_made_once(tmp_path: Path) -> None:
    """And is for this user alone."""
    path = token_file(tmp_path)
    first = path.read_text()
    assert len(first) == 64
    path.chmod(0o644)
    assert token_file(tmp_path).read_text() == first
    assert path.stat().st_mode & 0o777 == 0o600
