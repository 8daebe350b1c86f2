"""The OpenAI adapter against the scripted provider: every fault becomes its error, and no secret gets out."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, Field

from headrace.llm.gateway import LLM
from headrace.model.errors import ConfigError
from headrace.model.llm import AnswerStyle, CompletionRequest, FinishReason, LLMSettings, Message
from headrace.model.provider_errors import (
    BadOutputError,
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
from headrace.ports.stores import Stores
from headrace.providers.bounds import LARGEST_ANSWER
from headrace.providers.openai import OpenAIProvider
from headrace.stores.memory import open_memory_stores
from headrace.testing.provider import Fault, FaultKind, Latency, ScriptedProvider, Span
from tests.unit.llm_answers import llm_of

SCHEMA = {"type": "object", "properties": {"plants": {"type": "integer"}}, "required": ["plants"]}
SECRET = "sk-canary-7d1f9c"


def ask(text: str = "We grew 60 plants.", **fields: Any) -> CompletionRequest:
    """A request for a short answer."""
    return CompletionRequest(model="scripted-model", messages=(Message("user", text),), **fields)


async def complete(scripted: ScriptedProvider, request: CompletionRequest | None = None, **changes: Any) -> Any:
    """Ask the scripted provider once through a fresh adapter."""
    provider = OpenAIProvider(replace(scripted.settings, **changes))
    try:
        return await provider.complete(request or ask())
    finally:
        await provider.aclose()


async def failure(scripted: ScriptedProvider, request: CompletionRequest | None = None, **changes: Any) -> Any:
    """The error of asking once."""
    with pytest.raises(ProviderError) as caught:
        await complete(scripted, request, **changes)
    return caught.value


def always(kind: FaultKind, **fields: Any) -> ScriptedProvider:
    """A provider with one fault for every call."""
    return ScriptedProvider(faults=[Fault(kind=kind, **fields)])


async def test_an_answer_carries_text_usage_model_and_request_id() -> None:
    """A plain ask returns everything that is stored and accounted."""
    async with ScriptedProvider(answer=lambda request: "Sixty.") as scripted:
        answer = await complete(scripted)

    assert (answer.text, answer.finish_reason, answer.model) == ("Sixty.", FinishReason.STOP, "scripted-model")
    assert answer.usage.calls == 1
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens == 2
    assert answer.request_id.startswith("req_chatcmpl-")


async def test_every_parameter_reaches_the_provider() -> None:
    """Schema, limit, stops and temperature are sent under the names an OpenAI-compatible server knows."""
    bodies: list[Any] = []
    async with ScriptedProvider(answer=lambda request: bodies.append(request.body) or "{}") as scripted:
        await complete(scripted, ask(schema=SCHEMA, schema_name="count", max_tokens=9, stop=("\n",), temperature=0.5))
        await complete(scripted, ask(json_mode=True))

    assert bodies[0]["response_format"]["json_schema"] == {"name": "count", "schema": SCHEMA, "strict": True}
    assert (bodies[0]["max_tokens"], bodies[0]["stop"], bodies[0]["temperature"]) == (9, ["\n"], 0.5)
    assert bodies[1]["response_format"] == {"type": "json_object"}
    assert "max_tokens" not in bodies[1]


@pytest.mark.parametrize("seconds", [2.0, 0.25])
async def test_a_429_says_how_long_to_wait(seconds: float) -> None:
    """Retry-After arrives with the error, to the millisecond where the provider gives it."""
    wait = timedelta(seconds=seconds)
    async with always(FaultKind.RATE_LIMIT, retry_after=wait) as scripted:
        error = await failure(scripted)

    assert type(error) is RateLimitedError
    assert error.transient
    assert error.retry_after == wait


async def test_a_429_without_a_header_says_nothing_about_the_wait() -> None:
    """Where the provider does not say, neither do we."""
    async with always(FaultKind.RATE_LIMIT) as scripted:
        error = await failure(scripted)

    assert type(error) is RateLimitedError
    assert error.retry_after is None


@pytest.mark.parametrize(
    ("status", "kind", "transient"),
    [
        (400, InvalidRequestError, False),
        (401, ProviderAuthError, False),
        (403, ProviderAuthError, False),
        (404, InvalidRequestError, False),
        (408, ProviderTimeoutError, True),
        (413, ContextTooLongError, False),
        (422, InvalidRequestError, False),
        (500, ProviderUnavailableError, True),
        (503, OverloadedError, True),
        (504, ProviderTimeoutError, True),
        (529, OverloadedError, True),
    ],
)
async def test_a_status_becomes_its_error(status: int, kind: type[ProviderError], transient: bool) -> None:
    """Faults are sorted by their status; only those that can pass are transient."""
    async with always(FaultKind.SERVER_ERROR, status=status) as scripted:
        error = await failure(scripted)

    assert type(error) is kind
    assert (error.status, error.transient) == (status, transient)


async def test_a_prompt_that_does_not_fit_is_told_apart() -> None:
    """The error's code decides: a 400 for length is not just any bad request."""
    async with ScriptedProvider(context_tokens=10) as scripted:
        error = await failure(scripted, ask("word " * 100))

    assert type(error) is ContextTooLongError


@pytest.mark.parametrize(
    "kind", [FaultKind.BROKEN_BODY, FaultKind.BAD_UTF8, FaultKind.EMPTY, FaultKind.ERROR_BODY, FaultKind.TOOL_CALL]
)
async def test_a_body_that_is_no_answer_is_bad_output(kind: FaultKind) -> None:
    """Broken JSON, bad UTF-8, no choice, an error as answer, a tool call: named, and not transient."""
    async with always(kind) as scripted:
        error = await failure(scripted)

    assert type(error) is BadOutputError
    assert not error.transient
    assert len(error.errors) == 1


async def test_a_useless_answer_keeps_its_cost() -> None:
    """A tool call was paid for; the error carries its tokens."""
    async with always(FaultKind.TOOL_CALL) as scripted:
        error = await failure(scripted)

    assert error.usage.calls == 1
    assert error.usage.input_tokens > 0


async def test_a_huge_answer_is_refused_long_before_it_is_read() -> None:
    """50 MB are cut off at the bound, so that a worker's memory stays."""
    async with always(FaultKind.HUGE) as scripted:
        error = await failure(scripted)

    assert type(error) is BadOutputError
    assert str(LARGEST_ANSWER) in str(error)


async def test_a_cut_connection_is_unavailable() -> None:
    """A connection that breaks in the middle of the answer may work the next time."""
    async with always(FaultKind.CUT) as scripted:
        error = await failure(scripted)

    assert type(error) is ProviderUnavailableError
    assert error.transient


async def test_nobody_listening_is_unavailable() -> None:
    """A refused connection names the place and the setting to check."""
    async with ScriptedProvider() as scripted:
        settings = scripted.settings
    provider = OpenAIProvider(settings)
    with pytest.raises(ProviderUnavailableError, match=r"HEADRACE_LLM_BASE_URL.*127\.0\.0\.1"):
        await provider.complete(ask())
    await provider.aclose()


@pytest.mark.parametrize("kind", [FaultKind.HANG, FaultKind.DRIP])
async def test_the_deadline_is_total(kind: FaultKind) -> None:
    """A hanging provider, and one that sends a byte per second for ever, hold a call no longer than its timeout."""
    async with always(kind) as scripted:
        begun_at = time.monotonic()
        error = await failure(scripted, timeout=timedelta(seconds=1.5))
        took = time.monotonic() - begun_at

    assert type(error) is ProviderTimeoutError
    assert error.transient
    assert 1.4 <= took < 30


async def test_a_refusal_is_an_answer_that_says_so() -> None:
    """A refusal was paid for: the adapter returns it, marked."""
    async with always(FaultKind.REFUSAL) as scripted:
        answer = await complete(scripted)

    assert answer.finish_reason is FinishReason.REFUSED
    assert answer.text == "I cannot help with that."


async def test_a_cut_answer_says_so() -> None:
    """An answer that ran out of room is marked, whatever the reason."""
    async with ScriptedProvider(answer=lambda request: "word " * 50) as scripted:
        answer = await complete(scripted, ask(max_tokens=5))

    assert answer.finish_reason is FinishReason.LENGTH
    assert len(answer.text) == 20


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("content_filter", 400, RefusedError),
        ("context_length_exceeded", 400, ContextTooLongError),
        ("insufficient_quota", 429, ProviderAuthError),
    ],
)
async def test_a_code_decides_where_the_status_does_not(code: str, status: int, kind: type[ProviderError]) -> None:
    """A filtered prompt, a prompt too long and an account without credit are no passing faults."""
    async with always(FaultKind.SERVER_ERROR, status=status, code=code) as scripted:
        error = await failure(scripted)

    assert type(error) is kind
    assert not error.transient


async def test_nothing_is_retried() -> None:
    """One ask is one call, whatever happens: retries are the engine's part."""
    for kind in (FaultKind.RATE_LIMIT, FaultKind.SERVER_ERROR, FaultKind.CUT):
        async with always(kind) as scripted:
            await failure(scripted)
            assert scripted.count() == 1


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_the_key_never_gets_out(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the error, its traceback and causes, the settings' repr nor any log line holds the key."""
    caplog.set_level(logging.DEBUG)
    fault = Fault(kind=FaultKind.SERVER_ERROR, status=status, message=f"the key {SECRET} is bad")
    async with ScriptedProvider(api_key=SECRET, faults=[fault]) as scripted:
        error = await failure(scripted)
        settings = scripted.settings

    told = "".join(traceback.format_exception(error)) + repr(error) + repr(settings) + caplog.text
    assert SECRET not in told
    assert error.__cause__ is None
    assert error.__context__ is None


async def test_a_wrong_key_is_an_error_of_the_configuration() -> None:
    """A refused key is not transient, and the error names the setting."""
    async with ScriptedProvider() as scripted:
        error = await failure(scripted, api_key=SECRET)

    assert type(error) is ProviderAuthError
    assert "HEADRACE_LLM_API_KEY" in str(error)
    assert SECRET not in str(error)


async def test_one_adapter_serves_many_calls_at_once() -> None:
    """Calls of one adapter run side by side."""
    async with ScriptedProvider(latency=Latency(timedelta(milliseconds=300))) as scripted:
        provider = OpenAIProvider(scripted.settings)
        await provider.complete(ask("warm up"))
        await asyncio.gather(*(provider.complete(ask(f"question {number}")) for number in range(20)))
        await provider.aclose()

        assert scripted.peak_in_flight == 20


def test_one_adapter_serves_two_event_loops() -> None:
    """A script that calls asyncio.run twice keeps its adapter: connections belong to their loop."""
    port = asyncio.run(free_port())
    adapter = OpenAIProvider(ScriptedProvider(port=port).settings)

    async def ask_once() -> int:
        async with ScriptedProvider(port=port) as scripted:
            await adapter.complete(ask())
            await adapter.aclose()
            return scripted.count()

    assert [asyncio.run(ask_once()), asyncio.run(ask_once())] == [1, 1]


async def free_port() -> int:
    """A port that was free a moment ago."""
    async with ScriptedProvider() as scripted:
        return scripted.port


async def test_a_parameter_the_model_does_not_know_is_left_out() -> None:
    """A model that refuses a temperature is asked without it, and later calls leave it out at once."""
    seen: list[bool] = []

    def answer(request: Any) -> str:
        seen.append("temperature" in request.body)
        return "yes"

    unsupported = Fault(
        kind=FaultKind.SERVER_ERROR, status=400, calls=Span(1, 1), code="unsupported_value", param="temperature"
    )
    async with ScriptedProvider(answer=answer, faults=[unsupported]) as scripted:
        provider = OpenAIProvider(scripted.settings)
        assert (await provider.complete(ask())).text == "yes"
        assert (await provider.complete(ask("another"))).text == "yes"
        await provider.aclose()
        assert scripted.count() == 3

    assert seen == [False, False]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (LLMSettings(), "HEADRACE_LLM_MODEL"),
        (LLMSettings(model="m"), "HEADRACE_LLM_API_KEY"),
        (LLMSettings(model="m", api_key="k", base_url="localhost:8000"), "HEADRACE_LLM_BASE_URL"),
    ],
)
def test_a_wrong_setting_is_named(settings: LLMSettings, named: str) -> None:
    """What is missing or malformed is said before the first call, by the name of its setting."""
    with pytest.raises(ConfigError, match=named):
        OpenAIProvider(settings)


def test_the_style_is_the_configured_one() -> None:
    """Strict schemas by default; what is configured otherwise."""
    settings = LLMSettings(model="m", base_url="http://127.0.0.1:9/v1")
    assert OpenAIProvider(settings).style is AnswerStyle.STRICT_SCHEMA
    assert OpenAIProvider(replace(settings, style=AnswerStyle.JSON)).style is AnswerStyle.JSON


class Count(BaseModel):
    """What is extracted in the tests below."""

    plants: int = Field(description="number of plants")


@pytest.mark.parametrize(
    "kind",
    [
        *(FaultKind.TRUNCATED_JSON, FaultKind.WRONG_JSON, FaultKind.WRONG_TYPE, FaultKind.LENGTH),
        *(FaultKind.BROKEN_BODY, FaultKind.BAD_UTF8, FaultKind.EMPTY, FaultKind.ERROR_BODY, FaultKind.TOOL_CALL),
        FaultKind.HUGE,
    ],
)
async def test_extraction_mends_a_bad_answer_and_gives_up_on_the_third(kind: FaultKind) -> None:
    """Whatever is wrong with an answer: one bad answer is repaired, three end the extraction for good."""
    for faults, calls in ((Fault(kind=kind, calls=Span(1, 1)), 2), (Fault(kind=kind), 3)):
        async with ScriptedProvider(faults=[faults]) as scripted:
            llm = llm_over(scripted)
            if calls == 2:
                assert (await llm.extract(Count, prompt="We grew 60 plants.")).plants == 60
            else:
                with pytest.raises(BadOutputError):
                    await llm.extract(Count, prompt="We grew 60 plants.")
            await llm.aclose()
            assert scripted.count() == calls


async def test_nothing_is_asked_twice_after_a_restart() -> None:
    """A second process with the same store makes no call for what the first one asked, at any address."""
    stores = open_memory_stores()
    for calls in (3, 0):
        async with ScriptedProvider() as scripted:
            llm = llm_over(scripted, stores)
            for number in range(3):
                await llm.extract(Count, prompt=f"We grew {number} plants.")
            await llm.aclose()
            assert scripted.count() == calls


def llm_over(scripted: ScriptedProvider, stores: Stores | None = None) -> LLM:
    """The gateway over this provider."""
    return llm_of(OpenAIProvider(scripted.settings), stores)


_PEAK = """
import asyncio, json, resource, sys
from headrace.model.llm import CompletionRequest, LLMSettings, Message
from headrace.model.provider_errors import BadOutputError
from headrace.providers.openai import OpenAIProvider

async def main():
    provider = OpenAIProvider(LLMSettings(model="m", base_url=sys.argv[1], api_key=sys.argv[2]))
    async def ask(text):
        await provider.complete(CompletionRequest(model="m", messages=(Message("user", text),)))
    await ask("small")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for number in range(3):
        try:
            await ask(f"huge {number}")
        except BadOutputError:
            refused += 1
    await provider.aclose()
    print(json.dumps([refused, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))

asyncio.run(main())
"""


async def test_a_huge_answer_does_not_fill_the_memory() -> None:
    """Three answers of 50 MB raise a worker's peak memory by less than 40 MB."""
    async with ScriptedProvider(faults=[Fault(kind=FaultKind.HUGE, contains="huge")]) as scripted:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PEAK, scripted.base_url, scripted.api_key),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        said, _ = await asyncio.wait_for(child.communicate(), 60)

    refused, grown_kib = json.loads(said)
    assert refused == 3
    assert grown_kib < 40 * 1024


def test_choosing_a_provider_loads_no_sdk() -> None:
    """The SDK is imported by the first call, not by a worker that may never make one."""
    code = (
        "import sys; from pathlib import Path; from headrace.model.llm import LLMSettings\n"
        "from headrace.providers import open_provider\n"
        "open_provider(LLMSettings(model='m', base_url='http://127.0.0.1:9/v1'), Path('.')).style\n"
        "import headrace.llm.gateway\n"
        "print([name for name in ('openai', 'httpx2', 'xllamacpp') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"
