"""LiteLLM's exceptions read as faults: the provider's own words where they are still there, else LiteLLM's classes.

Classes go by name, so that reading an error imports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from headrace.providers.fault import Fault

#: What a class of LiteLLM's says, in words of OpenAI; the others say no more than their status.
_WORDS: Mapping[str, str] = {
    "ContextWindowExceededError": "context_length_exceeded",
    "ContentPolicyViolationError": "content_policy_violation",
    "PaymentRequiredError": "billing_error",
    "Timeout": "timeout_error",
    "UnsupportedParamsError": "unsupported_parameter",
}
#: No connection was made: of httpx, httpx2 and aiohttp.
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError"})
#: Made by LiteLLM before anything is sent: it has no other form than its message.
_UNSUPPORTED = re.compile(r"does not support parameters: \[?['\"]?(\w+)")
_PREFIX = "llm_provider-"
_DEEPEST = 10
_SERVER_ERROR = 500


def read_fault(error: BaseException) -> Fault:
    """The fault that this exception of LiteLLM's tells of; an unknown one counts as a failure of the provider."""
    chain = list(_chain(error))
    names = [kind.__name__ for link in chain for kind in type(link).__mro__]
    bodies = [body for link in chain if isinstance(body := getattr(link, "body", None), Mapping)]
    status = next((code for link in chain if (code := _status(link)) is not None), _SERVER_ERROR)
    said = Fault.of(bodies[0] if bodies else {}, status=status, headers=_headers(chain))
    message = said.message or str(getattr(error, "message", "") or "")
    unsupported = _UNSUPPORTED.search(message)
    is_answered = any(getattr(link, "response", None) is not None and bodies for link in chain)
    return replace(
        said,
        words=(*said.words, *(_WORDS[name] for name in names if name in _WORDS)),
        param=said.param or (unsupported[1] if unsupported else ""),
        message=message,
        maybe_paid=_maybe_paid(names, is_answered=is_answered),
    )


def headers_of(answered: Any) -> Mapping[str, str]:
    """The provider's own headers beside an answer, names in lower case."""
    hidden = getattr(answered, "_hidden_params", None)
    hidden = hidden if isinstance(hidden, Mapping) else {}
    for headers in (getattr(answered, "_response_headers", None), hidden.get("headers")):
        if isinstance(headers, Mapping) and headers:
            return {str(name).lower(): str(value) for name, value in headers.items()}
    others = hidden.get("additional_headers")
    others = others if isinstance(others, Mapping) else {}
    return {str(name).lower().removeprefix(_PREFIX): str(value) for name, value in others.items()}


def _maybe_paid(names: list[str], *, is_answered: bool) -> bool | None:
    if not _NEVER_SENT.isdisjoint(names):
        return False
    # No wait of ours tells how far the provider came; where it answered, the class of its answer does.
    return True if "Timeout" in names and not is_answered else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and those behind it, the outermost first."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting and len(seen) < _DEEPEST:
        link = waiting.pop(0)
        if isinstance(link, BaseException) and id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [getattr(link, "original_exception", None), link.__cause__, link.__context__]


def _headers(chain: list[BaseException]) -> Mapping[str, str]:
    for link in chain:
        answered = getattr(link, "response", None)
        for headers in (getattr(link, "litellm_response_headers", None), getattr(answered, "headers", None)):
            if isinstance(headers, Mapping) and headers:
                return {str(name).lower(): str(value) for name, value in headers.items()}
    return {}


def _status(error: BaseException) -> int | None:
    code = getattr(error, "status_code", None)
    return code if isinstance(code, int) and 400 <= code < 600 else None
