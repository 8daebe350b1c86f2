"""What a route needs of whoever calls it, and who that is.

Every route is open to one scope of tokens. Routes that are asked by GET are for `read` unless they say otherwise; all
others say it, or no token opens them:

    @router.post("", dependencies=[needs(Scope.SUBMIT)])

`gate.Gate` checks it before a route is found, and the route checks it again.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import Depends, Request

from headrace.model.api_token import ApiToken, Scope
from headrace.service.attempts import Attempts
from headrace.service.problems import RequestError

#: Where a request has its caller.
CALLER = "headrace.caller"
#: Asks for a token.
ASKS = {"www-authenticate": "Bearer"}
#: What is told to whoever would end a wait.
NEEDS_HANDLE = "the token of a handle, or one of `headrace token create` is needed"
_FIX = "send `Authorization: Bearer hra_…`; `headrace token create NAME --scope SCOPE` makes one"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a route needs; as a dependency it lets nobody else in."""

    scope: Scope
    #: Whether the route knows another credential, and asks for it where there is no token.
    own: bool = False
    #: Whether everybody is let in: to what shows how to log in.
    everybody: bool = False

    async def __call__(self, request: Request) -> None:
        """Refuse a request whose caller may not do this. Raises RequestError: 401, 403."""
        if not self.everybody:
            caller_of(request).check(self)


def for_everybody() -> Any:
    """Return the dependency of a route that shows nothing of the system, as the page to log in with."""
    return Depends(Needs(Scope.READ, everybody=True))


def needs(scope: Scope, *, own: bool = False) -> Any:
    """Return the dependency of a route that is open to tokens of a scope.

    `own`: the route asks for a credential of its own where `Caller.admitted` is false.
    """
    return Depends(Needs(scope, own))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    #: The token that came with it, which was found live; None: it came without one.
    token: ApiToken | None
    #: False: it still has to show a credential of the route's own.
    admitted: bool
    attempts: Attempts
    #: Where it came from.
    address: str = ""
    #: By which its token is asked for again, while an answer goes on.
    digest: str = ""
    #: Whether a browser sent the token by itself, as a cookie.
    by_cookie: bool = False
    #: What pages prove themselves with: its token, or what this process alone knows. Empty: nothing is asked of them.
    secret: str = field(default="", repr=False)

    @property
    def csrf(self) -> str:
        """What requests that write have to bring, where a page makes them."""
        return csrf_of(self.secret) if self.secret else ""

    def check(self, needed: Needs | None) -> None:
        """Refuse what this caller may not do; None: what no route says who may do it. Raises RequestError: 401, 403."""
        if self.token is None:
            if not self.admitted and not (needed is not None and needed.own):
                raise unauthorized(f"a token is needed: {_FIX}")
            return
        if needed is None:
            raise RequestError(403, "forbidden", "no token opens this")
        if needed.scope not in self.token.scopes:
            has = ", ".join(sorted(self.token.scopes)) or "none"
            raise RequestError(403, "forbidden", f"this needs a token of the scope {needed.scope}; this one has: {has}")

    def check_pace(self, about: str) -> None:
        """Refuse whoever tried too many wrong credentials of one thing. Raises RequestError 429."""
        if not self.admitted:
            check_attempts(self.attempts, self.address, about)

    def refusal(self, detail: str, about: str, headers: Mapping[str, str] | None = None) -> RequestError:
        """Return the answer to a wrong credential of a route's own, and count it for what it was for."""
        if not self.admitted:
            self.attempts.note(self.address, about)
        return unauthorized(detail, headers)


def csrf_of(secret: str) -> str:
    """Return what a page brings with each request that writes: only who knows the token, or this process, makes it.

    Source: the double-submit pattern of OWASP's cross-site request forgery prevention, without a second cookie.
    """
    return hmac.digest(secret.encode(), b"headrace dashboard", "sha256").hex()


def caller_of(request: Request) -> Caller:
    """Return who sent a request. Raises RequestError 401 where nothing asked who that is."""
    caller = request.scope.get(CALLER)
    if not isinstance(caller, Caller):
        raise unauthorized("nothing asked who sent this")
    return caller


def unauthorized(detail: str, headers: Mapping[str, str] | None = None) -> RequestError:
    """Return the refusal of a request without a right credential; `headers`: what it is asked for, else a token."""
    return RequestError(401, "unauthorized", detail, headers=ASKS if headers is None else headers)


def check_attempts(attempts: Attempts, address: str, about: str = "") -> None:
    """Refuse an address that tried too many wrong credentials. Raises RequestError 429."""
    wait = attempts.wait(address, about)
    if wait > 0:
        detail = f"too many wrong credentials came from this address: try again in {wait} s"
        raise RequestError(429, "too_many_attempts", detail, headers={"retry-after": str(wait)})
