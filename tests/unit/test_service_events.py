"""The service: events, what waits for them, and tokens that end a wait."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from headrace import App
from headrace.engine.host import this_process
from headrace.model.errors import NotAllowedError
from headrace.model.session import NewSession, Role
from tests.unit.service_calls import JSON, code_of, served

TYPE = "Shop.Order.Paid"


async def token_of(app: App, correlation_id: str = "c-1", **facts: Any) -> str:
    """Return the token of a handle that only this ends."""
    handle = await app.handles.register(correlation_id, timeout="1h", count=0, token=True, **facts)
    assert handle.token is not None
    return handle.token


async def test_events_are_listed_by_pages() -> None:
    """By correlation and aggregate, as they came; `next_after` leads on, and the last page has none."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        made = [await app.emit(TYPE, {"n": n}, aggregate_id="o-1", correlation_id="c-1") for n in range(3)]
        ids = [event.id for event in made]
        await app.emit(TYPE, aggregate_id="o-2", correlation_id="c-2")
        page = (await client.get("/api/v1/events", params={"correlation_id": "c-1", "limit": 2})).json()
        assert [event["id"] for event in page["events"]] == ids[:2]
        assert [event["payload"]["n"] for event in page["events"]] == [0, 1]
        assert page["next_after"] == ids[1]
        last = await client.get("/api/v1/events", params={"correlation_id": "c-1", "after": page["next_after"]})
        assert ([event["id"] for event in last.json()["events"]], last.json()["next_after"]) == ([ids[2]], None)
        other = (await client.get("/api/v1/events", params={"aggregate_id": "o-2"})).json()["events"]
        assert [(event["type"], event["aggregate_type"]) for event in other] == [(TYPE, "ShopOrder")]
        assert (await client.get("/api/v1/events/outbox")).json()["waiting"] == 4


@pytest.mark.parametrize("query", ["after=7", "limit=0", "limit=201", "correlation=c", "aggregate_id="])
async def test_queries_that_break_a_rule(query: str) -> None:
    """They are refused, and no page is given."""
    async with served(App("memory://"), worker=False) as client:
        answer = await client.get(f"/api/v1/events?{query}")
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")


async def test_a_token_ends_a_wait_once() -> None:
    """The same payload again is answered alike, another one is a conflict, and the handle shows what came."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        path = f"/api/v1/resume/{await token_of(app)}"
        for _ in range(2):
            answer = await client.post(path, json={"approved": True})
            assert (answer.status_code, answer.json()) == (200, {"state": "resolved", "correlation_id": "c-1"})
        other = await client.post(path, json={"approved": False})
        assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")
        seen = (await client.get("/api/v1/handles/c-1")).json()
        assert (seen["state"], seen["payload"], seen["events"]) == ("resolved", {"approved": True}, [])
        assert "token" not in str(seen)


async def test_an_empty_body_is_null() -> None:
    """Whoever has nothing to say sends nothing."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        answer = await client.post(f"/api/v1/resume/{await token_of(app)}", headers=JSON)
        assert answer.status_code == 200
        assert (await app.handles.show("c-1")).view.payload == "null"


@pytest.mark.parametrize("token", ["x", "hrh_x", "hrh_" + "A" * 43, "hrh_" + "%41" * 43])
async def test_a_token_that_nobody_gave_out(token: str) -> None:
    """Whatever its form, there is no such handle, and the answer does not repeat it."""
    async with served(App("memory://"), worker=False) as client:
        answer = await client.post(f"/api/v1/resume/{token}", json=1)
        assert (answer.status_code, code_of(answer)) == (404, "not_found")
        assert "A" * 43 not in answer.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b'{"a": NaN}', 400, "invalid_json"),
        (b"9" * 5_000, 400, "invalid_json"),
        (b"9" * ((256 << 10) + 1), 413, "payload_too_large"),
        (b"{" * (300 << 10), 413, "payload_too_large"),
        (b'"' + b"x" * (256 << 10) + b'"', 413, "payload_too_large"),
    ],
)
async def test_bodies_that_are_refused_end_nothing(body: bytes, status: int, code: str) -> None:
    """The handle waits on, and its token is still good."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        path = f"/api/v1/resume/{await token_of(app)}"
        answer = await client.post(path, content=body, headers=JSON)
        assert (answer.status_code, code_of(answer)) == (status, code)
        assert "sys." not in answer.text
        assert (await app.handles.show("c-1")).state == "waiting"
        assert (await client.post(path, content=b'"' + b"x" * 200_000 + b'"', headers=JSON)).status_code == 200


async def test_a_wait_that_is_over_has_gone() -> None:
    """A token that comes after the time of its handle gets 410; one after its cancel 409."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        late = await app.handles.register("late", timeout=timedelta(milliseconds=1), count=0, token=True)
        while not await app.event_stores.handles.expire_handles(limit=1):
            continue
        answer = await client.post(f"/api/v1/resume/{late.token}", json=1)
        assert (answer.status_code, code_of(answer)) == (410, "handle_expired")

        token = await token_of(app, "left/behind")
        for _ in range(2):
            cancelled = await client.post("/api/v1/handles/left/behind/cancel", headers=JSON)
            assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
        assert (await client.post(f"/api/v1/resume/{token}", json=1)).status_code == 409
        assert (await client.get("/api/v1/handles/left/behind")).json()["state"] == "cancelled"


async def test_what_waits_and_what_is_parked_are_listed() -> None:
    """Handles that wait, or all; rows that are parked; other names of a query are refused."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        await token_of(app, "c-1")
        await token_of(app, "c-2")
        await app.handles.cancel("c-1")
        for query, names in (("", {"c-2"}), ("?waiting=false", {"c-1", "c-2"}), ("?waiting=true&limit=1", {"c-2"})):
            found = (await client.get(f"/api/v1/handles{query}")).json()["handles"]
            assert {handle["correlation_id"] for handle in found} == names
        assert (await client.get("/api/v1/events/parked")).json() == {"parked": []}
        for path in ("handles?all=true", "handles?limit=0", "events/parked?limit=201"):
            assert (await client.get(f"/api/v1/{path}")).status_code == 422


@pytest.mark.parametrize(("method", "path"), [("GET", "handles/none"), ("POST", "handles/none/cancel")])
async def test_handles_that_there_are_not(method: str, path: str) -> None:
    """They are told as such."""
    async with served(App("memory://"), worker=False) as client:
        answer = await client.request(method, f"/api/v1/{path}", headers=JSON)
        assert (answer.status_code, code_of(answer)) == (404, "not_found")


@pytest.mark.parametrize(
    ("fault", "status"), [(NotAllowedError("gone"), 503), (RuntimeError("a mistake of ours"), 500)]
)  # fmt: skip
async def test_no_log_has_a_token(
    fault: Exception, status: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails: neither what is logged nor what is answered shows it, in any form."""
    app = App("memory://")
    caplog.set_level(logging.DEBUG)

    async def fail(*_: object) -> None:
        raise fault

    async with served(app, worker=False) as client:
        token = await token_of(app)
        monkeypatch.setattr(app.event_stores.handles, "resolve_by_token", fail)
        answers = [await client.post(f"/api/v1/resume/{token}", json=1)]
        answers += [await client.get(f"/api/v1/resume/{token}"), await client.post(f"/api/v1/{token}", json=1)]
    assert [answer.status_code for answer in answers] == [status, 405, 404]
    records = [record for record in caplog.records if not record.name.startswith("httpx")]
    assert any(record.name == "headrace.service" for record in records)
    assert token not in "".join(logging.Formatter().format(record) for record in records)
    assert all(token not in answer.text for answer in answers)


async def test_a_store_without_an_outbox_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every route of events answers 501 and names what to use."""
    app = App("memory://")
    calls = [("GET", "events"), ("GET", "events/outbox"), ("GET", "handles/c"), ("POST", "handles/c/cancel"),
             ("POST", "resume/hrh_x")]  # fmt: skip
    async with served(app, worker=False) as client:
        monkeypatch.setattr(type(app.runtime.stores), "events", None)
        answers: list[httpx2.Response] = [
            await client.request(method, f"/api/v1/{path}", headers=JSON) for method, path in calls
        ]
    assert {(answer.status_code, code_of(answer)) for answer in answers} == {(501, "config")}
    assert "PostgreSQL" in answers[0].json()["detail"]


async def parked_at(app: App, count: int) -> list[int]:
    """Return the places of rows that the bus refused for ever."""
    outbox, sessions = app.event_stores.outbox, app.runtime.stores.sessions
    for number in range(count):
        await app.emit(TYPE, aggregate_id=f"p-{number}")
    session = NewSession(this_process(), "here", {}, timedelta(minutes=1))
    await sessions.register_session(session)
    term = await sessions.lead(session.id, lease=timedelta(minutes=1), role=Role.RELAY)
    assert term is not None
    places = [row.position for row in await outbox.waiting_events(limit=10)]
    await outbox.park_events([(place, "too <b>large</b>") for place in places], term=term)
    return places


async def test_parked_events_are_released_and_dropped() -> None:
    """What is tried again waits, what is dropped is gone; what is not parked is told."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        one, two, three = await parked_at(app, 3)
        answer = await client.post("/api/v1/events/parked/release", json={"positions": [one, 99]})
        assert (answer.status_code, answer.json()) == (200, {"released": [one]})
        answer = await client.post("/api/v1/events/parked/drop", json={"positions": [two]})
        assert answer.json() == {"dropped": [two]}
        outbox = (await client.get("/api/v1/events/outbox")).json()
        assert (outbox["waiting"], outbox["parked"]) == (1, 1)
        assert [row["position"] for row in (await client.get("/api/v1/events/parked")).json()["parked"]] == [three]
        for body, status in (({"positions": [one]}, 404), ({"positions": []}, 422), ({"positions": ["1"]}, 422)):
            assert (await client.post("/api/v1/events/parked/drop", json=body)).status_code == status


async def test_groups_of_the_stores_bus_are_listed_and_forgotten() -> None:
    """One with live members is not; one that there is not is told; Kafka knows its own."""
    app = App("memory://")
    async with served(app, worker=False) as client:
        member = uuid4()
        await app.event_stores.log.join_group("g/1", member, ["orders"], lease=timedelta(minutes=1))
        [group] = (await client.get("/api/v1/events/groups")).json()["groups"]
        assert (group["name"], group["members"], group["backlog"]) == ("g/1", 1, 0)
        assert (await client.delete("/api/v1/events/groups/g%2F1", headers=JSON)).status_code == 409
        await app.event_stores.log.give_up("g/1", member)
        assert (await client.delete("/api/v1/events/groups/g%2F1", headers=JSON)).json() == {"forgotten": "g/1"}
        assert (await client.delete("/api/v1/events/groups/g%2F1", headers=JSON)).status_code == 404
        object.__setattr__(app.settings.events, "bus", "kafka")
        answer = await client.get("/api/v1/events/groups")
        assert (answer.status_code, code_of(answer)) == (501, "config")
