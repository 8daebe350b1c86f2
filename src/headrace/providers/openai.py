"""Any OpenAI-compatible endpoint, through the `openai` SDK."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit
from weakref import WeakKeyDictionary

from headrace.model.errors import ConfigError
from headrace.model.llm import (
    OPENAI_URL,
    Answer,
    AnswerStyle,
    CompletionRequest,
    Embeddings,
    LLMSettings,
    TextPart,
    endpoint_of,
)
from headrace.model.provider_errors import (
    InvalidRequestError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from headrace.providers.chat import Reader, request_body
from headrace.providers.chat_stream import AnswerStream, WholeAnswer
from headrace.providers.embeddings import embeddings_body, read_embeddings
from headrace.providers.fault import Fault, FaultError, Progress, UnreachableError
from headrace.providers.faults import request_id_of, sort_fault
from headrace.providers.leaving_out import LeavingOut
from headrace.providers.quota_headers import read_hint
from headrace.providers.texts import clean_name

if TYPE_CHECKING:
    from headrace.providers.openai_client import Incoming, Received, SdkClient


_NO_UTF8 = (
    "The request was not sent: a text, a schema or a parameter of it holds half of a surrogate pair, as from bytes "
    "read as another text. Replace it"
)


class OpenAIProvider:
    """The models behind one OpenAI-compatible endpoint. Never retries; each call has one total deadline.

    `use_proxies`: honour the environment's HTTP proxies. Raises ConfigError when model or key are missing.

    >>> provider = OpenAIProvider(LLMSettings(model="m", base_url="http://127.0.0.1:9/v1", api_key="secret"))
    >>> provider.name, provider.model
    ('openai', 'm')
    """

    def __init__(self, settings: LLMSettings, *, name: str = "openai", use_proxies: bool = True) -> None:
        if not settings.model:
            raise ConfigError(
                "HEADRACE_LLM_MODEL must name a model, got nothing. Set it, or unset HEADRACE_LLM_BASE_URL"
            )
        base_url = settings.base_url or OPENAI_URL
        if not settings.api_key and endpoint_of(base_url) == endpoint_of(OPENAI_URL):
            raise ConfigError(_no_key(settings.name))
        # First: it stands also what cannot be read as a URL.
        server = endpoint_of(base_url).partition("/")[0]
        if not server or urlsplit(base_url).scheme not in ("http", "https"):
            raise ConfigError(f"HEADRACE_LLM_BASE_URL must be a URL like http://127.0.0.1:8000/v1, got {base_url!r}")
        self._settings = replace(settings, base_url=base_url)
        self._name, self._model, self._base_url, self._use_proxies = name, settings.model, base_url, use_proxies
        #: For errors: without what a URL may hide, such as a password.
        self._place = server
        # A client's connections belong to one event loop; scripts that call asyncio.run twice have two.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, SdkClient] = WeakKeyDictionary()
        self._leaving_out = LeavingOut()

    @property
    def name(self) -> str:
        """`openai`, or what the maker of this provider called it."""
        return self._name

    @property
    def model(self) -> str:
        """The model that is asked where a request names none."""
        return self._model

    @property
    def style(self) -> AnswerStyle:
        """As configured; strict schemas by default."""
        return self._settings.style

    async def prepare(self) -> None:
        """Import the SDK, and open a client on this event loop."""
        await self._client()

    async def complete(self, request: CompletionRequest) -> Answer:
        """Ask once; see `Provider.complete`. Over the deadline: ProviderTimeoutError."""
        received = await self._whole(self._body(request), lambda client: client.send)
        return self._reader(received).read_answer(received.raw)

    async def stream(self, request: CompletionRequest) -> AsyncGenerator[TextPart | Answer, None]:
        """Ask once; the text as it comes, and at the end the whole answer. A stream that is cut may have been paid."""
        progress, failure = Progress(), None
        try:
            async with aclosing(self._stream(self._body(request), progress)) as parts:
                async for part in parts:
                    yield part
        except (FaultError, UnreachableError, TimeoutError, UnicodeEncodeError) as error:
            failure = self._sorted(error, progress)
        # Outside of the handler: the SDK's exceptions hold the request, and with it the key.
        if failure is not None:
            raise failure

    async def embed(self, texts: tuple[str, ...], *, model: str) -> Embeddings:
        """A vector for each text; none for none, at no cost. See `Provider.embed`."""
        if not texts:
            return Embeddings((), model=model)
        received = await self._whole(embeddings_body(texts, model=model), lambda client: client.embed)
        reader = self._reader(received)
        return read_embeddings(reader.body(received.raw), count=len(texts), reader=reader)

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _body(self, request: CompletionRequest) -> dict[str, Any]:
        """OpenAI's newer models know only the new name of the limit; other servers often only the old one."""
        host = urlsplit(self._base_url).hostname or ""
        is_new = host.endswith((".openai.com", ".openai.azure.com"))
        return request_body(request, limit_name="max_completion_tokens" if is_new else "max_tokens")

    def _reader(self, received: Received | Incoming) -> Reader:
        hint = read_hint(received.headers, now=datetime.now(UTC))
        return Reader(self._name, headers=received.headers, hint=hint)

    async def _whole(
        self,
        body: Mapping[str, Any],
        method: Callable[[SdkClient], Callable[[Mapping[str, Any], Progress], Awaitable[Received]]],
    ) -> Received:
        client, progress = await self._client(), Progress()
        try:
            # Round the whole call: a server that drips byte by byte never lets a read time out.
            async with asyncio.timeout(self._settings.timeout.total_seconds()):
                return await self._leaving_out.send(body, lambda fit: method(client)(fit, progress))
        except (FaultError, UnreachableError, TimeoutError, UnicodeEncodeError) as error:
            failure = self._sorted(error, progress)
        # Outside of the handler: the SDK's exceptions hold the request, and with it the key.
        raise failure

    async def _stream(self, body: Mapping[str, Any], progress: Progress) -> AsyncGenerator[TextPart | Answer, None]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.timeout.total_seconds()
        async with self._incoming({**body, "stream_options": {"include_usage": True}}, progress, deadline) as incoming:
            # Servers that know no streams answer as if none was asked for, and so do some with their errors.
            is_whole = incoming.headers.get("content-type", "").lower().startswith("application/json")
            reading = (WholeAnswer if is_whole else AnswerStream)(self._name, self._reader(incoming))
            # Not a timeout round the loop: while the text is used elsewhere, nobody may be cancelled here.
            expiry = loop.call_at(deadline, incoming.expire)
            try:
                while not reading.is_done:
                    data = await anext(incoming.chunks, None)
                    if data is None:
                        break
                    if text := reading.feed(data):
                        yield TextPart(text)
                    if not reading.is_done:
                        await incoming.tempo.pause()
            finally:
                expiry.cancel()
        answer = reading.finish()
        if is_whole and answer.text:
            yield TextPart(answer.text)
        yield answer

    @asynccontextmanager
    async def _incoming(self, body: Mapping[str, Any], progress: Progress, deadline: float) -> AsyncIterator[Incoming]:
        client = await self._client()

        async def open_one(fit: Mapping[str, Any]) -> tuple[Any, Incoming]:
            manager = client.stream(fit, progress)
            return manager, await manager.__aenter__()

        async with asyncio.timeout_at(deadline):
            manager, incoming = await self._leaving_out.send(body, open_one)
        try:
            yield incoming
        finally:
            await manager.__aexit__(None, None, None)

    def _sorted(
        self, error: FaultError | UnreachableError | TimeoutError | UnicodeEncodeError, progress: Progress
    ) -> ProviderError:
        if isinstance(error, UnicodeEncodeError):
            return InvalidRequestError(_NO_UTF8, provider=self._name)
        if isinstance(error, FaultError) and error.fault.is_redirect:
            return self._redirected(error.fault)
        if isinstance(error, FaultError):
            return sort_fault(error.fault, provider=self._name, secret=self._settings.api_key)
        if isinstance(error, TimeoutError):
            return ProviderTimeoutError(provider=self._name, maybe_paid=progress.is_sent)
        return ProviderUnavailableError(
            f"{ProviderUnavailableError.__doc__} ({self._name} at {self._place}: {error})",
            provider=self._name,
            maybe_paid=progress.is_sent,
        )

    def _redirected(self, fault: Fault) -> ProviderError:
        return InvalidRequestError(
            f"The server at {self._place} sends requests on to {_target(self._base_url, fault)} (status "
            f"{fault.status}), which is not followed: a prompt goes to no other place than base_url. Set base_url "
            "([llm.models.NAME], HEADRACE_LLM_BASE_URL) to where the API is, with the right scheme and path",
            provider=self._name,
            status=fault.status,
            request_id=request_id_of(fault.headers),
        )

    async def _client(self) -> SdkClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # In a thread: the import takes 0.6 s, and the loop has other jobs.
            module = await asyncio.to_thread(importlib.import_module, "headrace.providers.openai_client")
            if loop not in self._clients:
                client = module.SdkClient(self._settings, base_url=self._base_url, use_proxies=self._use_proxies)
                self._clients[loop] = client
        return self._clients[loop]


def _target(base_url: str, fault: Fault) -> str:
    """Where a redirect points to, without what a URL may hide."""
    try:
        target = urljoin(base_url, fault.headers.get("location", ""))
        scheme = urlsplit(target).scheme
    except ValueError:
        return "no place that is a URL"
    return clean_name(f"{scheme}://{endpoint_of(target)}")


def _no_key(name: str) -> str:
    if not name:
        return "HEADRACE_LLM_API_KEY must hold the key of your account. Set it, or OPENAI_API_KEY"
    # The key of another server or provider is not taken over.
    return f"llm.models.{name}.api_key must hold the key of your account at OpenAI. Write it into headrace.toml"
