"""What callers without a credential of the service can do to others: next to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace import App
from headrace.model.resume_handle import new_token
from headrace.service.access import Access
from headrace.service.attempts import MOST, Attempts
from headrace.service.problems import RequestError
from headrace.service.strangers import Strangers
from tests.unit.flow_serving import flows_app, put
from tests.unit.gate_calls import gated, login
from tests.unit.service_calls import JSON, code_of
from tests.unit.test_flows_webhooks import hooked

RESUME = "/api/v1/resume/"


def test_few_of_them_send_at_once_and_fewer_of_one_address() -> None:
    """Others are told to come again; who has sent makes room."""
    strangers = Strangers(most=3, most_of_one=2)
    with strangers.counted("192.0.2.1"), strangers.counted("192.0.2.1"):
        with pytest.raises(RequestError) as refused, strangers.counted("192.0.2.1"):
            pass
        assert (refused.value.status, refused.value.code) == (503, "too_many_requests")
        with strangers.counted("192.0.2.2"), pytest.raises(RequestError), strangers.counted("192.0.2.3"):
            pass
    with strangers.counted("192.0.2.1"):
        pass


async def test_slow_bodies_of_strangers_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have five seconds; whoever has a token is answered meanwhile, and no body is read for what is no token."""
    monkeypatch.setattr("headrace.service.guard.STRANGERS_SECONDS", 0.05)
    app, sent = App("memory://"), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        sent.set()
        yield b"{"
        await asyncio.Event().wait()

    async with gated(app) as (client, _):
        json = {"content-type": "application/json"}
        slow = asyncio.create_task(client.post(RESUME + new_token(), content=slowly(), headers=json))
        await sent.wait()
        assert (await client.get("/api/v1/runs", headers=await login(app))).status_code == 200
        answer = await asyncio.wait_for(slow, 5)
        assert (answer.status_code, code_of(answer)) == (408, "request_timeout")
        sent.clear()
        answer = await client.post(f"{RESUME}hrh_guessed", content=slowly(), headers=json)
        assert (answer.status_code, code_of(answer), sent.is_set()) == (401, "unauthorized", False)


async def test_requests_without_a_credential_lock_nobody_out() -> None:
    """They are refused and not counted: many may share an address, such as that of a proxy."""
    app = App("memory://")
    async with gated(app) as (client, service):
        for _ in range(MOST + 5):
            assert (await client.post(RESUME + new_token(), json=1)).status_code == 404
        assert service.state.gate.attempts.wait("192.0.2.7") == 0


def test_wrong_credentials_are_counted_for_what_they_are_for() -> None:
    """Whoever guesses at one webhook does not close the others."""
    attempts = Attempts(most=1)
    attempts.note("192.0.2.7", "/webhook/one")
    assert attempts.wait("192.0.2.7", "/webhook/one") > 0
    assert (attempts.wait("192.0.2.7", "/webhook/two"), attempts.wait("192.0.2.7")) == (0, 0)


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/api/v1/runs", 403)])
async def test_probes_may_name_the_service_by_its_address(path: str, status: int) -> None:
    """Kubernetes asks the address of a pod; everything else has to know a name."""
    async with gated(App("memory://"), Access.at("0.0.0.0", hosts=("jobs.example.org",))) as (client, _):
        assert (await client.get(path, headers={"host": "10.1.2.3:8400"})).status_code == status


@pytest.mark.parametrize(("with_token", "status"), [(True, 422), (False, 403)])
async def test_pages_behind_a_proxy_that_ends_tls_may_send_with_a_token(with_token: bool, status: int) -> None:
    """No foreign page can make a browser send a token; without one the origin decides."""
    app = App("memory://")
    async with gated(app) as (client, _):
        headers = await login(app) if with_token else {"content-type": "application/json"}
        host = client.base_url.host
        answer = await client.post("/api/v1/jobs", json={}, headers={**headers, "origin": f"https://{host}"})
        assert answer.status_code == status


async def test_parameters_of_a_path_give_no_more_guesses() -> None:
    """Wrong credentials are counted for the webhook, whatever stands in its path."""
    own: dict[str, Any] = {
        "authentication": "headerAuth",
        "credentials": {"httpHeaderAuth": {"id": "1", "name": "Token"}},
    }
    app, headers = flows_app(), {**JSON, "x-token": "guess"}
    async with gated(app) as (client, _):
        await put(app, hooked("Own", "own/:id", **own))
        answers = [await client.post(f"/webhook/own/{number}", json={}, headers=headers) for number in range(MOST + 1)]
        assert (answers[MOST - 1].status_code, answers[MOST].status_code) == (401, 429)
