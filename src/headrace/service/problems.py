"""Errors as problem documents (RFC 9457): a status, a stable `code`, and a sentence that says what to do next."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from headrace.model.errors import (
    BlobStoreError,
    BusUnavailableError,
    ConflictError,
    HandleCancelledError,
    HandleExpiredError,
    HeadraceError,
    InvalidInputError,
    KeyHeldError,
    LimitTimeoutError,
    NotFoundError,
    PayloadTooLargeError,
    QueueClosedError,
    QueueFullError,
    ResultTimeoutError,
    StoreUnavailableError,
    StoreVersionError,
    WorkflowNotActiveError,
)
from headrace.service.faults import faults_of

LOG = logging.getLogger("headrace.service")

#: Sent with every answer: what users wrote is never run as a page nor put into one of another site,
#: and no copy of it is kept on the way.
HEADERS = {
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
#: Methods that addresses may have.
METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
#: Whoever has a token can end a wait with it.
_TOKEN = re.compile(r"(?<=/resume/).+|hr[ah]_[A-Za-z0-9_-]+")
#: When it is worth trying again.
RETRY_AFTER = {"retry-after": "1"}


class RequestError(HeadraceError):
    """The request cannot be taken. Correct what the text names, and send it again."""

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, dict(headers or {})


class InvalidRequestError(InvalidInputError):
    """Fields of a request break rules. Correct them and send it again."""

    def __init__(self, faults: Sequence[InvalidInputError]) -> None:
        super().__init__(faults[0].field, faults[0].rule, faults[0].value)
        self.errors = [{"field": fault.field, "rule": fault.rule} for fault in faults]


class InvalidItemsError(InvalidRequestError):
    """Some items are wrong, and so nothing was stored. Correct them and send all again."""


#: The first that fits decides, so subclasses come before their bases.
_STATUSES: tuple[tuple[type[HeadraceError], int], ...] = (
    (PayloadTooLargeError, 413),
    (InvalidInputError, 422),
    (ConflictError, 409),
    (KeyHeldError, 409),
    (HandleCancelledError, 409),
    (HandleExpiredError, 410),
    (NotFoundError, 404),
    (WorkflowNotActiveError, 409),
    (QueueFullError, 429),
    (LimitTimeoutError, 429),
    (QueueClosedError, 503),
    (StoreUnavailableError, 503),
    (StoreVersionError, 503),
    (BusUnavailableError, 503),
    (BlobStoreError, 503),
    (ResultTimeoutError, 504),
)


def status_of(error: HeadraceError) -> int:
    """Return the status of an error.

    >>> status_of(NotFoundError()), status_of(HeadraceError())
    (404, 500)
    """
    if isinstance(error, RequestError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem(
    status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **facts: Any
) -> JSONResponse:
    """Return the answer that tells of a problem; facts that are None are left out."""
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code}
    document |= {"detail": detail} | {name: value for name, value in facts.items() if value is not None}
    return JSONResponse(document, status, headers={**HEADERS, **(headers or {})}, media_type="application/problem+json")


def headers_of(error: HeadraceError) -> dict[str, str]:
    """Return the headers of the answer that tells of an error.

    >>> headers_of(StoreUnavailableError())
    {'retry-after': '1'}
    """
    return (RETRY_AFTER if status_of(error) in (429, 503) else {}) | getattr(error, "headers", {})


def problem_of(error: HeadraceError) -> JSONResponse:
    """Return the answer that tells of an error of ours, with the facts that it carries."""
    facts = {name: getattr(error, name, None) for name in ("field", "rule", "run_id")}
    shown = {name: str(value) for name, value in facts.items() if value is not None}
    told, headers = getattr(error, "errors", None), headers_of(error)
    return problem(status_of(error), error.code, str(error), headers=headers, errors=told, **shown)


def add_handlers(service: FastAPI) -> None:
    """Let every error end as a problem document."""
    service.add_exception_handler(HeadraceError, _on_error)
    service.add_exception_handler(RequestValidationError, _on_invalid)
    service.add_exception_handler(HTTPException, _on_http)
    service.add_exception_handler(Exception, _on_surprise)


def shown_path(request: Request) -> str:
    """Return the path of a request as logs and answers may have it: without a token."""
    return _TOKEN.sub("…", request.url.path)


async def _on_error(request: Request, error: Exception) -> JSONResponse:
    answer = problem_of(cast(HeadraceError, error))
    if answer.status_code >= 500:
        LOG.error("%s %s: %s", request.method, shown_path(request), error)
    return answer


async def _on_invalid(_: Request, error: Exception) -> JSONResponse:
    return problem_of(InvalidRequestError(faults_of(cast(RequestValidationError, error).errors())))


async def _on_http(request: Request, error: Exception) -> JSONResponse:
    """Tell of what the framework refuses: paths and methods that there are not."""
    found = cast(HTTPException, error)
    if found.status_code == 404:
        return problem(404, NotFoundError.code, f"there is nothing at {shown_path(request)}")
    if found.status_code == 405:
        allowed = _allowed(request)
        detail = f"{request.method} is not for {shown_path(request)}: use {allowed}"
        return problem(405, "method_not_allowed", detail, headers={"allow": allowed})
    return problem(found.status_code, "http_error", str(found.detail), headers=found.headers)


def _allowed(request: Request) -> str:
    """Return the methods that there are for an address: the framework names those of one route alone."""
    found = []
    for method in METHODS:
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            found.append(method)
    return ", ".join(found)


async def _on_surprise(request: Request, error: Exception) -> JSONResponse:
    """A mistake of ours: what it was is for the log alone."""
    LOG.error("%s %s failed", request.method, shown_path(request), exc_info=error)
    return problem(500, "internal_error", "this should not happen: the log of the service has what it was")
