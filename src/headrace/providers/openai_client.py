"""The `openai` SDK behind three methods. Importing this module costs 0.6 s, so the adapter does it on first use."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import httpx2
import openai

from headrace.model.llm import LLMSettings
from headrace.providers.bounded import bound_response
from headrace.providers.bounds import LARGEST_ANSWER, LARGEST_ERROR, LARGEST_TRANSFER
from headrace.providers.fault import Fault, FaultError, Progress, UnreachableError
from headrace.providers.reading_tempo import ReadingTempo
from headrace.providers.transport import Connections, Transport, expire, pieces, progress_of_call

#: The SDK wants a key even where the server wants none.
_NO_KEY = "none"
#: The SDK's methods for these walk through every field of a body by its type, which changes nothing in one that is
#: plain JSON, and costs a third of the call: bodies are posted as they are.
_CHAT, _EMBEDDINGS = "/chat/completions", "/embeddings"
_WHOLE: openai.RequestOptions = {"security": {"bearer_auth": True}}
#: Not compressed: the bound on bytes received is then the bound on memory.
_PLAIN = {"accept-encoding": "identity"}
#: The first status that is no answer.
_REDIRECT = 300
#: What ends an answer comes with its last text, or soon after.
_END_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Received:
    """The bytes of an answer; header names are lower case."""

    raw: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Incoming:
    """An answer that is on its way."""

    chunks: AsyncIterator[bytes]
    headers: Mapping[str, str]
    tempo: ReadingTempo
    #: Lets reading on raise TimeoutError.
    expire: Callable[[], None]


class SdkClient:
    """One SDK client, for one event loop. SDK retries are off: they would hide faults from the quota.

    Each method raises FaultError, UnreachableError, TimeoutError or BadOutputError, and notes in `progress` how far it
    came.
    """

    def __init__(self, settings: LLMSettings, *, base_url: str, use_proxies: bool) -> None:
        self._tempo = ReadingTempo()
        self._connections = Connections(base_url, use_proxies=use_proxies)
        http = openai.DefaultAsyncHttpxClient(
            transport=Transport(self._connections),
            follow_redirects=False,
            headers=_PLAIN,
            event_hooks={"response": [bound_response]},
        )
        self._sdk = openai.AsyncOpenAI(
            api_key=settings.api_key or _NO_KEY,
            base_url=base_url,
            max_retries=0,
            http_client=http,
        )
        told = {**self._sdk.default_headers, **self._sdk.auth_headers, **_PLAIN}
        #: As the SDK sends them.
        self._headers = [(name, value) for name, value in told.items() if isinstance(value, str)]
        self._chat_url = f"{base_url.rstrip('/')}{_CHAT}"

    async def send(self, body: Mapping[str, Any], progress: Progress) -> Received:
        """Ask for a chat completion and read all of the answer."""
        return await self._whole(_CHAT, body, progress)

    async def embed(self, body: Mapping[str, Any], progress: Progress) -> Received:
        """Ask for embeddings and read all of the answer."""
        return await self._whole(_EMBEDDINGS, body, progress)

    @contextlib.asynccontextmanager
    async def stream(self, body: Mapping[str, Any], progress: Progress) -> AsyncIterator[Incoming]:
        """Ask for a streamed chat completion; leaving ends the call."""
        # Beside the SDK: its way to send a request was a tenth of a busy agent's processor.
        raw = json.dumps({**body, "stream": True}, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        with _sorted(), _watched(progress):
            response = await self._connections.request("POST", self._chat_url, self._headers, raw)
        try:
            headers = _lower(response.headers)
            if response.status >= _REDIRECT:
                raise FaultError(Fault.read(response.status, headers, await _whole_of(response)))
            is_stream = headers.get("content-type", "").startswith("text/event-stream")
            chunks = _chunks(response, most=LARGEST_TRANSFER if is_stream else LARGEST_ANSWER)
            with self._tempo.counted():
                yield Incoming(chunks, headers, self._tempo, partial(expire, response))
            await _read_end(chunks)
        finally:
            response.close()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def _whole(self, path: str, body: Mapping[str, Any], progress: Progress) -> Received:
        with _sorted(), _watched(progress):
            response = await self._sdk.post(path, cast_to=httpx2.Response, body=body, options=_WHOLE)
            return Received(response.content, _lower(response.headers))


async def _chunks(response: aiohttp.ClientResponse, *, most: int) -> AsyncIterator[bytes]:
    with _sorted():
        async for piece in pieces(response, most=most):
            yield piece


async def _whole_of(response: aiohttp.ClientResponse) -> bytes:
    """The body of an error."""
    return b"".join([piece async for piece in _chunks(response, most=LARGEST_ERROR)])


async def _read_end(chunks: AsyncIterator[bytes]) -> None:
    """Read the last bytes of an answer that is whole: only then its connection is used for the next call."""
    with contextlib.suppress(TimeoutError, UnreachableError):
        async with asyncio.timeout(_END_SECONDS):
            await anext(chunks, None)


@contextlib.contextmanager
def _sorted() -> Iterator[None]:
    try:
        yield
    except openai.APIStatusError as error:
        raise FaultError(_fault(error.response)) from None
    except (httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise UnreachableError(_reason(error)) from None
    except (openai.APITimeoutError, httpx2.TimeoutException) as error:
        if isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
            raise UnreachableError(_reason(error)) from None
        raise TimeoutError from None
    except (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError) as error:
        raise UnreachableError(_reason(error)) from None


@contextlib.contextmanager
def _watched(progress: Progress) -> Iterator[None]:
    token = progress_of_call.set(progress)
    try:
        yield
    finally:
        progress_of_call.reset(token)


def _fault(response: httpx2.Response) -> Fault:
    """The fault in a response whose body the SDK has read."""
    return Fault.read(response.status_code, _lower(response.headers), response.content)


def _lower(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _reason(error: Exception) -> str:
    """The class of the fault below the SDK: its text may hold more than should be logged."""
    return type((isinstance(error, openai.APIError) and error.__cause__) or error).__name__
