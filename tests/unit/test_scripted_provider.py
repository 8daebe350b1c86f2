"""The scripted provider: what it answers, how it fails, what it counts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace.model.errors import InvalidInputError
from headrace.testing.provider import (
    Answers,
    Fault,
    FaultKind,
    Latency,
    ScriptedProvider,
    Span,
    fill_schema,
    read_log,
)
from tests.waiting import wait_until

TEXT = "Tomatoes were grown in Valencia. Each of the 60 plants got salt water. Rosada did best."
SCHEMA = {
    "type": "object",
    "properties": {
        "plants": {"type": "integer", "description": "how many plants"},
        "variety": {"enum": ["Luna", "Rosada"]},
        "price": {"anyOf": [{"type": "number"}, {"type": "null"}], "description": "euros"},
    },
}


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client without proxies."""
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        yield client


def body(text: str = TEXT, **fields: Any) -> dict[str, Any]:
    """A chat request with one message."""
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


def with_schema(schema: Any) -> dict[str, Any]:
    """The response format of a JSON schema."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


async def post(client: httpx2.AsyncClient, provider: ScriptedProvider, data: Any) -> httpx2.Response:
    """Ask the provider."""
    headers = {"authorization": f"Bearer {provider.api_key}"}
    return await client.post(f"{provider.base_url}/chat/completions", json=data, headers=headers)


def text_of(response: httpx2.Response) -> Any:
    """The text of an answer."""
    return response.json()["choices"][0]["message"]["content"]


async def test_a_schema_is_filled_from_the_prompt_the_same_every_time(client: httpx2.AsyncClient) -> None:
    """Default answers follow the schema, take values from the text, and do not change between runs."""
    answers = []
    for _ in range(2):
        async with ScriptedProvider() as provider:
            answers.append(text_of(await post(client, provider, body(**with_schema(SCHEMA)))))

    assert answers[0] == answers[1]
    assert json.loads(answers[0]) == {"plants": 60, "variety": "Rosada", "price": None}


def test_the_filler_follows_references_lists_formats_and_bounds() -> None:
    """Nested definitions, arrays, formats, lengths and bounds are honoured."""
    schema = {
        "type": "object",
        "$defs": {"Site": {"type": "object", "properties": {"code": {"type": "string", "maxLength": 3}}}},
        "properties": {
            "sites": {"type": "array", "items": {"$ref": "#/$defs/Site"}, "minItems": 2},
            "at": {"type": "string", "format": "date"},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "both": {"type": ["null", "string"]},
            "fixed": {"const": 7},
        },
    }

    filled = fill_schema(schema, "nothing to find")

    assert len(filled["sites"]) == 2
    assert all(len(site["code"]) <= 3 for site in filled["sites"])
    assert filled["at"] == "2024-01-01"
    assert 0 <= filled["share"] <= 1
    assert filled["both"] is None
    assert filled["fixed"] == 7


async def test_a_callable_answers(client: httpx2.AsyncClient) -> None:
    """Text is sent as it is, other values as JSON, None gives the default; async works too."""

    async def answer(request: Any) -> Any:
        return {"one": "text", "two": {"n": 2}}.get(request.last)

    async with ScriptedProvider(answer=answer) as provider:
        said = [text_of(await post(client, provider, body(text))) for text in ("one", "two", "three")]

    assert said[:2] == ["text", '{"n": 2}']
    assert said[2].startswith("scripted answer ")


async def test_json_mode_finds_the_schema_in_the_prompt(client: httpx2.AsyncClient) -> None:
    """Where the schema is told in words, the default answer follows it too."""
    asked = body(f"{TEXT} Answer with JSON that follows this schema: {json.dumps(SCHEMA)}")
    async with ScriptedProvider() as provider:
        answer = text_of(await post(client, provider, {**asked, "response_format": {"type": "json_object"}}))

    assert json.loads(answer)["plants"] == 60


async def test_rules_answer_from_a_file(client: httpx2.AsyncClient, tmp_path: Path) -> None:
    """Whole answers by words, fields by patterns, the numbers of sentences included; the rest is the default."""
    rules = [
        {"contains": "Paper 7", "answer": {"plants": 7}},
        {"path": "plants", "pattern": r"(\d+) plants", "as": "integer"},
        {"path": "found.sentences", "pattern": r"\[(\d+)\][^\[]*salt", "as": "integer", "all": True},
    ]
    (tmp_path / "answers.json").write_text(json.dumps({"rules": rules}))
    found = {"type": "object", "properties": {"sentences": {"type": "array", "items": {"type": "integer"}}}}
    schema = {"type": "object", "properties": {**SCHEMA["properties"], "found": found}}  # type: ignore[dict-item]
    text = "[1] We grew 61 plants. [2] They got salt. [3] And more salt."

    async with ScriptedProvider(rules=Answers.load(tmp_path / "answers.json")) as provider:
        whole = json.loads(text_of(await post(client, provider, body("Paper 7", **with_schema(schema)))))
        fields = json.loads(text_of(await post(client, provider, body(text, **with_schema(schema)))))

    assert whole == {"plants": 7}
    assert fields["plants"] == 61
    assert fields["found"] == {"sentences": [2, 3]}
    assert set(fields) == {"plants", "variety", "price", "found"}


@pytest.mark.parametrize(
    "rules", ['{"rules": 1}', "[", '{"rules": [{}]}', '{"rules": [{"path": "a", "pattern": "("}]}']
)
def test_wrong_rules_are_named(rules: str, tmp_path: Path) -> None:
    """A file of rules that cannot be understood says why."""
    (tmp_path / "answers.json").write_text(rules)
    with pytest.raises(InvalidInputError):
        Answers.load(tmp_path / "answers.json")


async def test_limits_and_stops_are_honoured(client: httpx2.AsyncClient) -> None:
    """The text ends at a stop, or where its tokens end, and then says `length`."""
    async with ScriptedProvider(answer=lambda request: "first line\nsecond line") as provider:
        stopped = await post(client, provider, body(stop=["\n"]))
        limited = (await post(client, provider, body(max_tokens=2))).json()["choices"][0]

    assert text_of(stopped) == "first line"
    assert limited["message"]["content"] == "first li"
    assert limited["finish_reason"] == "length"


async def test_a_stream_carries_the_same_text_and_its_usage(client: httpx2.AsyncClient) -> None:
    """Server-sent chunks add up to the whole text; usage comes last where it was asked for."""
    async with ScriptedProvider(answer=lambda request: "a somewhat longer answer") as provider:
        asked = body(stream=True, stream_options={"include_usage": True})
        response = await post(client, provider, asked)

    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    chunks = [json.loads(line) for line in lines[:-1]]
    assert lines[-1] == "[DONE]"
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]) == "a somewhat longer answer"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["completion_tokens"] == 6


async def test_the_latency_model_paces_answers(client: httpx2.AsyncClient) -> None:
    """A whole answer takes time to the first token plus its tokens; a stream begins after the first."""
    latency = Latency(timedelta(milliseconds=200), tokens_per_second=20)
    async with ScriptedProvider(answer=lambda request: "x" * 40, latency=latency) as provider:
        begun_at = time.monotonic()
        await post(client, provider, body())
        took = time.monotonic() - begun_at

    assert took >= latency.total(10) == 0.7


async def test_a_stream_sends_as_many_tokens_in_an_event_as_it_is_told(client: httpx2.AsyncClient) -> None:
    """Events of several tokens come when the last of them is due; the text, its usage and its end stay the same."""
    latency = Latency.parse("0.05,200,4")
    async with ScriptedProvider(answer=lambda request: "abcd" * 10, latency=latency) as provider:
        begun_at = time.monotonic()
        response = await post(client, provider, body(stream=True, stream_options={"include_usage": True}))
        took = time.monotonic() - begun_at

    chunks = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    parts = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]
    texts = [part for part in parts if part]
    assert "".join(texts) == "abcd" * 10
    assert all(len(text) == 16 for text in texts[:-1])
    assert len(texts) == 3
    assert chunks[-1]["usage"]["completion_tokens"] == 10
    assert took >= latency.total(10)


@pytest.mark.parametrize("text", ["0.4,100,0", "0.4,100,x", "0.4,100,4,4", "soon"])
def test_a_latency_that_is_not_understood_is_named(text: str) -> None:
    """The latency model is checked where it is written."""
    with pytest.raises(InvalidInputError, match="latency"):
        Latency.parse(text)


async def test_faults_strike_by_call_by_attempt_and_by_content(client: httpx2.AsyncClient) -> None:
    """Each condition of a line of the script holds for itself."""
    faults = [
        Fault(kind=FaultKind.SERVER_ERROR, calls=Span(1, 1)),
        Fault(kind=FaultKind.SERVER_ERROR, status=503, contains="bad", times=1),
        Fault(kind=FaultKind.RATE_LIMIT, attempts=Span(2, 2)),
    ]
    async with ScriptedProvider(faults=faults) as provider:
        asked = ["good", "good", "bad", "bad", "bad"]
        statuses = [(await post(client, provider, body(text))).status_code for text in asked]

    assert statuses == [500, 429, 503, 429, 200]


async def test_a_rate_of_faults_is_the_same_in_every_run(client: httpx2.AsyncClient) -> None:
    """Rates are drawn from seed, content and attempt: the order of arrival does not matter."""

    async def struck(order: list[int], seed: int) -> set[int]:
        faults = [Fault(kind=FaultKind.SERVER_ERROR, rate=0.3)]
        async with ScriptedProvider(faults=faults, seed=seed) as provider:
            return {n for n in order if (await post(client, provider, body(f"item {n}"))).status_code == 500}

    first, second = await struck([*range(60)], 1), await struck([*reversed(range(60))], 1)
    assert first == second
    assert 8 <= len(first) <= 28
    assert first != await struck([*range(60)], 2)


async def test_calls_are_counted_per_content(client: httpx2.AsyncClient) -> None:
    """In process and over HTTP: how often each content was asked, and how often answered in full."""
    async with ScriptedProvider(faults=[Fault(kind=FaultKind.CUT, calls=Span(2, 2))]) as provider:
        await post(client, provider, body("one"))
        with pytest.raises(httpx2.HTTPError):
            await post(client, provider, body("two"))
        await post(client, provider, body("two"))
        headers = {"authorization": f"Bearer {provider.api_key}"}
        url = provider.base_url.removesuffix("/v1") + "/_calls"
        told = (await client.get(url, headers=headers, params={"contains": "two"})).json()

        assert (provider.count(), provider.count("two"), provider.count("three")) == (3, 2, 0)
        assert [call.outcome for call in provider.calls] == ["answered", "aborted", "answered"]
        assert [call.attempt for call in provider.calls] == [1, 1, 2]
        assert (told["total"], told["answered"]) == (2, 1)
        assert told["contents"] == provider.per_content("two")
        await client.delete(url, headers=headers)
        assert provider.count() == 0


async def test_streaming_or_not_is_the_same_content(client: httpx2.AsyncClient) -> None:
    """How an answer travels does not change what was asked."""
    async with ScriptedProvider() as provider:
        await post(client, provider, body())
        await post(client, provider, body(stream=True))

        assert [entry["calls"] for entry in provider.per_content()] == [2]


async def test_a_client_that_goes_ends_its_call(client: httpx2.AsyncClient) -> None:
    """A hanging call does not hang on without its client."""
    async with ScriptedProvider(faults=[Fault(kind=FaultKind.HANG)]) as provider:
        with pytest.raises(httpx2.TimeoutException):
            await client.post(
                f"{provider.base_url}/chat/completions",
                json=body(),
                headers={"authorization": f"Bearer {provider.api_key}"},
                timeout=0.3,
            )
        await wait_until(lambda: provider.calls[0].outcome != "open")

        assert provider.calls[0].outcome == "aborted"


@pytest.mark.parametrize(
    ("data", "status"), [(b"{", 400), (b"[]", 400), (b'{"messages": []}', 400), (b'{"messages": [1]}', 400)]
)
async def test_a_request_that_is_none_is_refused(client: httpx2.AsyncClient, data: bytes, status: int) -> None:
    """Malformed requests get a 400 and are no calls."""
    async with ScriptedProvider() as provider:
        headers = {"authorization": f"Bearer {provider.api_key}"}
        response = await client.post(f"{provider.base_url}/chat/completions", content=data, headers=headers)

        assert response.status_code == status
        assert provider.count() == 0


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": "9"}, "max_completion_tokens"),
        ({"max_tokens": 10**400}, "max_tokens"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": 3}, "stop"),
        ({"stream_options": []}, "stream_options"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": "none"}}, "json_schema"),
        ({"messages": [{"role": "user", "content": [1]}]}, "content"),
    ],
    ids=lambda given: str(given)[:40],
)
async def test_a_wrong_parameter_is_named(client: httpx2.AsyncClient, fields: dict[str, Any], named: str) -> None:
    """It gets a 400 that says which it is, as from a real provider, and is no call."""
    async with ScriptedProvider() as provider:
        response = await post(client, provider, {**body(), **fields})

        assert (response.status_code, provider.count()) == (400, 0)
        assert named in response.json()["error"]["message"]


async def test_everything_wants_the_key(client: httpx2.AsyncClient) -> None:
    """Without the API key there is no answer, no list and no count."""
    async with ScriptedProvider() as provider:
        root = provider.base_url.removesuffix("/v1")
        for path in ("/v1/models", "/_calls", "/nowhere"):
            assert (await client.get(root + path)).status_code == 401
        headers = {"authorization": f"Bearer {provider.api_key}"}
        models = await client.get(f"{root}/v1/models", headers=headers)
        assert [model["id"] for model in models.json()["data"]] == ["scripted-model"]
        assert (await client.get(f"{root}/nowhere", headers=headers)).status_code == 404


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_it_binds_to_loopback_alone(host: str) -> None:
    """A server for tests is nobody else's business."""
    with pytest.raises(InvalidInputError, match="loopback"):
        ScriptedProvider(host=host)


@pytest.mark.parametrize("text", ["nonsense", "hang:often=3", "hang:calls=x", "429:rate=many"])
def test_a_fault_that_is_not_understood_is_named(text: str) -> None:
    """The script's lines are checked where they are written."""
    with pytest.raises(InvalidInputError, match=r"fault|calls"):
        Fault.parse(text)


def test_a_fault_is_read_from_text() -> None:
    """The command line's form says the same as the class."""
    fault = Fault.parse("429:calls=2-5,contains=Paper 7,retry_after=0.5,times=2")

    wait = timedelta(seconds=0.5)
    assert fault == Fault(kind=FaultKind.RATE_LIMIT, calls=Span(2, 5), contains="Paper 7", times=2, retry_after=wait)


async def test_it_runs_as_a_process_of_its_own(client: httpx2.AsyncClient, tmp_path: Path) -> None:
    """The module serves, logs each call durably, and leaves at SIGTERM with status 0."""
    log = tmp_path / "calls.jsonl"
    command = [sys.executable, "-m", "headrace.testing.provider", "--log", str(log), "--fault", "500:calls=1"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert process.stdout is not None
    try:
        ready = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
        headers = {"authorization": f"Bearer {ready['api_key']}"}
        url = f"{ready['base_url']}/chat/completions"
        statuses = [(await client.post(url, json=body(), headers=headers)).status_code for _ in range(2)]
        assert ready["pid"] == process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        status = await asyncio.wait_for(process.wait(), 20)

    assert statuses == [500, 200]
    assert status == 0
    assert list(read_log(log).values()) == [2]
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["received", "failed", "received", "answered"]


def test_a_mistake_on_the_command_line_is_told_without_a_traceback() -> None:
    """Exit code 2 and one line that names the field."""
    command = [sys.executable, "-m", "headrace.testing.provider", "--fault", "nonsense"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "fault must be one of" in done.stderr
