"""A walk over the routes of the service: none lets anybody in who may not."""

from __future__ import annotations

import re

import httpx2
import pytest
from fastapi import APIRouter, FastAPI

from headrace import App
from headrace.model.api_token import Scope
from headrace.service import details, memory, memory_users, papers, papers_values, reports
from headrace.service.access import Access
from headrace.service.application import make_service
from headrace.service.auth import needs
from headrace.service.gate import is_public
from headrace.service.permits import PUBLIC, Permits
from headrace.service.problems import add_handlers
from tests.unit.flow_serving import flows_app
from tests.unit.gate_calls import gated, login
from tests.unit.service_calls import JSON, code_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
NOWHERE = (
    "/", "/api", "/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v1/runs/", "//api/v1/runs", "/webhook", "/webhook/x/y",
    "/docs", "/openapi.json", "/healthz/", "/readyz/", "//healthz", "/HEALTHZ", "/healthz%2F", "/%68ealthz",
    "/readyz%20", "/healthz%0A", "/healthz%00", "/healthz;x",
)  # fmt: skip


def addresses(app: App) -> list[str]:
    """Return an address of every route."""
    permits = Permits.of(make_service(app)).all
    # Files and the page to log in with are for everybody; what they show is nothing of the system.
    closed = (permit for permit in permits if permit.needed is None or not permit.needed.everybody)
    return sorted({re.sub(r"\{[^}]*\}", "x", permit.path) for permit in closed})


async def test_every_method_of_every_address_asks_for_a_token() -> None:
    """Also of those that there are not, so that nobody learns which there are; but for the two that watch."""
    app = flows_app()
    async with gated(app) as (client, _):
        for path in [*addresses(app), *NOWHERE]:
            for method in METHODS:
                answer = await client.request(method, path, headers=JSON)
                if method == "GET" and path in PUBLIC:
                    assert answer.status_code == 200, path
                elif "%00" in path:
                    assert answer.status_code == 400, path
                else:
                    assert answer.status_code == 401, (method, path, answer.text)
                    assert answer.headers["www-authenticate"] == "Bearer", (method, path)


async def test_every_route_refuses_tokens_of_each_other_scope() -> None:
    """And says which scope it is for; every route has one."""
    app = flows_app()
    async with gated(app) as (client, _):
        logins = {scope: await login(app, scope) for scope in Scope}
        for permit in Permits.of(make_service(app)).all:
            if permit.path in PUBLIC or (permit.needed is not None and permit.needed.everybody):
                continue
            assert permit.needed is not None, f"{permit.path} does not say who may call it: dependencies=[needs(…)]"
            path = re.sub(r"\{[^}]*\}", "x", permit.path)
            for scope in set(Scope) - {permit.needed.scope}:
                for method in permit.methods:
                    answer = await client.request(method, path, headers=logins[scope])
                    assert answer.status_code == 403, (method, path, scope)
                    assert method == "HEAD" or f"scope {permit.needed.scope};" in answer.json()["detail"]


def test_open_to_everybody_is_only_the_way_in() -> None:
    """What needs no token shows nothing of the system."""
    permits = Permits.of(make_service(flows_app())).all
    open_to_all = {permit.path for permit in permits if permit.needed is not None and permit.needed.everybody}
    assert open_to_all == {"/static/{version}/{path:path}", "/login", "/logout"}


@pytest.mark.parametrize(
    ("method", "path", "raw", "public"),
    [
        ("GET", "/healthz", b"/healthz", True),
        ("GET", "/readyz", b"/readyz", True),
        ("HEAD", "/healthz", b"/healthz", False),
        ("POST", "/healthz", b"/healthz", False),
        ("GET", "/healthz", b"/%68ealthz", False),
        ("GET", "/healthz", b"http://x/healthz", False),
        ("GET", "/healthz", b"/a/../healthz", False),
        ("GET", "/healthz", None, False),
        ("GET", "/healthz/", b"/healthz/", False),
        ("GET", "/metrics", b"/metrics", False),
    ],
)
def test_only_what_is_written_exactly_so_is_open(method: str, path: str, raw: bytes | None, public: bool) -> None:
    """Whatever a server makes of other spellings."""
    assert is_public({"method": method, "path": path, "raw_path": raw}) is public


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_route_that_says_nothing_is_open_to_no_token(method: str) -> None:
    """It fails closed: whoever adds a route has to say who may call it."""
    app = App("memory://")
    async with app:
        service = make_service(app)

        async def anything() -> None:
            """Do anything."""

        service.add_api_route("/anything", anything, methods=[method, "GET"])
        permit = Permits.of(service).find(method, "/anything")
        assert permit is not None
        assert permit.needed is None


@pytest.mark.parametrize(
    "router",
    [details.router, memory.router, memory_users.router, papers.router, papers_values.router, reports.router],
    ids=["details", "memory", "memory_users", "papers", "papers_values", "reports"],
)
def test_routes_of_applications_say_who_may_call_them(router: APIRouter) -> None:
    """They are served with some apps alone."""
    service = FastAPI()
    service.include_router(router)
    permits = Permits.of(service).all
    assert permits
    assert [permit.path for permit in permits if permit.needed is None] == []


async def test_a_route_asks_by_itself_too() -> None:
    """Where nothing stands before it, nobody is let in."""
    service = FastAPI()
    add_handlers(service)
    called = []
    service.add_api_route("/do", lambda: called.append(1), methods=["POST"], dependencies=[needs(Scope.SUBMIT)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(service), base_url="http://localhost") as client:
        assert (await client.post("/do")).status_code == 401
    assert called == []


async def test_whoever_has_a_token_is_told_what_there_is_not() -> None:
    """With the problems of every service."""
    app = flows_app()
    async with gated(app) as (client, _):
        headers = await login(app, Scope.READ)
        assert code_of(await client.get("/api/v1/nothing", headers=headers)) == "not_found"
        assert code_of(await client.delete("/api/v1/runs", headers=headers)) == "method_not_allowed"


@pytest.mark.parametrize(("required", "expected"), [(True, [["token"]]), (False, [["token"], []])])
async def test_the_document_says_which_scope_opens_what(required: bool, expected: list[list[str]]) -> None:
    """With the answers to whoever has none."""
    app = flows_app()
    async with gated(app, Access(required, None)) as (client, _):
        document = (await client.get("/api/v1/openapi.json", headers=await login(app, Scope.READ))).json()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    start = document["paths"]["/api/v1/runs"]["post"]
    assert start["security"][0] == {"token": ["submit"]}
    assert [list(one) for one in start["security"]] == expected
    assert {"401", "403"} <= set(start["responses"])
    assert "security" not in document["paths"]["/healthz"]["get"]
