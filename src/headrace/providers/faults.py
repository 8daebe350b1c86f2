"""Faults of a provider sorted into our errors: by code, then by status, then (rarely, see below) by words.

The text of a message decides only where a provider gives nothing else, and only within a 400 or 422:

- Anthropic, Gemini, vLLM and SGLang tell a prompt that is too long from any other bad request by its message alone;
- Anthropic says in words, with `invalid_request_error`, that the credit of an account is used up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from headrace.model.provider_errors import (
    ContextTooLongError,
    InvalidRequestError,
    OverloadedError,
    ProviderAuthError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedError,
)
from headrace.providers.fault import Fault
from headrace.providers.quota_headers import read_hint
from headrace.providers.texts import clean_name

#: Codes, types and reasons that decide, whatever the status; in lower case.
_BY_WORD: Mapping[str, type[ProviderError]] = {
    # prompts that do not fit: OpenAI, llama.cpp, Anthropic
    "context_length_exceeded": ContextTooLongError,
    "exceed_context_size_error": ContextTooLongError,
    "request_too_large": ContextTooLongError,
    # filters: Azure, OpenAI
    "content_filter": RefusedError,
    "content_policy_violation": RefusedError,
    # keys and credit: OpenAI sends the first with a 429, and no wait helps
    "insufficient_quota": ProviderAuthError,
    "billing_hard_limit_reached": ProviderAuthError,
    "billing_not_active": ProviderAuthError,
    "account_deactivated": ProviderAuthError,
    "invalid_api_key": ProviderAuthError,
    "billing_error": ProviderAuthError,
    "authentication_error": ProviderAuthError,
    "permission_error": ProviderAuthError,
    "api_key_invalid": ProviderAuthError,
    "unauthenticated": ProviderAuthError,
    "permission_denied": ProviderAuthError,
    # too much to do for everybody: Anthropic; OpenAI's flex tier, with a 429
    "overloaded_error": OverloadedError,
    "resource_unavailable": OverloadedError,
    # the quota: OpenAI, Anthropic, Google
    "rate_limit_exceeded": RateLimitedError,
    "rate_limit_error": RateLimitedError,
    "resource_exhausted": RateLimitedError,
    # Anthropic
    "timeout_error": ProviderTimeoutError,
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
    498: OverloadedError,  # Groq's flex tier has no capacity
    503: OverloadedError,
    504: ProviderTimeoutError,  # a proxy in front of the model gave up waiting for it
    524: ProviderTimeoutError,  # the same at Cloudflare
    529: OverloadedError,
}
_WORDED = frozenset({400, 422})
_TOO_LONG = re.compile(
    r"maximum context length|prompt is too long|context (?:length|window)[^.]{0,40}exceed|"
    r"exceeds? (?:the )?(?:model'?s )?(?:maximum (?:number of tokens|context)|context (?:length|window))|"
    r"longer than the model'?s context length",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"credit balance is too low", re.IGNORECASE)
#: Nothing was worked on where these are answered; other failures of a server may have come after the work.
_NO_WORK = (RateLimitedError, OverloadedError, ProviderAuthError, InvalidRequestError)
_LONGEST_QUOTE = 300


def sort_fault(fault: Fault, *, provider: str, secret: str | None = None) -> ProviderError:
    """The error for this fault. What the provider said is quoted only where it helps, and never the secret."""
    kind = _kind(fault)
    return kind(
        _message(kind, fault, provider, secret),
        provider=provider,
        status=fault.status,
        request_id=request_id_of(fault.headers),
        hint=read_hint(fault.headers, now=datetime.now(UTC), details=fault.details),
        maybe_paid=_maybe_paid(kind, fault),
    )


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's own id of a request, by the headers of its response; names are lower case."""
    return clean_name(headers.get("x-request-id") or headers.get("request-id")) or None


def means_something(fault: Fault) -> bool:
    """Whether a fault within an answer says by a code which it is."""
    return any(word.lower() in _BY_WORD or _status_in(word) in _BY_STATUS for word in fault.words)


def _kind(fault: Fault) -> type[ProviderError]:
    if fault.is_redirect:
        return InvalidRequestError
    for word in fault.words:
        if word.lower() in _BY_WORD:
            return _BY_WORD[word.lower()]
    # OpenRouter sends the status of the model behind it as the code of an error within an answer.
    inner = next(filter(None, map(_status_in, fault.words)), None) if fault.within_answer else None
    status = inner or fault.status
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in _WORDED:
        return _worded(fault.message)
    return InvalidRequestError if 400 <= status < 500 else ProviderUnavailableError


def _worded(message: str) -> type[ProviderError]:
    if _TOO_LONG.search(message):
        return ContextTooLongError
    return ProviderAuthError if _NO_CREDIT.search(message) else InvalidRequestError


def _status_in(word: str) -> int | None:
    return int(word) if re.fullmatch(r"[45][0-9]{2}", word) else None


def _maybe_paid(kind: type[ProviderError], fault: Fault) -> bool:
    if fault.maybe_paid is not None or fault.within_answer:
        return fault.maybe_paid is not False
    if kind is RefusedError:  # Azure charges for the prompt that its filter has read
        return True
    return fault.status >= 500 and not issubclass(kind, _NO_WORK)


def _message(kind: type[ProviderError], fault: Fault, provider: str, secret: str | None) -> str:
    said = ""
    if issubclass(kind, InvalidRequestError) and fault.message:
        text = fault.message.replace(secret, "***") if secret else fault.message
        said = f" It said: {text[:_LONGEST_QUOTE]}"
    return f"{kind.__doc__} ({provider}, status {fault.status}){said}"
