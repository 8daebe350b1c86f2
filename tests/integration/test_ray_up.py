"""`headrace ray up`, `down` and `status` on real clusters, in a namespace that has an address beside its loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.executors.ray.listening import parse_address
from tests.backends.ray import RayCluster, why_not
from tests.faults.farm_tasks import app, effect
from tests.faults.ray_site import RaySite, ray_site_on
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there can be a namespace")

OUTSIDE = "10.77.0.5"
LINK = (
    "(ip link add d0 type dummy || ip link add d0 type ifb) 2>/dev/null && "
    f"ip address add {OUTSIDE}/24 dev d0 && ip link set d0 up && ip route add default via 10.77.0.1 dev d0"
)


@dataclass
class Place:
    """A namespace in which commands run, each in a directory of its own."""

    cluster: RayCluster

    def headrace(self, directory: Path, *words: str, code: int = 0, wrap: tuple[str, ...] = ()) -> str:
        """Run a command, and return what it wrote."""
        done = subprocess.run(
            self.cluster.command(*wrap, sys.executable, "-m", "headrace", *words, folder=directory),
            env=self.environment(directory), capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def document(self, directory: Path, *words: str, code: int = 0) -> dict[str, Any]:
        """Run a command, and return its JSON."""
        document: dict[str, Any] = json.loads(self.headrace(directory, *words, "--json", code=code))
        return document

    def figures(self, directory: Path) -> str:
        """Return what Prometheus would read of the cluster."""
        code = (
            "import asyncio; from headrace.settings import load_settings; from headrace.wiring.ray_figures import *\n"
        )
        code += "print(asyncio.run(ray_figures(load_settings())))"
        environ = {**self.environment(directory), "HEADRACE_WORKER_EXECUTOR": "ray"}
        command = self.cluster.command(sys.executable, "-c", code, folder=directory)
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def environment(self, directory: Path) -> dict[str, str]:
        """Return what a command is run with: nothing that leads to a cluster."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "HEADRACE_"))}
        return {**kept, "HEADRACE_DIRECTORY": str(directory / "data"), "TMPDIR": str(self.temporary)}

    @property
    def temporary(self) -> Path:
        """Where temporary files are; its path is as short as Ray needs it."""
        (path := self.cluster.root / "t").mkdir(exist_ok=True)
        return path

    def listeners(self) -> set[str]:
        """Return the addresses at which anything listens in there."""
        text = subprocess.run(
            self.cluster.command("cat", "/proc/net/tcp", "/proc/net/tcp6"), capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split() for line in text.splitlines() if ":" in line]
        return {parse_address(row[1].split(":")[0]) for row in rows if row[3] == "0A"}


@pytest.fixture
def place() -> Iterator[Place]:
    """Make the namespace."""
    with RayCluster() as cluster:
        made = subprocess.run(cluster.command("sh", "-c", LINK), capture_output=True, check=False)
        if made.returncode:
            pytest.skip("no second network interface can be made here")
        yield Place(cluster)


def folder(root: Path, name: str) -> Path:
    """Make a directory."""
    (made := root / name).mkdir()
    return made


def test_a_cluster_comes_up_on_loopback_alone(place: Place, tmp_path: Path) -> None:
    """Nothing listens elsewhere, and none comes in without the token."""
    one = folder(tmp_path, "one")
    assert "headrace ray up" in place.headrace(one, "ray", "status", code=1)
    said = place.headrace(one, "ray", "up", "--num-cpus", "1", "--object-store-memory", "80MB")
    assert "1 node with 1 CPU, at 127.0.0.1:26379 (loopback only, with a token)" in said
    assert place.listeners() == {"127.0.0.1", "::ffff:127.0.0.1"}
    for name in ("ray.json", "ray.token"):
        assert (one / "data" / name).stat().st_mode & 0o777 == 0o600, name
    assert _asked(place, one, {"RAY_AUTH_MODE": "disabled"}) != 0
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(one / "data" / "ray.token")}
    assert _asked(place, one, token) == 0
    assert place.document(one, "ray", "down")["stopped"] is True
    assert not place.cluster.pids("gcs_server|raylet")


def _asked(place: Place, directory: Path, environ: dict[str, str]) -> int:
    """Ask the head node as one with these settings does; return what that ended with."""
    code = "from ray._raylet import GcsClient; GcsClient('127.0.0.1:26379').internal_kv_keys(b'', None, timeout=9)"
    asked = subprocess.run(
        place.cluster.command(sys.executable, "-c", code), env=place.environment(directory) | environ,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert asked.returncode == 0 or "InvalidAuthToken" in asked.stderr
    return asked.returncode


@pytest.mark.slow
def test_clusters_are_beside_each_other_and_go_by_themselves(place: Place, tmp_path: Path) -> None:
    """Two nodes, which are shown and not begun twice; another cluster is left alone."""
    one, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    place.headrace(one, "ray", "up", "--nodes", "2", "--num-cpus", "1", "--object-store-memory", "80MB")
    shown = place.document(one, "ray", "status")
    assert (shown["state"], shown["nodes_alive"], shown["cpus"]) == ("running", 2, 2.0)
    # Which store jobs would be in does not matter for that.
    in_memory = place.headrace(one, "ray", "status", "--json", wrap=("env", "HEADRACE_URL=memory://"))
    assert json.loads(in_memory)["nodes_alive"] == 2
    again = place.document(one, "ray", "up")
    assert (again["started"], again["node_sizes"]) == (False, shown["node_sizes"])
    beside = place.document(other, "ray", "up", "--num-cpus", "1", "--object-store-memory", "80MB")
    assert beside["address"] != shown["address"]
    assert place.document(one, "ray", "down")["stopped"] is True
    living = set(place.cluster.pids("."))
    assert living.isdisjoint(pid for node in shown["node_sizes"] for pid in node["pids"])
    assert living.issuperset(pid for node in beside["node_sizes"] for pid in node["pids"])
    assert not Path(shown["folder"]).exists()
    assert place.document(other, "ray", "status")["state"] == "running"
    assert place.document(one, "ray", "down")["stopped"] is False
    assert place.document(other, "ray", "down")["stopped"] is True
    assert not place.cluster.pids("gcs_server|raylet")


@pytest.mark.slow
def test_what_is_lost_is_told_and_comes_back(place: Place, tmp_path: Path) -> None:
    """Figures are those of the cluster. A lost node, then a lost head node, whose remains the next `up` clears away."""
    one = folder(tmp_path, "one")
    first = place.document(one, "ray", "up", "--nodes", "2", "--num-cpus", "1", "--object-store-memory", "80MB")
    told = place.figures(one)
    assert "headrace_ray_up 1\n" in told
    assert "headrace_ray_nodes 2\n" in told
    assert 'headrace_ray_resource{resource="CPU",state="total"} 2\n' in told
    assert 'headrace_ray_resource{resource="object_store_memory",state="free"} 160000000\n' in told
    raylets = set(place.cluster.pids("raylet/raylet"))
    head, node = ([pid for pid in one["pids"] if pid in raylets] for one in first["node_sizes"])
    place.cluster.kill(node)
    shown = place.document(one, "ray", "status", code=1)
    assert shown["state"] == "degraded"
    assert [one["alive"] for one in shown["node_sizes"]] == [True, False]
    place.cluster.kill(head)
    assert place.document(one, "ray", "status", code=1) == {"state": "stopped"}
    assert "headrace_ray_up 0\n" in place.figures(one)
    up = ("ray", "up", "--num-cpus", "1", "--object-store-memory", "80MB")
    with ThreadPoolExecutor(2) as threads:
        second = list(threads.map(lambda _: place.document(one, *up), range(2)))
    assert sorted(one["started"] for one in second) == [False, True]
    assert {one["address"] for one in second} == {first["address"]}
    former = {pid for one in first["node_sizes"] for pid in one["pids"]}
    wait_until_sync(lambda: former.isdisjoint(place.cluster.pids(".")))
    place.headrace(one, "ray", "down")


@pytest.mark.slow
def test_what_keeps_it_from_starting_is_told(place: Place, tmp_path: Path) -> None:
    """A taken port and a store larger than memory are mistakes; what Ray says itself is its reason. Nothing stays."""
    one = folder(tmp_path, "one")
    place.document(one, "ray", "up", "--num-cpus", "1", "--object-store-memory", "80MB")
    other = folder(tmp_path, "other")
    assert "port must be free on 127.0.0.1" in place.headrace(other, "ray", "up", "--port", "26379", code=2)
    said = place.headrace(other, "ray", "up", "--object-store-memory", "900TB", code=2)
    assert "must fit into the free memory" in said
    place.headrace(one, "ray", "down")
    said = place.headrace(other, "ray", "up", code=3, wrap=("prlimit", "--nofile=24"))
    assert "node 0 of the Ray cluster does not start" in said
    # Which of the head's processes misses a file first is chance.
    assert re.search(r"does not start: .*(GCS|open files)", said)
    assert not list(place.temporary.glob("hrray-*"))
    assert not place.cluster.pids("gcs_server|raylet")
    assert place.document(other, "ray", "status", code=1) == {"state": "stopped"}


def test_a_process_that_others_can_reach_is_found(place: Place) -> None:
    """By what the kernel says, of both families; what is on loopback, and what others listen on, counts for nothing."""
    code = (
        "import os, socket; from headrace.executors.ray.listening import open_to_others as find\n"
        f"made = [socket.create_server(('127.0.0.1', 4001)), socket.create_server(('{OUTSIDE}', 4002)),"
        " socket.create_server(('::1', 4003), family=socket.AF_INET6),"
        " socket.create_server(('::', 4004), family=socket.AF_INET6)]\n"
        "print(find([os.getpid()]), find([1]))"
    )
    told = subprocess.run(
        place.cluster.command(sys.executable, "-c", code), capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert told == f"['{OUTSIDE} port 4002', ':: port 4004'] []\n"


@dataclass
class LocalSite(RaySite):
    """A place whose workers are told nothing of the cluster but the app's directory."""

    @property
    def environment(self) -> dict[str, str]:
        """What drivers get beside the environment of the test."""
        asked = RaySite.environment.fget(self)  # type: ignore[attr-defined]
        return {**{name: value for name, value in asked.items() if not name.startswith("RAY_")},
                "HEADRACE_RAY_ADDRESS": "auto"}  # fmt: skip


@pytest.mark.slow
async def test_a_worker_finds_it_by_the_directory(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`[ray] address` is "auto", and no variable of Ray is set."""
    place.cluster.nodes.append("127.0.0.1")
    place.headrace(tmp_path, "ray", "up", "--num-cpus", "1", "--object-store-memory", "80MB")
    async with ray_site_on(place.cluster, tmp_path, monkeypatch) as site:
        local = LocalSite(None, site.root, site.schema, cluster=place.cluster)  # type: ignore[arg-type]
        worker = local.start_worker()
        try:
            async with app:
                assert await (await effect.enqueue(4)).result(40) == 8
            [line] = local.effects("run")
            assert line["pid"] != worker.pid
        finally:
            local.stop()
    place.headrace(tmp_path, "ray", "down")
