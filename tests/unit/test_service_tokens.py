"""Tokens of the service: which are taken, how long, and what becomes of wrong ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from headrace import App
from headrace.engine.tokens import list_tokens, make_token, revoke_token
from headrace.model.api_token import ApiToken, Scope, new_token
from headrace.model.errors import InvalidInputError, StoreUnavailableError
from headrace.model.stats import QueueStats
from headrace.service.access import Access
from headrace.service.application import make_service
from headrace.service.attempts import MOST, MOST_ADDRESSES, SECONDS, Attempts
from headrace.service.auth import Caller
from headrace.service.known_tokens import FRESH_SECONDS, MOST_KNOWN, NOTE_SECONDS, KnownTokens
from headrace.service.problems import RequestError
from headrace.stores.memory import open_memory_stores
from headrace.stores.memory.inspect import MemoryInspect
from tests.unit.flow_serving import flows_app, put
from tests.unit.gate_calls import bearer, gate_of, gated, login
from tests.unit.service_calls import JSON, code_of, served, shop
from tests.unit.test_flows_webhooks import hooked
from tests.waiting import wait_until

RUNS = "/api/v1/runs"


class Clock:
    """Says the time that it was set to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class CountingStore:
    """A store of tokens that counts what it is asked, and fails when it is told to."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.asked, self.noted, self.fails = inner, 0, list[UUID](), False

    async def find_token(self, digest: str) -> ApiToken | None:
        """Return a token."""
        self.asked += 1
        await asyncio.sleep(0)
        if self.fails:
            raise StoreUnavailableError
        found: ApiToken | None = await self.inner.find_token(digest)
        return found

    async def note_token_uses(self, token_ids: list[UUID]) -> None:
        """Note uses."""
        if self.fails:
            raise StoreUnavailableError
        self.noted += token_ids


@pytest.mark.parametrize("access", [Access.at("0.0.0.0"), Access(True), Access()])
@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "Bearer hra_guessed", "Bearer UNKNOWN", "Basic aHJhOmhyYQ==", "hra_x", "Token x",
     "Basic UNKNOWN", "Bearer UNKNOWN, Bearer UNKNOWN"],
)  # fmt: skip
async def test_what_is_no_token_is_refused(access: Access, given: str) -> None:
    """Whether one is needed or not: whoever sends a credential is not let in without it being right."""
    async with gated(App("memory://"), access) as (client, _):
        headers = {"authorization": given.replace("UNKNOWN", new_token()), "host": "localhost"}
        answer = await client.get(RUNS, headers=headers)
        assert (answer.status_code, code_of(answer)) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "Bearer hra_" not in answer.text or "Bearer hra_…" in answer.text


async def test_a_token_opens_what_it_is_for_until_it_is_revoked() -> None:
    """Its scheme may be written in any case; after its end nothing is opened."""
    app = App("memory://")
    async with gated(app) as (client, service):
        token, kept = await make_token(app.runtime.stores, "dashboard", [Scope.READ])
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert (await client.get(RUNS, headers={"authorization": f"{scheme} {token}"})).status_code == 200
        assert (await client.post(RUNS, json={}, headers=bearer(token))).status_code == 403
        await revoke_token(app.runtime.stores, kept.id)
        gate_of(service).tokens._clock = lambda: 1e12
        answer = await client.get(RUNS, headers=bearer(token))
        assert (answer.status_code, "is revoked" in answer.text, token in answer.text) == (401, True, False)


async def test_a_token_that_is_expired_opens_nothing() -> None:
    """By the clock of the store."""
    app = App("memory://")
    async with gated(app) as (client, _):
        headers = await login(app, Scope.READ, lifetime=timedelta(microseconds=1))
        answer = await client.get(RUNS, headers=headers)
        assert (answer.status_code, "is expired" in answer.text) == (401, True)


async def test_a_stream_ends_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is silent; while the store does not answer it goes on, for nothing is known of the token."""
    monkeypatch.setattr("headrace.service.gate.LOOK_SECONDS", 0.01)
    app = shop()
    async with gated(app) as (client, service):
        token, kept = await make_token(app.runtime.stores, "watcher", [Scope.READ])
        path = f"/api/v1/batches/{(await app.submit(app.find_task('double'), [1])).id}/events"
        store, tokens = CountingStore(app.runtime.stores.tokens), gate_of(service).tokens
        tokens._store, tokens._clock = (lambda: store), partial(next, count(0, 10))
        reading = asyncio.create_task(client.get(path, headers=bearer(token)))
        await wait_until(lambda: service.state.streams.open == 1)
        store.fails, asked = True, store.asked
        await wait_until(lambda: store.asked > asked + 2)
        assert not reading.done()
        store.fails = False
        await revoke_token(app.runtime.stores, kept.id)
        answer = await asyncio.wait_for(reading, 5)
        assert (answer.status_code, answer.text, service.state.streams.open) == (200, "retry: 1000\n\n", 0)
        assert (await client.get(path, headers=bearer(token))).status_code == 401


async def test_a_stream_without_a_token_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing that could end: nobody wakes up for it again and again."""
    naps = list[float]()

    async def note(seconds: float) -> None:
        naps.append(seconds)
        await asyncio.Event().wait()

    gate = gate_of(make_service(shop()))
    monkeypatch.setattr("headrace.service.gate.asyncio.sleep", note)
    barred = asyncio.create_task(gate.bars(Caller(None, True, Attempts())))
    await asyncio.wait([barred], timeout=0.01)
    barred.cancel()
    assert naps == []


async def test_two_authorizations_are_refused() -> None:
    """Which of them is meant is not guessed."""
    app = App("memory://")
    async with gated(app) as (client, _):
        right = (await login(app))["authorization"]
        headers = [("authorization", right), ("authorization", "Bearer x")]
        assert (await client.get(RUNS, headers=headers)).status_code == 400


@pytest.mark.parametrize("scheme", ["Token", "Basic", "Bearer:", ""])
async def test_a_right_token_with_another_scheme_is_refused(scheme: str) -> None:
    """It is sent in one way alone."""
    app = App("memory://")
    async with gated(app) as (client, _):
        token = (await login(app))["authorization"].removeprefix("Bearer ")
        answer = await client.get(RUNS, headers={"authorization": f"{scheme} {token}".strip()})
        assert answer.status_code == 401


@pytest.mark.parametrize(
    "query",
    ["token=x", "access_token=x", "ACCESS_TOKEN=x", "api_token=", "limit=1&%74oken=x", "q=UNKNOWN", "token",
     "UNKNOWN", "q=a%20UNKNOWN"],
)  # fmt: skip
async def test_a_token_in_an_address_is_refused(query: str) -> None:
    """Also where the right one is sent as it has to be."""
    app = App("memory://")
    async with gated(app) as (client, _):
        answer = await client.get(f"{RUNS}?{query.replace('UNKNOWN', new_token())}", headers=await login(app))
        assert (answer.status_code, "Authorization: Bearer" in answer.text) == (400, True)
        assert "hra_" not in answer.text.replace("hra_…", "")


async def test_a_token_in_the_address_of_a_page_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When the page fails, and people are told why it does."""

    async def away(_: MemoryInspect) -> list[QueueStats]:
        raise StoreUnavailableError("the store is away")

    async with served(shop(), worker=False) as client:
        monkeypatch.setattr(MemoryInspect, "queue_stats", away)
        assert (await client.get("/queues/hra_secret")).status_code == 503
    assert "GET /queues/…: the store is away" in caplog.text


async def test_wrong_tokens_are_slowed_down_by_address() -> None:
    """Tokens that were used before still open what they are for: others behind the same address are not shut out."""
    app = App("memory://")
    async with gated(app) as (client, service):
        known = await login(app, Scope.READ)
        assert (await client.get(RUNS, headers=known)).status_code == 200
        for _ in range(MOST):
            assert (await client.get(RUNS, headers=bearer("hra_x"))).status_code == 401
        answer = await client.get(RUNS, headers=bearer("hra_x"))
        assert (answer.status_code, code_of(answer)) == (429, "too_many_attempts")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert (await client.get(RUNS, headers=await login(app))).status_code == 200, "nobody guesses a whole token"
        assert (await client.get(RUNS, headers=bearer(new_token()))).status_code == 401
        assert (await client.get(RUNS, headers=known)).status_code == 200
        assert (await client.get("/healthz", headers=bearer("hra_x"))).status_code == 200
        assert (await client.get(RUNS)).status_code == 401
        gate_of(service).attempts._clock = lambda: 1e12
        assert (await client.get(RUNS, headers=bearer("hra_x"))).status_code == 401


def test_attempts_are_counted_in_bounds() -> None:
    """A minute ends them, and the table of addresses has its most."""
    clock = Clock()
    attempts = Attempts(most=2, clock=clock)
    for _ in range(2):
        assert attempts.wait("192.0.2.1") == 0
        attempts.note("192.0.2.1")
    assert (attempts.wait("192.0.2.1"), attempts.wait("192.0.2.2")) == (60, 0)
    clock.now += SECONDS
    assert attempts.wait("192.0.2.1") == 0
    attempts.note("192.0.2.1")
    assert attempts.wait("192.0.2.1") == 0
    for number in range(MOST_ADDRESSES + 5):
        attempts.note(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(attempts) == MOST_ADDRESSES


async def known_tokens() -> tuple[KnownTokens, CountingStore, Clock, Callable[..., Any]]:
    """Return tokens over a store that counts, and what makes one."""
    stores, clock = open_memory_stores(), Clock()
    counting = CountingStore(stores.tokens)
    known = KnownTokens(lambda: counting, clock=clock)
    return known, counting, clock, lambda: make_token(stores, "t", [Scope.READ])


async def test_the_store_is_asked_once_in_a_while() -> None:
    """Not for each request, nor for each of those that come at once, nor for what cannot be a token."""
    known, store, clock, make = await known_tokens()
    token, kept = await make()
    found = await asyncio.gather(*(known.find(token) for _ in range(20)))
    assert ({one.id for one in found if one is not None}, store.asked) == ({kept.id}, 1)
    clock.now += FRESH_SECONDS - 0.1
    await known.find(token)
    assert store.asked == 1
    clock.now += 0.2
    await known.find(token)
    assert (store.asked, await known.find("hra_x"), store.asked) == (2, None, 2)
    await known.close()


async def test_uses_are_noted_once_a_minute() -> None:
    """In the background; a store that does not take it stops nobody."""
    known, store, clock, make = await known_tokens()
    token, kept = await make()
    for step in (0.0, 1.0, FRESH_SECONDS, NOTE_SECONDS - 10):
        clock.now += step
        await known.find(token)
    await known.close()
    assert store.noted == [kept.id]
    clock.now += 10
    await known.find(token)
    await known.close()
    assert store.noted == [kept.id] * 2


async def test_a_store_that_is_away_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    """But those that it let in a moment ago; all others are told to try again."""
    known, store, clock, make = await known_tokens()
    token, _ = await make()
    await known.find(token)
    await known.close()
    store.fails = True
    assert await known.find(token) is not None
    clock.now += FRESH_SECONDS
    for sent in (token, new_token()):
        with pytest.raises(RequestError) as refused:
            await known.find(sent)
        assert (refused.value.status, refused.value.code) == (503, "store_unavailable")
    assert "tokens cannot be looked up" in caplog.text
    assert token not in caplog.text


async def test_a_request_that_goes_away_takes_no_other_with_it() -> None:
    """The question to the store goes on for those that wait for it too."""
    known, store, _, make = await known_tokens()
    token, _ = await make()
    first, second = asyncio.create_task(known.find(token)), asyncio.create_task(known.find(token))
    await wait_until(lambda: store.asked)
    first.cancel()
    assert await second is not None
    await known.close()


async def test_what_is_remembered_has_its_bound() -> None:
    """Tokens that there are not are not remembered at all."""
    known, _, _, make = await known_tokens()
    first, _ = await make()
    await known.find(first)
    for _ in range(MOST_KNOWN):
        await known.find((await make())[0])
    unknown = new_token()
    await known.find(unknown)
    assert (len(known._known), known.was_known(first), known.was_known(unknown)) == (MOST_KNOWN, False, False)
    await known.close()


async def test_webhooks_take_a_token_or_their_own_credential() -> None:
    """Where tokens are needed, one that asks for nothing is open to no stranger, nor is it told which there are."""
    own = {"authentication": "headerAuth", "credentials": {"httpHeaderAuth": {"id": "1", "name": "Token"}}}
    app = flows_app()
    async with gated(app) as (client, _):
        await put(app, hooked())
        await put(app, hooked("Own", "own", **own))
        right, wrong = {**JSON, "x-token": "s3cret-token"}, {**JSON, "x-token": "guess"}
        cases = [("orders", JSON, 401), ("nothing", JSON, 401), ("own", JSON, 401), ("own", wrong, 401),
                 ("own", right, 200), ("orders", right, 401), ("orders", await login(app, Scope.SUBMIT), 200),
                 ("own", await login(app, Scope.SUBMIT), 200), ("own", {**right, **await login(app, Scope.READ)}, 403),
                 ("own", {**right, **bearer(new_token())}, 401), ("own", {**right, "authorization": "Bearer x"}, 200),
                 ("nothing", await login(app, Scope.SUBMIT), 404)]  # fmt: skip
        for path, headers, status in cases:
            answer = await client.post(f"/webhook/{path}", json={}, headers=headers)
            assert answer.status_code == status, (path, headers, answer.text)
        assert (await client.get("/webhook/own", headers=right)).status_code == 401
        assert (await client.post("/webhook/own?token=mine", json={}, headers=right)).status_code == 200
        for _ in range(MOST):
            await client.post("/webhook/own", json={}, headers=wrong)
        assert (await client.post("/webhook/own", json={}, headers=right)).status_code == 429


async def test_a_wait_is_ended_by_its_own_token() -> None:
    """A token that no handle has is a wrong credential where tokens are needed."""
    app = App("memory://")
    async with gated(app) as (client, _):
        handle = await app.handles.register("c-1", "Shop.Order.Paid", timeout="1m", token=True)
        assert (await client.post("/api/v1/resume/hrh_x", json={}, headers=JSON)).status_code == 401
        read = await login(app, Scope.READ)
        assert (await client.post(f"/api/v1/resume/{handle.token}", json={}, headers=read)).status_code == 403
        assert (await client.post(f"/api/v1/resume/{handle.token}", json={}, headers=JSON)).status_code == 200
        submit = await login(app, Scope.SUBMIT)
        assert (await client.post("/api/v1/resume/hrh_x", json={}, headers=submit)).status_code == 404


@pytest.mark.parametrize(
    ("access", "host", "status"),
    [
        (Access.at("0.0.0.0"), "anything.example", 200),
        (Access.at("0.0.0.0"), "", 403),
        (Access.at("0.0.0.0"), "a@b", 403),
        (Access.at("0.0.0.0", hosts=("Jobs.example.org",)), "jobs.EXAMPLE.org:8400", 200),
        (Access.at("0.0.0.0", hosts=("jobs.example.org",)), "localhost", 200),
        (Access.at("0.0.0.0", hosts=("jobs.example.org",)), "evil.example", 403),
        (Access.at("::1", require_token=True), "evil.example", 403),
        (Access.at("::1", require_token=True, hosts=("jobs.example.org",)), "jobs.example.org", 200),
    ],
)
async def test_names_that_are_answered_to(access: Access, host: str, status: int) -> None:
    """Those of the settings, or any where others reach the address and everybody has a token."""
    app = App("memory://")
    async with gated(app, access) as (client, _):
        answer = await client.get(RUNS, headers={**await login(app), "host": host})
        assert answer.status_code == status


async def test_forwarded_headers_are_believed_of_nobody() -> None:
    """Neither where a request comes from nor whom it was sent to."""
    app = App("memory://")
    async with gated(app) as (client, _):
        said = {"x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1", "x-real-ip": "127.0.0.1"}
        said |= {"x-forwarded-host": "localhost", "x-original-url": "/healthz", "x-http-method-override": "GET"}
        assert (await client.get(RUNS, headers=said)).status_code == 401
    async with gated(App("memory://"), Access()) as (client, _):
        assert (await client.get(RUNS, headers={"x-forwarded-host": "localhost"})).status_code == 403


async def test_what_a_token_must_have() -> None:
    """A name, a scope and a time to come; the list has no token in it."""
    async with App("memory://") as app:
        stores = app.runtime.stores
        for name, scopes, lifetime in (("", [Scope.READ], None), ("a\nb", [Scope.READ], None), ("a", [], None),
                                       ("a", [Scope.READ], timedelta())):  # fmt: skip
            with pytest.raises(InvalidInputError):
                await make_token(stores, name, scopes, lifetime=lifetime)
        token, _ = await make_token(stores, "a", [Scope.READ])
        [kept] = await list_tokens(stores)
        assert token not in repr(kept)
