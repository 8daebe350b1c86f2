"""What a service answers instead of what was asked, as errors of the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace import ConfigError, ConflictError, HeadraceError, NotAllowedError, NotFoundError, StoreUnavailableError
from headrace.apps.details.commands.addresses import TOKEN_VARIABLE

if TYPE_CHECKING:
    import httpx2

#: Statuses that pass: the service is busy, starts, or lost its store.
PASSING = frozenset({429, 502, 503, 504})
_UNPROCESSABLE = frozenset({400, 413, 415, 422})


class ServiceUnreachableError(StoreUnavailableError):
    """The service cannot be reached. Check that `headrace serve` runs, and the address in --url."""

    code = "service_unreachable"


class RefusedError(ConfigError):
    """The service does not take this request. Correct what the text names."""

    def __init__(self, message: str, code: str, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        #: What was wrong, and the rule, where the service says so: they stand in errors as JSON.
        self.field, self.rule = ((facts or {}).get(name) for name in ("field", "rule"))


class ServiceError(HeadraceError):
    """The service failed at this request. Its log says why."""

    code = "service"


def refusal(status: int, document: Mapping[str, Any]) -> HeadraceError:
    """Return the error that a problem document tells of.

    >>> refusal(404, {"detail": "no batch 7", "code": "not_found"})
    NotFoundError('no batch 7')
    """
    detail, code = str(document.get("detail", f"the service answered {status}")), str(document.get("code", "service"))
    if status in (401, 403):
        return NotAllowedError(f"{detail} (the service takes tokens by --token-file and {TOKEN_VARIABLE})")
    if status == 404:
        return NotFoundError(detail)
    if status == 409:
        return ConflictError(detail)
    if status in _UNPROCESSABLE:
        return RefusedError(detail, code, document)
    if status in PASSING:
        return ServiceUnreachableError(f"the service cannot do it now: {detail}")
    return ServiceError(f"the service answered {status}: {detail}")


async def check(response: httpx2.Response) -> None:
    """Raise the error that an answer tells of."""
    if response.is_success:
        return
    if response.is_redirect:
        rule = "leads elsewhere: name the address of the service itself with --url"
        raise RefusedError(f"{response.request.url.host} answers with status {response.status_code} and {rule}", "url")
    await response.aread()
    raise refusal(response.status_code, document_of(response.content))


def document_of(content: bytes) -> dict[str, Any]:
    """Return the JSON object of an answer; an empty one where it is none.

    >>> document_of(b'{"code": "config"}'), document_of(b"<html>")
    ({'code': 'config'}, {})
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
