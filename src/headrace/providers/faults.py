"""Faults of an HTTP provider sorted into our errors: by status and by the error's own code, never by its text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.model.provider_errors import (
    ContextTooLongError,
    InvalidRequestError,
    ProviderAuthError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedError,
)
from headrace.providers.retry_after import read_retry_after

if TYPE_CHECKING:
    from headrace.providers.openai_client import HttpFault

#: Codes and types of errors that decide where the status alone does not.
_BY_CODE: Mapping[str, type[ProviderError]] = {
    "context_length_exceeded": ContextTooLongError,
    "exceed_context_size_error": ContextTooLongError,
    "content_filter": RefusedError,
    "content_policy_violation": RefusedError,
    "insufficient_quota": ProviderAuthError,
    "billing_hard_limit_reached": ProviderAuthError,
    "invalid_api_key": ProviderAuthError,
}
_BY_STATUS: Mapping[int, type[ProviderError]] = {
    401: ProviderAuthError,
    402: ProviderAuthError,
    403: ProviderAuthError,
    408: ProviderTimeoutError,
    409: ProviderUnavailableError,
    413: ContextTooLongError,
    425: ProviderUnavailableError,
    429: RateLimitedError,
}
_LONGEST_QUOTE = 300


def sort_fault(fault: HttpFault, *, provider: str, secret: str | None) -> ProviderError:
    """The error for this fault. What the provider said is quoted only where it helps, and never the secret."""
    kind = _BY_CODE.get(fault.code) or _BY_CODE.get(fault.kind) or _BY_STATUS.get(fault.status)
    if kind is None:
        kind = ProviderUnavailableError if fault.status >= 500 else InvalidRequestError
    return kind(
        _message(kind, fault, provider, secret),
        provider=provider,
        status=fault.status,
        request_id=fault.headers.get("x-request-id"),
        retry_after=read_retry_after(fault.headers, now=datetime.now(UTC)),
    )


def _message(kind: type[ProviderError], fault: HttpFault, provider: str, secret: str | None) -> str:
    said = ""
    if issubclass(kind, InvalidRequestError) and fault.message:
        text = fault.message.replace(secret, "***") if secret else fault.message
        said = f" It said: {text[:_LONGEST_QUOTE]}"
    return f"{kind.__doc__} ({provider}, status {fault.status}){said}"
