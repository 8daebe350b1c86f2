"""What `deploy/` says of Ray: the files can be read, fit their schemas, and keep to the rules of security."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.settings import load_settings

ray = pytest.importorskip("ray")

DEPLOY = Path(__file__).parents[2] / "deploy"
TOKEN_SECRET = "headrace-ray-token"

#: The keys of `RayCluster` (ray.io/v1) that the file may use, by the definition that KubeRay ships.
SPEC_KEYS = {
    "rayVersion",
    "authOptions",
    "enableInTreeAutoscaling",
    "autoscalerOptions",
    "headGroupSpec",
    "workerGroupSpecs",
}
AUTOSCALER_KEYS = {"version", "upscalingMode", "idleTimeoutSeconds", "resources"}
HEAD_KEYS = {"serviceType", "rayStartParams", "template"}
GROUP_KEYS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    """The documents of kuberay.yaml by their kinds."""
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())}


def containers(documents: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every container, of the cluster and of the worker."""
    spec = documents["RayCluster"]["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"], documents["Deployment"]["spec"]]
    for group in groups:
        yield from group["template"]["spec"]["containers"]


def test_the_cluster_has_fields_that_kuberay_knows(documents: dict[str, Any]) -> None:
    """And no others: an unknown one is dropped in silence."""
    spec = documents["RayCluster"]["spec"]
    assert documents["RayCluster"]["apiVersion"] == "ray.io/v1"
    assert set(spec) <= SPEC_KEYS
    assert set(spec["autoscalerOptions"]) <= AUTOSCALER_KEYS
    assert set(spec["headGroupSpec"]) <= HEAD_KEYS
    for group in spec["workerGroupSpecs"]:
        assert set(group) <= GROUP_KEYS
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_parameters_are_options_of_ray_start(documents: dict[str, Any]) -> None:
    """Of the version that is installed; KubeRay hands them over as they are, so they are texts."""
    from ray.scripts.scripts import start

    known = {name.removeprefix("--") for option in start.params for name in (*option.opts, *option.secondary_opts)}
    spec = documents["RayCluster"]["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert set(group["rayStartParams"]) <= known
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
    words = " ".join(documents["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"])
    assert set(re.findall(r"--([a-z-]+)=", words.split("&&")[0])) <= known


def test_sizes_are_those_of_the_design(documents: dict[str, Any]) -> None:
    """A head of 16 CPUs and 32 GB, one to three workers of 32 CPUs, 64 GB and 2 GPUs, object stores of 8 GB."""
    spec = documents["RayCluster"]["spec"]
    [group] = spec["workerGroupSpecs"]
    head = spec["headGroupSpec"]["template"]["spec"]["containers"][0]["resources"]
    worker = group["template"]["spec"]["containers"][0]["resources"]
    assert head["limits"] == {"cpu": "16", "memory": "32G"}
    assert worker["limits"] == {"cpu": "32", "memory": "64G", "nvidia.com/gpu": "2"}
    assert (group["minReplicas"], group["maxReplicas"]) == (1, 3)
    stores = {one["rayStartParams"]["object-store-memory"] for one in (spec["headGroupSpec"], group)}
    assert stores == {"8000000000"}
    for container in containers(documents):
        assert container["resources"]["requests"].keys() == container["resources"]["limits"].keys()


def test_nobody_comes_in_without_the_token(documents: dict[str, Any]) -> None:
    """It comes from a secret everywhere; nothing is seen from outside, and the dashboard only in its pod."""
    spec = documents["RayCluster"]["spec"]
    assert spec["authOptions"] == {"mode": "token", "secretName": TOKEN_SECRET}
    env = {one["name"]: one for one in documents["Deployment"]["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["RAY_AUTH_MODE"]["value"] == "token"
    assert env["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": TOKEN_SECRET, "key": "auth_token"}
    assert spec["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert spec["headGroupSpec"]["rayStartParams"]["dashboard-host"] == "127.0.0.1"
    labels = documents["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]
    for template in (spec["headGroupSpec"], *spec["workerGroupSpecs"], documents["Deployment"]["spec"]):
        assert labels.items() <= template["template"]["metadata"]["labels"].items()
    for container in containers(documents):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_the_worker_joins_this_cluster(documents: dict[str, Any]) -> None:
    """By the name that KubeRay gives the service of the head; its probes are there."""
    [container] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert f"--address={documents['RayCluster']['metadata']['name']}-head-svc:6379" in container["args"][0]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container)
    account = documents["ServiceAccount"]["metadata"]["name"]
    assert documents["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"] == account


def test_variables_of_the_worker_are_settings_that_there_are(documents: dict[str, Any]) -> None:
    """One that begins as settings do and is none stops the start."""
    [container] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    own = {one["name"]: one["value"] for one in container["env"] if one["name"].startswith("HEADRACE_")}
    assert load_settings(environ=own, file=DEPLOY / "none.toml").worker.executor == "ray"
    assert '"$APP"' in container["args"][0]
    assert "APP" in {one["name"] for one in container["env"]}


def test_all_is_pinned_to_the_version_that_is_tested(documents: dict[str, Any]) -> None:
    """Image, operator and launcher name the Ray that is installed here."""
    version = ray.__version__
    assert version.startswith("2.60.")
    assert documents["RayCluster"]["spec"]["rayVersion"] == version
    assert {container["image"] for container in containers(documents)} == {f"headrace-ray:{version}"}
    assert f"FROM rayproject/ray:{version}-py3" in (DEPLOY / "ray.Dockerfile").read_text()
    assert f"'{version}'" in (DEPLOY / "ray-cluster.yaml").read_text()


def test_the_launcher_takes_its_file() -> None:
    """By the schema and the rules that ship with Ray; a key that it does not know is refused there."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    said = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    validate_config(prepare_config(copy.deepcopy(said)))
    with pytest.raises(Exception, match="unexpected"):
        validate_config(prepare_config({**copy.deepcopy(said), "wrong": 1}))
    assert said["min_workers"] <= said["max_workers"] == len(said["provider"]["worker_ips"])
    for command in (said["head_start_ray_commands"][-1], said["worker_start_ray_commands"][-1]):
        assert "RAY_AUTH_MODE=token" in command
    assert "--dashboard-host=127.0.0.1" in said["head_start_ray_commands"][-1]
