"""The gate: who sends a request, and whether it may do what it asks for. What is not known to be allowed is refused."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from urllib.parse import parse_qsl

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Scope

from headrace.model.api_token import ApiToken, TokenState, digest_of, is_token
from headrace.model.resume_handle import is_handle_token
from headrace.ports.token_store import TokenStore
from headrace.service.access import Access
from headrace.service.attempts import Attempts
from headrace.service.auth import NEEDS_HANDLE, Caller, check_attempts, unauthorized
from headrace.service.known_tokens import KnownTokens
from headrace.service.permits import PUBLIC, Permit, Permits, is_public
from headrace.service.problems import RequestError

#: Parameters that people put tokens into. Addresses stand in logs, in histories and in what browsers pass on.
_QUERY_NAMES = frozenset({"token", "access_token", "api_token"})
_TOKEN_LIKE = re.compile(r"hra_[A-Za-z0-9_-]{20}")
#: Webhooks may have any parameters; those with a token of ours among them are refused all the same.
WEBHOOKS, RESUME, UPLOADS = "/webhook/", "/api/v1/resume/", "/api/v1/reports/files/"
#: The cookie of the pages; scripts cannot read it, and no page of another site makes a browser send it.
COOKIE = "headrace_token"
#: Seconds between two looks whether the token of an answer that goes on is still live, and without an answer to that.
LOOK_SECONDS, UNSURE_SECONDS = 0.5, 30.0


class Gate:
    """Decides about requests before any route sees them."""

    def __init__(self, access: Access, tokens: KnownTokens, permits: Permits, attempts: Attempts) -> None:
        self.access, self.tokens, self.permits, self.attempts = access, tokens, permits, attempts
        self._blocked = asyncio.Lock()
        #: What pages prove themselves with where nobody has a token.
        self._secret = secrets.token_urlsafe(32)

    @classmethod
    def of(cls, service: FastAPI, access: Access, store: Callable[[], TokenStore]) -> Gate:
        """Return the gate of a service that has all its routes."""
        return cls(access, KnownTokens(store), Permits.of(service), Attempts())

    async def admit(self, scope: Scope, headers: Headers) -> Caller:
        """Return who sent a request. Raises RequestError: 400, 401, 403, 429, 503."""
        client = scope.get("client")
        address = str(client[0]) if client else ""
        if is_public(scope):
            return Caller(None, True, self.attempts, address)
        _check_query(scope)
        permit = self.permits.of_request(scope)
        needed = None if permit is None else permit.needed
        if needed is not None and needed.everybody:
            return Caller(None, not self.access.required, self.attempts, address)
        text = token_of(headers, others=scope["path"].startswith(WEBHOOKS))
        token = None if text is None else await self._checked(text, address)
        # Routes with a credential of their own are for programs, which have no cookies.
        cookie = None if token is not None or (needed is not None and needed.own) else cookie_of(headers)
        if cookie is not None:
            token = await self._checked_cookie(cookie, address)
            text = None if token is None else cookie
        if text is None and self.access.required:
            _check_handle_token(scope["path"])
        caller = Caller(
            token, token is not None or not self.access.required, self.attempts, address,
            digest="" if text is None else digest_of(text), by_cookie=token is not None and cookie is not None,
            secret=text or self._secret,
        )  # fmt: skip
        # Whoever has a token is told of addresses that there are not; all others are asked for one there too.
        if permit is not None or token is None:
            caller.check(needed)
        return caller

    async def bars(self, caller: Caller) -> None:
        """Return when the token that came with a request opens nothing any more; never where none came.

        While the store does not answer nothing is known of that: it is believed for `UNSURE_SECONDS`.
        """
        if caller.token is None:
            await asyncio.get_running_loop().create_future()
        live, sure_at = True, time.monotonic()
        while live and time.monotonic() - sure_at < UNSURE_SECONDS:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(RequestError):
                live, sure_at = await self.tokens.is_live(caller.digest), time.monotonic()

    async def _checked(self, text: str, address: str) -> ApiToken:
        if not is_token(text):
            check_attempts(self.attempts, address)
        # Of what has the form of a token nobody guesses one: an address that is blocked asks for one after another.
        waits = self.attempts.wait(address) > 0 and not self.tokens.was_known(text)
        blocked = self._blocked if waits else nullcontext()
        async with blocked:
            found = await self.tokens.find(text)
        if found is not None and found.state is TokenState.LIVE:
            return found
        self.attempts.note(address)
        why = "is not known" if found is None else f"is {found.state}"
        raise unauthorized(f"the token {why}: `headrace token create NAME --scope SCOPE` makes another one")

    async def _checked_cookie(self, text: str, address: str) -> ApiToken | None:
        """Return the token of a cookie; None: it is of another service of this machine, where none is asked for."""
        if self.access.required:
            return await self._checked(text, address)
        found = await self.tokens.find(text)
        return found if found is not None and found.state is TokenState.LIVE else None

    async def sign_in(self, text: str, caller: Caller) -> ApiToken:
        """Return the token that somebody logs in with. Raises RequestError: 401, 429, 503."""
        return await self._checked(text, caller.address)

    async def close(self) -> None:
        """Wait for what goes on in the background."""
        await self.tokens.close()


def _check_handle_token(path: str) -> None:
    """Refuse what ends no wait before its body is read. Raises RequestError 401."""
    if path.startswith(RESUME) and not is_handle_token(path.removeprefix(RESUME)):
        raise unauthorized(NEEDS_HANDLE)


def token_of(headers: Headers, *, others: bool = False) -> str | None:
    """Return the token that came with a request; None: none came. Raises RequestError: 400, 401.

    `others`: other credentials may stand in its place, which is for the route to look at.
    """
    given = headers.getlist("authorization")
    if len(given) > 1:
        raise RequestError(400, "invalid_request", f"one Authorization header may be sent, got {len(given)}")
    if not given:
        return None
    scheme, _, text = given[0].partition(" ")
    if scheme.lower() == "bearer" and (not others or text.strip().startswith("hra_")):
        return text.strip()
    if others:
        return None
    raise unauthorized("the header Authorization must be `Bearer hra_…`: other credentials are not taken")


def cookie_of(headers: Headers) -> str | None:
    """Return the token that a browser keeps for the pages; None: it keeps none."""
    for given in headers.getlist("cookie"):
        for part in given.split(";"):
            name, _, value = part.strip().partition("=")
            if name == COOKIE and value:
                return value
    return None


def _check_query(scope: Scope) -> None:
    """Refuse tokens in the address. Raises RequestError 400."""
    query = scope["query_string"].decode("latin-1")
    if not query:
        return
    pairs = parse_qsl(query, keep_blank_values=True)
    named = not scope["path"].startswith(WEBHOOKS) and any(name.strip().lower() in _QUERY_NAMES for name, _ in pairs)
    if named or any(_TOKEN_LIKE.search(text) for pair in pairs for text in pair):
        fix = "send it as `Authorization: Bearer hra_…`; one that stood in an address is to be revoked"
        raise RequestError(400, "invalid_request", f"a token must not stand in the address: {fix}")


def scope_of(permit: Permit) -> str | None:
    """Return the scope that a route is open to, for the document of the service; None: it is open to everybody."""
    return None if permit.path in PUBLIC or permit.needed is None else str(permit.needed.scope)
