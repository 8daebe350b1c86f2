"""The LiteLLM adapter with the package itself, in an environment of its own, against the scripted provider."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.testing.provider import Fault, FaultKind, ScriptedProvider

ROOT = Path(__file__).resolve().parent.parent.parent
UV = Path(sys.executable).parent / "uv"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

#: Refuses every connection that leaves the machine from the first import on, and says which were tried.
_CHILD = """
import asyncio, json, socket, sys

tried = []
connect, look_up = socket.socket.connect, socket.getaddrinfo

def connect_near(self, address):
    if isinstance(address, tuple) and not str(address[0]).startswith("127."):
        tried.append(str(address))
        raise OSError("no network here")
    return connect(self, address)

def look_up_near(host, *args, **kwargs):
    if host not in ("127.0.0.1", "localhost", None):
        tried.append(str(host))
        raise socket.gaierror("no network here")
    return look_up(host, *args, **kwargs)

socket.socket.connect, socket.getaddrinfo = connect_near, look_up_near

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from headrace.model.llm import CompletionRequest, LLMSettings, Message, TextPart
from headrace.model.provider_errors import ProviderError
from headrace.providers import open_provider

settings = LLMSettings(
    provider="litellm", model="openai/scripted-model", base_url=sys.argv[1], api_key=sys.argv[2],
    timeout=timedelta(seconds=15),
)

def ask(text, **fields):
    return CompletionRequest(model=settings.model, messages=(Message("user", text),), **fields)

async def error_of(call):
    try:
        await call
    except ProviderError as error:
        wait = error.retry_after.total_seconds() if error.retry_after else None
        leaks = sys.argv[2] in repr(error) or error.__context__ is not None
        return [type(error).__name__, error.maybe_paid, wait, leaks]
    return None

async def read(stream):
    return [piece.text async for piece in stream]

async def main():
    provider = open_provider(settings, Path("."))
    after_choice = "litellm" in sys.modules
    answer = await provider.complete(ask("whole"))
    schema = {"type": "object", "properties": {"plants": {"type": "integer"}}, "required": ["plants"]}
    held = await provider.complete(ask("We grew 60 plants.", schema=schema))
    pieces = [piece async for piece in provider.stream(ask("streamed"))]
    impatient = open_provider(replace(settings, timeout=timedelta(seconds=1)), Path("."))
    nobody = open_provider(replace(settings, base_url="http://127.0.0.1:9/v1"), Path("."))
    stranger = open_provider(replace(settings, api_key="another"), Path("."))
    words = ("limited", "credit", "long", "broken", "overloaded", "filtered")
    errors = {word: await error_of(provider.complete(ask("please " + word))) for word in words}
    errors["cut"] = await error_of(provider.complete(ask("please cut")))
    errors["cut stream"] = await error_of(read(provider.stream(ask("please cut"))))
    errors["hanging"] = await error_of(impatient.complete(ask("please hang")))
    errors["unreachable"] = await error_of(nobody.complete(ask("whole")))
    errors["stranger"] = await error_of(stranger.complete(ask("whole")))
    json.dump({
        "tried": tried, "lazy": not after_choice, "text": answer.text, "held": held.text,
        "usage": answer.usage.to_json(), "request_id": answer.request_id,
        "parts": [piece.text for piece in pieces if isinstance(piece, TextPart)],
        "streamed": [pieces[-1].text, pieces[-1].usage.to_json(), pieces[-1].finish_reason],
        "errors": errors,
    }, sys.stdout)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds what `requirements/litellm.txt` pins, from this machine's index."""
    if not UV.exists():
        pytest.skip("the environment has no uv to build another one with")
    venv = tmp_path_factory.mktemp("litellm") / ".venv-litellm"
    place, pins = venv / "bin" / "python", ROOT / "requirements" / "litellm.txt"
    # Packages are all that a test may fetch: the dead end that stands in for every proxy is taken away for uv alone.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, venv], check=True, env=environment)
    command = [UV, "pip", "sync", "--quiet", "--require-hashes", "--no-build", "--python", place, pins]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if "Failed to fetch" in done.stderr:
        pytest.skip("this machine reaches no package index")
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def said(python: Path) -> dict[str, Any]:
    """What the adapter said to each of the calls of `_CHILD`."""
    return asyncio.run(_talk(python))


async def _talk(python: Path) -> dict[str, Any]:
    faults = [
        Fault(kind=FaultKind.RATE_LIMIT, contains="limited", retry_after=timedelta(seconds=7)),
        Fault(kind=FaultKind.SERVER_ERROR, contains="credit", status=429, code="insufficient_quota"),
        Fault(kind=FaultKind.SERVER_ERROR, contains="long", status=400, code="context_length_exceeded"),
        Fault(kind=FaultKind.SERVER_ERROR, contains="overloaded", status=503),
        Fault(kind=FaultKind.SERVER_ERROR, contains="broken", status=500),
        Fault(kind=FaultKind.SERVER_ERROR, contains="filtered", status=400, code="content_filter"),
        Fault(kind=FaultKind.CUT, contains="cut"),
        Fault(kind=FaultKind.HANG, contains="hang"),
    ]
    async with ScriptedProvider(
        answer=lambda request: None if request.schema else "Sixty plants.", faults=faults
    ) as scripted:
        child = await asyncio.create_subprocess_exec(
            *(python, "-c", _CHILD, scripted.base_url, scripted.api_key),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")},
        )
        out, errors = await asyncio.wait_for(child.communicate(), 300)
        assert child.returncode == 0, errors.decode()[-2_000:]
        answer: dict[str, Any] = json.loads(out)
        return {**answer, "calls of a limited one": scripted.count("please limited")}


def test_it_goes_nowhere_but_to_the_endpoint(said: dict[str, Any]) -> None:
    """Neither its import nor a call looks a foreign host up; and choosing it imports nothing."""
    assert said["tried"] == []
    assert said["lazy"]


def test_an_answer_arrives_whole_and_streamed(said: dict[str, Any]) -> None:
    """Text, usage and request id; the same in parts, with the usage at the end; and an answer held to a schema."""
    assert (said["text"], said["parts"], said["streamed"][0]) == (*("Sixty plants.", said["parts"], "Sixty plants."),)
    assert len(said["parts"]) > 1
    assert "".join(said["parts"]) == "Sixty plants."
    assert said["usage"]["calls"] == said["streamed"][1]["calls"] == 1
    assert said["usage"]["input_tokens"] > 0
    assert said["streamed"][1]["output_tokens"] > 0
    assert said["request_id"].startswith("req_")
    assert json.loads(said["held"]) == {"plants": 60}


def test_each_fault_becomes_its_error(said: dict[str, Any]) -> None:
    """By the provider's code and status, through LiteLLM's exceptions, with the wait and what may have been paid."""
    assert said["errors"] == {
        "limited": ["RateLimitedError", False, 7.0, False],
        "credit": ["ProviderAuthError", False, None, False],
        "long": ["ContextTooLongError", False, None, False],
        "broken": ["ProviderUnavailableError", True, None, False],
        "overloaded": ["OverloadedError", False, None, False],
        "filtered": ["RefusedError", True, None, False],
        "cut": ["ProviderUnavailableError", True, None, False],
        "cut stream": ["ProviderUnavailableError", True, None, False],
        "hanging": ["ProviderTimeoutError", True, None, False],
        "unreachable": ["ProviderUnavailableError", False, None, False],
        "stranger": ["ProviderAuthError", False, None, False],
    }


def test_it_tries_nothing_again_by_itself(said: dict[str, Any]) -> None:
    """A refused call is one call: retries are the engine's part."""
    assert said["calls of a limited one"] == 1
