"""`/webhook/PATH`: requests that begin runs of flows, and what is answered to them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from headrace.app import App
from headrace.apps.flows import webhooks
from headrace.model.api_token import Scope
from headrace.model.errors import (
    ConfigError,
    InvalidInputError,
    NotFoundError,
    ResultTimeoutError,
    RunFailedError,
    WorkflowNotActiveError,
)
from headrace.model.names import check_key
from headrace.nodes.webhook_answers import BODILESS
from headrace.runs import Run
from headrace.service.auth import Caller, caller_of, needs, unauthorized
from headrace.service.gate import COOKIE
from headrace.service.problems import RequestError, problem
from headrace.service.served import Served
from headrace.service.webhook_bodies import body_of, fields_of

LOG = logging.getLogger("headrace.service")

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
#: How long a request waits for the end of a flow at most.
WAIT = timedelta(seconds=60)
MOST_KEY = 200

#: The webhooks of a path, with its parameters.
Found = Sequence[tuple[webhooks.Listener, dict[str, str]]]

router = APIRouter()


@router.api_route(
    "/webhook/{path:path}", methods=list(METHODS), include_in_schema=False, dependencies=[needs(Scope.SUBMIT, own=True)]
)
async def webhook(request: Request, path: str, app: Served) -> Response:
    """Begin a run of the flow that listens at a path, and answer as its webhook says."""
    known: webhooks.Listeners = request.app.state.listeners
    caller = caller_of(request)
    listener, params = _chosen(_open_to(caller, await known.find(path), request.method), request.method, path)
    secret = _check_login(app, listener, request, caller)
    given = webhooks.Request(
        request.method, str(request.url.replace(query="")), _headers(request), fields_of(request.url.query),
        body_of(request.headers.get("content-type", ""), await request.body()), params,
    )  # fmt: skip
    try:
        run = await webhooks.begin(app, listener, given, secret=secret, key=_key(request))
    except WorkflowNotActiveError:
        raise _nobody_listens(path) from None
    return await _answer(listener, run)


def _open_to(caller: Caller, found: Found, method: str) -> Found:
    """Return the webhooks of a path. Raises RequestError 401 where the one that is meant asks for nothing of its own.

    Where tokens are needed, whoever has none is not told which webhooks there are.
    """
    meant = next((listener for listener, _ in found if listener.hook.method == method), None)
    if not caller.admitted and (meant is None or meant.hook.authentication == "none"):
        raise unauthorized("a token of the scope submit is needed: send `Authorization: Bearer hra_…`")
    return found


def _chosen(found: Found, method: str, path: str) -> tuple[webhooks.Listener, dict[str, str]]:
    """Return the webhook of a path and a method. Raises NotFoundError, RequestError 405 for another method."""
    if not found:
        raise _nobody_listens(path)
    for listener, params in found:
        if listener.hook.method == method:
            return listener, params
    methods = ", ".join(sorted({listener.hook.method for listener, _ in found}))
    detail = f"the webhook {path!r} does not take {method}: use {methods}"
    raise RequestError(405, "method_not_allowed", detail, headers={"allow": methods})


def _nobody_listens(path: str) -> NotFoundError:
    fix = "the flow must be imported, switched on, and `active` in its JSON"
    return NotFoundError(f"no flow listens at the webhook {path!r}: {fix}")


def _check_login(app: App, listener: webhooks.Listener, request: Request, caller: Caller) -> str:
    """Return the name of the header with the secret, an empty text for none. Raises RequestError 401.

    A token of the service is as good as the credential of the webhook.
    """
    try:
        credential = webhooks.credential_of(app, listener)
    except (ConfigError, InvalidInputError) as error:
        LOG.error("node %r of %s lets nobody in: %s", listener.node, listener.workflow, error)
        raise RequestError(503, "config", "the webhook cannot let anybody in yet: see the log of the service") from None
    if credential is None:
        return ""
    if caller.token is not None:
        return credential.name
    # What people choose can be guessed: for each webhook on its own, so that nobody keeps others from theirs, and
    # whatever stands for the parameters of its path, so that those give nobody more guesses.
    about = f"{listener.workflow} {listener.node}"
    caller.check_pace(about)
    if not webhooks.is_let_in(credential, request.headers):
        asks = {"www-authenticate": 'Basic realm="webhook", charset="UTF-8"'} if credential.kind == "basic" else {}
        detail = "the webhook asks for its credential"
        sent = credential.name.lower() in request.headers or "authorization" in request.headers
        raise caller.refusal(detail, about, asks) if sent else unauthorized(detail, asks)
    return credential.name


def _headers(request: Request) -> dict[str, str]:
    """Return the headers; those that are there several times as one, as a list of values is written."""
    return {name: ", ".join(request.headers.getlist(name)) for name in request.headers}


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if len(key) > MOST_KEY:
        raise InvalidInputError("Idempotency-Key", f"must be at most {MOST_KEY} characters", f"{len(key)} characters")
    return check_key("Idempotency-Key", key)


async def _answer(listener: webhooks.Listener, run: Run) -> Response:
    hook = listener.hook
    if hook.answers == "onReceived":
        started = {"message": "Workflow was started", "run": str(run.id)}
        return _made(listener, started if hook.body is None else hook.body)
    try:
        items: Any = await run.result(WAIT)
    except ResultTimeoutError:
        detail = f"the flow did not end within {WAIT.total_seconds():g} s; it goes on: see its run"
        return problem(504, ResultTimeoutError.code, detail, run=str(run.id))
    except RunFailedError as error:
        return problem(500, error.code, "the flow did not succeed: see its run", run=str(run.id))
    return _made(listener, "" if hook.data == "noData" else webhooks.answer_of(hook, items or []))


def _made(listener: webhooks.Listener, content: Any) -> Response:
    """Return the answer with the status and the headers of the webhook: text as it is, the rest as JSON."""
    hook = listener.hook
    if hook.status in BODILESS:
        answer = Response(status_code=hook.status)
    else:
        answer = (PlainTextResponse if isinstance(content, str) else JSONResponse)(content, hook.status)
    for name, value in hook.headers:
        if logs_in(name, value):
            _tell_left_out(listener.workflow, listener.node)
        else:
            answer.headers[name] = value
    return answer


def logs_in(name: str, value: str) -> bool:
    """Whether a header of an answer sets the cookie of the pages: a flow would choose by whose token people act there.

    Browsers send a cookie without a name as its value alone, so that one may stand for the other.

    >>> logs_in("Set-Cookie", "headrace_token=hra_a; Path=/"), logs_in("set-cookie", "=headrace_token=hra_a")
    (True, True)
    >>> logs_in("Set-Cookie", "theme=dark")
    False
    """
    return name.lower() == "set-cookie" and value.lstrip(" \t=").partition("=")[0].rstrip() == COOKIE


@lru_cache(maxsize=1_000)
def _tell_left_out(workflow: str, node: str) -> None:
    """Tell of a webhook once, not with each of its answers."""
    LOG.error("node %r of %s may not set the cookie %s, which logs people in: it is left out", node, workflow, COOKIE)
