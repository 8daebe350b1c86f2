"""The token store port on Redis: who may use the HTTP service."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.model.api_token import ApiToken, NewApiToken, Scope, TokenState, no_token
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import instant, parse_id, span


class RedisTokenStore:
    """`ports.token_store.TokenStore`; each verb is one script."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def insert_token(self, token: NewApiToken) -> ApiToken:
        """Store a token once per id, and return it."""
        lifetime = "" if token.lifetime is None else span(token.lifetime)
        words = (token.name, token.digest, token.shown, ",".join(sorted(token.scopes)), lifetime)
        return _token(await self._namespace.run("insert_token", token.id.hex, *words))

    async def find_token(self, digest: str) -> ApiToken | None:
        """Return the token of a digest."""
        row = await self._namespace.run("find_token", digest)
        return None if row is None else _token(row)

    async def list_tokens(self, *, limit: int = 1_000) -> list[ApiToken]:
        """Return tokens, the newest first."""
        return [_token(row) for row in await self._namespace.run("list_tokens", limit)]

    async def revoke_token(self, token_id: UUID) -> ApiToken:
        """Revoke a token once."""
        row = await self._namespace.run("revoke_token", token_id.hex)
        if row is None:
            raise no_token(token_id)
        return _token(row)

    async def note_token_uses(self, token_ids: Sequence[UUID]) -> None:
        """Note that tokens were used."""
        await self._namespace.run("note_token_uses", *(token_id.hex for token_id in token_ids))


def _token(row: Sequence[str]) -> ApiToken:
    token_id, name, shown, scopes, state, *times = row
    created_at, *others = (instant(time) if time else None for time in times)
    assert created_at is not None, "every token has it"
    allowed = frozenset(Scope(scope) for scope in scopes.split(",") if scope)
    return ApiToken(parse_id(token_id), name, shown, allowed, TokenState(state), created_at, *others)
