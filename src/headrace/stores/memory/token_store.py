"""API tokens in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from headrace.model.api_token import ApiToken, NewApiToken, TokenState, no_token
from headrace.stores.memory.state import State, atomic


class MemoryTokenStore:
    """`ports.token_store.TokenStore` over a dict; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._tokens: dict[UUID, ApiToken] = {}
        self._digests: dict[str, UUID] = {}

    @atomic
    async def insert_token(self, token: NewApiToken) -> ApiToken:
        """Store a token."""
        if token.id not in self._tokens:
            now = self._state.now()
            expires = None if token.lifetime is None else now + token.lifetime
            self._tokens[token.id] = ApiToken(
                token.id, token.name, token.shown, token.scopes, TokenState.LIVE, now, expires, None, None
            )
            self._digests[token.digest] = token.id
        return self._read(token.id)

    @atomic
    async def find_token(self, digest: str) -> ApiToken | None:
        """Return the token of a digest."""
        token_id = self._digests.get(digest)
        return None if token_id is None else self._read(token_id)

    @atomic
    async def list_tokens(self, *, limit: int = 1_000) -> list[ApiToken]:
        """Return tokens, the newest first."""
        newest = sorted(self._tokens, key=lambda each: (self._tokens[each].created_at, each), reverse=True)
        return [self._read(each) for each in newest[:limit]]

    @atomic
    async def revoke_token(self, token_id: UUID) -> ApiToken:
        """Revoke a token once."""
        token = self._tokens.get(token_id)
        if token is None:
            raise no_token(token_id)
        if token.revoked_at is None:
            self._tokens[token_id] = replace(token, revoked_at=self._state.now())
        return self._read(token_id)

    @atomic
    async def note_token_uses(self, token_ids: Sequence[UUID]) -> None:
        """Note that tokens were used."""
        minute = self._state.now().replace(second=0, microsecond=0)
        for each in token_ids:
            if each in self._tokens:
                self._tokens[each] = replace(self._tokens[each], used_at=minute)

    def _read(self, token_id: UUID) -> ApiToken:
        token = self._tokens[token_id]
        if token.revoked_at is not None:
            return replace(token, state=TokenState.REVOKED)
        over = token.expires_at is not None and token.expires_at <= self._state.now()
        return replace(token, state=TokenState.EXPIRED) if over else token
