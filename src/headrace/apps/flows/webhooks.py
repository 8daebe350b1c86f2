"""Webhook triggers: which flow listens at which path, and what a request to it begins."""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from headrace import App, InvalidInputError, Run
from headrace.apps.flows.form import Flow, Node
from headrace.apps.flows.requests import MODE, apart
from headrace.apps.flows.triggers import active_flows, start_of, triggers_of
from headrace.nodes.services import Credential
from headrace.nodes.webhook import Hook, WebhookType, hook_of
from headrace.runs import start_options

LOG = logging.getLogger("headrace.flows")

#: What is known of stored flows is read anew after so long; for a path that is not known, sooner.
FRESH_SECONDS, MISS_SECONDS = 5.0, 0.5
#: Headers that are never put into an item: it is stored, and shown to whoever looks at the run.
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
#: Keys of requests are kept apart from those of schedules.
KEY_PREFIX = "webhook:"
_CREDENTIALS = {"headerAuth": ("httpHeaderAuth", "header"), "basicAuth": ("httpBasicAuth", "basic")}


@dataclass(frozen=True, slots=True)
class Listener:
    """A webhook of an active flow."""

    workflow: str
    node: str
    hook: Hook
    #: The name of the credential that requests must have; empty: none.
    credential: str = ""

    def matches(self, path: str) -> dict[str, str] | None:
        """Return the parameters of a path, percent-decoded, None where it is another one.

        >>> Listener("flow.a", "Hook", Hook("GET", "orders/:id")).matches("orders/7")
        {'id': '7'}
        """
        own, given = self.hook.path.split("/"), path.split("/")
        if len(own) != len(given):
            return None
        pairs = list(zip(own, given, strict=True))
        if any(part != text for part, text in pairs if not part.startswith(":")):
            return None
        return {part[1:]: text for part, text in pairs if part.startswith(":")}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a webhook, as a flow sees it. Names of headers are in lower case."""

    method: str
    url: str
    headers: Mapping[str, str]
    query: Mapping[str, str | list[str]]
    body: Any
    params: Mapping[str, str] = field(default_factory=dict)

    def item(self) -> dict[str, Any]:
        """Return the item that the webhook puts out, without what is told apart."""
        told = {"params": dict(self.params), "query": dict(self.query), "body": self.body}
        return {"json": {**told, "executionMode": "production"}}

    def apart(self, secret: str) -> dict[str, Any]:
        """Return what is told of the request apart from the item. `secret`: another header that is left out."""
        hidden = {*SECRET_HEADERS, secret.lower()}
        return apart({name: value for name, value in self.headers.items() if name not in hidden}, self.url)


def listeners_of(workflow: str, flow: Flow) -> list[Listener]:
    """Return the webhooks of a flow."""
    found = []
    for node, kind in triggers_of(flow):
        if isinstance(kind, WebhookType):
            hook = hook_of(node.parameters)
            found.append(Listener(workflow, node.name, hook, _credential_of(node, hook)))
    return found


def _credential_of(node: Node, hook: Hook) -> str:
    kind, _ = _CREDENTIALS.get(hook.authentication, ("", ""))
    named = node.parameters.get("$credentials", {}).get(kind)
    name = named.get("name") if isinstance(named, Mapping) else named
    return name if isinstance(name, str) else ""


class Listeners:
    """The webhooks of all active flows, read anew now and then."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._known: list[Listener] = []
        self._read_at: float | None = None
        #: What was said: once is enough.
        self._told: set[str] = set()

    async def find(self, path: str) -> list[tuple[Listener, dict[str, str]]]:
        """Return the webhooks of a path with its parameters, whatever their methods; those written out come first."""
        await self._read(FRESH_SECONDS)
        found = self._at(path)
        if not found and await self._read(MISS_SECONDS):
            found = self._at(path)
        return found

    def _at(self, path: str) -> list[tuple[Listener, dict[str, str]]]:
        matches = [(one, params) for one in self._known if (params := one.matches(path.strip("/"))) is not None]
        return sorted(matches, key=lambda match: len(match[1]))

    async def _read(self, fresh: float) -> bool:
        """Read what is stored unless that was done a short while ago; return whether it was now."""
        if self._read_at is not None and monotonic() - self._read_at < fresh:
            return False
        flows = await active_flows(self._app)
        known: list[Listener] = []
        for workflow, flow in sorted(flows.items()):
            try:
                known += listeners_of(workflow, flow)
            except InvalidInputError as error:
                self._tell(f"the webhooks of flow {flow.name!r} are not listened to: {error}")
        self._known, self._read_at = known, monotonic()
        self._tell_of_clashes()
        return True

    def _tell_of_clashes(self) -> None:
        first: dict[tuple[str, str], Listener] = {}
        for one in self._known:
            place = one.hook.method, one.hook.path
            other = first.setdefault(place, one)
            if other is not one:
                said = f"{' '.join(place)} of {one.workflow} is that of {other.workflow} too, which gets all requests"
                self._tell(f"the webhook {said}: give one of them another path")

    def _tell(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            LOG.error("%s", words)


def credential_of(app: App, listener: Listener) -> Credential | None:
    """Return the credential that requests to a webhook must have; None: none. Raises ConfigError, InvalidInputError."""
    if listener.hook.authentication == "none":
        return None
    wanted, kind = _CREDENTIALS[listener.hook.authentication]
    if not listener.credential:
        rule = f'must name the one to compare with: "credentials": {{"{wanted}": {{"name": "My secret"}}}}'
        raise InvalidInputError("credentials", rule, None)
    found = app.settings.flows.credential(listener.credential)
    if found.kind != kind:
        raise InvalidInputError("credentials", f'must be of the kind "{kind}" in [flows.credentials]', found.kind)
    return found


def is_let_in(credential: Credential, headers: Mapping[str, str]) -> bool:
    """Whether a request has what a credential asks for; it takes as long whatever is wrong.

    >>> is_let_in(Credential("header", "X-Token", "", "s3cret"), {"x-token": "s3cret"})
    True
    """
    if credential.kind == "header":
        return _equal(headers.get(credential.name.lower(), ""), credential.secret)
    scheme, _, text = headers.get("authorization", "").partition(" ")
    try:
        user, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        user = password = ""
    right = (scheme.lower() == "basic", _equal(user, credential.user), _equal(password, credential.secret))
    return all(right)


def _equal(given: str, secret: str) -> bool:
    """Compare in a time that tells nothing; an empty secret lets nobody in."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode()) and secret != ""


async def begin(app: App, listener: Listener, request: Request, *, secret: str, key: str | None) -> Run:
    """Start the run of a request, or return that of its key. Raises what `app.start` does."""
    start = start_of(app, listener.node, request.item(), MODE)
    own = None if key is None else KEY_PREFIX + key
    # Headers may differ whenever a request is sent again.
    options = replace(start_options(own, None, None, None), aside=request.apart(secret))
    return await app.start_json(listener.workflow, start, options)


def answer_of(hook: Hook, items: Sequence[Mapping[str, Any]]) -> Any:
    """Return what a webhook answers when its flow has ended: the first item or all of them.

    >>> answer_of(Hook("GET", "a"), [{"json": {"n": 1}}, {"json": {"n": 2}}])
    {'n': 1}
    """
    found = [item.get("json", {}) for item in items]
    if hook.data == "allEntries":
        return found
    return found[0] if found else {}
