"""The service: caps, rates, breakers and shares, as `headrace limits` shows and changes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from headrace import App, Limit
from headrace.model.admission import LimitsView
from headrace.model.breaker import BreakerRule
from headrace.model.job import JobSpec, NewJob
from headrace.model.limits import Declared, Rate
from headrace.stores.memory.admission import MemoryAdmission
from headrace.stores.memory.notifier import MemoryNotifier
from tests.conformance.scenario import ARGS
from tests.unit.service_calls import JSON, code_of, served

LIMITS = "/api/v1/limits"


@asynccontextmanager
async def limited() -> AsyncIterator[httpx2.AsyncClient]:
    """Serve an app whose limits a worker has declared: a cap, a rate and a breaker; its queue has a job."""
    app = App("memory://")

    @app.task(name="render", queue="llm", concurrency=3, limits=[Limit("openai", "60/m", burst=2)])
    async def render() -> None: ...

    async with served(app, worker=False) as client:
        await app.runtime.stores.admission.declare_limits(
            Declared({"task:render": 3}, {"openai": Rate.parse("60/m", burst=2)}, {"openai": BreakerRule()})
        )
        await render.options(fair_key="tenant/7").enqueue()
        yield client


async def listed(client: httpx2.AsyncClient) -> dict[str, Any]:
    """Return the limits as they stand."""
    answer = await client.get(LIMITS)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_limits_are_set_reset_and_forgotten() -> None:
    """What is set holds in the place of what is declared, until it is reset; what is forgotten is gone."""
    async with limited() as client:
        answer = await client.put(f"{LIMITS}/caps/task:render", json={"cap": 0})
        assert (answer.status_code, answer.json()) == (200, {"cap": "task:render", "set": 0, "note": None})
        answer = await client.put(f"{LIMITS}/rates/openai", json={"rate": "5/s", "burst": 7})
        assert answer.json()["set"] == {"per_second": 5.0, "burst": 7.0}
        found = await listed(client)
        assert [(cap["key"], cap["cap"], cap["declared"]) for cap in found["caps"]] == [("task:render", 0, 3)]
        assert [(rate["name"], rate["override"]["burst"]) for rate in found["rates"]] == [("openai", 7.0)]
        answer = await client.post(f"{LIMITS}/task:render/reset", json={})
        assert answer.json() == {"reset": "task:render", "kinds": ["cap"], "declared": {"cap": 3}}
        assert (await listed(client))["caps"][0]["override"] is None
        answer = await client.delete(f"{LIMITS}/openai", headers=JSON)
        assert answer.json() == {"forgotten": "openai", "kinds": ["rate", "breaker"]}
        found = await listed(client)
        assert (found["rates"], found["breakers"]) == ([], [])


async def test_a_breaker_is_opened_and_closed_by_hand() -> None:
    """It is open until it is closed, or its cooldown is over."""
    async with limited() as client:
        for change, state in (("open", "open"), ("close", "closed")):
            answer = await client.post(f"{LIMITS}/breakers/openai/{change}", json={})
            assert (answer.status_code, answer.json()["state"]) == (200, state)
            assert [one["state"] for one in (await listed(client))["breakers"]] == [state]


async def test_a_fair_key_has_a_weight() -> None:
    """Whatever characters its name has."""
    async with limited() as client:
        answer = await client.put(f"{LIMITS}/weights/llm/tenant%2F7", json={"weight": 2.5})
        assert answer.json() == {"queue": "llm", "fair_key": "tenant/7", "weight": 2.5}
        assert [(one["fair_key"], one["weight"]) for one in (await listed(client))["shares"]] == [("tenant/7", 2.5)]


async def test_shares_are_told_in_bounds() -> None:
    """As many as are asked for, of what may be asked."""
    async with limited() as client:
        for number in range(60):
            await client.put(f"{LIMITS}/weights/llm/tenant-{number:02}", json={"weight": 2})
        assert [one["fair_key"] for one in (await listed(client))["shares"]] == [f"tenant-{n:02}" for n in range(50)]
        few = (await client.get(LIMITS, params={"shares": 2})).json()["shares"]
        assert [one["fair_key"] for one in few] == ["tenant-00", "tenant-01"]
        for wrong in ("shares=201", "shares=-1", "share=2"):
            assert (await client.get(f"{LIMITS}?{wrong}")).status_code == 422


async def test_a_change_reads_no_shares_and_tells_only_queues_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a queue or of a key of it is told to that; one that any queue may come under to all."""
    app, hints, shares = App("memory://"), list[str](), list[int | None]()
    list_limits = MemoryAdmission.list_limits

    async def listed(admission: MemoryAdmission, *, most_shares: int | None = None) -> LimitsView:
        shares.append(most_shares)
        return await list_limits(admission, most_shares=most_shares)

    def hinted() -> set[str]:
        found = {topic for topic in hints if topic.startswith("queue:")}
        hints.clear()
        return found

    monkeypatch.setattr(MemoryAdmission, "list_limits", listed)
    monkeypatch.setattr(MemoryNotifier, "hint", lambda _, topic: hints.append(topic))
    one, every = {"queue:llm"}, {"queue:llm", "queue:other"}
    async with served(app, worker=False) as client:
        stores = app.runtime.stores
        for queue in ("llm", "other"):
            await stores.jobs.insert_jobs([NewJob(JobSpec("work", queue), ARGS)])
        hints.clear()
        for path, body, expected in (
            ("caps/queue:llm", {"cap": 1}, one), ("rates/queue:llm", {"rate": "5/s"}, one),
            ("caps/key:llm:7", {"cap": 1, "force": True}, one), ("weights/llm/7", {"weight": 2}, one),
            ("rates/api", {"rate": "5/s", "force": True}, every),
        ):  # fmt: skip
            assert (await client.put(f"{LIMITS}/{path}", json=body)).status_code == 200
            assert hinted() == expected, path
        for name, expected in (("key:llm:7", one), ("api", every)):
            assert (await client.delete(f"{LIMITS}/{name}", headers=JSON)).status_code == 200
            assert hinted() == expected, name
        assert set(shares) == {0}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("PUT", "caps/task:nobody", {"cap": 1}, 404, "not_found"),
        ("PUT", "caps/nobody", {"cap": 1, "force": True}, 422, "invalid_input"),
        ("PUT", "caps/task:render", {"cap": -1}, 422, "invalid_input"),
        ("PUT", "caps/task:render", {"cap": True}, 422, "invalid_input"),
        ("PUT", "caps/task:render", {"cap": 1, "burst": 1}, 422, "invalid_input"),
        ("PUT", "rates/nobody", {"rate": "1/s"}, 404, "not_found"),
        ("PUT", "rates/openai", {"rate": "soon"}, 422, "invalid_input"),
        ("PUT", "rates/openai", {"rate": "1/s", "burst": 0}, 422, "invalid_input"),
        ("PUT", "weights/nobody/a", {"weight": 1}, 404, "not_found"),
        ("PUT", "weights/llm/a", {"weight": 0}, 422, "invalid_input"),
        ("POST", "breakers/nobody/open", {}, 404, "not_found"),
        ("POST", "breakers/openai/half", {}, 422, "invalid_input"),
        ("POST", "nobody/reset", {}, 404, "not_found"),
        ("DELETE", "nobody", {}, 404, "not_found"),
    ],
)
async def test_what_is_refused(method: str, path: str, body: dict[str, Any], status: int, code: str) -> None:
    """Names that nothing uses and values that break a rule change nothing."""
    async with limited() as client:
        before = await listed(client)
        answer = await client.request(method, f"{LIMITS}/{path}", json=body)
        assert (answer.status_code, code_of(answer)) == (status, code)
        assert [one["key"] for one in (await listed(client))["caps"]] == [one["key"] for one in before["caps"]]


async def test_a_name_that_nothing_uses_yet_is_forced() -> None:
    """The error says how, and why the limit would hold nothing back."""
    async with limited() as client:
        answer = await client.put(f"{LIMITS}/caps/task:later", json={"cap": 1})
        assert "`force` sets it all the same" in answer.json()["detail"]
        answer = await client.put(f"{LIMITS}/caps/task:later", json={"cap": 1, "force": True})
        assert "declares concurrency=" in answer.json()["note"]
