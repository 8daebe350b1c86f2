"""The service: what models cost, calls of the ledger, and budgets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from headrace import App
from headrace.engine.host import this_process
from headrace.model.calls import CallState, NewCall, Origin, Settlement
from headrace.model.ids import uuid7
from headrace.model.quota import Estimate
from headrace.model.session import NewSession
from headrace.model.usage import Usage
from tests.unit.service_calls import JSON, code_of, served

LLM = "/api/v1/llm"
JOB = UUID(int=7)


async def fill(app: App, *, lost: bool = True, job: UUID = JOB, error: str = "") -> list[NewCall]:
    """Record a call of a job that cost something, and one of no job that a dead process left."""
    stores = app.runtime.stores
    session = NewSession(this_process(), "here", {}, timedelta(minutes=1), id=uuid4())
    await stores.sessions.register_session(session)
    calls = [
        NewCall(
            id=uuid7(), key=uuid4().hex * 2, pool="openai:main:small", provider="openai", model="small",
            estimate=Estimate(100, 200, 5_000), origin=Origin(job if number == 1 or not lost else None, tenant="acme"),
        )
        for number in (1, 2)
    ]  # fmt: skip
    await stores.calls.open_calls(session.id, calls)
    used = Usage(10, 20, 1, 0, 4, 2_500_000_000)
    await stores.calls.settle_calls([Settlement(call=calls[0], usage=used, priced_by="a list", error=error)])
    if lost:
        await stores.sessions.close_session(session.id)
    return calls


async def get(client: httpx2.AsyncClient, path: str) -> Any:
    """Return what is at a path."""
    answer = await client.get(f"{LLM}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_spending_and_calls() -> None:
    """By each group; calls by state, pool and job; what a dead process left is told as orphaned."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        settled, lost = await fill(app)
        for by, name in (("model", "openai/small"), ("pool", "openai:main:small"), ("tenant", "acme")):
            [row] = (await get(client, f"spend?by={by}&since=7d"))["spend"]
            assert (row["name"], row["usage"]["cost_nano"], row["orphaned"]) == (name, 2_500_000_000, 1)
            assert row["orphaned_nano"] == 5_000
        calls = (await get(client, "calls"))["calls"]
        assert [call["id"] for call in calls] == [str(lost.id), str(settled.id)]
        assert [call["id"] for call in (await get(client, f"calls?job={JOB}"))["calls"]] == [str(settled.id)]
        assert [call["state"] for call in (await get(client, "calls?state=orphaned"))["calls"]] == [CallState.ORPHANED]
        assert (await get(client, "calls?pool=none"))["calls"] == []


async def test_a_budget_is_set_raised_and_removed() -> None:
    """What is spent stays counted, and what is left is told."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        await fill(app, lost=False)
        answer = await client.put(f"{LLM}/budgets/tenant:acme", json={"dollars": 2})
        assert (answer.status_code, answer.json()["state"]) == (200, "used up")
        answer = await client.put(f"{LLM}/budgets/tenant:acme", json={"dollars": "4.50", "tokens": 1_000})
        assert (answer.json()["state"], answer.json()["left_tokens"]) == ("open", 670)
        [found] = (await get(client, "budgets"))["budgets"]
        assert (found["scope"], found["budget"]) == ("tenant:acme", {"cost_nano": 4_500_000_000, "tokens": 1_000})
        answer = await client.delete(f"{LLM}/budgets/tenant:acme", headers=JSON)
        assert answer.json()["budget"] is None and answer.json()["cost_nano"] == 2_500_000_000
        assert (await get(client, "budgets"))["budgets"] == []
        assert (await get(client, "budgets/day"))["budget"] is None


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "budgets/day", {}), ("PUT", "budgets/day", {"dollars": -1}), ("PUT", "budgets/day", {"dollars": "a"}),
        ("PUT", "budgets/day", {"dollars": True}), ("PUT", "budgets/day", {"tokens": 1.5}),
        ("PUT", "budgets/day", {"euros": 1}), ("PUT", "budgets/week", {"dollars": 1}),
        ("PUT", "budgets/batch:7", {"dollars": 1}), ("DELETE", "budgets/week", None), ("GET", "budgets/week", None),
        ("GET", "spend?by=week", None), ("GET", "spend?since=x", None), ("GET", "calls?job=7", None),
        ("GET", "calls?state=lost", None), ("GET", "calls?limit=1000", None),
    ],
)  # fmt: skip
async def test_what_is_refused(method: str, path: str, body: dict[str, Any] | None) -> None:
    """Scopes, groups and values that there are not."""
    async with served(App("memory://"), worker=False) as client:
        answer = await client.request(method, f"{LLM}/{path}", json=body, headers=JSON)
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
