"""webhook: begins a run for each HTTP request to a path of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Items, Named, Shape, ours
from headrace.nodes.parameters import Parameters
from headrace.nodes.webhook_answers import faults_of, headers_of, status_of

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
#: A part that is only dots would lead elsewhere.
_PATH = re.compile(r"/?(?!\.+(/|$))[A-Za-z0-9_.~:-]+(/(?!\.+(/|$))[A-Za-z0-9_.~:-]+)*/?")
_MODES = {
    "responseNode": 'use "lastNode", which answers with the items of the node that ends the flow',
    "streaming": 'use "lastNode", which answers when the run has ended',
}
_LOGINS = {
    "jwtAuth": 'use "headerAuth" or "basicAuth"',
    "n8nOAuth2": 'use "headerAuth" or "basicAuth"',
}
_DATA = {"firstEntryBinary": 'use "allEntries" or "firstEntryJson", and writeFile for the file'}
#: Parameters of answers.
_ANSWERS = (
    "responseCode", "options.responseCode", "options.responseHeaders", "options.responseData", "options.noResponseBody",
)  # fmt: skip
#: Options that change what is done with a request, and what to do instead.
_OPTIONS = {
    "binaryData": "is not supported: send the text of a file as JSON, or read the file with readFile",
    "rawBody": "is not supported: use the parsed body, $json.body",
    "ignoreBots": "is not supported: use authentication",
    "ipWhitelist": "is not supported: use authentication, or a proxy in front",
    "onlyRunIf": "is not supported: use an if or a filter node behind the webhook",
    "responseContentType": "is not supported: an answer is JSON, or the text of options.responseData",
    "responsePropertyName": "is not supported: use a set node at the end of the flow, its item is the answer",
}


@dataclass(frozen=True, slots=True)
class Hook:
    """What a webhook asks of the service that listens for it."""

    method: str
    path: str
    #: none, headerAuth or basicAuth: with the credential that the node names.
    authentication: str = "none"
    #: onReceived: answered at once; lastNode: with what the flow ends with.
    answers: str = "onReceived"
    #: What is answered by lastNode: firstEntryJson, allEntries or noData.
    data: str = "firstEntryJson"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    #: What is answered at once; None: that a run was begun.
    body: str | None = None


class WebhookType(Named):
    """Gives the request that began the run as `headers`, `params`, `query` and `body`."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return what of a request or an answer we cannot do."""
        found = _check_request(parameters) + _check_answer(parameters)
        for option, message in _OPTIONS.items():
            found += checking.unused(parameters, f"options.{option}", message)
        return found

    def run(self, call: Call) -> list[Items]:
        """Return the items of the run; an empty request without any."""
        return [call.given or [{"json": {"headers": {}, "params": {}, "query": {}, "body": {}}}]]


def hook_of(parameters: Mapping[str, Any]) -> Hook:
    """Return what a webhook whose parameters were checked asks for. Raises InvalidInputError.

    >>> hook_of({"path": "orders", "httpMethod": "POST"}).path
    'orders'
    """
    at = Parameters(parameters)
    return Hook(
        method=at.text("httpMethod", "GET"),
        path=at.text("path").strip("/"),
        authentication=at.text("authentication", "none"),
        answers=at.text("responseMode", "onReceived"),
        data=at.text("responseData", "firstEntryJson"),
        status=status_of(at),
        headers=headers_of(at),
        body="" if at.flag("options.noResponseBody") else at.get("options.responseData"),
    )


def _check_request(parameters: Mapping[str, Any]) -> list[Fault]:
    one_each = "is not supported: use a webhook node for each method"
    found = checking.unused(parameters, "multipleMethods", one_each)
    if not found:
        found = checking.one_of(parameters, "httpMethod", _METHODS, default="GET", instead={})
    path = checking.written(parameters, "path")
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        rule = "must be a path, written out, of letters, digits and - _ . ~ between slashes, such as orders/new"
        found.append(Fault("path", f"{rule}, got {checking.shown(path)}"))
    logins = ("none", "headerAuth", "basicAuth")
    return found + checking.one_of(parameters, "authentication", logins, default="none", instead=_LOGINS)


def _check_answer(parameters: Mapping[str, Any]) -> list[Fault]:
    modes = ("onReceived", "lastNode")
    found = checking.one_of(parameters, "responseMode", modes, default=modes[0], instead=_MODES)
    kinds = ("firstEntryJson", "allEntries", "noData")
    found += checking.one_of(parameters, "responseData", kinds, default=kinds[0], instead=_DATA)
    at = Parameters(parameters)
    rule = "must be written out: it is answered before anything is computed"
    computed = [Fault(path, rule) for path in _ANSWERS if _computed(at.get(path))]
    return found + (computed or faults_of(at))


def _computed(value: object) -> bool:
    if isinstance(value, dict):
        return any(_computed(one) for one in value.values())
    if isinstance(value, list):
        return any(_computed(one) for one in value)
    return checking.is_expression(value)


TYPE = WebhookType(
    "webhook",
    ours("webhook", "n8n-nodes-base.webhook"),
    (1, 2.1),
    "begins a run for each HTTP request to its path",
    Shape.TRIGGER,
)
