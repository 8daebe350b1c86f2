"""Rules, alerts, dashboards and autoscalers name metrics that there are, and their expressions can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from headrace.apps.details.desk import register
from headrace.wiring.ray_figures import expose_ray
from tests.unit.deploy_files import DEPLOY, KUBERNETES, ROOT, compose, documents, example_environment
from tests.unit.memory_world import memory_served
from tests.unit.service_calls import served, shop
from tests.unit.test_docs_commands import mistakes, shown

REFERENCE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((DEPLOY / "grafana" / "headrace.json").read_text(encoding="utf-8"))
#: Prometheus's own.
BUILT_IN = {"up"}
SECRETS = {"POSTGRES_PASSWORD": "s3cret", "VALKEY_PASSWORD": "s3cret"}
_TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
#: What Prometheus makes of one metric of a kind.
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def rules(name: str) -> list[dict[str, Any]]:
    """Return the rules of a file."""
    [document] = documents(DEPLOY / name)
    return [rule for group in document["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield every expression of `deploy/`, with its place."""
    for file in ("alerts.yml", "prometheus/rules.yml"):
        for rule in rules(file):
            yield f"{file}: {rule.get('alert') or rule['record']}", rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield f"dashboard: {panel['title']}", target["expr"]
    [scaled] = documents(KUBERNETES / "keda" / "scaled.yaml")
    yield "keda", scaled["spec"]["triggers"][0]["metadata"]["query"]
    [adapter] = documents(KUBERNETES / "hpa" / "external-metrics.yaml")
    yield "hpa", adapter["externalRules"][0]["metricsQuery"].replace("<<.LabelMatchers>>", "")


def metrics_of(expression: str) -> set[str]:
    """Return the metrics that an expression asks for; what Grafana puts in stands for anything."""
    found: set[str] = set()

    def visit(part: Any) -> None:
        if isinstance(part, promql_parser.VectorSelector):
            found.add(part.name)

    promql_parser.walk(promql_parser.parse(expression.replace("$queue", ".*")), pre_visit=visit)
    return found


NAMED = {where: metrics_of(expression) for where, expression in expressions()}
RECORDED = {rule["record"] for rule in rules("prometheus/rules.yml")}


def exposed(text: str) -> set[str]:
    """Return the names of the series of an exposition."""
    return {f"{name}{suffix}" for name, kind in _TYPE.findall(text) for suffix in ("", *SUFFIXES.get(kind, ()))}


async def live(folder: Path) -> set[str]:
    """Return the names that services of this version expose: one with details, one of memory; and those of Ray."""
    found = exposed(expose_ray(()))
    details = shop()
    register(details)
    async with served(details) as client:
        found |= exposed((await client.get("/metrics")).text)
    async with memory_served(folder) as client:
        found |= exposed((await client.get("/metrics")).text)
    return found


def test_every_expression_asks_for_something() -> None:
    """And is one of Prometheus: a slip of the pen does not come this far."""
    assert len(NAMED) >= 60
    assert [where for where, names in NAMED.items() if not names] == []
    with pytest.raises(ValueError):
        metrics_of("max by queue (headrace_queue_jobs)")


async def test_every_metric_is_one_that_a_service_exposes(tmp_path: Path) -> None:
    """In alerts, rules, dashboard and autoscalers alike."""
    known = await live(tmp_path) | BUILT_IN | RECORDED
    assert {where: gone for where, names in NAMED.items() if (gone := names - known)} == {}


def test_every_metric_is_in_the_reference() -> None:
    """Under its own name; what Prometheus makes of it, such as buckets, is that of the metric."""
    named = set().union(*NAMED.values()) - BUILT_IN - RECORDED
    written = re.compile(r"(?:_bucket|_sum|_count)$")
    lost = {
        name for name in named if not {f"`{name}", f"`{written.sub('', name)}"} & set(re.findall(r"`\w+", REFERENCE))
    }
    assert lost == set()


def test_a_metric_that_there_is_not_is_found() -> None:
    """The checks themselves can fail."""
    assert metrics_of("sum(rate(headrace_jobs_total[5m])) / max(up)") == {"headrace_jobs_total", "up"}
    assert "`headrace_jobs_total" not in REFERENCE


def test_what_is_promised_of_dead_letters_is_watched() -> None:
    """The share of parts of details that were never written, and failed jobs of any queue."""
    asked = set().union(*(metrics_of(rule["expr"]) for rule in rules("alerts.yml")))
    assert {"batch_dead_letters_total", "headrace_queue_jobs", "headrace_outbox_events"} <= asked


def test_alerts_say_what_happened_and_what_to_do() -> None:
    """Each has a severity, a sentence and an action, and the commands in it are ones of the command line."""
    for rule in rules("alerts.yml"):
        name, notes = rule["alert"], rule["annotations"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), name
        assert notes["summary"].endswith(".") and notes["action"], name
        commands = "\n".join(f"`{part.strip()}`" for part in re.split("[;:,]", notes["action"]) if "headrace " in part)
        said = re.sub(r"\{\{[^}]*\}\}", "NAME", commands)
        assert {" ".join(words): wrong for words in shown(said) if (wrong := mistakes(words))} == {}, name


def test_what_is_recorded_is_named_by_its_level() -> None:
    """level:metric:operation, as Prometheus's own rules are; only recorded names have colons."""
    assert RECORDED
    assert [name for name in RECORDED if not re.fullmatch(r"headrace:\w+:\w+", name)] == []
    asked = {name for names in NAMED.values() for name in names if ":" in name}
    assert asked <= RECORDED


def test_the_dashboard_fits_together() -> None:
    """Ids are single, panels lie beside one another within the width, each says what it shows."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        assert panel["type"] == "row" or (panel["description"] and panel["targets"]), panel["title"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not places & cells, f"{panel['title']} lies on another"
        places |= cells
    [source] = documents(DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yaml")
    assert source["datasources"][0]["type"] == DASHBOARD["templating"]["list"][0]["query"] == "prometheus"


def test_prometheus_finds_what_it_is_told_of() -> None:
    """The files that compose mounts are the ones that its configuration names, and the target is our service."""
    [configuration] = documents(DEPLOY / "prometheus" / "prometheus.yml")
    prometheus = compose(example_environment() | SECRETS)["services"]["prometheus"]
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in prometheus["volumes"]}
    assert set(configuration["rule_files"]) <= set(mounted)
    assert [file for file in mounted.values() if file.startswith("./") and not (DEPLOY / file).exists()] == []
    [job] = configuration["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["service:8400"]}]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{prometheus['secrets'][0]}"
