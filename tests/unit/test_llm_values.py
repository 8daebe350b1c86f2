"""The values of a model call."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.model.errors import HeadraceError
from headrace.model.llm import Answer, CompletionRequest, FinishReason, LLMSettings, Message, StoredAnswer
from headrace.model.provider_errors import ProviderError
from headrace.model.usage import Usage, UsageMeter

REQUEST = CompletionRequest(model="m", messages=(Message("user", "hello"),))
NOW = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "n"},
        {"messages": (Message("system", "hello"),)},
        {"messages": (Message("user", "hello "),)},
        {"schema": {"type": "object"}},
        {"schema_name": "other"},
        {"json_mode": True},
        {"temperature": 0.1},
        {"max_tokens": 5},
        {"stop": ("\n",)},
        {"sample": 1},
    ],
)
def test_everything_that_determines_the_answer_changes_the_key(changes: dict[str, Any]) -> None:
    """No two different asks share a key."""
    assert replace(REQUEST, **changes).memo_key("openai") != REQUEST.memo_key("openai")


def test_equal_asks_have_equal_keys_in_every_process() -> None:
    """The key is a fixed function of the ask: what was paid years ago is found again."""
    twin = CompletionRequest(model="m", messages=(Message("user", "hello"),))
    one = replace(REQUEST, schema={"a": 1, "b": 2})

    assert twin.memo_key("openai") == REQUEST.memo_key("openai") != REQUEST.memo_key("local")
    assert one.memo_key("openai") == replace(one, schema={"b": 2, "a": 1}).memo_key("openai")
    assert REQUEST.memo_key("openai").startswith("0ff3f54d97f68d09")


def endpoint_named(base_url: str | None, provider: str = "openai", memo_name: str = "") -> str:
    """Return what the memo calls the server of a model."""
    return LLMSettings(provider=provider, model="m", base_url=base_url, memo_name=memo_name).memo_endpoint


def test_servers_that_call_their_models_the_same_share_no_answer() -> None:
    """Another host, port or path is another server, by `memo_name` it is the same; the usual one is as before."""
    urls = (
        "http://10.0.0.1:8000/v1",
        "http://10.0.0.1:8001/v1",
        "http://10.0.0.2:8000/v1",
        "http://10.0.0.1:8000/b/v1",
    )
    keys = {REQUEST.memo_key("openai", endpoint=endpoint_named(url)) for url in urls}
    assert len(keys | {REQUEST.memo_key("openai")}) == 5
    moved = {REQUEST.memo_key("openai", endpoint=endpoint_named(url, memo_name="vllm")) for url in urls}
    assert len(moved) == 1
    assert not moved & keys
    assert endpoint_named("HTTP://Host:80/v1/") == endpoint_named("http://user:secret@host/v1") == "host/v1"
    usual = (endpoint_named(None), endpoint_named("https://api.openai.com/v1/"), endpoint_named("http://x/", "local"))
    assert usual == ("", "", "")
    assert endpoint_named("https://api.openai.com/v1", "litellm") == "api.openai.com/v1"


@pytest.mark.parametrize("text", ["plain", "", "null \x00 byte", "lone \ud800 surrogate", 'quote " and \\ and ü'])
def test_a_stored_answer_survives_any_text(text: str) -> None:
    """Encoding is ASCII and loses nothing, whatever a model said."""
    answer = Answer(text=text, finish_reason=FinishReason.LENGTH, usage=Usage(1, 2, 1), model="m-1", request_id="r")
    stored = StoredAnswer("openai", answer)

    assert stored.encode().isascii()
    assert "\x00" not in stored.encode()
    assert StoredAnswer.decode(stored.encode()) == stored


def test_usage_adds_up_and_travels() -> None:
    """A meter sums what it is given, and its JSON reads back."""
    meter = UsageMeter()
    meter.add(Usage(10, 2, 1))
    meter.add(Usage(reused=3))

    assert meter.to_json() == {"input_tokens": 10, "output_tokens": 2, "calls": 1, "reused": 3}
    assert Usage.from_json({**meter.to_json(), "later": 1}) == meter.total
    assert Usage.from_json({}) == Usage()


def test_the_key_does_not_show() -> None:
    """Settings can be printed and logged."""
    assert "secret" not in repr(LLMSettings(model="m", api_key="secret"))


def test_every_provider_error_has_a_code_of_its_own_and_says_what_to_do() -> None:
    """Machines tell the errors apart by code; people read a default message."""
    kinds: list[type[ProviderError]] = [ProviderError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())

    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        error = kind()
        assert isinstance(error, HeadraceError)
        assert str(error) == kind.__doc__
        assert kind.__name__.endswith("Error")
