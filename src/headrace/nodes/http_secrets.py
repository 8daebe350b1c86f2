"""Credentials of HTTP requests: which one a node names, what is sent of it, and how it is kept out of what is shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

from headrace.nodes import checking
from headrace.nodes.base import Fault, NodeError, OneCall
from headrace.nodes.http_values import Pairs, as_json
from headrace.nodes.services import Credential

#: Kinds of credentials in flows, and the kind of ours that each means.
_KINDS = {
    "httpHeaderAuth": "header",
    "httpBasicAuth": "basic",
    "httpBearerAuth": "bearer",
    "httpQueryAuth": "query",
}
#: What the first version calls them.
_FIRST = {"headerAuth": "httpHeaderAuth", "basicAuth": "httpBasicAuth", "queryAuth": "httpQueryAuth"}
_INSTEAD = (
    "use genericCredentialType with httpHeaderAuth, httpBearerAuth, httpBasicAuth or httpQueryAuth, "
    'and write its secret into [flows.credentials."NAME"]'
)
_REFUSED = dict.fromkeys(
    ("predefinedCredentialType", "httpDigestAuth", "httpCustomAuth", "oAuth1Api", "oAuth2Api", "digestAuth", "oAuth1"),
    _INSTEAD,
) | {"oAuth2": _INSTEAD}
#: A shorter secret could be part of anything.
_LEAST = 8


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a credential adds to a request."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    hidden: tuple[str, ...] = field(default=(), repr=False)

    def added(self, headers: Pairs) -> tuple[tuple[str, str], ...]:
        """Return headers with those of the credential, which win."""
        own = {name.lower() for name, _ in self.headers}
        return (*(one for one in headers if one[0].lower() not in own), *self.headers)

    def without(self, text: str, least: int = _LEAST) -> str:
        """Return a text without the secret, should an answer repeat it; a shorter one than `least` is let be.

        >>> Secrets(hidden=("a secret",)).without("you sent a secret")
        'you sent ***'
        """
        for secret in self.hidden:
            if len(secret) >= least:
                for form in (
                    secret,
                    as_json(secret)[1:-1],
                    json.dumps(secret)[1:-1],
                    quote_plus(secret),
                    quote(secret),
                    quote(secret, safe=""),
                ):
                    text = text.replace(form, "***")
        return text


def check_credentials(parameters: Mapping[str, Any], version: float) -> list[Fault]:
    """Return a way of signing in that there is not, or one whose credential is not named."""
    if version < 2:
        allowed = ("none", *_FIRST)
        faults = checking.one_of(parameters, "authentication", allowed, default="none", instead=_REFUSED)
        kind = _FIRST.get(str(checking.written(parameters, "authentication", "none")), "")
    else:
        ways = ("none", "genericCredentialType")
        faults = checking.one_of(parameters, "authentication", ways, default="none", instead=_REFUSED)
        kind = ""
        if not faults and checking.written(parameters, "authentication", "none") != "none":
            faults = checking.one_of(parameters, "genericAuthType", _KINDS, default="", instead=_REFUSED)
            kind = str(checking.written(parameters, "genericAuthType"))
    if faults or not kind or _name_of(checking.written(parameters, "$credentials"), kind):
        return faults
    return [Fault("credentials", _unnamed(kind))]


def secrets_of(call: OneCall) -> Secrets:
    """Return what the node's credential adds. Raises NodeError, and what `services.credential` raises."""
    at = call.parameters
    way = at.text("authentication", "none")
    kind = _FIRST.get(way, "") if call.version < 2 else at.text("genericAuthType") if way != "none" else ""
    if not kind:
        return Secrets()
    name = _name_of(at.get("$credentials"), kind)
    if not name:
        raise NodeError(f"credentials {_unnamed(kind)}")
    credential = call.services.credential(name)
    if credential.kind != _KINDS.get(kind):
        fix = f'write kind = "{_KINDS.get(kind)}" into [flows.credentials."{name}"], or choose another one in the node'
        raise NodeError(
            f"the credential {name!r} is of the kind {credential.kind!r}, and the node asks for {kind}: {fix}"
        )
    return _sent(credential)


def _sent(credential: Credential) -> Secrets:
    secret = credential.secret
    if credential.kind == "query":
        return Secrets(query=((credential.name, secret),), hidden=(secret,))
    if credential.kind == "header":
        return Secrets(((credential.name, secret),), hidden=(secret,))
    if credential.kind == "bearer":
        return Secrets((("Authorization", f"Bearer {secret}"),), hidden=(secret,))
    pair = base64.b64encode(f"{credential.user}:{secret}".encode()).decode("ascii")
    return Secrets((("Authorization", f"Basic {pair}"),), hidden=(pair, secret))


def _name_of(credentials: object, kind: str) -> str:
    named = credentials.get(kind) if isinstance(credentials, Mapping) else None
    name = named.get("name") if isinstance(named, Mapping) else named
    return name if isinstance(name, str) else ""


def _unnamed(kind: str) -> str:
    return f'must name the credential: "credentials": {{"{kind}": {{"name": "My API"}}}}'
