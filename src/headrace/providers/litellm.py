"""Any model that LiteLLM knows, through the package `litellm`; an extra, since it is large (200 MB, 4 s to import).

Its own retries, telemetry and downloads are off. What it hides cannot be told: the bytes of an answer are not bounded
on the way, and where a provider says nothing of tokens within a stream, LiteLLM counts them itself.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from headrace.model.errors import ConfigError
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, Embeddings, LLMSettings, TextPart
from headrace.model.provider_errors import ProviderError, ProviderTimeoutError
from headrace.providers.chat import Reader, clean_messages, request_body
from headrace.providers.chat_stream import AnswerStream
from headrace.providers.embeddings import embeddings_body, read_embeddings
from headrace.providers.fault import FaultError
from headrace.providers.faults import sort_fault
from headrace.providers.leaving_out import LeavingOut
from headrace.providers.litellm_faults import headers_of, read_fault
from headrace.providers.quota_headers import read_hint

_PACKAGE = "litellm"
#: Read while it is imported: take the list of prices that lies in the package instead of fetching one, and leave the
#: `.env` of the working directory alone.
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}

_importing = threading.Lock()


class LiteLLMProvider:
    """The models that one account of LiteLLM reaches, named as LiteLLM names them ("anthropic/claude-…").

    Keys may also lie in the environment under the names LiteLLM reads. Raises ConfigError without a model, and without
    the package.
    """

    def __init__(self, settings: LLMSettings, *, load: Callable[[], Any] | None = None) -> None:
        """`load` returns the module `litellm`; called in a thread, on first use."""
        if not settings.model:
            raise ConfigError(
                "HEADRACE_LLM_MODEL must name a model as LiteLLM does, provider/model, got nothing. Set it, or set "
                "llm.provider to openai"
            )
        if load is None and find_spec(_PACKAGE) is None:
            raise ConfigError(
                "llm.provider is litellm, and the package is not installed. Install it with `pip install "
                "'headrace[litellm]'`, or set llm.provider to openai"
            )
        self._settings, self._model = settings, settings.model
        self._load = load or load_litellm
        self._leaving_out = LeavingOut()

    @property
    def name(self) -> str:
        """`litellm`."""
        return "litellm"

    @property
    def model(self) -> str:
        """The model that is asked where a request names none."""
        return self._model

    @property
    def style(self) -> AnswerStyle:
        """As configured; strict schemas by default."""
        return self._settings.style

    async def prepare(self) -> None:
        """Import LiteLLM, which takes seconds."""
        await asyncio.to_thread(self._load)

    async def complete(self, request: CompletionRequest) -> Answer:
        """Ask once; see `Provider.complete`."""
        body = clean_messages(request_body(request, limit_name="max_tokens"))
        answered = await self._call(body, lambda module: module.acompletion)
        return self._reader(answered).answer_in(_body(answered))

    async def stream(self, request: CompletionRequest) -> AsyncGenerator[TextPart | Answer, None]:
        """Ask once; the text as it comes, and at the end the whole answer. See `Provider.stream`."""
        options = {"stream": True, "stream_options": {"include_usage": True}}
        body = {**clean_messages(request_body(request, limit_name="max_tokens")), **options}
        deadline = asyncio.get_running_loop().time() + self._settings.timeout.total_seconds()
        coming = await self._call(body, lambda module: module.acompletion)
        reading = AnswerStream(self.name, self._reader(coming))
        async with aclosing(coming):
            chunks = aiter(coming)
            while (chunk := await self._next(chunks, deadline)) is not None:
                if text := reading.take(_body(chunk)):
                    yield TextPart(text)
            if _is_cut(coming):
                raise reading.cut()
        yield reading.finish()

    async def embed(self, texts: tuple[str, ...], *, model: str) -> Embeddings:
        """A vector for each text; none for none, at no cost. See `Provider.embed`."""
        if not texts:
            return Embeddings((), model=model)
        answered = await self._call(embeddings_body(texts, model=model), lambda module: module.aembedding)
        return read_embeddings(_body(answered), count=len(texts), reader=self._reader(answered))

    async def aclose(self) -> None:
        """Nothing: LiteLLM keeps its connections for the process, and closes them at its end."""

    async def _call(self, body: Mapping[str, Any], method: Callable[[Any], Callable[..., Awaitable[Any]]]) -> Any:
        module = await asyncio.to_thread(self._load)

        async def send(fit: Mapping[str, Any]) -> Any:
            try:
                return await method(module)(**fit, **self._account())
            except Exception as error:  # of any class: what LiteLLM does not sort itself comes as it is
                raise FaultError(read_fault(error)) from None

        try:
            async with asyncio.timeout(self._settings.timeout.total_seconds()):
                return await self._leaving_out.send(body, send)
        except (FaultError, TimeoutError) as error:
            failure = self._sorted(error)
        # Outside of the handler: LiteLLM's exceptions hold the request, and with it the key.
        raise failure

    async def _next(self, chunks: AsyncIterator[Any], deadline: float) -> Any:
        """The next chunk of a stream, or None at its end."""
        try:
            async with asyncio.timeout_at(deadline):
                return await anext(chunks, None)
        except TimeoutError as error:
            failure = self._sorted(error)
        except Exception as error:
            failure = self._sorted(FaultError(replace(read_fault(error), maybe_paid=True)))
        raise failure

    def _account(self) -> dict[str, Any]:
        settings = self._settings
        account: dict[str, Any] = {"timeout": settings.timeout.total_seconds(), "num_retries": 0, "max_retries": 0}
        if settings.api_key is not None:
            account["api_key"] = settings.api_key
        return account if settings.base_url is None else {**account, "api_base": settings.base_url}

    def _reader(self, answered: Any) -> Reader:
        headers = headers_of(answered)
        return Reader(self.name, headers=headers, hint=read_hint(headers, now=datetime.now(UTC)))

    def _sorted(self, error: FaultError | TimeoutError) -> ProviderError:
        if isinstance(error, FaultError):
            return sort_fault(error.fault, provider=self.name, secret=self._settings.api_key)
        return ProviderTimeoutError(provider=self.name, maybe_paid=True)


def load_litellm() -> Any:
    """The module, with everything off that it would do unasked. The first call takes 4 s."""
    with _importing:
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        module: Any = importlib.import_module(_PACKAGE)
        module.telemetry = False
        module.suppress_debug_info = True  # it would print to the terminal of whoever runs the worker
    return module


def _is_cut(stream: Any) -> bool:
    """Whether the provider said nothing of why it stopped. LiteLLM then makes up a reason, also for a broken stream."""
    said = [getattr(stream, name, "absent") for name in ("received_finish_reason", "intermittent_finish_reason")]
    return said in ([None, None], [None, "absent"])


def _body(answered: Any) -> dict[str, Any]:
    """The body as OpenAI would have sent it. LiteLLM writes 0 where a provider said nothing of tokens."""
    body: dict[str, Any] = answered.model_dump()
    usage = body.get("usage")
    if isinstance(usage, Mapping) and not usage.get("prompt_tokens"):
        body["usage"] = None
    return body
