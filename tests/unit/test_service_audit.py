"""The audit of the service: which requests are noted, by whom, and what of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
from fastapi import FastAPI

from headrace import App
from headrace.apps.papers import job
from headrace.engine.tokens import make_token, revoke_token
from headrace.model.api_token import Scope
from headrace.model.audit import Action
from headrace.papers_settings import PaperSettings
from headrace.service import auth
from headrace.service.access import Access
from headrace.service.audit_log import AuditLog
from headrace.service.auth import csrf_of
from headrace.service.permits import Permit, Permits
from headrace.service_settings import ServiceSettings
from tests.unit.engine_app import QUICK
from tests.unit.flow_serving import flows_app, put
from tests.unit.gate_calls import BEYOND, bearer, gated
from tests.unit.service_calls import JSON, shop
from tests.unit.test_flows_webhooks import hooked

JOB = "0198c0de-0000-7000-8000-000000000000"
PAUSE = "/api/v1/queues/llm/pause"


def audited(noting: str = "operate") -> App:
    """Return an app whose service notes actions."""
    return shop(replace(QUICK, service=ServiceSettings(audit=noting)))


class World:
    """A service, and what it noted."""

    def __init__(self, app: App, client: httpx2.AsyncClient, service: FastAPI) -> None:
        self.app, self.client, self.service = app, client, service

    @property
    def log(self) -> AuditLog:
        """Return what is to be written."""
        log: AuditLog = self.service.state.audit
        return log

    async def token(self, *scopes: Scope, name: str = "shop") -> tuple[dict[str, str], UUID]:
        """Make a token; return the header that sends it, and its id."""
        token, kept = await make_token(self.app.runtime.stores, name, scopes)
        return bearer(token), kept.id

    async def noted(self) -> list[Action]:
        """Return what was noted by now, the oldest first."""
        await self.log.close()
        return (await self.app.runtime.stores.audit.list_actions(limit=1_000))[::-1]


@asynccontextmanager
async def world(app: App | None = None, access: Access = BEYOND) -> AsyncIterator[World]:
    """Open an app with its service."""
    app = app or audited()
    async with gated(app, access) as (client, service):
        yield World(app, client, service)


async def test_what_operates_is_noted_with_who_did_it() -> None:
    """Once, with what it was done to and what of the body is no secret; reads are not."""
    async with world() as at:
        header, token_id = await at.token(Scope.OPERATE, Scope.READ)
        body = {"reason": "the bill", "force": True}
        assert (await at.client.post(PAUSE, json=body, headers=header)).status_code == 200
        assert (await at.client.get("/api/v1/queues/llm", headers=header)).status_code == 200
        assert (await at.client.post(f"/api/v1/jobs/{JOB}/cancel", headers=header)).status_code == 404
        pause, cancel = await at.noted()

    assert (pause.who, pause.token_id, pause.address) == ("shop", token_id, "192.0.2.7")
    assert (pause.operation, pause.subject, pause.status, pause.via) == ("pause_queue", {"name": "llm"}, 200, "api")
    assert json.loads(pause.detail) == body
    assert (cancel.operation, cancel.subject, cancel.status) == ("cancel_job", {"job_id": JOB}, 404)
    assert cancel.detail == "{}"


@pytest.mark.parametrize(("noting", "expected"), [("operate", []), ("all", ["submit_job"] * 2), ("off", [])])
async def test_what_brings_work_is_noted_where_it_is_asked_for(noting: str, expected: list[str]) -> None:
    """With names and numbers, and without arguments, also where a body is wrong."""
    async with world(audited(noting)) as at:
        header, _ = await at.token(Scope.SUBMIT)
        body = {"task": "double", "kwargs": {"number": 7}, "priority": 3}
        assert (await at.client.post("/api/v1/jobs", json=body, headers=header)).status_code == 201
        wrong = {"task": "double", "secret": 7, "priority": "very"}
        assert (await at.client.post("/api/v1/jobs", json=wrong, headers=header)).status_code == 422
        found = await at.noted()

    assert [action.operation for action in found] == expected
    assert [json.loads(action.detail) for action in found] == [{"task": "double", "priority": 3}, {"task": "double"}][
        : len(expected)
    ]


@pytest.mark.parametrize(("noting", "expected"), [("operate", ["send_signal", "submit_job"]), ("off", [])])
async def test_what_is_done_in_a_page_is_noted_whatever_it_brings(noting: str, expected: list[str]) -> None:
    """A signal may approve something: by default it is noted of pages, without its payload; of programs it is not."""
    app = audited(noting)
    async with world(app, Access(True)) as at:
        at.client.base_url = httpx2.URL("http://localhost:8400")
        token, _ = await make_token(app.runtime.stores, "ann", [Scope.READ, Scope.SUBMIT])
        assert (await at.client.post("/login", json={"token": token})).status_code == 204
        page = {**JSON, "x-csrf-token": csrf_of(token)}
        for key, header in (("approve/7", page), ("approve/8", bearer(token))):
            signal = await at.client.post(f"/api/v1/signals/{key}", json={"approved": "yes"}, headers=header)
            assert signal.status_code < 300
            body = {"task": "double", "kwargs": {"number": 7}}
            assert (await at.client.post("/api/v1/jobs", json=body, headers=header)).status_code == 201
            assert (await at.client.get("/api/v1/jobs", headers=header)).status_code == 200
        found = [action for action in await at.noted() if action.operation != "login"]

    assert [action.operation for action in found] == expected
    assert {(action.who, action.via) for action in found} == ({("ann", "page")} if expected else set())
    assert [(action.subject, action.detail) for action in found[:1]] == [({"key": "approve/7"}, "{}")][: len(expected)]


async def test_refusals_of_known_tokens_are_noted() -> None:
    """Of those without the scope, and those that are revoked; whatever the route needs, and without the body."""
    async with world() as at:
        reader, _ = await at.token(Scope.READ, name="reader")
        gone, gone_id = await at.token(Scope.OPERATE, name="gone")
        await revoke_token(at.app.runtime.stores, gone_id)
        for header, status in ((reader, 403), (gone, 401)):
            for path in (PAUSE, "/api/v1/jobs"):
                answer = await at.client.post(path, json={"reason": "x", "task": "double"}, headers=header)
                assert answer.status_code == status
        found = await at.noted()

    assert [(action.who, action.operation, action.status) for action in found] == [
        ("reader", "pause_queue", 403), ("reader", "submit_job", 403),
        ("gone", "pause_queue", 401), ("gone", "submit_job", 401),
    ]  # fmt: skip
    assert {action.detail for action in found} == {"{}"}


async def test_strangers_are_not_noted() -> None:
    """Neither without a token nor with one that nobody made, nor for addresses that there are not."""
    async with world(audited("all")) as at:
        header, _ = await at.token(Scope.OPERATE)
        for wrong in (JSON, bearer("hra_guessed"), {**JSON, "authorization": "Basic aHJhOmhyYQ=="}):
            assert (await at.client.post(PAUSE, json={}, headers=wrong)).status_code == 401
        assert (await at.client.post("/api/v1/nothing", json={}, headers=header)).status_code == 404
        assert (await at.client.post("/api/v1/workers", json={}, headers=header)).status_code == 405
        assert await at.noted() == []


async def test_who_needs_no_token_is_local() -> None:
    """A request of a page says that it is one; a page of another site does nothing, and is not noted."""
    async with world(access=Access()) as at:
        at.client.base_url = httpx2.URL("http://localhost")
        page = {**JSON, "x-csrf-token": "t"}
        assert (await at.client.post(PAUSE, json={"force": True}, headers=page)).status_code == 200
        foreign = {**JSON, "origin": "http://evil.example"}
        assert (await at.client.post(PAUSE, json={}, headers=foreign)).status_code == 403
        [action] = await at.noted()

    assert (action.who, action.token_id, action.via, action.status) == ("local", None, "page", 200)


async def test_tokens_of_handles_and_payloads_are_not_kept() -> None:
    """Whoever resumes a handle shows its token in the address; a signal is all payload."""
    async with world(audited("all")) as at:
        header, _ = await at.token(Scope.SUBMIT)
        signal = {"name": "a secret", "number": 7}
        assert (await at.client.post("/api/v1/signals/k/1", json=signal, headers=header)).status_code < 300
        await at.client.post(f"/api/v1/resume/hrh_{'a' * 43}", json=signal, headers=header)
        found = await at.noted()

    assert [(action.operation, action.subject, action.detail) for action in found] == [
        ("send_signal", {"key": "k/1"}, "{}"), ("resume_handle", {}, "{}"),
    ]  # fmt: skip
    assert "aaaa" not in repr(found)


async def test_a_webhook_is_noted_for_its_own_credential() -> None:
    """What begins a run is, where all is noted, without what was sent; strangers that it does not let in are not."""
    app = flows_app()
    app.settings = replace(app.settings, service=ServiceSettings(audit="all"))
    own = {"authentication": "headerAuth", "credentials": {"httpHeaderAuth": {"name": "Token"}}}
    async with world(app) as at:
        await put(app, hooked("Own", "own", **own))
        for secret, status in (("s3cret-token", 200), ("guessed", 401)):
            answer = await at.client.post("/webhook/own", json={"n": 7}, headers={"x-token": secret})
            assert answer.status_code == status, answer.text
        [action] = await at.noted()

    assert (action.who, action.operation, action.subject, action.detail) == (
        "own credential", "webhook", {"path": "own"}, "{}",
    )  # fmt: skip


@pytest.mark.parametrize(("noting", "count"), [("all", 2), ("operate", 0)])
async def test_a_webhook_that_is_merely_asked_is_noted(noting: str, count: int) -> None:
    """It begins a run by GET too, and pages of the service do not."""
    app = flows_app()
    app.settings = replace(app.settings, service=ServiceSettings(audit=noting))
    async with world(app) as at:
        header, _ = await at.token(Scope.SUBMIT, Scope.READ)
        for method in ("GET", "HEAD"):
            await put(app, hooked(method, f"by-{method}", httpMethod=method))
        for method in ("GET", "HEAD"):
            assert (await at.client.request(method, f"/webhook/by-{method}", headers=header)).status_code == 200
        assert (await at.client.get("/api/v1/jobs", headers=header)).status_code == 200
        found = await at.noted()

    assert [(action.who, action.operation, action.subject) for action in found] == [
        ("shop", "webhook", {"path": "by-GET"}), ("shop", "webhook", {"path": "by-HEAD"}),
    ][:count]  # fmt: skip


async def test_what_people_decide_of_papers_is_noted_without_the_value(tmp_path: Path) -> None:
    """Of which value of which document it was, whatever they put in its place."""
    app = shop(replace(QUICK, directory=tmp_path, papers=PaperSettings(tmp_path, tmp_path)))
    job.register(app)
    async with world(app) as at:
        header, _ = await at.token(Scope.OPERATE)
        path = f"/api/v1/papers/{JOB}/values/{JOB}/arm.2.dose"
        answer = await at.client.put(path, json={"accept": "no", "edited_value": 41.5}, headers=header)
        assert answer.status_code == 404
        [action] = await at.noted()

    assert action.operation == "decide_papers_value"
    assert action.subject == {"task_id": JOB, "job": JOB, "name": "arm.2.dose"}
    assert action.detail == "{}"


async def test_what_no_token_can_be_is_a_stranger(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it is made of: nothing of it is in the log."""
    async with world() as at:
        sent = b'{"token": "\\ud800"}'
        assert (await at.client.post("/login", content=sent, headers=JSON)).status_code == 400
        assert await at.noted() == []
    assert caplog.text == ""


async def test_a_route_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By all that stand before it; and what only pages have to bring is made for those that ask for it."""
    asked, find = list[str](), Permits.find

    def counted(permits: Permits, method: str, path: str) -> Permit | None:
        asked.append(path)
        return find(permits, method, path)

    def never(secret: str) -> str:
        raise AssertionError(secret)

    monkeypatch.setattr(Permits, "find", counted)
    monkeypatch.setattr(auth, "csrf_of", never)
    async with world() as at:
        header, _ = await at.token(Scope.OPERATE)
        assert (await at.client.post(PAUSE, json={"force": True}, headers=header)).status_code == 200
        assert asked == [PAUSE]


async def test_pages_of_the_audit_follow_one_another() -> None:
    """For the scope operate alone; filters by name, and a cursor that no page gave is told."""
    async with world() as at:
        header, _ = await at.token(Scope.OPERATE)
        reader, _ = await at.token(Scope.READ, name="reader")
        for number in range(5):
            await at.client.post(f"/api/v1/queues/q{number}/pause", json={"force": True}, headers=header)
        await at.client.post(PAUSE, json={}, headers=reader)
        await at.noted()
        assert (await at.client.get("/api/v1/audit", headers=reader)).status_code == 403
        query: dict[str, Any] = {"limit": 2, "who": "shop", "operation": "pause_queue"}
        names = []
        while True:
            page = (await at.client.get("/api/v1/audit", params=query, headers=header)).json()
            names += [action["subject"]["name"] for action in page["actions"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        wrong = await at.client.get("/api/v1/audit", params={"cursor": "x"}, headers=header)
        refused = (await at.client.get("/api/v1/audit", params={"who": "reader"}, headers=header)).json()

    assert names == ["q4", "q3", "q2", "q1", "q0"]
    assert wrong.status_code == 422
    [action] = refused["actions"]
    assert (action["status"], action["detail"], action["via"]) == (403, {}, "api")


async def test_metrics_tell_what_was_noted() -> None:
    """And that nothing was dropped."""
    async with world() as at:
        header, _ = await at.token(Scope.OPERATE, Scope.READ)
        await at.client.post(PAUSE, json={"force": True}, headers=header)
        await at.noted()
        text = (await at.client.get("/metrics", headers=header)).text

    assert "\nheadrace_audit_actions_total 1\n" in text
    assert "\nheadrace_audit_dropped_total 0\n" in text


async def test_logins_and_what_pages_do_are_noted() -> None:
    """By the token that the browser keeps; strangers who try to log in are not, nor is the token itself."""
    app = audited()
    async with world(app, Access(True)) as at:
        at.client.base_url = httpx2.URL("http://localhost:8400")
        token, kept = await make_token(app.runtime.stores, "ann", [Scope.READ, Scope.OPERATE])
        weak, _ = await make_token(app.runtime.stores, "ci", [Scope.SUBMIT])
        for given, status in ((weak, 403), ("hra_guessed", 401), (token, 204)):
            assert (await at.client.post("/login", json={"token": given})).status_code == status
        for csrf, status in (("guessed", 403), (csrf_of(token), 200)):
            header = {**JSON, "x-csrf-token": csrf}
            assert (await at.client.post(PAUSE, json={"force": True}, headers=header)).status_code == status
        await at.client.post("/logout", json={})
        await at.client.post("/logout", json={})
        found = await at.noted()

    assert [(action.who, action.operation, action.status) for action in found] == [
        ("ci", "login", 403), ("ann", "login", 204), ("ann", "pause_queue", 403), ("ann", "pause_queue", 200),
        ("ann", "logout", 204),
    ]  # fmt: skip
    assert {action.via for action in found} == {"page"}
    assert found[1].token_id == kept.id
    assert token not in repr(found) and weak not in repr(found)
