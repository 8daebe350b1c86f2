"""docs/howto/scale-workers.md: what it shows for autoscalers names what there is, and its script does what it says."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from headrace.engine.scale_exposition import METRICS, expose_scale
from headrace.engine.scaling import scale_document
from headrace.model.durations import parse_duration
from headrace.model.job import JobSpec, NewJob
from headrace.model.scale_values import HOLDS, Load, ScaleReason, ScalingRule
from headrace.model.scaling import scale
from headrace.settings import WorkerSettings, load_settings
from tests.conformance.scenario import ARGS
from tests.unit.service_calls import served, shop
from tools import check_docs

PAGE = (check_docs.ROOT / "docs" / "howto" / "scale-workers.md").read_text(encoding="utf-8")
BURST = Load(eligible=600, running=10, waiting=600, live_workers=1, slots=10, seconds_per_job=2.0)


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def documents() -> list[Any]:
    """Return all YAML documents of the page."""
    return [document for block in blocks("yaml") for document in yaml.safe_load_all(block)]


def triggers() -> dict[str, dict[str, str]]:
    """Return what each trigger of KEDA is told, by its type."""
    [whole] = [document for document in documents() if document.get("kind") == "ScaledObject"]
    [alone] = [document for document in documents() if "triggers" in document]
    assert whole["spec"]["maxReplicaCount"] == 40
    return {trigger["type"]: trigger["metadata"] for trigger in [*whole["spec"]["triggers"], *alone["triggers"]]}


def test_the_document_shown_is_what_is_told() -> None:
    """Of the burst of the page."""
    [shown] = blocks("json")
    assert json.loads(shown) == scale_document(scale("mail", ScalingRule(), BURST))


async def test_the_place_that_keda_reads_holds_the_wanted_workers() -> None:
    """The path of the address is a route, and the path into its answer leads to a number."""
    told = triggers()["metrics-api"]
    address = urlsplit(told["url"])
    app = shop()
    app.queue("mail")
    async with served(app, worker=False) as client:
        await app.runtime.stores.jobs.insert_jobs([NewJob(JobSpec("double", "mail"), ARGS) for _ in range(45)])
        value: Any = (await client.get(address.path, params=parse_qs(address.query))).json()
    for step in told["valueLocation"].split("."):
        value = value[int(step)] if step.isdigit() else value[step]
    assert (value, told["targetValue"], told["authMode"]) == (5, "1", "bearer")


def test_metrics_that_autoscalers_ask_for_are_written() -> None:
    """By KEDA over Prometheus, and by the autoscaler of Kubernetes."""
    told = triggers()["prometheus"]
    assert re.findall(r"headrace_\w+", told["query"]) == ["headrace_wanted_workers"]
    [scaler] = [document for document in documents() if document.get("kind") == "HorizontalPodAutoscaler"]
    [metric] = scaler["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] in METRICS
    assert metric["external"]["metric"]["selector"]["matchLabels"] == {"queue": "mail"}


def test_settings_and_unit_are_such_as_can_be_read(tmp_path: Path) -> None:
    """And systemd waits for longer than a worker takes to end."""
    [settings] = blocks("toml")
    (tmp_path / "headrace.toml").write_text(settings)
    rule = load_settings(environ={}, file=tmp_path / "headrace.toml").scaling_of("mail")
    assert rule == ScalingRule(0, 40, parse_duration("5m"))
    unit = configparser.ConfigParser()
    unit.read_string(blocks("ini")[0])
    assert unit.getint("Service", "TimeoutStopSec") > WorkerSettings().shutdown_grace.total_seconds()


def test_every_reason_stands_in_the_table() -> None:
    """Those that hold together, in one row."""
    table = PAGE.partition("## When it does not grow")[2].partition("## ")[0]
    assert all(f"`{reason}`" in table for reason in ScaleReason)
    assert all(f"`{reason}`" in table.partition("as many as there are")[0] for reason in HOLDS)


@pytest.mark.parametrize("answers", [True, False])
def test_the_script_starts_and_stops_units(tmp_path: Path, answers: bool) -> None:
    """As many as are wanted; none is touched where the store does not answer."""
    script = blocks("sh")[-1]
    (tmp_path / "figures").write_text(expose_scale([scale("mail", ScalingRule(), BURST)]))
    for name, does in (
        ("headrace", f"cat {tmp_path}/figures" if answers else "exit 3"),
        ("systemctl", f'echo "$*" >> {tmp_path}/done'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ended = subprocess.run(["sh", "-c", script], env=environment, timeout=30, check=False)
    if not answers:
        assert ended.returncode == 3
        assert not (tmp_path / "done").exists()
        return
    done = (tmp_path / "done").read_text().splitlines()
    assert ended.returncode == 0
    assert done[:3] == [f"start headrace-worker@{number}" for number in (1, 2, 3)]
    assert done[3:] == [f"stop --no-block headrace-worker@{number}" for number in range(4, 41)]
