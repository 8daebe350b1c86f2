"""Work of every kind for the app of `dashboard_world`, brought over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx2

from headrace.testing.provider import ProviderProcess
from tests.waiting import wait_until_sync

#: What users may write: markup, quotes, another direction, and more than a page shows.
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&lt; \u202eevil\u202c"
LONG = "long <b>text</b> " * 60_000


def _node(name: str, kind: str, place: tuple[int, int], **parameters: Any) -> dict[str, Any]:
    written = {"name": name, "type": f"headrace.{kind}", "typeVersion": 1, "position": list(place)}
    return written | {"parameters": parameters}


def _leads(*targets: str) -> list[dict[str, Any]]:
    return [{"node": target, "type": "main", "index": 0} for target in targets]


#: Flows as people draw them: one with branches, and one whose names are hostile.
FLOWS: tuple[dict[str, Any], ...] = (
    {
        "name": "Prices",
        "nodes": [
            _node("By hand", "manual", (0, 120)),
            _node("Nightly", "schedule", (0, 0), rule={"interval": [{"field": "days"}]}),
            _node("Dear?", "if", (260, 60), conditions={"number": [
                {"value1": "={{ $json.price }}", "operation": "larger", "value2": 10}]}),
            _node("Tell", "set", (520, 0), values={"string": [{"name": "kind", "value": "dear"}]}),
            _node("Keep", "noOp", (520, 120)),
            _node("All", "merge", (780, 60)),
        ],
        "connections": {
            "By hand": {"main": [_leads("Dear?")]}, "Nightly": {"main": [_leads("Dear?")]},
            "Dear?": {"main": [_leads("Tell"), _leads("Keep")]},
            "Tell": {"main": [_leads("All")]},
            "Keep": {"main": [[{"node": "All", "type": "main", "index": 1}]]},
        },
    },
    {
        "name": f"Evil {EVIL}",
        "nodes": [_node(f"Begin {EVIL}", "manual", (0, 0)), _node("价格".ljust(40, "格"), "noOp", (260, 0))],
        "connections": {f"Begin {EVIL}": {"main": [_leads("价格".ljust(40, "格"))]}},
    },
)  # fmt: skip


@contextmanager
def model() -> Iterator[dict[str, str]]:
    """Run a scripted provider; yield the variables with which processes find it, with prices and a quota."""
    with ProviderProcess("--latency", "0.05,2000") as provider:
        prices = {"HEADRACE_LLM_INPUT_PRICE": "3", "HEADRACE_LLM_OUTPUT_PRICE": "15"}
        limits = {"HEADRACE_LLM_REQUESTS_PER_MINUTE": "6000", "HEADRACE_LLM_CONCURRENCY": "8"}
        yield {**provider.environment, **prices, **limits}


def fill(client: httpx2.Client) -> None:
    """Let something of everything happen, and wait until it has."""

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = client.post(f"/api/v1/{path}", json=body)
        answer.raise_for_status()
        made: dict[str, Any] = answer.json()
        return made

    post("batches", {"task": "send", "items": ["a", "b", EVIL, f"fail {EVIL}", "fail a", "fail b", "fail c"]})
    post("batches", {"task": "double", "items": list(range(300))})
    post("batches", {"task": "wait", "items": [60] * 30})
    for text in (LONG, f"fail {LONG}"):
        post("jobs", {"task": "send", "args": [text[:200_000]]})
    post("jobs", {"task": "double", "args": [1], "delay": "1h"})
    for workflow, given in (("sums", 3), ("approval", 3), ("branches", 3), ("publishing", list(range(12)))):
        post("runs", {"workflow": workflow, "input": given})
    for document in FLOWS:
        post("workflows", {"flow": document})
    post("runs", {"workflow": "flow.prices", "input": [{"price": 3, "name": EVIL}, {"price": 30, "name": "b"}]})
    told = EVIL.replace("\u202e", "").replace("\u202c", "")
    for text in ("one", "two", "three", "one", told):
        post("jobs", {"task": "ask", "args": [text], "fair_key": told if text == told else "acme"})
    post("jobs", {"task": "tell", "args": [told]})
    for path, body in (
        ("llm/budgets/tenant%3Aacme", {"dollars": "0.01", "tokens": 100_000}), ("llm/budgets/day", {"dollars": 2}),
        ("limits/caps/task%3Aask", {"cap": 3}), ("limits/rates/queue%3Amail", {"rate": "1000/s"}),
        ("limits/weights/llm/acme", {"weight": 2}),
    ):  # fmt: skip
        client.put(f"/api/v1/{path}", json=body).raise_for_status()

    def settled() -> bool:
        asked = client.get("/api/v1/jobs", params={"state": "succeeded", "task": "ask"}).json()["jobs"]
        parked = client.get("/api/v1/events/outbox").json()["parked"]
        failed = client.get("/api/v1/jobs", params={"state": "failed"}).json()["jobs"]
        runs = client.get("/api/v1/runs").json()["runs"]
        states = {run["workflow"]: run["state"] for run in runs}
        ended = {"sums": "succeeded", "branches": "failed", "flow.prices": "succeeded"}
        return len(asked) == 5 and parked and len(failed) >= 6 and ended.items() <= states.items()

    wait_until_sync(settled, timedelta(seconds=60))
