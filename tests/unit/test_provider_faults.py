"""Faults are sorted by code, then status; words decide only where a provider gives nothing else."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.error_class import ErrorClass
from headrace.model.provider_errors import ProviderError
from headrace.providers.fault import Fault
from headrace.providers.faults import sort_fault

#: What providers really send: (status, body, class, whether it may have been paid).
SAID: list[tuple[int, Any, ErrorClass, bool]] = [
    # OpenAI
    (429, {"error": {"code": "rate_limit_exceeded", "type": "tokens"}}, ErrorClass.RATE_LIMITED, False),
    (429, {"error": {"code": "insufficient_quota", "type": "insufficient_quota"}}, ErrorClass.AUTH, False),
    (429, {"error": {"code": "resource_unavailable"}}, ErrorClass.OVERLOADED, False),
    (400, {"error": {"code": "context_length_exceeded"}}, ErrorClass.CONTEXT_TOO_LONG, False),
    (400, {"error": {"code": "content_filter"}}, ErrorClass.REFUSED, True),
    (401, {"error": {"code": "invalid_api_key", "type": "invalid_request_error"}}, ErrorClass.AUTH, False),
    (404, {"error": {"code": "model_not_found"}}, ErrorClass.INVALID_REQUEST, False),
    (500, {"error": {"type": "server_error"}}, ErrorClass.PROVIDER_DOWN, True),
    # Anthropic
    (
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ErrorClass.OVERLOADED,
        False,
    ),
    (500, {"type": "error", "error": {"type": "overloaded_error"}}, ErrorClass.OVERLOADED, False),
    (429, {"type": "error", "error": {"type": "rate_limit_error"}}, ErrorClass.RATE_LIMITED, False),
    (
        400,
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}},
        ErrorClass.CONTEXT_TOO_LONG,
        False,
    ),
    (
        400,
        {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}},
        ErrorClass.AUTH,
        False,
    ),
    (413, {"error": {"type": "request_too_large"}}, ErrorClass.CONTEXT_TOO_LONG, False),
    (403, {"error": {"type": "permission_error"}}, ErrorClass.AUTH, False),
    # Gemini
    (429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}], ErrorClass.RATE_LIMITED, False),
    (503, [{"error": {"code": 503, "status": "UNAVAILABLE"}}], ErrorClass.OVERLOADED, False),
    (504, [{"error": {"code": 504, "status": "DEADLINE_EXCEEDED"}}], ErrorClass.TIMEOUT, True),
    (
        400,
        {"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}},
        ErrorClass.AUTH,
        False,
    ),
    (
        400,
        {"error": {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}},
        ErrorClass.CONTEXT_TOO_LONG,
        False,
    ),
    # vLLM and llama.cpp
    (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400},
        ErrorClass.CONTEXT_TOO_LONG,
        False,
    ),
    (400, {"error": {"type": "exceed_context_size_error"}}, ErrorClass.CONTEXT_TOO_LONG, False),
    # Groq, DeepSeek, Ollama, proxies
    (498, {"error": {"message": "flex tier capacity exceeded"}}, ErrorClass.OVERLOADED, False),
    (402, {"error": {"message": "Insufficient Balance"}}, ErrorClass.AUTH, False),
    (404, {"error": "model 'x' not found"}, ErrorClass.INVALID_REQUEST, False),
    (502, "<html>Bad Gateway</html>", ErrorClass.PROVIDER_DOWN, True),
    (524, "", ErrorClass.TIMEOUT, True),
    (408, "", ErrorClass.TIMEOUT, False),
    (409, {}, ErrorClass.PROVIDER_DOWN, False),
    (422, {"detail": [{"loc": ["body", "x"], "type": "extra_forbidden"}]}, ErrorClass.INVALID_REQUEST, False),
]


def error_of(status: int, body: Any, headers: dict[str, str] | None = None) -> ProviderError:
    """The error that this response becomes."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return sort_fault(Fault.read(status, headers or {}, raw), provider="openai", secret="sk-canary")


@pytest.mark.parametrize(
    ("status", "body", "wanted", "maybe_paid"), SAID, ids=[f"{n}-{said[0]}-{said[2]}" for n, said in enumerate(SAID)]
)
def test_what_providers_send_has_its_class(status: int, body: Any, wanted: ErrorClass, maybe_paid: bool) -> None:
    """Each known form of an error becomes its class, and says whether the call may have been paid for."""
    error = error_of(status, body)

    assert (error.error_class, error.maybe_paid, error.status) == (wanted, maybe_paid, status)
    assert error.transient is (
        wanted in {ErrorClass.RATE_LIMITED, ErrorClass.OVERLOADED, ErrorClass.TIMEOUT, ErrorClass.PROVIDER_DOWN}
    )


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_words_do_not_outvote_a_status(status: int) -> None:
    """A message that speaks of a context or of credit means nothing beside a status that is clear."""
    plain = error_of(status, {"error": {"message": "x"}})
    worded = error_of(status, {"error": {"message": "maximum context length; credit balance is too low"}})

    assert type(worded) is type(plain)


def test_an_error_carries_what_was_said_of_the_quota() -> None:
    """Wait, request id and what is left come with the error, also where the wait lies in the body."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}
    error = error_of(429, [body], {"x-ratelimit-remaining-tokens": "12", "request-id": "req_7"})

    assert error.retry_after == error.hint.retry_after == timedelta(seconds=34)
    assert list(error.hint.remaining.values()) == [12]
    assert error.request_id == "req_7"


def test_the_key_is_not_quoted() -> None:
    """A provider that repeats the key in its message does not get it into ours."""
    assert "sk-canary" not in str(error_of(400, {"error": {"message": "bad: sk-canary"}}))
    assert "It said: bad: ***" in str(error_of(400, {"error": {"message": "bad: sk-canary"}}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["error", "code", "type", "param", "message", "details", "detail", "status", "reason"]), inner
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.integers(400, 599), st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_no_body_breaks_the_sorting(status: int, raw: bytes) -> None:
    """Whatever an error's body holds, the result is one of our errors with a class."""
    error = sort_fault(Fault.read(status, {}, raw), provider="openai")

    assert error.error_class in ErrorClass
    assert len(str(error)) < 1_000
