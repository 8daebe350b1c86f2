"""The service: whatever is sent is answered with a problem that names it, never with 500."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
import pytest_asyncio

from headrace.service.bodies import MOST_BYTES
from tests.unit.service_calls import JSON, code_of, served, shop, start

RUNS, RUN = "/api/v1/runs", f"/api/v1/runs/{UUID(int=7)}"
DEEP = b"[" * 65 + b"]" * 65


#: One service for all of them: nothing here leaves anything in it that another test could meet.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """Serve an app that no worker works."""
    async with served(shop(), worker=False) as client:
        yield client


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b'{"workflow": NaN}', 400, "invalid_json"),
        (b'{"workflow": "twice", "input": 1, "input": 2}', 400, "invalid_json"),
        (b'{"workflow": "twice", "input": "\\u0000"}', 400, "invalid_json"),
        (b'{"workflow": "twice", "input": "\\ud800"}', 400, "invalid_json"),
        (b'{"workflow": "twice", "input": 1e999}', 400, "invalid_json"),
        (b'{"workflow": "twice", "input": "\xff"}', 400, "invalid_json"),
        (b'{"workflow": "twice", "input": ' + DEEP + b"}", 400, "invalid_json"),
        (b'{"workflow": "twice", "input": ' + b"[" * 200_000, 400, "invalid_json"),
        (b'{"workflow": "twice", "input": ' + b"7" * 5_000 + b"}", 400, "invalid_json"),
        (b'"' + b"x" * MOST_BYTES + b'"', 413, "payload_too_large"),
        (b"", 422, "invalid_input"),
        (b"null", 422, "invalid_input"),
        (b"[]", 422, "invalid_input"),
        (b'{"workflow": 7}', 422, "invalid_input"),
        (b'{"workflow": "twice", "inptu": 1}', 422, "invalid_input"),
        (b'{"workflow": "twice", "metadata": []}', 422, "invalid_input"),
        (b'{"workflow": "twice", "key": ""}', 422, "invalid_input"),
        (b'{"workflow": "twice", "key": "%s"}' % (b"k" * 256), 409, "idempotency_conflict"),
        (b'{"workflow": "twice", "input": {"a": 1}, "user_id": 7}', 422, "invalid_input"),
        (b'{"workflow": "nobody"}', 404, "not_found"),
        (b'{"workflow": "../x"}', 404, "not_found"),
    ],
)
async def test_bodies(client: httpx2.AsyncClient, body: bytes, status: int, code: str) -> None:
    """A body that breaks a rule is told which, and nothing is started."""
    before = (await client.get(RUNS)).json()
    answer = await client.post(RUNS, content=body, headers=JSON)
    assert (answer.status_code, code_of(answer)) == (status, code)
    assert (await client.get(RUNS)).json() == before


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", f"{RUNS}?limit=0", 422, "invalid_input"),
        ("GET", f"{RUNS}?limit=-1", 422, "invalid_input"),
        ("GET", f"{RUNS}?limit=1000000000", 422, "invalid_input"),
        ("GET", f"{RUNS}?limit=x", 422, "invalid_input"),
        ("GET", f"{RUNS}?cursor=%3Cnone%3E", 422, "invalid_input"),
        ("GET", f"{RUNS}?cursor=MTk5OS54", 422, "invalid_input"),
        ("GET", f"{RUNS}?cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTkuMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDE", 422,
         "invalid_input"),
        ("GET", f"{RUNS}?cursor={'x' * 300}", 422, "invalid_input"),
        ("GET", f"{RUNS}?owner=ann", 422, "invalid_input"),
        ("GET", f"{RUNS}?state=lost", 422, "invalid_input"),
        *(("GET", f"/api/v1/{path}?owner=ann", 422, "invalid_input") for path in (
            "queues", "queues/default", "schedules", "llm/pools", "llm/spend", "llm/calls", "llm/budgets", "limits",
            "events/groups", "workflows/twice", "jobs", "workers", "events",
            f"runs/{UUID(int=7)}", f"batches/{UUID(int=7)}/events", "handles/x")),
        ("POST", "/api/v1/queues/default/retry?all=1", 422, "invalid_input"),
        ("GET", f"{RUNS}?workflow={'x' * 10_240}", 422, "invalid_input"),
        ("GET", f"{RUNS}?workflow=%00", 400, "invalid_request"),
        ("GET", f"{RUNS}/seven", 422, "invalid_input"),
        ("GET", RUN, 404, "not_found"),
        ("GET", f"{RUN}/nodes/a", 404, "not_found"),
        ("POST", f"{RUN}/cancel", 404, "not_found"),
        ("POST", f"{RUN}/rerun", 404, "not_found"),
        ("GET", "/api/v1/workflows/nobody", 404, "not_found"),
        ("GET", "/api/v1/workflows/twice%00", 400, "invalid_request"),
        ("GET", "/api/v1/workflows/twice?version=0", 422, "invalid_input"),
        ("GET", f"/api/v1/workflows/twice?version={2**31}", 422, "invalid_input"),
        ("POST", "/api/v1/workflows/nobody/activate", 404, "not_found"),
        ("GET", "/api/v1/workflows?limit=201", 422, "invalid_input"),
        ("GET", "/api/v1/workflows?cursor=A%20B", 422, "invalid_name"),
        ("GET", "/api/v1/workflows/%ed%a0%80", 400, "invalid_request"),
        ("POST", "/api/v1/signals/%ff", 400, "invalid_request"),
        ("GET", f"{RUNS}?workflow=%ff", 400, "invalid_request"),
        ("GET", f"{RUNS}?token=x", 400, "invalid_request"),
        ("GET", "/api/v1/jobs/..%2f..", 404, "not_found"),
        ("GET", "/api/v1/nothing", 404, "not_found"),
        ("DELETE", "/api/v1/nothing", 404, "not_found"),
        ("GET", "/api/v1/runs/", 404, "not_found"),
        ("DELETE", RUNS, 405, "method_not_allowed"),
        ("PUT", f"{RUN}/cancel", 405, "method_not_allowed"),
        ("POST", f"/api/v1/signals/{'k' * 256}", 422, "invalid_input"),
        ("GET", "/webhook/orders", 404, "not_found"),
    ],
)  # fmt: skip
async def test_addresses(client: httpx2.AsyncClient, method: str, path: str, status: int, code: str) -> None:
    """Ids, names, filters, pages and methods that there are not."""
    answer = await client.request(method, path, headers=JSON)
    assert (answer.status_code, code_of(answer)) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", RUNS, "GET, POST"), ("TRACE", RUNS, "GET, POST"), ("FOO", RUNS, "GET, POST"),
        ("PUT", f"{RUN}/cancel", "POST"), ("POST", "/api/v1/workflows", "GET"), ("PATCH", "/healthz", "GET"),
        ("OPTIONS", RUNS, "GET, POST"),
    ],
)  # fmt: skip
async def test_methods_that_are_not_for_an_address(
    client: httpx2.AsyncClient, method: str, path: str, allowed: str
) -> None:
    """All that there are instead are named, in the text and in the header, whatever came with the request."""
    for more in ({"headers": JSON}, {}, {"content": b"x", "headers": {"content-type": "text/plain"}}):
        answer = await client.request(method, path, **more)  # type: ignore[arg-type] # what httpx2 takes
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        assert answer.json()["detail"] == f"{method} is not for {path}: use {allowed}"


async def test_no_other_site_is_let_in_by_the_browser(client: httpx2.AsyncClient) -> None:
    """A browser that asks first is told nothing that lets it go on, and answers cannot be put into other pages."""
    asks = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    for method in ("OPTIONS", "GET"):
        answer = await client.request(method, RUNS, headers=asks)
        assert [name for name in answer.headers if name.startswith("access-control")] == []
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "evil.example"}, 403, "forbidden_host"),
        ({"host": "localhost.evil.example:8400"}, 403, "forbidden_host"),
        ({"host": "10.0.0.7"}, 403, "forbidden_host"),
        ({"host": ""}, 403, "forbidden_host"),
        ({"host": "[::1].evil.example"}, 403, "forbidden_host"),
        ({"host": "[::1]8400"}, 403, "forbidden_host"),
        ({"host": "localhost:80@evil.example"}, 403, "forbidden_host"),
        ({"host": "localhost:x"}, 403, "forbidden_host"),
        ({"host": "LOCALHOST:8400"}, 201, ""),
        ({"host": "localhost:"}, 201, ""),
        ({"host": "[::1]:8400"}, 201, ""),
        ({"host": "127.0.0.1:8400"}, 201, ""),
        ({"origin": "http://evil.example"}, 403, "forbidden_origin"),
        ({"origin": "null"}, 403, "forbidden_origin"),
        ({"origin": "http://localhost:9999"}, 403, "forbidden_origin"),
        ({"origin": "http://localhost:8400"}, 403, "forbidden_csrf"),
        ({"sec-fetch-site": "cross-site"}, 403, "forbidden_origin"),
        ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ({"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"),
        ({"content-type": "application/json; charset=utf-8"}, 201, ""),
        ({"content-length": "x"}, 400, "invalid_request"),
        ({"content-length": str(MOST_BYTES + 1)}, 413, "payload_too_large"),
        ({"content-length": "9" * 4_400}, 413, "payload_too_large"),
        ({"idempotency-key": "other"}, 422, "invalid_input"),
        ({"idempotency-key": ""}, 422, "invalid_input"),
    ],
)
async def test_headers(client: httpx2.AsyncClient, headers: dict[str, str], status: int, code: str) -> None:
    """A page of another site reaches nothing: by another name of this host, by its origin, or by a simple request."""
    body = f'{{"workflow": "twice", "input": 1, "key": "{uuid4()}"}}'
    answer = await client.post(RUNS, content=body, headers={**JSON, **headers})
    assert answer.status_code == status, answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert code == "" or code_of(answer) == code


async def test_a_body_in_parts_is_bounded_too(client: httpx2.AsyncClient) -> None:
    """One without a length is read no further than the bound."""
    sent = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b" " * 100_000

    answer = await client.post(RUNS, content=parts(), headers=JSON)
    assert (answer.status_code, code_of(answer)) == (413, "payload_too_large")
    assert sent < 20


async def test_a_signal_is_bounded_below_other_bodies(client: httpx2.AsyncClient) -> None:
    """A payload above 256 KiB is refused."""
    answer = await client.post("/api/v1/signals/k", json="x" * 300_000)
    assert (answer.status_code, code_of(answer)) == (413, "payload_too_large")


async def test_a_run_that_goes_on_is_not_repeated(client: httpx2.AsyncClient) -> None:
    """Nor is a node that its graph has not."""
    run = await start(client, "twice", 1)
    for body in ({}, {"from": "nothing"}, {"form": "a"}):
        answer = await client.post(f"{RUNS}/{run}/rerun", json=body)
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_every_route_that_writes_asks_for_json_and_refuses_other_sites(
    client: httpx2.AsyncClient, method: str
) -> None:
    """A walk over the routes: none is reached by what a browser sends without asking."""
    document: dict[str, Any] = (await client.get("/api/v1/openapi.json")).json()
    routes = [path for path, methods in document["paths"].items() if method.lower() in methods]
    assert routes or method != "POST"
    for path in routes:
        simple = await client.request(method, path, headers={"content-type": "text/plain"})
        assert simple.status_code == 415, path
        foreign = await client.request(method, path, headers={**JSON, "origin": "https://evil.example"})
        assert foreign.status_code == 403, path


@pytest.mark.parametrize(
    ("path", "body"), [("runs", {"workflow": "twice", "input": 1}), ("jobs", {"task": "double", "args": [1]})]
)
async def test_two_idempotency_keys_are_refused(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> None:
    """Nobody can tell which of them is meant."""
    headers = [*JSON.items(), ("idempotency-key", "a"), ("idempotency-key", "b")]
    answer = await client.post(f"/api/v1/{path}", json=body, headers=headers)
    assert (answer.status_code, code_of(answer)) == (400, "invalid_request")
