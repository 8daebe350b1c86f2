"""The OpenAI adapter on the wire: streams, embeddings, headers, and what is known of a call that failed."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace.model.llm import Answer, CompletionRequest, FinishReason, Message, TextPart
from headrace.model.provider_errors import (
    BadOutputError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    RateLimitedError,
)
from headrace.model.quota import Dimension
from headrace.model.usage import Usage
from headrace.providers.bounds import LARGEST_TRANSFER
from headrace.providers.openai import OpenAIProvider
from headrace.testing.provider import Fault, FaultKind, Latency, ScriptedProvider
from tests.integration.raw_endpoint import Exchange, Handler, RawEndpoint, raw_endpoint

EVENTS = {"content-type": "text/event-stream", "x-request-id": "req_1"}
SECOND = timedelta(seconds=1)


def ask(text: str = "hello", **fields: Any) -> CompletionRequest:
    """A request."""
    return CompletionRequest(model="raw-model", messages=(Message("user", text),), **fields)


def event(text: str | None = None, reason: str | None = None, **fields: Any) -> bytes:
    """One event of a stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return b"data: " + json.dumps({"id": "c1", "model": "m-1", "choices": [choice], **fields}).encode() + b"\n\n"


WHOLE = event("he") + event("llo") + event(None, "stop") + b"data: [DONE]\n\n"


@asynccontextmanager
async def provider_at(handle: Handler, **changes: Any) -> AsyncIterator[tuple[OpenAIProvider, RawEndpoint]]:
    """An adapter at an endpoint that answers so."""
    async with raw_endpoint(handle) as endpoint:
        provider = OpenAIProvider(replace(endpoint.settings, **changes))
        try:
            yield provider, endpoint
        finally:
            await provider.aclose()


async def test_a_stream_that_comes_compressed_is_read() -> None:
    """Nobody asked for that; within the bound it is taken as it is."""

    async def compress(exchange: Exchange) -> None:
        await exchange.start(headers={**EVENTS, "content-encoding": "gzip"})
        await exchange.send(gzip.compress(WHOLE))
        exchange.writer.close()

    async with provider_at(compress) as (provider, _):
        parts = [part async for part in provider.stream(ask())]
    assert isinstance(parts[-1], Answer) and parts[-1].text == "hello"


async def error_of(stream: AsyncIterator[TextPart | Answer]) -> ProviderError:
    """The error that a stream ends with."""
    with pytest.raises(ProviderError) as caught:
        async for _ in stream:
            pass
    return caught.value


async def test_a_stream_gives_parts_then_the_answer() -> None:
    """Against the scripted provider: parts that add up to the answer, its usage, id and model at the end."""
    async with ScriptedProvider(answer=lambda request: "Sixty plants grew.") as scripted:
        provider = OpenAIProvider(scripted.settings)
        whole = await provider.complete(ask("a"))
        *parts, answer = [piece async for piece in provider.stream(ask("a"))]
        await provider.aclose()

    assert isinstance(answer, Answer)
    assert parts
    assert "".join(part.text for part in parts if isinstance(part, TextPart)) == answer.text == whole.text
    assert (answer.usage, answer.model, answer.finish_reason) == (whole.usage, whole.model, FinishReason.STOP)
    assert answer.request_id != whole.request_id


async def test_a_part_is_there_before_the_next_is_sent() -> None:
    """Nothing waits for more bytes than there are: the first part arrives while the server holds the second."""
    may_go_on = asyncio.Event()

    async def slowly(exchange: Exchange) -> None:
        await exchange.start(headers=EVENTS)
        await exchange.send(event("he"))
        await may_go_on.wait()
        await exchange.send(event("llo", "stop"))

    async with provider_at(slowly) as (provider, endpoint):
        stream = provider.stream(ask())
        assert await asyncio.wait_for(anext(stream), 10) == TextPart("he")
        may_go_on.set()
        rest = [piece async for piece in stream]

    assert rest[0] == TextPart("llo")
    assert endpoint.asked[0].body["stream_options"] == {"include_usage": True}


async def test_closing_a_stream_ends_the_call() -> None:
    """Whoever stops reading stops paying: the connection is dropped."""

    async def for_ever(exchange: Exchange) -> None:
        await exchange.start(headers=EVENTS)
        while True:
            await exchange.send(event("more "))
            await asyncio.sleep(0.01)

    async with provider_at(for_ever) as (provider, endpoint):
        stream = provider.stream(ask())
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(endpoint.abandoned.wait(), 10)


async def test_a_consumer_that_takes_its_time_is_not_cancelled() -> None:
    """The deadline is the call's: it passes while a part is in use, and the next step says so; nobody is cancelled."""

    async def hang(exchange: Exchange) -> None:
        await exchange.start(headers=EVENTS)
        await exchange.send(event("he"))
        await asyncio.Event().wait()

    async with provider_at(hang, timeout=SECOND / 2) as (provider, _):
        stream = provider.stream(ask())
        assert await anext(stream) == TextPart("he")
        await asyncio.sleep(0.6)
        error = await error_of(stream)

    assert type(error) is ProviderTimeoutError
    assert error.maybe_paid


async def test_the_deadline_of_a_stream_is_total() -> None:
    """A server that drips holds a stream no longer than its timeout."""

    async def drip(exchange: Exchange) -> None:
        await exchange.start(headers=EVENTS)
        while True:
            await exchange.send(event("."))
            await asyncio.sleep(0.05)

    async with provider_at(drip, timeout=SECOND) as (provider, _):
        begun_at = time.monotonic()
        error = await error_of(provider.stream(ask()))

    assert type(error) is ProviderTimeoutError
    assert 0.9 < time.monotonic() - begun_at < 30


@pytest.mark.parametrize("kind", [FaultKind.CUT, FaultKind.BAD_UTF8])
async def test_a_stream_that_breaks_may_have_been_paid(kind: FaultKind) -> None:
    """Against the scripted provider: a connection that is cut in the midst, and bytes that are no text."""
    async with ScriptedProvider(answer=lambda request: "word " * 20, faults=[Fault(kind=kind)]) as scripted:
        provider = OpenAIProvider(scripted.settings)
        error = await error_of(provider.stream(ask()))
        await provider.aclose()

    assert type(error) is (ProviderUnavailableError if kind is FaultKind.CUT else BadOutputError)
    assert error.maybe_paid


async def test_a_refused_stream_is_sorted_like_a_refused_call() -> None:
    """A 429 before the first byte was not paid for, and says how long to wait; its key is in no cause."""
    async with ScriptedProvider(faults=[Fault(kind=FaultKind.RATE_LIMIT, retry_after=2 * SECOND)]) as scripted:
        provider = OpenAIProvider(scripted.settings)
        error = await error_of(provider.stream(ask()))
        await provider.aclose()

    assert type(error) is RateLimitedError
    assert (error.retry_after, error.maybe_paid, error.__context__) == (2 * SECOND, False, None)


async def test_an_endless_stream_is_refused() -> None:
    """A stream is cut off at its bound, though no line of it is long."""

    async def flood(exchange: Exchange) -> None:
        await exchange.start(headers=EVENTS)
        while True:
            await exchange.send(b": nothing\n" * 50_000)

    async with provider_at(flood, timeout=60 * SECOND) as (provider, _):
        error = await error_of(provider.stream(ask()))

    assert type(error) is BadOutputError
    assert str(LARGEST_TRANSFER) in str(error)


@pytest.mark.parametrize(
    "refusal",
    [
        {"error": {"code": "unknown_parameter", "param": "stream_options"}},
        {"object": "error", "message": "body.stream_options: Extra inputs are not permitted", "code": 422},
    ],
)
async def test_a_server_that_knows_no_usage_in_streams(refusal: Any) -> None:
    """It is asked without, then and ever after; what its answers cost is unknown."""

    async def strict(exchange: Exchange) -> None:
        if "stream_options" in exchange.body:
            await exchange.answer(refusal, status=422)
            return
        await exchange.start(headers=EVENTS)
        await exchange.send(WHOLE)

    async with provider_at(strict) as (provider, endpoint):
        answers = [[piece async for piece in provider.stream(ask())][-1] for _ in range(2)]

    assert ["stream_options" in asked.body for asked in endpoint.asked] == [True, False, False]
    assert [answer.usage for answer in answers if isinstance(answer, Answer)] == [Usage(calls=1, unpriced=1)] * 2


async def test_what_a_model_does_not_know_is_remembered_for_it_alone() -> None:
    """Several models of one account: one takes no temperature, the other does; each is asked by its own name."""

    async def picky(exchange: Exchange) -> None:
        if exchange.body["model"] == "picky" and "temperature" in exchange.body:
            error = {"code": "unsupported_value", "param": "temperature"}
            await exchange.answer({"error": error}, status=400)
            return
        await exchange.answer({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]})

    async with provider_at(picky) as (provider, endpoint):
        for model in ("picky", "other", "picky"):
            await provider.complete(replace(ask(), model=model))

    told = [(asked.body["model"], "temperature" in asked.body) for asked in endpoint.asked]
    assert told == [("picky", True), ("picky", False), ("other", True), ("picky", False)]


async def test_seed_and_tools_are_sent_when_they_are_given() -> None:
    """What determines an answer reaches the provider; what is not given is left out."""
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {}}}

    async def echo(exchange: Exchange) -> None:
        await exchange.answer({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]})

    async with provider_at(echo) as (provider, endpoint):
        await provider.complete(ask(seed=0, tools=(tool,)))
        await provider.complete(ask())

    assert (endpoint.asked[0].body["seed"], endpoint.asked[0].body["tools"]) == (0, [tool])
    assert not {"seed", "tools"} & endpoint.asked[1].body.keys()


async def test_headers_come_with_answers_and_with_errors() -> None:
    """What is left of the quota is known after each call, whole, streamed or refused."""
    headers = {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s"}

    async def counted(exchange: Exchange) -> None:
        if exchange.body["messages"][0]["content"] == "refuse":
            await exchange.answer({"error": {}}, status=503, headers=headers)
        elif exchange.body.get("stream"):
            await exchange.start(headers={**EVENTS, **headers})
            await exchange.send(WHOLE)
        else:
            await exchange.answer({"choices": [{"message": {"content": "yes"}}]}, headers=headers)

    async with provider_at(counted) as (provider, _):
        answer = await provider.complete(ask())
        streamed = [piece async for piece in provider.stream(ask())][-1]
        with pytest.raises(OverloadedError) as caught:
            await provider.complete(ask("refuse"))

    assert isinstance(streamed, Answer)
    for hint in (answer.hint, streamed.hint, caught.value.hint):
        assert hint.remaining == {Dimension.REQUESTS: 59}
        assert hint.resets == {Dimension.REQUESTS: SECOND}
        assert hint.retry_after is None


async def test_geminis_refusal_says_when_to_come_again() -> None:
    """Its body is a list, and the wait lies in it."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    body = [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [info]}}]

    async def refuse(exchange: Exchange) -> None:
        await exchange.answer(body, status=429)

    async with provider_at(refuse) as (provider, _):
        with pytest.raises(RateLimitedError) as caught:
            await provider.complete(ask())

    assert caught.value.retry_after == 34 * SECOND


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(input_tokens=9, output_tokens=5, cached_tokens=4, calls=1),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 5, "prompt_cache_hit_tokens": 50}, Usage(9, 5, 1, cached_tokens=9)),
        (None, Usage(calls=1, unpriced=1)),
        ({"prompt_tokens": 9}, Usage(input_tokens=9, calls=1, unpriced=1)),
        ({"prompt_tokens": -1, "completion_tokens": 10**12}, Usage(calls=1, unpriced=1)),
        ({"prompt_tokens": True, "completion_tokens": "7"}, Usage(calls=1, unpriced=1)),
        ([], Usage(calls=1, unpriced=1)),
    ],
)
async def test_what_a_provider_says_of_tokens(usage: Any, read: Usage) -> None:
    """Cached tokens are part of the input; what is missing or absurd makes the cost unknown, never 0."""

    async def answer(exchange: Exchange) -> None:
        await exchange.answer({"choices": [{"message": {"content": "yes"}}], "usage": usage})

    async with provider_at(answer) as (provider, _):
        assert (await provider.complete(ask())).usage == read


async def test_an_error_sent_as_an_answer_is_sorted_where_its_code_says_which() -> None:
    """OpenRouter sends status 200 with the status of the model behind it; the model may have worked."""

    async def inner(exchange: Exchange) -> None:
        await exchange.answer({"error": {"code": 429, "message": "upstream"}})

    async with provider_at(inner) as (provider, _):
        with pytest.raises(RateLimitedError) as caught:
            await provider.complete(ask())

    assert caught.value.maybe_paid


async def test_a_call_that_never_left_was_not_paid() -> None:
    """Nobody listens: the provider did no work."""
    async with ScriptedProvider() as scripted:
        settings = scripted.settings
    provider = OpenAIProvider(settings)
    with pytest.raises(ProviderUnavailableError) as caught:
        await provider.complete(ask())
    await provider.aclose()

    assert not caught.value.maybe_paid


async def test_a_call_that_left_may_have_been_paid() -> None:
    """Cut before a byte of the answer, cut within it, or silent: the provider had the request."""

    async def cut_at_once(exchange: Exchange) -> None:
        exchange.cut()

    async def cut_within(exchange: Exchange) -> None:
        await exchange.start(headers={"content-length": "1000"})
        await exchange.send(b'{"choices": [')
        exchange.cut()

    async def hang(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    errors = []
    for handle in (cut_at_once, cut_within, hang):
        async with provider_at(handle, timeout=SECOND / 2) as (provider, _):
            with pytest.raises(ProviderError) as caught:
                await provider.complete(ask())
            errors.append(caught.value)

    assert [type(error) for error in errors] == [
        *(ProviderUnavailableError, ProviderUnavailableError, ProviderTimeoutError)
    ]
    assert all(error.maybe_paid for error in errors)


async def test_a_useless_answer_was_paid_for_and_nobody_knows_how_much() -> None:
    """No JSON, so no usage: the error says that a call was paid, at an unknown price."""

    async def garbage(exchange: Exchange) -> None:
        await exchange.answer(b"<html>")

    async with provider_at(garbage) as (provider, _):
        with pytest.raises(BadOutputError) as caught:
            await provider.complete(ask())

    assert caught.value.maybe_paid
    assert (caught.value.usage.calls, caught.value.usage.cost) == (1, None)


async def test_embeddings_come_in_the_order_of_their_texts() -> None:
    """One vector for each text whatever their order on the wire, with usage, id and hint."""

    async def embed(exchange: Exchange) -> None:
        entries = [{"index": 1, "embedding": [0.5, 1]}, {"index": 0, "embedding": [0.25, -2e-3]}]
        body = {"data": entries, "model": "e-1", "usage": {"prompt_tokens": 4, "total_tokens": 4}}
        await exchange.answer(body, headers={"x-request-id": "req_e", "x-ratelimit-remaining-tokens": "7"})

    async with provider_at(embed) as (provider, endpoint):
        found = await provider.embed(("a", "b"), model="e")
        none = await provider.embed((), model="e")

    assert found.vectors == ((0.25, -0.002), (0.5, 1.0))
    assert (found.usage, found.model, found.request_id) == (Usage(input_tokens=4, calls=1), "e-1", "req_e")
    assert found.hint.remaining == {Dimension.TOKENS: 7}
    assert (endpoint.asked[0].path, dict(endpoint.asked[0].body)) == (
        "/v1/embeddings",
        {"model": "e", "input": ["a", "b"], "encoding_format": "float"},
    )
    assert (none.vectors, none.usage, len(endpoint.asked)) == ((), Usage(), 1)


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": [1]}],
        [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": []}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": ["x"]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1e999]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}],
        [{"index": 0, "embedding": [1]}, 7],
    ],
)
async def test_vectors_that_are_none_are_bad_output(data: Any) -> None:
    """Too few, twice the same place, empty, no numbers, infinite, or of several lengths: refused, with the usage."""

    async def embed(exchange: Exchange) -> None:
        raw = json.dumps({"data": data, "usage": {"prompt_tokens": 4, "total_tokens": 4}})
        await exchange.answer(raw.replace("Infinity", "1e999").encode())

    async with provider_at(embed) as (provider, _):
        with pytest.raises(BadOutputError) as caught:
            await provider.embed(("a", "b"), model="e")

    assert caught.value.usage.input_tokens == 4


async def test_an_endpoint_without_embeddings_says_so() -> None:
    """A 404 is no passing fault."""

    async def nothing(exchange: Exchange) -> None:
        await exchange.answer({"error": {"message": "no such path"}}, status=404)

    async with provider_at(nothing) as (provider, _):
        with pytest.raises(InvalidRequestError):
            await provider.embed(("a",), model="e")


async def test_streams_of_one_adapter_run_side_by_side() -> None:
    """Many at once share the adapter, and each gets its own answer."""
    latency = Latency(timedelta(milliseconds=100))
    async with ScriptedProvider(answer=lambda request: request.user_text * 3, latency=latency) as scripted:
        provider = OpenAIProvider(scripted.settings)

        async def read(text: str) -> str:
            pieces = [piece async for piece in provider.stream(ask(text))]
            assert isinstance(pieces[-1], Answer)
            return pieces[-1].text

        texts = [f"question {number} " for number in range(20)]
        answers = await asyncio.gather(*(read(text) for text in texts))
        await provider.aclose()

    assert answers == [text * 3 for text in texts]


async def test_what_has_no_utf8_is_said_again_without_it() -> None:
    """A model's own words are told to it again when they are repaired: half of a pair in them stops nobody."""

    async def handle(exchange: Exchange) -> None:
        if exchange.body.get("stream"):
            await exchange.answer(WHOLE, headers=EVENTS)
        else:
            await exchange.answer({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]})

    async with provider_at(handle) as (provider, endpoint):
        await provider.complete(ask("é \ud800"))
        streamed = [part async for part in provider.stream(ask("\udc00"))]

    said = [exchange.body["messages"][0]["content"] for exchange in endpoint.asked]
    assert said == ["é \ufffd", "\ufffd"]
    assert isinstance(streamed[-1], Answer)


async def test_a_request_that_cannot_be_written_is_not_sent() -> None:
    """A parameter without UTF-8 is the caller's mistake: named, not paid, and not made again."""

    async def handle(exchange: Exchange) -> None:
        await exchange.answer({})

    async with provider_at(handle) as (provider, endpoint):
        for call in (provider.complete(ask(stop=("\ud800",))), provider.embed(("\ud800",), model="m")):
            with pytest.raises(InvalidRequestError, match="was not sent") as caught:
                await call
            assert not caught.value.maybe_paid
        with pytest.raises(InvalidRequestError, match="was not sent"):
            await anext(provider.stream(ask(stop=("\ud800",))))

    assert endpoint.asked == []


@pytest.mark.parametrize("status", [301, 307, 308])
async def test_a_prompt_is_not_sent_on_to_another_place(status: int) -> None:
    """A redirect is a mistake of the configuration: named with both places, not followed, not tried again."""

    async def redirect(exchange: Exchange) -> None:
        place = f"http://user:hidden@127.0.0.1:{other.port}/v2/chat/completions?token=hidden"
        await exchange.answer(b"moved", status=status, headers={"location": place})

    async def answer(exchange: Exchange) -> None:
        await exchange.answer(WHOLE, headers=EVENTS)

    async with raw_endpoint(answer) as other, provider_at(redirect) as (provider, endpoint):
        with pytest.raises(InvalidRequestError) as whole:
            await provider.complete(ask())
        with pytest.raises(InvalidRequestError) as streamed:
            await anext(provider.stream(ask()))

    for error in (whole.value, streamed.value):
        assert f"127.0.0.1:{endpoint.port}" in str(error)
        assert f"http://127.0.0.1:{other.port}/v2" in str(error)
        assert "Set base_url" in str(error)
        assert "hidden" not in str(error)
        assert (error.transient, error.maybe_paid, error.status) == (False, False, status)
    assert (len(endpoint.asked), other.asked) == (2, [])


@pytest.mark.parametrize("headers", [{}, {"location": "http://[not/a/url"}])
async def test_a_redirect_to_nowhere_is_told_as_well(headers: dict[str, str]) -> None:
    """Also where it does not say, or not in a way that can be read, to what place."""

    async def redirect(exchange: Exchange) -> None:
        await exchange.answer(b"", status=302, headers=headers)

    async with provider_at(redirect) as (provider, _):
        with pytest.raises(InvalidRequestError, match="Set base_url"):
            await provider.embed(("a",), model="m")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
async def test_an_answer_that_comes_whole_to_an_ask_for_a_stream_is_taken(kind: str) -> None:
    """It was paid: some servers know no streams, and say so by nothing but the type of what they send."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    body = {"id": "c1", "model": "m-1", "choices": [{"message": {"content": "hello"}}], "usage": usage}

    async def handle(exchange: Exchange) -> None:
        await exchange.answer(body, headers={"content-type": kind})

    async with provider_at(handle) as (provider, _):
        *parts, answer = [part async for part in provider.stream(ask())]

    assert parts == [TextPart("hello")]
    assert isinstance(answer, Answer)
    assert (answer.text, answer.usage, answer.model) == ("hello", Usage(3, 2, 1), "m-1")


async def test_a_stream_by_the_wrong_name_is_read_as_one() -> None:
    """Events that are sent as JSON are an answer as well."""

    async def handle(exchange: Exchange) -> None:
        await exchange.answer(b"\n" + WHOLE, headers={"content-type": "application/json"})

    async with provider_at(handle) as (provider, _):
        *parts, answer = [part async for part in provider.stream(ask())]

    assert parts == [TextPart("hello")]
    assert isinstance(answer, Answer)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, RateLimitedError),
        ({"error": {"code": 503}}, OverloadedError),
        ({"error": {"message": "who knows"}}, BadOutputError),
        ({"choices": []}, BadOutputError),
        ([], BadOutputError),
    ],
)
async def test_an_error_that_comes_whole_has_its_class(body: Any, kind: type[ProviderError]) -> None:
    """In the place of a stream as in that of an answer."""

    async def handle(exchange: Exchange) -> None:
        await exchange.answer(body, headers={"content-type": "application/json"})

    async with provider_at(handle) as (provider, _):
        with pytest.raises(ProviderError) as streamed:
            await anext(provider.stream(ask()))
        with pytest.raises(ProviderError) as whole:
            await provider.complete(ask())

    assert (type(streamed.value), type(whole.value)) == (kind, kind)
