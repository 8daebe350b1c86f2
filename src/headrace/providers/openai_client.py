"""The `openai` SDK behind one method. Importing this module costs 0.6 s, so the adapter does it on first use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import openai

from headrace.model.llm import LLMSettings
from headrace.providers.bounded import bound_response, check_size

#: The SDK wants a key even where the server wants none.
_NO_KEY = "none"
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class HttpFault:
    """A status that is no answer."""

    status: int
    headers: Mapping[str, str]
    #: The error's `code`, `type` and `param`, as the provider names them.
    code: str
    kind: str
    param: str
    message: str


class HttpFaultError(Exception):
    """The provider answered with an error; it never leaves the adapter."""

    def __init__(self, fault: HttpFault) -> None:
        super().__init__(fault.status)
        self.fault = fault


class UnreachableError(Exception):
    """The provider cannot be reached, or the connection broke; it never leaves the adapter."""


class SdkClient:
    """One SDK client, for one event loop. SDK retries are off: they would hide faults from the quota."""

    def __init__(self, settings: LLMSettings, *, base_url: str, use_proxies: bool) -> None:
        # The total deadline is the caller's; a connection that cannot be made is known sooner.
        timeout = httpx2.Timeout(settings.timeout.total_seconds(), connect=_CONNECT_SECONDS)
        # Not compressed: the bound on bytes received is then the bound on memory.
        self._http = openai.DefaultAsyncHttpxClient(
            timeout=timeout,
            trust_env=use_proxies,
            headers={"accept-encoding": "identity"},
            event_hooks={"response": [bound_response]},
        )
        self._sdk = openai.AsyncOpenAI(
            api_key=settings.api_key or _NO_KEY,
            base_url=base_url,
            max_retries=0,
            timeout=timeout,
            http_client=self._http,
        )

    async def send(self, body: Mapping[str, Any]) -> tuple[bytes, str | None]:
        """The bytes of the answer and the request's id.

        Raises HttpFaultError, UnreachableError, TimeoutError or BadOutputError.
        """
        fields: Any = body
        try:
            async with self._sdk.chat.completions.with_streaming_response.create(**fields) as response:
                return await _read(response), response.headers.get("x-request-id")
        except openai.APIStatusError as error:
            raise HttpFaultError(_fault(error)) from None
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise TimeoutError from None
        except (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError) as error:
            raise UnreachableError(_reason(error)) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()


async def _read(response: Any) -> bytes:
    """All bytes of the body, decoded, as long as they are few enough."""
    body = bytearray()
    async for chunk in response.iter_bytes():
        body += chunk
        check_size(len(body))
    return bytes(body)


def _fault(error: openai.APIStatusError) -> HttpFault:
    body = error.body if isinstance(error.body, Mapping) else {}
    return HttpFault(
        status=error.status_code,
        headers={name.lower(): value for name, value in error.response.headers.items()},
        code=str(body.get("code") or ""),
        kind=str(body.get("type") or ""),
        param=str(body.get("param") or ""),
        message=str(body.get("message") or ""),
    )


def _reason(error: Exception) -> str:
    """The class of the fault below: its text may hold more than should be logged."""
    return type(error.__cause__ or error).__name__
