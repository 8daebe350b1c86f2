"""The token store port: who may use the HTTP service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from headrace.model.api_token import ApiToken, NewApiToken


class TokenStore(Protocol):
    """Durable API tokens. All methods raise StoreUnavailableError. States are by the store's clock."""

    async def insert_token(self, token: NewApiToken) -> ApiToken:
        """Store a token and return it as it stands; one with a known id is returned as it is."""
        ...

    async def find_token(self, digest: str) -> ApiToken | None:
        """Return the token with this digest, also one that is expired or revoked."""
        ...

    async def list_tokens(self, *, limit: int = 1_000) -> list[ApiToken]:
        """Return tokens, the newest first."""
        ...

    async def revoke_token(self, token_id: UUID) -> ApiToken:
        """Let a token open nothing any more, for ever; one that is revoked stays as it is. Raises NotFoundError."""
        ...

    async def note_token_uses(self, token_ids: Sequence[UUID]) -> None:
        """Note that tokens were used now; those that are gone are passed over."""
        ...
