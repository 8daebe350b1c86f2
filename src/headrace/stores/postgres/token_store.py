"""The token store port on PostgreSQL: who may use the HTTP service."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.model.api_token import ApiToken, NewApiToken, Scope, TokenState, no_token
from headrace.stores.postgres.database import Database, Row


class PostgresTokenStore:
    """`ports.token_store.TokenStore`; each verb is one statement, or a write and a look."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert_token(self, token: NewApiToken) -> ApiToken:
        """Store a token once per id, and return it."""
        await self._database.fetch(
            "insert_token", token_id=token.id, name=token.name, digest=token.digest, shown=token.shown,
            scopes=sorted(token.scopes), lifetime=token.lifetime,
        )  # fmt: skip
        return await self._get(token.id)

    async def find_token(self, digest: str) -> ApiToken | None:
        """Return the token of a digest."""
        row = await self._database.fetch_one("find_token", digest=digest)
        return None if row is None else _token(row)

    async def list_tokens(self, *, limit: int = 1_000) -> list[ApiToken]:
        """Return tokens, the newest first."""
        return [_token(row) for row in await self._database.fetch("list_tokens", limit=limit)]

    async def revoke_token(self, token_id: UUID) -> ApiToken:
        """Revoke a token once."""
        await self._database.fetch("revoke_token", token_id=token_id)
        return await self._get(token_id)

    async def note_token_uses(self, token_ids: Sequence[UUID]) -> None:
        """Note that tokens were used."""
        await self._database.fetch("note_token_uses", token_ids=list(token_ids))

    async def _get(self, token_id: UUID) -> ApiToken:
        row = await self._database.fetch_one("get_token", token_id=token_id)
        if row is None:
            raise no_token(token_id)
        return _token(row)


def _token(row: Row) -> ApiToken:
    state = TokenState.EXPIRED if row["over"] else TokenState.LIVE
    return ApiToken(
        row["id"],
        row["name"],
        row["shown"],
        frozenset(Scope(scope) for scope in row["scopes"]),
        state if row["revoked_at"] is None else TokenState.REVOKED,
        row["created_at"],
        row["expires_at"],
        row["revoked_at"],
        row["used_at"],
    )
