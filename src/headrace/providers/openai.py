"""Any OpenAI-compatible endpoint, through the `openai` SDK."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from headrace.model.errors import ConfigError
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, LLMSettings
from headrace.model.provider_errors import ProviderError, ProviderTimeoutError, ProviderUnavailableError
from headrace.providers.chat import read_answer, request_body
from headrace.providers.faults import sort_fault

if TYPE_CHECKING:
    from headrace.providers.openai_client import HttpFault, SdkClient

_OFFICIAL = "https://api.openai.com/v1"
#: Codes with which an endpoint says that a model does not know a parameter, or not this value of it.
_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value"})
#: Parameters that may be left out without changing what is asked.
_OPTIONAL = frozenset({"temperature"})


class OpenAIProvider:
    """One model behind one OpenAI-compatible endpoint. Never retries; each call has one total deadline.

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
        base_url = settings.base_url or _OFFICIAL
        if not settings.api_key and base_url == _OFFICIAL:
            raise ConfigError("HEADRACE_LLM_API_KEY must hold the key of your account. Set it, or OPENAI_API_KEY")
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ConfigError(f"HEADRACE_LLM_BASE_URL must be a URL like http://127.0.0.1:8000/v1, got {base_url!r}")
        self._settings = replace(settings, base_url=base_url)
        self._name, self._model, self._base_url, self._use_proxies = name, settings.model, base_url, use_proxies
        #: For errors: without what a URL may hide, such as a password.
        self._place = f"{url.hostname}:{url.port}" if url.port else url.hostname
        # A client's connections belong to one event loop; scripts that call asyncio.run twice have two.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, SdkClient] = WeakKeyDictionary()
        self._left_out: set[str] = set()

    @property
    def name(self) -> str:
        """`openai`, or what the maker of this provider called it."""
        return self._name

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    @property
    def style(self) -> AnswerStyle:
        """As configured; strict schemas by default."""
        return self._settings.style

    async def complete(self, request: CompletionRequest) -> Answer:
        """Ask once; see `Provider.complete`. Over the deadline: ProviderTimeoutError."""
        raw, request_id = await self._send(request_body(request, limit_name=self._limit_name))
        return read_answer(raw, provider=self._name, request_id=request_id)

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    @property
    def _limit_name(self) -> str:
        """OpenAI's newer models know only the new name; other servers often only the old one."""
        host = urlsplit(self._base_url).hostname or ""
        return "max_completion_tokens" if host.endswith((".openai.com", ".openai.azure.com")) else "max_tokens"

    async def _send(self, body: Mapping[str, Any]) -> tuple[bytes, str | None]:
        client = await self._client()
        from headrace.providers.openai_client import HttpFaultError, UnreachableError

        try:
            # Round the whole call: a server that drips byte by byte never lets a read time out.
            async with asyncio.timeout(self._settings.timeout.total_seconds()):
                return await self._send_leaving_out(client, body)
        except TimeoutError:
            failure: ProviderError = ProviderTimeoutError(provider=self._name)
        except HttpFaultError as error:
            failure = sort_fault(error.fault, provider=self._name, secret=self._settings.api_key)
        except UnreachableError as error:
            failure = ProviderUnavailableError(
                f"{ProviderUnavailableError.__doc__} ({self._name} at {self._place}: {error})", provider=self._name
            )
        # Outside of the handlers: the SDK's exceptions hold the request, and with it the key.
        raise failure

    async def _send_leaving_out(self, client: SdkClient, body: Mapping[str, Any]) -> tuple[bytes, str | None]:
        """Send; where the model does not know an optional parameter, once more without it, and from then on."""
        from headrace.providers.openai_client import HttpFaultError

        try:
            return await client.send({name: value for name, value in body.items() if name not in self._left_out})
        except HttpFaultError as error:
            if not self._can_leave_out(error.fault):
                raise
            self._left_out.add(error.fault.param)
        return await client.send({name: value for name, value in body.items() if name not in self._left_out})

    def _can_leave_out(self, fault: HttpFault) -> bool:
        return fault.code in _UNSUPPORTED and fault.param in _OPTIONAL - self._left_out

    async def _client(self) -> SdkClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # In a thread: the import takes 0.6 s, and the loop has other jobs.
            module = await asyncio.to_thread(importlib.import_module, "headrace.providers.openai_client")
            if loop not in self._clients:
                client = module.SdkClient(self._settings, base_url=self._base_url, use_proxies=self._use_proxies)
                self._clients[loop] = client
        return self._clients[loop]
