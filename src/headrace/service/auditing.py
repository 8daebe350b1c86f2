"""Noting actions: which requests are, and what of each.

A request is noted once it is answered, by whoever showed a token or needed none. What people do in pages is all noted;
what programs submit where the settings ask for it. Reads are not, nor are strangers, who could fill the audit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.app import App
from headrace.model import api_token
from headrace.model.audit import API, LOCAL, OWN_CREDENTIAL, PAGE, NewAction, facts_of, subject_of
from headrace.model.ids import uuid7
from headrace.service.audit_log import AuditLog
from headrace.service.auth import CALLER, Caller
from headrace.service.gate import WEBHOOKS, Gate, cookie_of, token_of
from headrace.service.guard import OPEN_PATHS, may_change
from headrace.service.operations import Operation, operations_of
from headrace.service.permits import Permit
from headrace.service.problems import RequestError
from headrace.service_settings import ALL, OFF

LOG = logging.getLogger("headrace.service")

#: Of a larger body nothing is kept.
MOST_BODY = 64 << 10
#: A header that pages of the service send with what they change.
PAGE_HEADER = "x-csrf-token"
#: What tells who sent a request: whether it was let in, a name, and the token.
Sender = tuple[bool, str, api_token.ApiToken | None]
_REFUSED = (401, 403)


def add_audit(service: FastAPI, app: App, gate: Gate) -> None:
    """Let a service that has its guard and all its routes note actions of an app; its log is `service.state.audit`."""
    log = service.state.audit = AuditLog(lambda: app.runtime.stores.audit)
    operations, noting = operations_of(service, gate.permits), app.settings.service.audit
    service.add_middleware(Audited, gate=gate, log=log, operations=operations, noting=noting)


class Audited:
    """Middleware that notes actions.

    It stands before the guard, because what that refuses is noted as well; who sent a request stands in its scope once
    the guard has let it in. `noting`: what `[service] audit` says.
    """

    def __init__(
        self, inner: ASGIApp, gate: Gate, log: AuditLog, operations: Mapping[Permit, Operation], noting: str
    ) -> None:
        self._inner, self._gate, self._log = inner, gate, log
        self._operations, self._noting = operations, noting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note it once it was answered."""
        permit = self._permit(scope)
        if permit is None:
            await self._inner(scope, receive, send)
            return
        answered, body = _Answered(send), _Body(receive)
        try:
            await self._inner(scope, body.receive, answered.send)
        finally:
            try:
                self._note(scope, permit, answered.status, body)
            except Exception:
                # The answer is on its way: nothing of this is for whoever asked.
                LOG.exception("an action cannot be noted in the audit")

    def _permit(self, scope: Scope) -> Permit | None:
        """Return what the route of a request asks for; None: it is not noted in any case."""
        if scope["type"] != "http" or self._noting == OFF or not may_change(scope):
            return None
        return self._gate.permits.of_request(scope)

    def _note(self, scope: Scope, permit: Permit, status: int, body: _Body) -> None:
        operation, headers = self._operations[permit], Headers(scope=scope)
        logs_in = permit.path in OPEN_PATHS
        by_page = logs_in or PAGE_HEADER in headers
        sender = self._visitor(headers, body) if logs_in else self._sender(scope, headers, status)
        if sender is None or not (by_page or self._is_noted(permit, status)):
            return
        caller, who, token = sender
        found, client = permit.regex.match(scope["path"]), scope.get("client")
        self._log.note(
            NewAction(
                uuid7(), who, operation.name, subject_of({} if found is None else found.groupdict()), status,
                None if token is None else token.id, str(client[0]) if client else "",
                body.facts(operation.fields) if caller else "{}", PAGE if by_page else API,
            )
        )  # fmt: skip

    def _is_noted(self, permit: Permit, status: int) -> bool:
        """Whether what a program asked for is noted; what a page did is in any case."""
        operates = permit.needed is not None and permit.needed.scope is api_token.Scope.OPERATE
        return operates or self._noting == ALL or status in _REFUSED

    def _visitor(self, headers: Headers, body: _Body) -> Sender | None:
        """Return who logs in or out, by the token that was sent or that the browser keeps; None: a stranger."""
        given = body.read()
        sent = str(given.get("token", "")).strip() if isinstance(given, dict) else ""
        token = self._gate.tokens.remembered(sent or cookie_of(headers) or "")
        return None if token is None else (False, token.name, token)

    def _sender(self, scope: Scope, headers: Headers, status: int) -> Sender | None:
        """Return who sent a request; None: a stranger."""
        caller = scope.get(CALLER)
        if isinstance(caller, Caller):
            if caller.token is not None:
                return True, caller.token.name, caller.token
            if caller.admitted:
                return True, LOCAL, None
            return (True, OWN_CREDENTIAL, None) if status < 400 else None
        token = None
        with suppress(RequestError):
            text = token_of(headers, others=scope["path"].startswith(WEBHOOKS)) or cookie_of(headers)
            token = None if text is None else self._gate.tokens.remembered(text)
        return (False, token.name, token) if token is not None and status in _REFUSED else None


class _Answered:
    """Sees the status of an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 500

    async def send(self, message: Message) -> None:
        """Send on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


class _Body:
    """Keeps a small body while it is received."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._parts: list[bytes] = []
        self._size = 0

    async def receive(self) -> Message:
        """Receive."""
        message = await self._receive()
        part = message.get("body", b"")
        self._size += len(part)
        if self._size <= MOST_BODY:
            self._parts.append(part)
        else:
            self._parts.clear()
        return message

    def facts(self, fields: frozenset[str]) -> str:
        """Return what is kept of the body; see `facts_of`."""
        given = self.read() if fields else None
        return facts_of(given, fields) if isinstance(given, dict) else "{}"

    def read(self) -> Any:
        """Return the value of the body; None where there is none that was kept."""
        with suppress(ValueError, RecursionError):
            return json.loads(b"".join(self._parts))
        return None
