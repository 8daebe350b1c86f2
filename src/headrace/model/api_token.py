"""API tokens of the HTTP service: what they look like, what they allow, and what is kept of them.

A token is shown once, when it is made. The store has its SHA-256 alone: 256 random bits need no slow hash.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID
from zlib import crc32

from headrace.model.errors import NotFoundError

#: A token begins with this, so that scanners for secrets know it.
TOKEN_PREFIX = "hra_"  # noqa: S105 - no secret, but what one begins with
#: So much of a token is kept as it is, to tell tokens apart.
SHOWN = len(TOKEN_PREFIX) + 6
_FORM = re.compile(TOKEN_PREFIX + r"([A-Za-z0-9_-]{43})([0-9a-f]{8})")


class Scope(StrEnum):
    """What a token allows; none includes another."""

    #: to look: everything that changes nothing, metrics included, but for the audit
    READ = "read"
    #: to bring work: submit jobs, batches, runs, papers and details, send signals and resume
    SUBMIT = "submit"
    #: to interfere: cancel, retry, pause, resume, drain, clean up, switch on and off; and to read the audit
    OPERATE = "operate"


class TokenState(StrEnum):
    """Whether a token still opens anything."""

    LIVE = "live"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class NewApiToken:
    """A token to store."""

    id: UUID
    #: For whom or what it is; several may have one name.
    name: str
    #: SHA-256 of the token, in hex.
    digest: str
    #: How the token begins.
    shown: str
    scopes: frozenset[Scope]
    #: From now on, by the store's clock; None: for ever.
    lifetime: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token as the store has it: without itself."""

    id: UUID
    name: str
    shown: str
    scopes: frozenset[Scope]
    #: By the store's clock, when it was read.
    state: TokenState
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    #: To the minute; None: never.
    used_at: datetime | None


def new_token() -> str:
    """Return a new token: 256 random bits and a checksum, so that a mistyped one is known without a look-up.

    >>> is_token(new_token())
    True
    """
    body = secrets.token_urlsafe(32)
    return f"{TOKEN_PREFIX}{body}{_checksum(body)}"


def is_token(text: str) -> bool:
    """Whether a text has the form of a token, its checksum included.

    >>> is_token("hra_guessed")
    False
    """
    found = _FORM.fullmatch(text)
    return found is not None and found[2] == _checksum(found[1])


def digest_of(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def no_token(token_id: UUID) -> NotFoundError:
    """Return the error of an id that no token has."""
    return NotFoundError(f"There is no API token {token_id}. `headrace token list` shows those there are.")


def _checksum(body: str) -> str:
    return f"{crc32(body.encode()):08x}"
