"""Requests of a wrong shape: which field, which rule, which value, in the words of all other errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from headrace.apps.details import desk
from headrace.apps.flows import tasks
from headrace.apps.papers import job
from tests.unit.service_calls import code_of, served, shop

API = "/api/v1"
SKILL = {"type": "skill", "count": 3}

#: One service for all of them: nothing here leaves anything in it that another test could meet.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """Serve an app with details and papers that no worker works."""
    app = shop()
    desk.register(app)
    job.register(app)
    tasks.register(app)
    async with served(app, worker=False) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "body", "detail"),
    [
        ("POST", "details", {"type": "skill"}, "count must be given, got None"),
        ("POST", "details", SKILL | {"count": 0}, "count must be at least 1, got 0"),
        ("POST", "details", SKILL | {"count": 1_001}, "count must be at most 1000, got 1001"),
        ("POST", "details", SKILL | {"count": "3"}, "count must be a whole number, got '3'"),
        ("POST", "details", SKILL | {"count": True}, "count must be a whole number, got True"),
        ("POST", "details", SKILL | {"priority": 11}, "priority must be at most 10, got 11"),
        ("POST", "details", SKILL | {"style": 7}, "style must be a text, got 7"),
        ("POST", "details", SKILL | {"style": "x" * 501}, "style must be at most 500 characters, got 'xxx"),
        ("POST", "details", SKILL | {"colour": 1}, "colour is not known here: leave it out, or correct its name, got"),
        ("POST", "details", SKILL | {"type": "x y"}, "type must match ^[a-z][a-z0-9_]{0,63}$, got 'x y'"),
        ("POST", "details", [], "the body must be an object, got []"),
        ("PUT", "details/mode", {"mode": "fast"}, "mode must be 'normal' or 'single-call', got 'fast'"),
        ("POST", "papers", {"project_id": "a", "template_id": "t", "document_ids": [7]},
         "document_ids.0 must be a text, got 7"),
        ("POST", "jobs", {"task": "double", "priority": 11},
         "priority must be at most 9 or 'interactive', 'high', 'standard', 'low' or 'bulk', got 11"),
        ("POST", "jobs", {"task": "double", "delay": []},
         "delay must be a whole number or a number or a text, got []"),
        ("POST", "jobs", {"task": "double", "kwargs": []}, "kwargs must be an object, got []"),
        ("POST", "batches", {"task": "double", "items": 1}, "items must be a list, got 1"),
        ("POST", "batches", {"task": "double", "items": [], "spread": "y"}, "spread must be true or false, got 'y'"),
        ("GET", "jobs?limit=0", None, "limit must be at least 1, got '0'"),
        ("GET", "jobs?limit=x", None, "limit must be a whole number, got 'x'"),
        ("GET", "jobs?batch=7", None, "batch must be an id such as 01980000-0000-7000-8000-000000000000, got '7'"),
        ("GET", "jobs?state=lost", None, "state must be 'scheduled', 'ready', "),
        ("GET", "events?correlation_id=", None, "correlation_id must be at least 1 characters, got ''"),
    ],
)  # fmt: skip
async def test_the_field_the_rule_and_the_value_are_named(
    client: httpx2.AsyncClient, method: str, path: str, body: Any, detail: str
) -> None:
    """With each field that is wrong in `errors`."""
    answer = await client.request(method, f"{API}/{path}", json=body)
    assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
    document = answer.json()
    assert document["detail"].startswith(detail), document["detail"]
    assert document["errors"] == [{"field": document["field"], "rule": document["rule"]}]


async def test_all_fields_that_are_wrong_are_named(client: httpx2.AsyncClient) -> None:
    """The text tells of the first."""
    document = (await client.post(f"{API}/details", json={"type": 7, "count": 0})).json()
    assert document["detail"] == "type must be a text, got 7"
    assert [one["field"] for one in document["errors"]] == ["type", "count"]


OWN = ("details_intake", "genesis_detail_batch_flow", "details_subtask", "papers_extract_single", "flows.node")


@pytest.mark.parametrize("task", OWN)
async def test_tasks_of_headrace_are_not_called_by_name(client: httpx2.AsyncClient, task: str) -> None:
    """Their routes check what they are called with; by name they would take anything."""
    for path, more in (("jobs", {}), ("batches", {"items": [1]})):
        answer = await client.post(f"{API}/{path}", json={"task": task, **more})
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
        assert "must not be a task of Headrace itself" in answer.json()["detail"]
    answer = await client.post(f"{API}/batches", json={"task": "double", "items": [1], "on_close": task})
    assert (answer.status_code, answer.json()["field"]) == (422, "on_close")
    unknown = (await client.post(f"{API}/jobs", json={"task": "nobody"})).json()["detail"]
    assert task not in unknown and "double" in unknown


@pytest.mark.parametrize("run_at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "soon", "2031-01-31"])
async def test_instants_that_are_none_everywhere_are_refused(client: httpx2.AsyncClient, run_at: str) -> None:
    """No store could keep them."""
    answer = await client.post(f"{API}/jobs", json={"task": "double", "args": [1], "run_at": run_at})
    assert (answer.status_code, answer.json()["field"]) == (422, "run_at")


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 422), ({"limit": 5}, 422), ({"look": 5, "patch": {"kwargs": {}}}, 422), ({"all": False}, 422),
     ({"all": True, "task": "double"}, 422), ({"all": True}, 200), ({"task": "double"}, 200), ({"since": "1d"}, 200),
     ({"dry_run": True}, 200)],
)  # fmt: skip
async def test_what_is_redriven_has_to_be_said(client: httpx2.AsyncClient, body: dict[str, Any], status: int) -> None:
    """An empty body runs nothing again; to look, nothing has to be said."""
    answer = await client.post(f"{API}/dead-letters/redrive", json=body)
    assert answer.status_code == status, answer.text
    assert status == 200 or answer.json()["field"] == "all"
