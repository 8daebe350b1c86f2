"""The manifests of Kubernetes: they fit its schemas, hang together, and keep to the rules of security and of scale."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from headrace.apps.flows.worker import app as flows_app
from headrace.celery_settings import ENGINE_QUEUES
from headrace.cli.working import CLOSING_SECONDS
from headrace.service.serving import GRACE_SECONDS
from headrace.settings import load_settings
from tests.unit.deploy_files import DEPLOY, KUBERNETES, ROOT, documents, manifests, pods

SCHEMA = json.loads((Path(__file__).parents[1] / "schemas" / "kubernetes.json").read_text(encoding="utf-8"))
FOLDERS = ("base", "keda", "hpa")
#: The keys of `ScaledObject` and `TriggerAuthentication` (keda.sh/v1alpha1) that the files may use, by the definitions
#: that KEDA ships, and what its scalers know: others are dropped in silence.
SCALED_KEYS = {"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "advanced", "triggers"}
SCALERS = {
    "prometheus": {"serverAddress", "query", "threshold", "ignoreNullValues"},
    "metrics-api": {"url", "valueLocation", "targetValue", "authMode"},
}


def problems(manifest: dict[str, Any]) -> list[str]:
    """Return what the schema of its kind says against a manifest."""
    schema = {**SCHEMA["kinds"][manifest["kind"]], "$defs": SCHEMA["$defs"]}
    return [
        f"{error.json_path}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(manifest)
    ]


def of_kubernetes(folder: str) -> list[dict[str, Any]]:
    """Return the manifests of a folder that Kubernetes itself knows."""
    return [one for one in manifests(KUBERNETES / folder) if not one["apiVersion"].startswith("keda.sh/")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_manifests_fit_the_schemas_of_kubernetes(folder: str) -> None:
    """An unknown field is an error there, so that a slip of the pen is found."""
    found = {f"{one['kind']} {one['metadata']['name']}": problems(one) for one in of_kubernetes(folder)}
    assert len(found) >= 12
    assert {name: said for name, said in found.items() if said} == {}


def test_a_field_that_nobody_knows_is_found() -> None:
    """The check itself can fail."""
    deployment = next(one for one in of_kubernetes("base") if one["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["terminationGraceSeconds"] = 1
    assert any("terminationGraceSeconds" in one for one in problems(deployment))


@pytest.mark.parametrize("folder", FOLDERS)
def test_kustomize_puts_them_together(folder: str) -> None:
    """Where there is kubectl: it names an image, the config map by what is in it, and the namespace, everywhere."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ["kubectl", "kustomize", str(KUBERNETES / folder)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert [one for one in made if one["apiVersion"][:4] != "keda" and problems(one)] == []
    [config] = [one["metadata"] for one in made if one["kind"] == "ConfigMap"]
    assert config["name"].startswith("headrace-")
    for one in made:
        if one["kind"] in ("Deployment", "Job"):
            pod = one["spec"]["template"]["spec"]
            assert {container["image"] for container in pod["containers"]} == {"headrace:0.1.0"}
            assert pod["volumes"][0]["configMap"]["name"] == config["name"]
    worker = next(one for one in made if one["metadata"]["name"] == "headrace-worker" and one["kind"] == "Deployment")
    assert ("replicas" in worker["spec"]) == (folder == "base"), "an autoscaler says how many there are"


def test_pods_are_what_the_strictest_rule_admits() -> None:
    """Not root, no capability, a read-only root, no token of the API: as the namespace demands (`restricted`)."""
    [namespace] = [one for one in of_kubernetes("base") if one["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for name, pod in pods(KUBERNETES / "base").items():
        security = pod["securityContext"]
        assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 10001), name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            }  # fmt: skip
            assert container["resources"]["limits"]["memory"]
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert {"/var/lib/headrace", "/tmp"} <= mounts, "what it writes to with a root that is read-only"


def test_jobs_may_end_before_a_pod_is_killed() -> None:
    """The time to stop is longer than the grace of the settings, and that of the service than its last requests."""
    settings = load_settings(environ={}, file=KUBERNETES / "base" / "headrace.toml")
    needed = settings.worker.shutdown_grace.total_seconds() + CLOSING_SECONDS
    found = pods(KUBERNETES / "base")
    for name in ("headrace-worker", "headrace-relay"):
        assert found[name]["terminationGracePeriodSeconds"] >= needed, name
    service = found["headrace-service"]
    [container] = service["containers"]
    waits = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert service["terminationGracePeriodSeconds"] > waits + GRACE_SECONDS


def test_probes_ask_what_there_is() -> None:
    """Paths are routes of the service, commands are those of the image; no outage of the store ends a process."""
    from headrace.service.health import router

    routes = {route.path for route in router.routes}  # type: ignore[attr-defined]
    [service] = pods(KUBERNETES / "base")["headrace-service"]["containers"]
    asked = {name: service[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert set(asked.values()) <= routes
    words = set((DEPLOY / "check-process.sh").read_text(encoding="utf-8").split())
    [worker] = pods(KUBERNETES / "base")["headrace-worker"]["containers"]
    [relay] = pods(KUBERNETES / "base")["headrace-relay"]["containers"]
    assert worker["livenessProbe"]["exec"]["command"] == ["check-process", "worker-alive"]
    assert "livenessProbe" not in relay
    for container in (worker, relay):
        for name in ("startupProbe", "readinessProbe"):
            program, what = container[name]["exec"]["command"]
            assert program == "check-process"
            assert what in words or f"{what})" in words


def test_names_and_labels_hang_together() -> None:
    """Selectors find pods, budgets leave somebody, secrets have one name, and what comes first says so."""
    found = of_kubernetes("base")
    made = {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "Deployment"}
    labels = {name: spec["template"]["metadata"]["labels"] for name, spec in made.items()}
    for name, spec in made.items():
        assert spec["selector"]["matchLabels"] == labels[name]
        assert spec["replicas"] >= 2
        spread = spec["template"]["spec"]["topologySpreadConstraints"]
        assert [one["labelSelector"]["matchLabels"] for one in spread] == [labels[name]] * 2
    budgets = {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "PodDisruptionBudget"}
    assert {name: spec["selector"]["matchLabels"] for name, spec in budgets.items()} == labels
    [service] = [one for one in found if one["kind"] == "Service"]
    assert service["spec"]["selector"] == labels["headrace-service"]
    for pod in pods(KUBERNETES / "base").values():
        assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "headrace"}}]
    first = {one["kind"] for one in found if one["metadata"]["labels"].get("headrace/step") == "first"}
    assert first == {"Namespace", "ServiceAccount", "Job"}, "the config map is labelled by its generator"
    assert not any("secret" in json.dumps(one.get("data", {})).lower() for one in found)


def test_nobody_comes_near_but_those_that_are_let_in() -> None:
    """All ways in are closed but that to the service; ways out leave the cloud's own metadata out."""
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kubernetes("base") if one["kind"] == "NetworkPolicy"}
    assert policies["headrace-nobody"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    opened = [spec for spec in policies.values() if spec.get("ingress")]
    assert len(opened) == 1
    assert opened[0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "service"
    blocks = [peer["ipBlock"] for rule in policies["headrace-outwards"]["egress"] for peer in rule.get("to", ())]
    assert "169.254.0.0/16" in blocks[0]["except"]


@pytest.mark.parametrize("file", ["scaled.yaml", "scaled-by-api.yaml"])
def test_keda_scales_by_what_is_wanted(file: str) -> None:
    """Keys are those of KEDA; the target of one for each pod makes the figure the number of pods; never nobody."""
    found = {one["kind"]: one["spec"] for one in documents(KUBERNETES / "keda" / file)}
    spec = found["ScaledObject"]
    assert set(spec) <= SCALED_KEYS
    assert spec["scaleTargetRef"] == {"name": "headrace-worker"}
    assert 1 <= spec["minReplicaCount"] <= spec["maxReplicaCount"]
    for trigger in spec["triggers"]:
        given = trigger["metadata"]
        assert set(given) <= SCALERS[trigger["type"]]
        assert all(isinstance(value, str) for value in given.values())
        assert trigger["metricType"] == "AverageValue"
        if trigger["type"] == "prometheus":
            assert (given["threshold"], given["ignoreNullValues"]) == ("1", "false")
            continue
        assert given["targetValue"] == "1"
        [secret] = found["TriggerAuthentication"]["secretTargetRef"]
        assert (secret["parameter"], given["authMode"]) == ("token", "bearer")


def test_the_queues_of_the_application_that_is_shipped_are_worked_and_scaled() -> None:
    """Those of JSON flows and of the engine: each has a unit, and counts for every autoscaler."""
    queues = set(flows_app.registry.queues())
    page = (ROOT / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")
    assert set(re.findall(r"headrace-worker@(\w+)", page)) >= queues | ENGINE_QUEUES
    [keda] = [one["spec"] for one in documents(KUBERNETES / "keda" / "scaled.yaml")]
    assert set(re.findall(r"[a-z]+(?=[|\"])", keda["triggers"][0]["metadata"]["query"])) >= queues | ENGINE_QUEUES
    [hpa] = [one["spec"] for one in of_kubernetes("hpa") if one["kind"] == "HorizontalPodAutoscaler"]
    [chosen] = hpa["metrics"][0]["external"]["metric"]["selector"]["matchExpressions"]
    assert set(chosen["values"]) >= queues | ENGINE_QUEUES
    asked = [one for one in documents(KUBERNETES / "keda" / "scaled-by-api.yaml") if one["kind"] == "ScaledObject"]
    named = {trigger["metadata"]["url"].partition("queue=")[2] for trigger in asked[0]["spec"]["triggers"]}
    # Nobody is told of a queue that has no job: that of webhooks where none is set.
    assert named == queues | ENGINE_QUEUES - {"webhooks"}


def test_the_autoscaler_and_its_adapter_mean_the_same_figure() -> None:
    """The name that the adapter gives is the one that the autoscaler asks for."""
    [spec] = [one["spec"] for one in of_kubernetes("hpa") if one["kind"] == "HorizontalPodAutoscaler"]
    [external] = [metric["external"] for metric in spec["metrics"]]
    [rule] = documents(KUBERNETES / "hpa" / "external-metrics.yaml")[0]["externalRules"]
    assert external["metric"]["name"] == rule["name"]["as"]
    assert external["target"] == {"type": "AverageValue", "averageValue": "1"}
    [keda] = [one["spec"] for one in documents(KUBERNETES / "keda" / "scaled.yaml")]
    assert spec["behavior"] == keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]


def test_the_bounds_of_autoscalers_are_those_of_the_signal() -> None:
    """Else one of the two would hold the number where the other wants more, or fewer."""
    scaling = load_settings(environ={}, file=KUBERNETES / "base" / "headrace.toml").scaling
    [hpa] = [one["spec"] for one in of_kubernetes("hpa") if one["kind"] == "HorizontalPodAutoscaler"]
    bounds = [(hpa["minReplicas"], hpa["maxReplicas"])]
    for file in ("scaled.yaml", "scaled-by-api.yaml"):
        [keda] = [one["spec"] for one in documents(KUBERNETES / "keda" / file) if one["kind"] == "ScaledObject"]
        bounds.append((keda["minReplicaCount"], keda["maxReplicaCount"]))
    assert set(bounds) == {(scaling.min_workers, scaling.max_workers)}


def test_prometheus_finds_the_service() -> None:
    """By the labels of the service and the name of its port; the job is called as the alerts call it."""
    [monitor] = documents(KUBERNETES / "monitoring.yaml")
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    spec = monitor["spec"]
    assert set(spec) <= {"selector", "jobLabel", "endpoints"}
    [service] = [one for one in of_kubernetes("base") if one["kind"] == "Service"]
    labels = service["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    [endpoint] = spec["endpoints"]
    assert set(endpoint) <= {"port", "path", "interval", "authorization"}
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert f'job="{labels[spec["jobLabel"]]}"' in (DEPLOY / "alerts.yml").read_text(encoding="utf-8")
