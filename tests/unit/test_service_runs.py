"""The service: workflows, runs, signals and health over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from headrace import App, chain
from headrace.model.errors import StoreUnavailableError
from headrace.settings import load_settings
from tests.unit.service_calls import JSON, URL, code_of, served, shop, start
from tests.waiting import wait_until


async def ended(client: httpx2.AsyncClient, run: str, state: str = "succeeded") -> dict[str, Any]:
    """Return a run once it is in a state."""

    async def look() -> dict[str, Any] | None:
        document: dict[str, Any] = (await client.get(f"/api/v1/runs/{run}")).json()
        return document if document["state"] == state else None

    found = await wait_until(look)
    assert found is not None
    return found


async def test_a_run_is_started_seen_and_repeated() -> None:
    """It answers with its place, shows input, output and nodes without their outputs, and one node with its own."""
    async with served(shop()) as client:
        body = {"workflow": "twice", "input": 3, "user_id": "ann", "metadata": {"n": 1}}
        answer = await client.post("/api/v1/runs", json=body)
        assert answer.status_code == 201
        run = answer.json()["run"]
        assert answer.headers["location"] == f"/api/v1/runs/{run}"

        seen = await ended(client, run)
        assert (seen["id"], seen["workflow"], seen["input"], seen["output"]) == (run, "twice", 3, 12)
        assert (seen["user_id"], seen["metadata"]) == ("ann", {"n": 1})
        assert [node["state"] for node in seen["nodes"]] == ["success", "success"]
        assert all("output" not in node for node in seen["nodes"])

        first = seen["nodes"][0]["path"]
        node = await client.get(f"/api/v1/runs/{run}/nodes/{first}")
        assert (node.status_code, node.json()["output"], node.json()["run"]) == (200, 6, run)

        again = await client.post(f"/api/v1/runs/{run}/rerun", json={"from": first})
        assert again.status_code == 201
        assert again.json() == {"run": again.json()["run"], "rerun_of": run, "rerun_from": first}
        repeated = await ended(client, again.json()["run"])
        assert (repeated["output"], repeated["rerun_of"]) == (12, run)


async def test_the_same_key_starts_one_run() -> None:
    """As a member or as a header, with 200 the second time; with anything else in the body it is a conflict."""
    async with served(shop()) as client:
        told = {"user_id": "ann", "correlation_id": "c", "metadata": {"a": 1}}
        run = await start(client, "twice", 3, key="k", **told)
        body: dict[str, Any] = {"workflow": "twice", "input": 3, **told}
        same = await client.post("/api/v1/runs", json=body, headers={"Idempotency-Key": "k"})
        assert (same.status_code, same.json()["run"]) == (200, run)
        for change in ({"input": 4}, {"user_id": "bob"}, {"correlation_id": None}, {"metadata": {"a": 2}}):
            other = await client.post("/api/v1/runs", json={**body, **change}, headers={"Idempotency-Key": "k"})
            assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")


async def test_pages_of_runs() -> None:
    """Newest first, by workflow and state; a cursor goes on behind the last one, and the last page has none."""
    async with served(shop(), worker=False) as client:
        runs = [await start(client, "twice", n) for n in range(5)]
        await start(client, "broken", 1)
        found: list[str] = []
        cursor = None
        while True:
            query = {"workflow": "twice", "state": "running", "limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await client.get("/api/v1/runs", params=query)).json()
            assert len(page["runs"]) <= 2
            assert all("input" not in run and "output" not in run for run in page["runs"])
            found += [run["id"] for run in page["runs"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert found == runs[::-1]


async def test_a_run_is_cancelled() -> None:
    """What waits ends at once, and a second time nothing is left to do."""
    async with served(shop(), worker=False) as client:
        run = await start(client, "twice", 3)
        answer = await client.post(f"/api/v1/runs/{run}/cancel", headers=JSON)
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        again = await client.post(f"/api/v1/runs/{run}/cancel", headers=JSON)
        assert again.json() == {"run": run, "answer": "already_final", "state": "cancelled"}


async def test_a_failed_run_tells_why() -> None:
    """Its error and that of the node are in the answer."""
    async with served(shop()) as client:
        seen = await ended(client, await start(client, "broken", 3), "failed")
        assert "cannot take 6" in seen["error"]["message"]
        assert seen["nodes"][1]["error"]["kind"] == "ValueError"


async def test_a_signal_wakes_a_run_once() -> None:
    """Its key may have slashes, its payload is any JSON; a second one is a conflict."""
    async with served(shop()) as client:
        run = await start(client, "approval", 7)
        sent = await client.post("/api/v1/signals/approve/7", json={"by": "ann"})
        assert sent.json() == {"key": "approve/7", "sent": True}
        assert (await ended(client, run))["output"] == {"by": "ann"}
        again = await client.post("/api/v1/signals/approve/7", headers=JSON)
        assert (again.status_code, code_of(again)) == (409, "idempotency_conflict")


async def test_workflows_are_listed_shown_and_switched() -> None:
    """Without graphs in pages, with it alone, by version; one that is off starts nothing."""
    async with served(shop(), worker=False) as client:
        await start(client, "twice", 1)
        await start(client, "broken", 1)
        first = (await client.get("/api/v1/workflows", params={"limit": 1})).json()
        assert [one["name"] for one in first["workflows"]] == ["broken"]
        assert "graph" not in first["workflows"][0]
        rest = (await client.get("/api/v1/workflows", params={"cursor": first["next_cursor"]})).json()
        assert ([one["name"] for one in rest["workflows"]], rest["next_cursor"]) == (["twice"], None)

        whole = (await client.get("/api/v1/workflows/twice", params={"version": 1})).json()
        assert len(whole["graph"]["nodes"]) == 2
        off = await client.post("/api/v1/workflows/twice/deactivate", headers=JSON)
        assert off.json() == {"workflow": "twice", "active": False}
        refused = await client.post("/api/v1/runs", json={"workflow": "twice", "input": 1})
        assert (refused.status_code, code_of(refused)) == (409, "workflow_not_active")
        await client.post("/api/v1/workflows/twice/activate", headers=JSON)
        await start(client, "twice", 1)


async def test_health_and_readiness(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is alive whatever the store does; it is ready while the store answers."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json() == {"status": "ready"}

        async def away() -> None:
            raise StoreUnavailableError

        monkeypatch.setattr(app.runtime.stores.inspect, "store_info", away)
        answer = await client.get("/readyz")
        assert (answer.status_code, code_of(answer), answer.headers["retry-after"]) == (503, "store_unavailable", "1")
        assert (await client.get("/healthz")).status_code == 200


async def test_a_store_that_is_away_is_503_and_a_mistake_of_ours_is_told_to_the_log_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither answers with a trace or with what an exception says."""
    app = shop()
    async with served(app, worker=False) as client:

        async def fails(**_: Any) -> None:
            raise error

        monkeypatch.setattr(app.runtime.stores.runs, "list_runs", fails)
        error: Exception = StoreUnavailableError("away")
        away = await client.get("/api/v1/runs")
        assert (away.status_code, code_of(away)) == (503, "store_unavailable")
        error = RuntimeError("a secret")
        broken = await client.get("/api/v1/runs")
        assert (broken.status_code, code_of(broken)) == (500, "internal_error")
        assert "a secret" not in broken.text
        assert "a secret" in caplog.text


async def test_a_large_map_is_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entries are there with how many were left out; each can be asked for by its path."""
    monkeypatch.setattr("headrace.service.runs.MOST_ENTRIES", 3)
    app = App("memory://")
    body = {"nodes": [{"id": "each", "kind": "map", "over": {"$input": []}, "body": {
        "nodes": [{"id": "v", "kind": "value", "value": {"$input": []}}]}}]}  # fmt: skip
    app.workflow("each", body)
    async with served(app) as client:
        run = await start(client, "each", [1, 2, 3, 4, 5])
        [node] = (await ended(client, run))["nodes"]
        assert (len(node["nodes"]), node["left_out"]) == (3, 2)
        entry = await client.get(f"/api/v1/runs/{run}/nodes/each[4]")
        assert entry.json()["output"] == 5


async def test_large_values_have_routes_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run tells that they were left out; what lies in blobs is answered as it was stored, and parsed by nobody."""
    app = App(settings=load_settings(environ={"HEADRACE_URL": "memory://", "HEADRACE_DIRECTORY": str(tmp_path)}))

    @app.task
    async def repeat(number: Any) -> list[Any]:
        return [{"$blob": number, "text": "ä" * 40}] * (25_000 if number else 1)

    app.workflow("repeat", chain(repeat.s()))
    async with served(app) as client:
        run = await start(client, "repeat", 7)
        found = await ended(client, run)
        assert (found["input"], found["output"], found["left_out"]) == (7, None, True)
        assert "left_out" not in await ended(client, await start(client, "repeat", []))
        monkeypatch.setattr(app.runtime.means.values, "load", None)
        value = [{"$blob": 7, "text": "ä" * 40}] * 25_000
        for path in (f"nodes/{found['nodes'][0]['path']}", "output"):
            answer = await client.get(f"/api/v1/runs/{run}/{path}")
            assert (answer.status_code, answer.json()["output"], answer.json()["run"]) == (200, value, run)
        assert (await client.get(f"/api/v1/runs/{run}/input")).json() == {"run": run, "input": 7}


async def test_the_openapi_document_has_every_route() -> None:
    """Groups are below the prefix, health at the root; there are no pages that load scripts from elsewhere."""
    async with served(shop(), worker=False) as client:
        paths = (await client.get("/api/v1/openapi.json")).json()["paths"]
        assert {"/api/v1/workflows", "/api/v1/runs/{run_id}/cancel", "/api/v1/signals/{key}", "/healthz"} <= set(paths)
        assert (await client.get("/docs")).status_code == 404
        answer = await client.get(f"/api/v1/runs/{UUID(int=1)}", headers={"host": URL.partition("//")[2]})
        assert (answer.status_code, code_of(answer)) == (404, "not_found")
        assert answer.headers["x-content-type-options"] == "nosniff"
