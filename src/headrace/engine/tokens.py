"""API tokens: making, listing and revoking them; the command line and the HTTP service share it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from headrace.engine.queries import to_json
from headrace.model.api_token import SHOWN, ApiToken, NewApiToken, Scope, TokenState, digest_of, new_token
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.model.names import check_reason
from headrace.ports.stores import Stores

#: Tokens that are listed at most.
MOST = 10_000


async def make_token(
    stores: Stores, name: str, scopes: Iterable[Scope], *, lifetime: timedelta | None = None
) -> tuple[str, ApiToken]:
    """Store a new token; return it, which nobody can read again, and what is kept of it.

    `lifetime`: from now on; None: for ever. Raises InvalidInputError.
    """
    check_reason("name", name)
    allowed = frozenset(scopes)
    if not allowed:
        raise InvalidInputError("scope", f"must name at least one of {', '.join(Scope)}", None)
    if lifetime is not None and lifetime <= timedelta():
        raise InvalidInputError("expires", "must be longer than zero", lifetime)
    token = new_token()
    stored = NewApiToken(uuid4(), name, digest_of(token), token[:SHOWN], allowed, lifetime)
    return token, await stores.tokens.insert_token(stored)


async def list_tokens(stores: Stores) -> list[ApiToken]:
    """Return tokens, the newest first, also those that open nothing any more."""
    return await stores.tokens.list_tokens(limit=MOST)


async def revoke_token(stores: Stores, token_id: UUID) -> ApiToken:
    """Let a token open nothing any more, for ever. Raises NotFoundError."""
    try:
        return await stores.tokens.revoke_token(token_id)
    except NotFoundError:
        raise NotFoundError(f"no token {token_id}; `headrace token list` shows those there are") from None


async def has_live_token(stores: Stores) -> bool:
    """Whether any token opens something."""
    return any(token.state is TokenState.LIVE for token in await list_tokens(stores))


def token_document(token: ApiToken) -> dict[str, Any]:
    """Return what is known of a token as JSON data, without itself."""
    return {
        "id": str(token.id),
        "name": token.name,
        "shown": token.shown,
        "scopes": sorted(token.scopes),
        "state": token.state,
        "created_at": to_json(token.created_at),
        "expires_at": to_json(token.expires_at),
        "revoked_at": to_json(token.revoked_at),
        "used_at": to_json(token.used_at),
    }
