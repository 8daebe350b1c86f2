"""Noting actions: which requests are, and what of each.

A request is noted once it is answered, by whoever showed a token or needed none. Reads are not, nor are strangers, who
could fill the audit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.app import App
from headrace.model import api_token
from headrace.model.audit import API, LOCAL, OWN_CREDENTIAL, PAGE, NewAction, facts_of, subject_of
from headrace.model.ids import uuid7
from headrace.service.audit_log import AuditLog
from headrace.service.auth import CALLER, Caller
from headrace.service.gate import WEBHOOKS, Gate, token_of
from headrace.service.permits import Permit, Permits
from headrace.service.problems import RequestError
from headrace.service_settings import ALL, OFF

LOG = logging.getLogger("headrace.service")

#: Methods that change nothing.
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
#: Of a larger body nothing is kept.
MOST_BODY = 64 << 10
#: A header that pages of the service send with what they change.
PAGE_HEADER = "x-csrf-token"
#: Noted whatever scope they need, unless nothing is.
SESSIONS = frozenset({"login", "logout"})
_REFUSED = (401, 403)


@dataclass(frozen=True, slots=True)
class Operation:
    """What a route does."""

    #: Its `operationId`.
    name: str
    #: Names that its body may have; empty: it takes none, or what users write.
    fields: frozenset[str]


def operations_of(service: FastAPI, permits: Permits) -> Mapping[Permit, Operation]:
    """Return what each route of a service does, by what it asks for."""
    contexts = iter_route_contexts(service.routes)
    return {permit: _operation(context) for context, permit in zip(contexts, permits.all, strict=True)}


def _operation(context: Any) -> Operation:
    name = getattr(context, "operation_id", None) or getattr(context, "unique_id", None) or context.name
    body = getattr(context, "body_field", None)
    return Operation(str(name), frozenset() if body is None else _fields(body.field_info.annotation))


def _fields(annotation: Any) -> frozenset[str]:
    """Return the names of the members of a body.

    >>> _fields(dict), sorted(_fields(Operation | None))
    (frozenset(), [])
    """
    kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
    models = [kind for kind in kinds if issubclass(kind, BaseModel)]
    return frozenset(field.alias or name for model in models for name, field in model.model_fields.items())


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
        if scope["type"] != "http" or scope["method"] in _READING or self._noting == OFF:
            return None
        return self._gate.permits.find(scope["method"], scope["path"])

    def _note(self, scope: Scope, permit: Permit, status: int, body: _Body) -> None:
        operation, headers = self._operations[permit], Headers(scope=scope)
        sender = self._sender(scope, headers, status)
        if sender is None or not self._is_noted(permit, operation, status):
            return
        caller, who, token = sender
        found, client = permit.regex.match(scope["path"]), scope.get("client")
        self._log.note(
            NewAction(
                uuid7(), who, operation.name, subject_of({} if found is None else found.groupdict()), status,
                None if token is None else token.id, str(client[0]) if client else "",
                body.facts(operation.fields) if caller else "{}", PAGE if PAGE_HEADER in headers else API,
            )
        )  # fmt: skip

    def _is_noted(self, permit: Permit, operation: Operation, status: int) -> bool:
        operates = permit.needed is not None and permit.needed.scope is api_token.Scope.OPERATE
        return operates or self._noting == ALL or operation.name in SESSIONS or status in _REFUSED

    def _sender(
        self, scope: Scope, headers: Headers, status: int
    ) -> tuple[bool, str, api_token.ApiToken | None] | None:
        """Return whether a sender was let in, its name, and its token; None: it is a stranger."""
        caller = scope.get(CALLER)
        if isinstance(caller, Caller):
            if caller.token is not None:
                return True, caller.token.name, caller.token
            if caller.admitted:
                return True, LOCAL, None
            return (True, OWN_CREDENTIAL, None) if status < 400 else None
        token = None
        with suppress(RequestError):
            text = token_of(headers, others=scope["path"].startswith(WEBHOOKS))
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
        given = None
        if fields and self._parts and self._size:
            with suppress(ValueError, RecursionError):
                given = json.loads(b"".join(self._parts))
        return facts_of(given, fields) if isinstance(given, dict) else "{}"
