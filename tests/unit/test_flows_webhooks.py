"""Webhooks of flows: what a request begins, what is answered, and who is let in."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from headrace.service import guard
from tests.unit.flow_making import flow, node
from tests.unit.flow_serving import flows_app, put
from tests.unit.service_calls import code_of, served
from tests.waiting import wait_until


def hooked(name: str = "Orders", path: str = "orders", *, active: bool = True, **parameters: Any) -> dict[str, Any]:
    """Return a flow that gives the request to its webhook."""
    named = parameters.pop("credentials", {})
    begins = node("Hook", "webhook", {"path": path, "httpMethod": "POST", **parameters}, credentials=named)
    keep = node("Keep", "noOp")
    return flow([begins, keep], "Hook -> Keep", name=name, active=active)


LAST = {"responseMode": "lastNode"}


@asynccontextmanager
async def listening(*documents: dict[str, Any]) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve an app with these flows stored."""
    app = flows_app()
    async with served(app) as client:
        for document in documents:
            await put(app, document)
        yield client


async def test_a_request_begins_a_run_and_is_answered_at_once() -> None:
    """The answer names the run, which ends by itself."""
    async with listening(hooked()) as client:
        answer = await client.post("/webhook/orders", json={"n": 1})
        assert (answer.status_code, answer.json()["message"]) == (200, "Workflow was started")
        run = answer.json()["run"]

        async def ended() -> bool:
            return (await client.get(f"/api/v1/runs/{run}")).json()["state"] == "succeeded"  # type: ignore[no-any-return]

        await wait_until(ended)


async def test_the_item_is_the_request_without_its_secrets() -> None:
    """Headers, parameters of the path, query and body, as flows know them."""
    async with listening(hooked(path="orders/:id/lines", **LAST)) as client:
        headers = {"X-Shop": "north", "Authorization": "Bearer x", "Cookie": "a=b"}
        answer = await client.post(
            "/webhook/orders/7%2C8%2541/lines?size=2&tag=a&tag=b", json={"n": 1}, headers=headers
        )
    assert answer.status_code == 200
    item = answer.json()
    assert item["params"] == {"id": "7,8%41"}
    assert item["query"] == {"size": "2", "tag": ["a", "b"]}
    assert item["body"] == {"n": 1}
    assert item["webhookUrl"].startswith("http://localhost:8400/webhook/orders/7")
    assert item["executionMode"] == "production"
    assert item["headers"]["x-shop"] == "north"
    assert not {"authorization", "cookie"} & set(item["headers"])


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        ("application/json", b'[1, {"a": "\xc3\xa9"}]', [1, {"a": "é"}]),
        ("application/x-www-form-urlencoded", b"a=1&b=%C3%A9+x&a=2&c=", {"a": ["1", "2"], "b": "é x", "c": ""}),
        ("text/plain", b"hello", "hello"),
        ("text/plain; charset=latin-1", b"caf\xe9", "café"),
        ("application/xml", b"<a/>", "<a/>"),
        ("", b"", {}),
        ("application/json", b"", {}),
    ],
)
async def test_bodies(kind: str, content: bytes, expected: Any) -> None:
    """JSON, forms and texts."""
    async with listening(hooked(**LAST)) as client:
        headers = {"content-type": kind} if kind else {}
        answer = await client.post("/webhook/orders", content=content, headers=headers)
        assert (answer.status_code, answer.json().get("body")) == (200, expected), answer.text


@pytest.mark.parametrize(
    ("headers", "content", "status", "code"),
    [
        ({"content-type": "image/png"}, b"\x89PNG", 415, "unsupported_media_type"),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x--", 415, "unsupported_media_type"),
        ({}, b"what?", 415, "unsupported_media_type"),
        ({"content-type": "text/plain; charset=rot13"}, b"x", 415, "unsupported_media_type"),
        ({"content-type": "text/plain"}, b"\xff", 400, "invalid_request"),
        ({"content-type": "application/json"}, b'{"a": 1, "a": 2}', 400, "invalid_json"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"a=%ff", 400, "invalid_request"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"a&" * 1_001, 400, "invalid_request"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"a=%00", 422, "invalid_input"),
        ({"content-type": "text/plain"}, b"x" * (2 << 20), 413, "payload_too_large"),
        ({"idempotency-key": "k" * 201}, b"", 422, "invalid_input"),
        ({"origin": "https://evil.example"}, b"", 403, "forbidden_origin"),
        ({"sec-fetch-site": "cross-site"}, b"", 403, "forbidden_origin"),
    ],
)
async def test_requests_that_are_refused(headers: dict[str, str], content: bytes, status: int, code: str) -> None:
    """Each with what to send instead, and no run is begun."""
    async with listening(hooked()) as client:
        answer = await client.post("/webhook/orders", content=content, headers=headers)
        assert (answer.status_code, code_of(answer)) == (status, code)
        assert (await client.get("/api/v1/runs")).json()["runs"] == []


@pytest.mark.parametrize(
    ("parameters", "status", "answer"),
    [
        ({**LAST, "responseData": "allEntries"}, 200, [{"n": 1}, {"n": 2}]),
        ({**LAST, "responseData": "firstEntryJson", "responseCode": 201}, 201, {"n": 1}),
        ({**LAST, "responseData": "noData"}, 200, ""),
        ({"options": {"responseData": "thanks"}}, 200, "thanks"),
        ({"options": {"noResponseBody": True}}, 200, ""),
        ({"responseCode": 204}, 204, ""),
        ({**LAST, "responseCode": 205}, 205, ""),
        ({**LAST, "responseCode": 304, "options": {"responseHeaders": {"entries": [{"name": "etag", "value": "1"}]}}},
         304, ""),
    ],
)  # fmt: skip
async def test_what_is_answered(parameters: dict[str, Any], status: int, answer: Any) -> None:
    """The first item of the last node, all of them or nothing; or a text that is written in the node."""
    document = hooked(**parameters)
    document["nodes"][1] = node("Keep", "splitOut", {"fieldToSplitOut": "body"})
    async with listening(document) as client:
        found = await client.post("/webhook/orders", json=[{"n": 1}, {"n": 2}])
    assert found.status_code == status
    assert (found.text if isinstance(answer, str) else found.json()) == answer


async def test_no_answer_of_a_flow_is_a_page_of_the_service() -> None:
    """Whatever policy it claims: scripts of other flows would run there with the rights of whoever looks."""
    named = {"content-type": "text/html", "content-security-policy": guard.PAGES}
    entries = [{"name": name, "value": value} for name, value in named.items()]
    document = hooked(options={"responseData": "<p>", "responseHeaders": {"entries": entries}})
    async with listening(document) as client:
        found = await client.post("/webhook/orders", json={})
    assert found.text == "<p>" and found.headers["content-security-policy"].startswith("default-src 'none'; frame")


@pytest.mark.parametrize(
    ("name", "value"),
    [("A", "headrace_token=hra_a; Path=/"), ("B", "\theadrace_token =hra_a"), ("C", " =headrace_token=hra_a")],
)
async def test_no_flow_logs_people_in(name: str, value: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its other headers are sent, its other cookies too; that is told once of each webhook."""
    entries = [{"name": "Set-Cookie", "value": value}, {"name": "x-kind", "value": "tea"}]
    async with listening(hooked(name, options={"responseHeaders": {"entries": entries}})) as client:
        for _ in range(2):
            found = await client.post("/webhook/orders", json={})
            assert found.headers["x-kind"] == "tea" and "set-cookie" not in found.headers
    assert caplog.text.count("may not set the cookie headrace_token") == 1
    entries[0]["value"] = "headrace_tokens=1"
    async with listening(hooked(options={"responseHeaders": {"entries": entries}})) as client:
        assert (await client.post("/webhook/orders", json={})).headers["set-cookie"] == "headrace_tokens=1"


async def test_a_flow_that_fails_or_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer names the run and says nothing of what is inside."""
    failing = hooked("Bad", "bad", **LAST)
    failing["nodes"][1] = node("Keep", "stopAndError", {"errorMessage": "a secret"})
    slow = hooked("Slow", "slow", **LAST)
    slow["nodes"][1] = node("Keep", "wait", {"amount": 1, "unit": "hours"})
    monkeypatch.setattr("headrace.service.webhooks.WAIT", timedelta(seconds=1))
    async with listening(failing, slow) as client:
        bad = await client.post("/webhook/bad", json={})
        assert (bad.status_code, code_of(bad)) == (500, "run_failed")
        assert "a secret" not in bad.text
        late = await client.post("/webhook/slow", json={})
        assert (late.status_code, code_of(late)) == (504, "result_timeout")
        assert (await client.get(f"/api/v1/runs/{late.json()['run']}")).json()["state"] == "running"


def basic(user: str, password: str) -> str:
    """Return the header of a user with a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("way", "headers", "status"),
    [
        ("headerAuth", {"x-token": "s3cret-token"}, 200),
        ("headerAuth", {"x-token": "s3cret-toke"}, 401),
        ("headerAuth", {"x-token": ""}, 401),
        ("headerAuth", {}, 401),
        ("basicAuth", {"authorization": basic("ann", "open sesame")}, 200),
        ("basicAuth", {"authorization": basic("ann", "open")}, 401),
        ("basicAuth", {"authorization": basic("bob", "open sesame")}, 401),
        ("basicAuth", {"authorization": "Basic !!"}, 401),
        ("basicAuth", {"authorization": "Bearer " + basic("ann", "open sesame")[6:]}, 401),
        ("basicAuth", {}, 401),
    ],
)
async def test_a_webhook_asks_for_its_credential(way: str, headers: dict[str, str], status: int) -> None:
    """One that is wrong or missing begins nothing; the right one is not in the item."""
    kind, name = {"headerAuth": ("httpHeaderAuth", "Token"), "basicAuth": ("httpBasicAuth", "Ann")}[way]
    document = hooked(authentication=way, credentials={kind: {"id": "1", "name": name}}, **LAST)
    async with listening(document) as client:
        answer = await client.post("/webhook/orders", json={}, headers=headers)
        assert answer.status_code == status
        assert "s3cret-token" not in answer.text
        if status == 401:
            assert code_of(answer) == "unauthorized"
            assert ("www-authenticate" in answer.headers) == (way == "basicAuth")


@pytest.mark.parametrize("credentials", [{}, {"httpHeaderAuth": {"name": "Gone"}}, {"httpHeaderAuth": {"name": "Ann"}}])
async def test_a_webhook_without_its_credential_lets_nobody_in(
    credentials: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Whether none is named, there is none of the name, or it is of another kind: the log says so."""
    async with listening(hooked(authentication="headerAuth", credentials=credentials)) as client:
        answer = await client.post("/webhook/orders", json={}, headers={"x-token": "open sesame"})
        assert (answer.status_code, code_of(answer)) == (503, "config")
    assert "lets nobody in" in caplog.text


async def test_paths_methods_and_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only active flows listen, what is stored later is found, and a path that is written out wins."""
    monkeypatch.setattr("headrace.apps.flows.webhooks.MISS_SECONDS", 0)
    app = flows_app()
    async with served(app) as client:
        await put(app, hooked("Any", "shop/:what", **LAST))
        assert (await client.post("/webhook/shop/x", json={})).json()["params"] == {"what": "x"}
        other = await client.get("/webhook/shop/x")
        assert (other.status_code, other.headers["allow"], code_of(other)) == (405, "POST", "method_not_allowed")
        for path in ("orders", "shop", "shop/x/y", "shop/"):
            assert (await client.post(f"/webhook/{path}", json={})).status_code == 404, path

        await put(app, hooked("Asleep", "asleep", active=False))
        assert (await client.post("/webhook/asleep", json={})).status_code == 404
        await put(app, hooked("One", "orders"))
        assert (await client.post("/webhook/orders", json={})).status_code == 200
        await client.post("/api/v1/workflows/flow.one/deactivate", headers={"content-type": "application/json"})
        gone = await client.post("/webhook/orders", json={})
        assert (gone.status_code, code_of(gone)) == (404, "not_found")


async def test_two_flows_at_one_path_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """The first by its name gets the requests, and the log says so once."""
    async with listening(hooked("B"), hooked("A")) as client:
        run = (await client.post("/webhook/orders", json={})).json()["run"]
        assert (await client.get(f"/api/v1/runs/{run}")).json()["workflow"] == "flow.a"
        await client.post("/webhook/nothing", json={})
    assert caplog.text.count("POST orders of flow.b is that of flow.a too") == 1


async def test_a_request_with_a_key_begins_one_run() -> None:
    """Whatever its other headers are; its key is no key of a schedule, and a wish by another route is another one."""
    async with listening(hooked()) as client:
        headers = {"Idempotency-Key": "k"}
        first = await client.post("/webhook/orders", json={"n": 1}, headers=headers)
        again = await client.post("/webhook/orders", json={"n": 1}, headers={**headers, "X-Trace": "2"})
        assert first.json() == again.json()
        other = await client.post("/webhook/orders", json={"n": 2}, headers=headers)
        assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")
        [run] = (await client.get("/api/v1/runs")).json()["runs"]
        assert run["key"] == "webhook:k"


@pytest.mark.parametrize("level", ["workflow_level", "node_level"])
async def test_a_request_that_is_sent_again_begins_nothing_whatever_its_headers(level: str) -> None:
    """Senders change headers at each try; its run has those of the first, by whichever name of this host it came."""
    document = hooked(path="orders/:id", **LAST) | {"settings": {"headrace": {"level": level}}}
    async with listening(document) as client:
        headers = {"Idempotency-Key": "k", "X-Try": "1"}
        first = await client.post("/webhook/orders/7?a=1", json={"n": 1, "m": 2}, headers=headers)
        assert first.json()["headers"]["x-try"] == "1"
        tried = {**headers, "X-Try": "2", "User-Agent": "new", "Host": "127.0.0.1:8400"}
        again = await client.post("/webhook/orders/7?a=1", json={"n": 1, "m": 2}, headers=tried)
        assert (again.status_code, again.json()) == (200, first.json())
        for path, body in (("7?a=1", {"n": True, "m": 2}), ("7?a=2", {"n": 1, "m": 2}), ("8?a=1", {"n": 1, "m": 2})):
            answer = await client.post(f"/webhook/orders/{path}", json=body, headers=tried)
            assert (answer.status_code, code_of(answer)) == (409, "idempotency_conflict"), path
        [run] = (await client.get("/api/v1/runs")).json()["runs"]
        assert run["metadata"]["webhook_request"]["headers"]["x-try"] == "1"


async def test_a_webhook_without_its_request_is_given_the_input_as_it_is() -> None:
    """Whoever starts it by another route and says nothing of a request has none of its members."""
    async with listening(hooked()) as client:
        given = {"items": [{"json": {"body": 7}}], "trigger": "Hook", "mode": "webhook", "vars": {}}
        body = {"workflow": "flow.orders", "input": given, "metadata": {"webhook_request": 7}}
        run = (await client.post("/api/v1/runs", json=body)).json()["run"]

        async def output() -> list[Any]:
            return (await client.get(f"/api/v1/runs/{run}")).json()["output"]  # type: ignore[no-any-return]

        [item] = await wait_until(output)
        assert item["json"] == {"body": 7}
