"""TokenStore: who may use the HTTP service, until when, and since when not."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.api_token import ApiToken, NewApiToken, Scope, TokenState
from headrace.model.errors import NotFoundError
from headrace.ports.token_store import TokenStore
from tests.conformance.scenario import DAY, MINUTE, SECOND, Scenario


@pytest.fixture
def tokens(on: Scenario) -> TokenStore:
    """Return the token store of the backend."""
    return on.stores.tokens


def new(name: str = "ci", *scopes: Scope, lifetime: timedelta | None = None) -> NewApiToken:
    """Return a token to store."""
    token_id = uuid4()
    return NewApiToken(token_id, name, token_id.hex * 2, "hra_" + token_id.hex[:6], frozenset(scopes), lifetime)


async def state(tokens: TokenStore, token: NewApiToken) -> TokenState:
    """Return the state of a token that is there."""
    found = await tokens.find_token(token.digest)
    assert found is not None
    return found.state


async def test_a_token_is_found_by_its_digest(on: Scenario, tokens: TokenStore) -> None:
    """As it was stored, live; another digest finds none."""
    token = new("nightly – é", Scope.READ, Scope.SUBMIT)
    stored = await tokens.insert_token(token)

    assert stored == ApiToken(
        token.id, "nightly – é", token.shown, frozenset({Scope.READ, Scope.SUBMIT}), TokenState.LIVE, on.clock.now(),
        None, None, None,
    )  # fmt: skip
    assert await tokens.find_token(token.digest) == stored
    assert await tokens.find_token(new().digest) is None
    assert await tokens.find_token("") is None


async def test_a_known_id_is_stored_once(on: Scenario, tokens: TokenStore) -> None:
    """Again, as after an answer that was lost, it is returned as it stands."""
    token = new("ci", Scope.READ)
    stored = await tokens.insert_token(token)
    on.clock.advance(MINUTE)

    again = NewApiToken(token.id, "other", new().digest, "hra_other", frozenset(Scope))
    assert await tokens.insert_token(again) == stored
    assert await tokens.find_token(again.digest) is None
    assert await tokens.list_tokens() == [stored]


async def test_a_token_expires(on: Scenario, tokens: TokenStore) -> None:
    """At its time, by the clock of the store; one without a lifetime does not."""
    token, endless = new(lifetime=DAY), new()
    stored = await tokens.insert_token(token)
    await tokens.insert_token(endless)
    assert stored.expires_at == on.clock.now() + DAY
    on.clock.advance(DAY - SECOND)
    assert await state(tokens, token) is TokenState.LIVE
    on.clock.advance(SECOND)

    assert await state(tokens, token) is TokenState.EXPIRED
    on.clock.advance(10_000 * DAY)
    assert await state(tokens, endless) is TokenState.LIVE


async def test_a_token_is_revoked_once(on: Scenario, tokens: TokenStore) -> None:
    """It stays so, also when it would have expired since; others of its name stay live."""
    token, other = new(lifetime=DAY), new()
    for each in (token, other):
        await tokens.insert_token(each)
    revoked_at = on.clock.now()
    revoked = await tokens.revoke_token(token.id)
    on.clock.advance(DAY)

    assert (revoked.state, revoked.revoked_at) == (TokenState.REVOKED, revoked_at)
    assert await tokens.revoke_token(token.id) == revoked
    assert await tokens.find_token(token.digest) == revoked
    assert await tokens.insert_token(token) == revoked
    assert await state(tokens, other) is TokenState.LIVE


async def test_revoking_what_is_not_there(tokens: TokenStore) -> None:
    """Names the id."""
    with pytest.raises(NotFoundError, match=str(UUID(int=7))):
        await tokens.revoke_token(UUID(int=7))

    assert await tokens.list_tokens() == []


async def test_tokens_are_listed_newest_first(on: Scenario, tokens: TokenStore) -> None:
    """Of one moment by their ids; in every state; not more than asked for."""
    stored = []
    for lifetime in (SECOND, None, None):
        stored += [await tokens.insert_token(new(lifetime=lifetime)) for _ in range(2)]
        on.clock.advance(SECOND)
    await tokens.revoke_token(stored[2].id)
    expected = sorted(stored, key=lambda token: (token.created_at, token.id), reverse=True)

    listed = await tokens.list_tokens()
    assert [token.id for token in listed] == [token.id for token in expected]
    assert sorted(token.state for token in listed) == ["expired"] * 2 + ["live"] * 3 + ["revoked"]
    assert await tokens.list_tokens(limit=3) == listed[:3]


async def test_uses_are_noted_to_the_minute(on: Scenario, tokens: TokenStore) -> None:
    """Of the tokens that are named, whatever their state; those that are gone are passed over."""
    used, unused = new(), new()
    for each in (used, unused):
        await tokens.insert_token(each)
    await tokens.revoke_token(used.id)
    on.clock.advance(MINUTE + SECOND)
    for named in ([], [uuid4(), used.id, used.id], [used.id]):
        await tokens.note_token_uses(named)

    found = {token.id: token.used_at for token in await tokens.list_tokens()}
    assert found == {used.id: on.clock.now().replace(second=0, microsecond=0), unused.id: None}


async def test_uses_at_once_are_noted(on: Scenario, tokens: TokenStore) -> None:
    """Of the same tokens in any order, by several services."""
    ids = [(await tokens.insert_token(new())).id for _ in range(10)]
    await asyncio.gather(*(tokens.note_token_uses(ids[turn:] + ids[:turn]) for turn in range(10)))

    minute = on.clock.now().replace(second=0, microsecond=0)
    assert {token.used_at for token in await tokens.list_tokens()} == {minute}
