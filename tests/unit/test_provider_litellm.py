"""The LiteLLM adapter over a tiny stand-in for the module: what it sends, reads, and makes of errors.

`test_provider_litellm_real.py` in the integration tests does the same with the package.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.model.errors import ConfigError
from headrace.model.llm import Answer, CompletionRequest, FinishReason, LLMSettings, Message, TextPart
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
from headrace.model.quota import Dimension
from headrace.model.usage import Usage
from headrace.providers import open_provider
from headrace.providers.litellm import LiteLLMProvider, load_litellm

SECRET = "sk-canary-41b7"
SETTINGS = LLMSettings(provider="litellm", model="anthropic/m", api_key=SECRET, base_url="http://127.0.0.1:9")
REQUEST = CompletionRequest(model="anthropic/other", messages=(Message("user", "hello"),), seed=7)
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}


@dataclass
class Body:
    """A response as LiteLLM gives it: an object that dumps what OpenAI would have sent."""

    body: Mapping[str, Any]
    _hidden_params: Mapping[str, Any] = field(default_factory=dict)

    def model_dump(self) -> dict[str, Any]:
        """Its body."""
        return dict(self.body)


@dataclass
class Chunks:
    """A stream as LiteLLM gives it; it raises `error` at its end."""

    bodies: list[Mapping[str, Any]]
    error: Exception | None = None
    is_closed: bool = False
    #: What the provider itself said; the chunks have what LiteLLM makes of it.
    received_finish_reason: str | None = "stop"

    async def __aiter__(self) -> AsyncIterator[Body]:
        for body in self.bodies:
            yield Body(body)
        if self.error is not None:
            raise self.error

    async def aclose(self) -> None:
        """Note it."""
        self.is_closed = True


@dataclass
class Module:
    """As much of `litellm` as the adapter uses."""

    answer: Callable[[dict[str, Any]], Any]
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def acompletion(self, **fields: Any) -> Any:
        """Note what is asked; answer, or raise what there is in the place of an answer."""
        self.asked.append(fields)
        said = self.answer(fields)
        if isinstance(said, BaseException):
            raise said
        return said

    aembedding = acompletion


def provider_of(answer: Callable[[dict[str, Any]], Any], **changes: Any) -> tuple[LiteLLMProvider, Module]:
    """An adapter over a module that answers so."""
    module = Module(answer)
    settings = LLMSettings(**{name: getattr(SETTINGS, name) for name in ("provider", "model", "api_key", "base_url")})
    return LiteLLMProvider(LLMSettings(**_fields(settings) | changes), load=lambda: module), module


def _fields(settings: LLMSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ("provider", "model", "api_key", "base_url")}


def whole(text: str = "hi", **fields: Any) -> Body:
    """A whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    headers = {"llm_provider-x-request-id": "req_1", "llm_provider-anthropic-ratelimit-requests-remaining": "5"}
    body = {"id": "c1", "model": "m-2024", "choices": [choice], "usage": USAGE, **fields}
    return Body(body, {"additional_headers": headers})


def part(text: str | None, reason: str | None = None) -> Mapping[str, Any]:
    """A chunk of a stream."""
    return {"id": "c1", "model": "m-2024", "choices": [{"delta": {"content": text}, "finish_reason": reason}]}


def named(name: str, **fields: Any) -> Exception:
    """An exception of LiteLLM's of this class, with these attributes."""
    error = type(name, (Exception,), {})(f"litellm.{name}: {SECRET}")
    for attribute, value in fields.items():
        setattr(error, attribute, value)
    return error


def caused_by(error: Exception, cause: Exception) -> Exception:
    """The error with another one behind it."""
    error.__cause__ = cause
    return error


async def test_an_answer_is_read_with_usage_id_and_hint() -> None:
    """Everything that is stored and accounted arrives, and of the headers what the provider itself sent."""
    provider, _ = provider_of(lambda fields: whole())
    answer = await provider.complete(REQUEST)

    assert (answer.text, answer.model, answer.request_id) == ("hi", "m-2024", "req_1")
    assert answer.usage == Usage(input_tokens=9, output_tokens=2, cached_tokens=4, calls=1)
    assert answer.hint.remaining == {Dimension.REQUESTS: 5.0}


async def test_what_is_sent_names_model_account_and_no_retries() -> None:
    """The request's own model is asked, and LiteLLM tries nothing again by itself."""
    provider, module = provider_of(lambda fields: whole())
    await provider.complete(REQUEST)

    asked = module.asked[0]
    assert (asked["model"], asked["seed"], asked["api_base"]) == ("anthropic/other", 7, "http://127.0.0.1:9")
    assert (asked["num_retries"], asked["max_retries"], asked["timeout"]) == (0, 0, 90.0)


async def test_tokens_that_nobody_told_are_unknown() -> None:
    """LiteLLM writes 0 tokens where a provider says nothing: what the call cost is then unknown, not 0."""
    provider, _ = provider_of(lambda fields: whole(usage={"prompt_tokens": 0, "completion_tokens": 0}))

    assert (await provider.complete(REQUEST)).usage.cost is None


async def test_a_stream_gives_its_parts_and_then_the_answer() -> None:
    """Parts as they come, usage from the last chunk, and the stream is closed."""
    chunks = Chunks([part("he"), part("llo"), part(None, "length"), {"choices": [], "usage": USAGE}])
    provider, module = provider_of(lambda fields: chunks)
    *parts, answer = [piece async for piece in provider.stream(REQUEST)]

    assert parts == [TextPart("he"), TextPart("llo")]
    assert isinstance(answer, Answer)
    assert (answer.text, answer.finish_reason, answer.usage.tokens) == ("hello", FinishReason.LENGTH, 11)
    assert module.asked[0]["stream_options"] == {"include_usage": True}
    assert chunks.is_closed


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (None, ProviderUnavailableError),
        (named("MidStreamFallbackError", status_code=503), OverloadedError),
        (named("RateLimitError", status_code=429), RateLimitedError),
        (ValueError("no class at all"), ProviderUnavailableError),
    ],
)
async def test_a_stream_that_breaks_may_have_been_paid(end: Exception | None, kind: type[ProviderError]) -> None:
    """Whatever ends a stream before its answer does: the parts before it were worked on."""
    provider, _ = provider_of(lambda fields: Chunks([part("he")], end))
    with pytest.raises(ProviderError) as caught:
        _ = [piece async for piece in provider.stream(REQUEST)]

    assert type(caught.value) is kind
    assert caught.value.maybe_paid


async def test_a_made_up_end_is_no_end() -> None:
    """LiteLLM gives a broken stream a finish reason of its own; the answer is cut all the same."""
    chunks = Chunks([part("he"), part(None, "stop")], received_finish_reason=None)
    provider, _ = provider_of(lambda fields: chunks)
    with pytest.raises(ProviderUnavailableError) as caught:
        _ = [piece async for piece in provider.stream(REQUEST)]

    assert caught.value.maybe_paid


@pytest.mark.parametrize(
    ("error", "kind", "maybe_paid"),
    [
        (named("RateLimitError", status_code=429), RateLimitedError, False),
        (
            caused_by(
                named("RateLimitError", status_code=429),
                named("OpenAIError", body={"code": "insufficient_quota", "message": "pay"}),
            ),
            ProviderAuthError,
            False,
        ),
        (named("AuthenticationError", status_code=401), ProviderAuthError, False),
        (named("PermissionDeniedError", status_code=403), ProviderAuthError, False),
        (named("NotFoundError", status_code=404), InvalidRequestError, False),
        (named("BadRequestError", status_code=400), InvalidRequestError, False),
        (named("ContextWindowExceededError", status_code=400), ContextTooLongError, False),
        (named("ContentPolicyViolationError", status_code=400), RefusedError, True),
        (named("ServiceUnavailableError", status_code=503), OverloadedError, False),
        (named("InternalServerError", status_code=500), ProviderUnavailableError, True),
        (
            caused_by(named("InternalServerError", status_code=500), named("ConnectError")),
            ProviderUnavailableError,
            False,
        ),
        (named("Timeout", status_code=408), ProviderTimeoutError, True),
        (named("APIConnectionError", status_code=500), ProviderUnavailableError, True),
        (KeyError("something inside"), ProviderUnavailableError, True),
    ],
)
async def test_each_exception_becomes_its_error(error: Exception, kind: type[ProviderError], maybe_paid: bool) -> None:
    """Sorted by the provider's own code, then LiteLLM's class, then the status; nothing holds the key."""
    provider, _ = provider_of(lambda fields: error)
    with pytest.raises(ProviderError) as caught:
        await provider.complete(REQUEST)

    assert type(caught.value) is kind
    assert caught.value.maybe_paid is maybe_paid
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert SECRET not in str(caught.value)


async def test_the_wait_of_a_429_arrives() -> None:
    """LiteLLM keeps the headers of a refusal beside the error."""
    headers = {"Retry-After": "7", "x-ratelimit-remaining-requests": "0"}
    provider, _ = provider_of(lambda fields: named("RateLimitError", status_code=429, litellm_response_headers=headers))
    with pytest.raises(RateLimitedError) as caught:
        await provider.complete(REQUEST)

    assert caught.value.retry_after == timedelta(seconds=7)
    assert caught.value.hint.remaining == {Dimension.REQUESTS: 0.0}


async def test_a_parameter_the_model_does_not_know_is_left_out() -> None:
    """LiteLLM names it in its message alone; later calls of the same model leave it out at once."""

    def answer(fields: dict[str, Any]) -> Any:
        if "seed" not in fields:
            return whole()
        message = "ollama does not support parameters: ['seed'], for model=m. To drop these, set …"
        return named("UnsupportedParamsError", status_code=400, message=message)

    provider, module = provider_of(answer)
    await provider.complete(REQUEST)
    await provider.complete(REQUEST)

    assert ["seed" in asked for asked in module.asked] == [True, False, False]


async def test_the_deadline_is_total() -> None:
    """A provider that never answers holds a call no longer than its timeout."""

    async def hang(**fields: Any) -> Any:
        await asyncio.Event().wait()

    provider, module = provider_of(lambda fields: None, timeout=timedelta(seconds=0.05))
    module.acompletion = hang  # type: ignore[method-assign]
    with pytest.raises(ProviderTimeoutError) as caught:
        await provider.complete(REQUEST)

    assert caught.value.maybe_paid


async def test_embeddings_come_in_the_order_of_their_texts() -> None:
    """Vectors are sorted by their index."""
    entries = [{"index": 1, "embedding": [0.5, 1]}, {"index": 0, "embedding": [0.0, 2]}]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    provider, module = provider_of(lambda fields: Body({"data": entries, "model": "e", "usage": usage}))
    vectors = await provider.embed(("a", "b"), model="openai/e")

    assert vectors.vectors == ((0.0, 2.0), (0.5, 1.0))
    assert vectors.usage == Usage(input_tokens=4, calls=1)
    assert (module.asked[0]["model"], module.asked[0]["input"]) == ("openai/e", ["a", "b"])


def test_the_settings_choose_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`llm.provider` names it; without the package, or a model, the error says what to do."""
    monkeypatch.setattr("headrace.providers.litellm.find_spec", lambda name: object())
    provider = open_provider(SETTINGS, tmp_path)
    assert (provider.name, provider.model) == ("litellm", "anthropic/m")
    with pytest.raises(ConfigError, match="HEADRACE_LLM_MODEL"):
        open_provider(LLMSettings(provider="litellm"), tmp_path)
    monkeypatch.setattr("headrace.providers.litellm.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"headrace\[litellm\]"):
        open_provider(SETTINGS, tmp_path)


def test_another_provider_is_refused_by_name(tmp_path: Path) -> None:
    """A typing error names the words there are."""
    with pytest.raises(ConfigError, match="must be one of openai, litellm, local, got 'claude'"):
        open_provider(LLMSettings(provider="claude", model="m"), tmp_path)


def test_the_module_is_told_to_stay_quiet_before_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No list of prices is fetched, no `.env` is read, nothing is reported."""
    for name in ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_MODE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "litellm.py").write_text(
        "import os\nseen = {name: value for name, value in os.environ.items() if name.startswith('LITELLM')}\n"
        "telemetry = True\nsuppress_debug_info = False\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "litellm", raising=False)
    module = load_litellm()

    assert module.seen == {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
    assert (module.telemetry, module.suppress_debug_info) == (False, True)
    monkeypatch.delitem(__import__("sys").modules, "litellm")
    for name in module.seen:
        monkeypatch.delitem(os.environ, name)
