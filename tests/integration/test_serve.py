"""`headrace serve` as people run it: a process on a free port, a flow behind a webhook, and an orderly end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace import App
from headrace.apps.flows.checks import check_flow
from headrace.apps.flows.form import parse_flow
from headrace.apps.flows.storing import graph_of, store_flow
from headrace.model.schedule import ScheduleView
from tests.acceptance.command_runs import Place, place
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.acceptance

FLOW = {
    "name": "Orders",
    "active": True,
    "nodes": [
        {"name": "Hook", "type": "headrace.webhook", "typeVersion": 2, "position": [0, 0],
         "parameters": {"path": "orders", "httpMethod": "POST", "responseMode": "lastNode"}},
        {"name": "Lines", "type": "headrace.splitOut", "typeVersion": 1, "position": [200, 0],
         "parameters": {"fieldToSplitOut": "body.lines"}},
        {"name": "Clock", "type": "headrace.scheduleTrigger", "typeVersion": 1, "position": [0, 200],
         "parameters": {"rule": {"interval": [{"field": "hours", "hoursInterval": 6}]}}},
    ],
    "connections": {"Hook": {"main": [[{"node": "Lines", "type": "main", "index": 0}]]}},
}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """Name a folder with a store that has the flow."""

    async def store(app: App) -> None:
        await store_flow(app, graph_of(check_flow(parse_flow(FLOW))))

    with place(tmp_path) as made:
        made.ask(store)
        yield made


async def schedules(app: App) -> list[ScheduleView]:
    """Return the schedules of a store."""
    assert app.runtime.stores.schedules is not None
    return await app.runtime.stores.schedules.list_schedules()


def test_a_flow_is_served_by_a_process_of_its_own(here: Place) -> None:
    """A request begins a run that is worked here, the API shows it, the schedule is known, and SIGTERM ends it all."""
    process = here.start("serve", "--port", "0", "--worker", "--json")
    url = process.line()["url"]
    assert url.startswith("http://127.0.0.1:")
    with httpx2.Client(base_url=url, timeout=30) as client:
        answer = client.post("/webhook/orders", json={"lines": [{"sku": "tea"}, {"sku": "milk"}]})
        assert (answer.status_code, answer.json()) == (200, {"sku": "tea"})
        [run] = client.get("/api/v1/runs", params={"workflow": "flow.orders"}).json()["runs"]
        seen: dict[str, Any] = client.get(f"/api/v1/runs/{run['id']}").json()
        assert (seen["state"], len(seen["output"])) == ("succeeded", 2)
        assert client.get("/readyz").json() == {"status": "ready"}
        refused = client.get("/api/v1/runs", headers={"host": "evil.example"})
        assert refused.status_code == 403
        wait_until_sync(lambda: here.ask(schedules), message="the schedule of the flow")
    process.tell(signal.SIGTERM)
    assert process.end() == 0
