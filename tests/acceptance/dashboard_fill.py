"""Work of every kind for the app of `dashboard_world`, brought over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx2

from tests.waiting import wait_until_sync

#: What users may write: markup, quotes, another direction, and more than a page shows.
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&lt; \u202eevil\u202c"
LONG = "long <b>text</b> " * 60_000


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
    for workflow in ("sums", "approval"):
        post("runs", {"workflow": workflow, "input": 3})

    def settled() -> bool:
        failed = client.get("/api/v1/jobs", params={"state": "failed"}).json()["jobs"]
        runs = client.get("/api/v1/runs").json()["runs"]
        return len(failed) >= 5 and any(run["state"] == "succeeded" for run in runs)

    wait_until_sync(settled, timedelta(seconds=60))
